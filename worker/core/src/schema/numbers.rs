//! Numbers of a schema that are out of the range of arguments.
//!
//! Numbers in arguments are within ±2^53. A schema may have larger ones: servers write the largest integer
//! or double of their language to mean "no bound". Such a number becomes a double beyond ±2^53 with the
//! same sign. It equals no argument, and every argument compares with it as with the original. So a bound
//! that every argument satisfies accepts all, a bound that none satisfies rejects all, and a `const` of
//! that value is never satisfied.

use serde_json::{Map, Number, Value};

use crate::bounds::{MAX_BODY_BYTES, MAX_JSON_NODES};
use crate::json::{Json, MAX_INTEGER, decimal};

/// The double after 2^53: the smallest one that is out of range.
const LEAST_BEYOND: f64 = 9_007_199_254_740_994.0;

/// Unsatisfiable keywords that are reported. More would not help the reader.
const MAX_UNSATISFIABLE: usize = 3;

/// Converts a schema or arguments for the library.
pub fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        // On 32 bits, the library truncates larger counts of characters or items. As doubles, they
        // become the largest count.
        Json::Integer(value) if value.unsigned_abs() > u64::from(u32::MAX) => number(*value as f64),
        Json::Integer(value) => Value::from(*value),
        Json::Number(value) => number(*value),
        Json::Verbatim(text) => number(double(text)),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(value).collect()),
        Json::Object(fields) => {
            let field = |(name, field): &(String, Json)| match (name.as_str(), field) {
                // Only zero is a multiple of such a number. The library divides, and a small number
                // divided by a very large one would be zero.
                ("multipleOf", Json::Verbatim(text)) => {
                    let value = double(text);
                    (name.clone(), number(value.clamp(-LEAST_BEYOND, LEAST_BEYOND)))
                }
                _ => (name.clone(), value(field)),
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
    }
}

/// The value is finite, since the parser rejects other numbers.
fn number(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// The double for a number's text. A number out of range becomes a double out of range.
fn double(text: &str) -> f64 {
    // Not `str::parse`, which would be a second parser in the Wasm, with tables of 10 KB.
    let value = serde_json::from_str::<f64>(text).unwrap_or_default();
    let is_beyond = value.abs() == MAX_INTEGER as f64
        && decimal(text.trim_start_matches('-')) != decimal("9007199254740992");
    if is_beyond { LEAST_BEYOND.copysign(value) } else { value }
}

/// The keywords that no argument can satisfy, each with its place as a JSON Pointer.
pub fn unsatisfiable(schema: &Json) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    look(schema, &mut String::new(), &mut found);
    found
}

fn look<'s>(schema: &'s Json, at: &mut String, found: &mut Vec<(String, &'s str)>) {
    let Json::Object(keywords) = schema else { return };
    for (keyword, given) in keywords {
        if found.len() == MAX_UNSATISFIABLE {
            return;
        }
        if is_unsatisfiable(keyword, given) {
            found.push((at.clone(), keyword));
        }
        let length = at.len();
        push(at, keyword);
        match (keyword.as_str(), given) {
            // These contain values, not schemas.
            ("const" | "default" | "enum" | "example" | "examples", _) => {}
            (
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties",
                Json::Object(schemas),
            ) => {
                for (name, schema) in schemas {
                    let length = at.len();
                    push(at, name);
                    look(schema, at, found);
                    at.truncate(length);
                }
            }
            (_, Json::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    let length = at.len();
                    push(at, &index.to_string());
                    look(schema, at, found);
                    at.truncate(length);
                }
            }
            (_, schema) => look(schema, at, found),
        }
        at.truncate(length);
    }
}

