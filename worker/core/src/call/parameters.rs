//! The `Mcp-Param-*` headers, which repeat arguments of a call (revision 2026-07-28).
//!
//! In the tool's schema, a property with `x-mcp-header` names the header that repeats it. Proxies route by
//! these headers, so a header that differs from its argument would make them act on a value that policies
//! did not see. Gateward takes the mapping from the registered schema and rejects every other header. The
//! specification lets an intermediary forward unknown headers, but Gateward cannot know what the server
//! does with them.
//!
//! A missing header is not an error here: the server checks it.

use crate::json::Json;
use crate::schema::Schema;

/// The keyword of a property that names the header behind `Mcp-Param-`.
const KEYWORD: &str = "x-mcp-header";

/// Characters of a header's name in a message, which is stored.
const MAX_SHOWN_CHARS: usize = 64;

/// Compares the decoded headers with the arguments.
///
/// # Errors
///
/// A sentence that says which header is wrong. It contains no values.
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
            (None, _) => "repeats no argument of the tool's registered schema",
            (Some(_), Some(_)) => "repeats several arguments of the tool's registered schema",
            (Some((_, Some(argument))), None) if repeats(argument, value) => continue,
            (Some(_), None) => "differs from its argument",
        };
        let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
        return Err(format!("Mcp-Param-{name} {why}."));
    }
    Ok(())
}

/// Collects the headers in a schema, each with the argument of its property. Only nested `properties` count,
/// as the specification says.
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

/// Whether a header's value repeats an argument. Numbers are compared by value: `42` repeats `42.0`.
#[must_use]
pub fn repeats(value: &Json, text: &str) -> bool {
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
    fn a_header_must_repeat_the_argument_that_the_schema_maps_it_to() {
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
            // The value of another argument.
            (schema, &[("region", "us")], Some("region differs")),
            (schema, &[("region", "EU")], Some("region differs")),
            (schema, &[("dry", "1")], Some("dry differs")),
            (schema, &[("limit", "43")], Some("limit differs")),
            (schema, &[("query", "us")], Some("query repeats no")),
            (schema, &[("item", "1")], Some("item repeats no")),
            (schema, &[("twice", "1")], Some("twice repeats several")),
            (schema, &[("region", "eu"), ("tenant", "eu")], Some("tenant repeats no")),
            (
                r#"{"properties":{"gone":{"x-mcp-header":"Region"}}}"#,
                &[("region", "eu")],
                Some("region differs"),
            ),
            ("{}", &[("region", "eu")], Some("region repeats no")),
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
