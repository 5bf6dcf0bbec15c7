//! RFC 8785 text of a document that was parsed already, and two peers that start from the same
//! document as a parsed `serde_json::Value`. No hashing.
//!
//! Gateward's tree has its keys in order from parsing on, which is where it finds duplicates; the
//! peers sort on the way out.

use std::hint::black_box;

use gateward_core::json;
use serde_json::{Map, Value, json};

use crate::operation::{GATEWARD, Operation};

/// Sorts the tree, then writes it.
const SORTED_VALUE: &str = "sorted_value";
const SERDE_JSON_CANONICALIZER: &str = "serde_json_canonicalizer";

type Document = fn() -> Value;

pub fn operations() -> Vec<Operation> {
    let documents: [(&str, Document); 7] = [
        ("canonicalize_flat", || json!({"repo": "acme/shop", "number": 42, "base": "main"})),
        ("canonicalize_nested", || {
            let around = |inner, at| json!({"b": inner, "a": at, "\u{e9}": "x"});
            (0..8).fold(json!({"leaf": 1}), around)
        }),
        ("canonicalize_array200", || {
            json!((0..200).map(|at| json!({"id": at, "ok": true})).collect::<Vec<_>>())
        }),
        ("canonical_string_plain", || json!("a sentence without escapes ".repeat(8))),
        ("canonical_string_escaped", || json!("\"quoted\"\n\u{1}".repeat(16))),
        ("canonical_string_unicode", || json!("Größe 10 µm, 数据 \u{1f600} ".repeat(8))),
        ("canonical_string_long", || json!("0123456789abcdef".repeat(1_024))),
    ];
    let of_documents =
        documents.into_iter().flat_map(|(name, document)| of_document(name, document));
    let from_bytes: [(&str, Document); 3] = [
        ("canonicalize_flat_from_bytes", documents[0].1),
        ("canonicalize_nested_from_bytes", documents[1].1),
        ("canonicalize_array200_from_bytes", documents[2].1),
    ];
    let from_bytes = from_bytes.into_iter().flat_map(|(name, document)| of_bytes(name, document));
    of_documents.chain(from_bytes).collect()
}

/// With parsing, which includes the checks of Gateward: duplicate keys, depth, integers beyond
/// ±2^53.
fn of_bytes(name: &'static str, document: Document) -> [Operation; 2] {
    [
        Operation::new(name, GATEWARD, move || {
            let text = document().to_string();
            move || json::parse(black_box(text.as_bytes())).unwrap().canonical()
        }),
        Operation::new(name, SORTED_VALUE, move || {
            let text = document().to_string();
            let run = move || sorted(&serde_json::from_str(black_box(&text)).unwrap()).to_string();
            let ours = json::parse(run().as_bytes()).unwrap().canonical();
            assert_eq!(run(), ours, "{name}");
            run
        }),
    ]
}

fn of_document(name: &'static str, document: Document) -> [Operation; 3] {
    [
        Operation::new(name, GATEWARD, move || {
            let text = document().to_string();
            let value = json::parse(text.as_bytes()).unwrap();
            let canonical = value.canonical();
            assert_eq!(json::parse(canonical.as_bytes()).unwrap(), value, "{name}");
            move || black_box(&value).canonical()
        }),
        peer(name, SORTED_VALUE, document, |value| sorted(value).to_string()),
        peer(name, SERDE_JSON_CANONICALIZER, document, |value| {
            serde_json_canonicalizer::to_string(value).unwrap()
        }),
    ]
}

fn peer(
    name: &'static str,
    of: &'static str,
    document: Document,
    canonical: impl Fn(&Value) -> String + Copy + 'static,
) -> Operation {
    Operation::new(name, of, move || {
        let value = document();
        let ours = json::parse(value.to_string().as_bytes()).unwrap().canonical();
        assert_eq!(canonical(&value), ours, "{name} of {of}");
        move || canonical(black_box(&value))
    })
}

/// The value with the keys of every object in UTF-16 order. (Cedar has `serde_json` keep the order
/// of insertion.)
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            let fields = fields.into_iter().map(|(key, value)| (key.clone(), sorted(value)));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        other => other.clone(),
    }
}