fn push(at: &mut String, name: &str) {
    at.push('/');
    at.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

/// Whether no argument can satisfy the keyword.
fn is_unsatisfiable(keyword: &str, given: &Json) -> bool {
    let most = MAX_INTEGER as f64;
    match (keyword, given) {
        ("const", value) => is_out_of_range(value),
        ("enum", Json::Array(values)) => !values.is_empty() && values.iter().all(is_out_of_range),
        ("minimum", given) => as_double(given).is_some_and(|least| least > most),
        ("exclusiveMinimum", given) => as_double(given).is_some_and(|least| least >= most),
        ("maximum", given) => as_double(given).is_some_and(|greatest| greatest < -most),
        ("exclusiveMaximum", given) => as_double(given).is_some_and(|greatest| greatest <= -most),
        ("minLength", given) => as_double(given).is_some_and(|least| least > MAX_BODY_BYTES as f64),
        ("minContains" | "minItems" | "minProperties", given) => {
            as_double(given).is_some_and(|least| least > MAX_JSON_NODES as f64)
        }
        _ => false,
    }
}

fn as_double(json: &Json) -> Option<f64> {
    match json {
        Json::Integer(value) => Some(*value as f64),
        Json::Number(value) => Some(*value),
        Json::Verbatim(text) => Some(double(text)),
        _ => None,
    }
}

/// Whether the value contains a number out of range.
fn is_out_of_range(value: &Json) -> bool {
    match value {
        Json::Verbatim(text) => double(text).abs() > MAX_INTEGER as f64,
        Json::Array(items) => items.iter().any(is_out_of_range),
        Json::Object(fields) => fields.iter().any(|(_, value)| is_out_of_range(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{parse, parse_definition};
    use crate::schema::Schema;

    const LARGE: [&str; 8] = [
        "9007199254740993",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999999999999999",
        "9007199254740992.5",
        "1e16",
        "1.79e308",
        "1.7976931348623157E+308",
    ];

    fn is_met(schema: &str, input: &str) -> bool {
        let schema = Schema::compile(&format!(r#"{{"properties":{{"n":{schema}}}}}"#)).unwrap();
        schema.check(&parse(format!(r#"{{"n":{input}}}"#).as_bytes()).unwrap()).is_ok()
    }

    #[test]
    fn a_bound_out_of_range_accepts_or_rejects_every_argument() {
        let numbers = ["0", "-9007199254740992", "9007199254740992", "0.5", "-1e-300"];
        for large in LARGE {
            for input in numbers {
                for (keyword, met, unmet) in [
                    ("maximum", large.to_owned(), format!("-{large}")),
                    ("exclusiveMaximum", large.to_owned(), format!("-{large}")),
                    ("minimum", format!("-{large}"), large.to_owned()),
                    ("exclusiveMinimum", format!("-{large}"), large.to_owned()),
                ] {
                    assert!(is_met(&format!(r#"{{"{keyword}":{met}}}"#), input), "{keyword} {met}");
                    let unmet = format!(r#"{{"{keyword}":{unmet}}}"#);
                    assert!(!is_met(&unmet, input), "{unmet} {input}");
                    let found = parse_definition(unmet.as_bytes()).unwrap();
                    assert_eq!(unsatisfiable(&found), [(String::new(), keyword)]);
                }
                for never in
                    [format!(r#"{{"const":{large}}}"#), format!(r#"{{"enum":[-{large}]}}"#)]
                {
                    assert!(!is_met(&never, input), "{never} {input}");
                }
                let multiple = format!(r#"{{"multipleOf":{large}}}"#);
                assert_eq!(is_met(&multiple, input), input == "0", "{multiple} {input}");
            }
            // A number in an enumeration takes nothing from the others, and one in a note means nothing.
            let some =
                format!(r#"{{"enum":["a",{large}],"default":{large},"examples":[{large}]}}"#);
            assert!(is_met(&some, r#""a""#) && !is_met(&some, "1"), "{some}");
            assert_eq!(unsatisfiable(&parse_definition(some.as_bytes()).unwrap()), []);
            for (kind, input) in
                [("Length", r#""xy""#), ("Items", "[1,2]"), ("Properties", r#"{"a":1}"#)]
            {
                // A length is a whole number.
                let Ok(count) = large.parse::<u128>() else { continue };
                assert!(is_met(&format!(r#"{{"max{kind}":{count}}}"#), input), "{kind} {count}");
                let least = format!(r#"{{"min{kind}":{count}}}"#);
                assert!(!is_met(&least, input), "{least}");
                assert_eq!(unsatisfiable(&parse_definition(least.as_bytes()).unwrap()).len(), 1);
            }
        }
        // These counts do not fit into 32 bits.
        for count in ["4294967296", "4294967297", "9007199254740991"] {
            assert!(is_met(&format!(r#"{{"maxLength":{count}}}"#), r#""x""#), "{count}");
            assert!(!is_met(&format!(r#"{{"minLength":{count}}}"#), r#""x""#), "{count}");
            assert!(is_met(&format!(r#"{{"const":{count}}}"#), count), "{count}");
        }
    }

    #[test]
    fn unsatisfiable_keywords_are_found_in_schemas_and_not_in_values() {
        for (schema, expected) in [
            (
                r#"{"properties":{"a/b":{"items":{"minimum":1e300}},"minimum":{"maximum":1e300}}}"#,
                vec![("/properties/a~1b/items", "minimum")],
            ),
            (
                r#"{"anyOf":[{},{"$defs":{"enum":{"exclusiveMaximum":-9007199254740992}}}]}"#,
                vec![("/anyOf/1/$defs/enum", "exclusiveMaximum")],
            ),
            (r#"{"const":{"minimum":1},"enum":[{"minimum":1e300}]}"#, vec![("", "enum")]),
            (r#"{"default":{"minimum":1e300},"examples":[{"minimum":1e300}]}"#, vec![]),
            (r#"{"minimum":9007199254740992,"maximum":-9007199254740992}"#, vec![]),
            (
                r#"{"items":[{"minimum":1e99},{"minimum":1e99},{"minimum":1e99},{"minimum":1e99}]}"#,
                vec![("/items/0", "minimum"), ("/items/1", "minimum"), ("/items/2", "minimum")],
            ),
        ] {
            let found = parse_definition(schema.as_bytes()).unwrap();
            let found = unsatisfiable(&found);
            let found: Vec<(&str, &str)> =
                found.iter().map(|(at, key)| (at.as_str(), *key)).collect();
            assert_eq!(found, expected, "{schema}");
        }
    }
}
