//! What a definition and its schemas have.

use gateward_core::json::Json;

pub(super) fn text<'a>(json: &'a Json, member: &str) -> &'a str {
    json.get(member).and_then(Json::as_str).unwrap_or_default()
}

/// A schema with its alternatives: `anyOf` is how an optional argument is often written.
pub(super) fn forms(schema: &Json) -> impl Iterator<Item = &Json> {
    let alternatives =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| match schema.get(keyword) {
            Some(Json::Array(forms)) => Some(forms),
            _ => None,
        });
    std::iter::once(schema).chain(alternatives.flatten())
}

/// A schema with its alternatives, and the alternatives of its items.
pub(super) fn all_forms(schema: &Json) -> impl Iterator<Item = &Json> {
    let items = forms(schema).filter_map(|form| form.get("items")).flat_map(forms);
    forms(schema).chain(items)
}

/// The texts that a schema lets a caller choose from.
pub(super) fn choices(schema: &Json) -> impl Iterator<Item = &str> {
    let lists = all_forms(schema).filter_map(|form| match form.get("enum") {
        Some(Json::Array(values)) => Some(values),
        _ => None,
    });
    lists.flatten().filter_map(Json::as_str)
}

/// The arguments that the definition names, without those inside of others.
pub(super) fn properties(definition: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let forms = definition.get("inputSchema").into_iter().flat_map(forms);
    let lists = forms.filter_map(|form| match form.get("properties") {
        Some(Json::Object(properties)) => Some(properties),
        _ => None,
    });
    lists.flatten().map(|(name, schema)| (name.as_str(), schema))
}

/// Whether the schema, one of its alternatives, or its items can have this type.
#[inline(never)]
pub(super) fn has_type(schema: &Json, kind: &str) -> bool {
    all_forms(schema).any(|form| match form.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(|one| one.as_str() == Some(kind)),
        one => one.and_then(Json::as_str) == Some(kind),
    })
}
