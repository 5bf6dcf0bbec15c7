//! `Mcp-Param-*` headers, which mirror arguments of a call (revision 2026-07-28).
//!
//! Which argument a header mirrors, the tool's schema says: a property with `x-mcp-header` names the
//! header. Proxies on the way route by these headers, so one that is not the mapped argument's value
//! would have them act on what was not decided. Here the mapping is the registered schema's, and a
//! header that it does not have is refused: the specification lets those pass that an intermediary
//! does not know, but Gateward cannot tell what the server would make of them.
//!
//! A header that is missing is the server's to refuse: nothing undecided is passed on without it.

use crate::json::Json;
use crate::schema::Schema;

/// The keyword of a property that names the header behind `Mcp-Param-`.
const KEYWORD: &str = "x-mcp-header";

/// Characters of a header's name in a message, which is written down.
const MAX_SHOWN_CHARS: usize = 64;

/// Holds headers, decoded and in lower case, against the arguments.
///
/// # Errors
///
/// A sentence that says which header is not as the schema says. It names no value.
pub fn check(
    schema: Option<&Schema>,
    headers: &[(String, String)],
    input: &Json,
) -> Result<(), String> {
    if headers.is_empty() {
        return Ok(());
    }
    let mut mapped = Vec::new();
    if let Some(schema) = schema {
        collect(schema.document(), Some(input), &mut mapped);
    }
    for (name, value) in headers {
        let mut of_name = mapped.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        let why = match (of_name.next(), of_name.next()) {
            (None, _) => "mirrors no argument in the tool's registered schema",
            (Some(_), Some(_)) => "mirrors several arguments in the tool's registered schema",
            (Some((_, Some(argument))), None) if mirrors(argument, value) => continue,
            (Some(_), None) => "is not the value of its argument",
        };
        let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
        return Err(format!("Mcp-Param-{name} {why}."));
    }
    Ok(())
}

/// Every header that a schema maps, with the argument at the place of its property. Only properties
/// of properties count, as the specification has it.
fn collect<'s, 'i>(
    schema: &'s Json,
    input: Option<&'i Json>,
    mapped: &mut Vec<(&'s str, Option<&'i Json>)>,
) {
    let Some(Json::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        let argument = input.and_then(|input| input.get(name));
        if let Some(header) = property.get(KEYWORD).and_then(Json::as_str) {
            mapped.push((header, argument));
        }
        collect(property, argument, mapped);
    }
}

/// Whether `text` is how a header has this value: strings as they are, `42` for `42.0` too.
#[must_use]
pub fn mirrors(value: &Json, text: &str) -> bool {
    match value {
        Json::String(value) => value == text,
        Json::Integer(value) => text.parse::<f64>().is_ok_and(|number| number == *value as f64),
        Json::Number(value) => text.parse::<f64>().is_ok_and(|number| number == *value),
        Json::Bool(value) => text == if *value { "true" } else { "false" },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_header_is_the_value_of_the_argument_that_the_schema_maps_it_to() {
        let schema = r#"{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "query":{"type":"string"},
            "options":{"properties":{"limit":{"type":"integer","x-mcp-header":"Limit"},
              "dry":{"type":"boolean","x-mcp-header":"Dry"},"ratio":{"x-mcp-header":"Ratio"}}},
            "a":{"x-mcp-header":"Twice"},"b":{"x-mcp-header":"TWICE"},
            "list":{"items":{"properties":{"x":{"x-mcp-header":"Item"}}}}}}"#;
        let input = r#"{"region":"eu","query":"us","options":{"limit":42,"dry":true,"ratio":1.5},
            "a":"1","b":"1","list":[{"x":"1"}]}"#;
        for (schema, headers, expected) in [
            (
                schema,
                &[("region", "eu"), ("limit", "42.0"), ("dry", "true"), ("ratio", "1.5")][..],
                None,
            ),
            ("{}", &[], None),
            // The value of another argument, which was decided as something else.
            (schema, &[("region", "us")], Some("region is not")),
            (schema, &[("region", "EU")], Some("region is not")),
            (schema, &[("dry", "1")], Some("dry is not")),
            (schema, &[("limit", "43")], Some("limit is not")),
            (schema, &[("query", "us")], Some("query mirrors no")),
            (schema, &[("item", "1")], Some("item mirrors no")),
            (schema, &[("twice", "1")], Some("twice mirrors several")),
            (schema, &[("region", "eu"), ("tenant", "eu")], Some("tenant mirrors no")),
            (
                r#"{"properties":{"gone":{"x-mcp-header":"Region"}}}"#,
                &[("region", "eu")],
                Some("region is not"),
            ),
            ("{}", &[("region", "eu")], Some("region mirrors no")),
        ] {
            let schema = Schema::compile(schema).unwrap();
            let headers: Vec<(String, String)> =
                headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let input = json::parse(input.as_bytes()).unwrap();
            let found = check(Some(&schema), &headers, &input);
            match (&found, expected) {
                (Ok(()), None) => {}
                (Err(why), Some(expected)) => assert!(why.contains(expected), "{why}"),
                _ => panic!("{headers:?}: {found:?}"),
            }
            // A tool without a schema maps nothing.
            assert_eq!(check(None, &headers, &input).is_ok(), headers.is_empty());
        }
    }
}
