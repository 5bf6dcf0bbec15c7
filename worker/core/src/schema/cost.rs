//! The cost of compiling a schema, computed before it is compiled.
//!
//! The cost is that of its patterns ([`patterns`]) plus that of its parts. The library searches a list of all
//! parts for each part, validates it against the meta-schema, and stores its path. So a part costs more if
//! it is deeper or its path is longer. The target of a reference may be validated once more.
//!
//! Every keyword counts, even if it is the name of an argument or part of an example: a reference can make
//! a schema of anything.

use std::collections::HashSet;

use super::applications::{is_reference, part};
use super::patterns::{self, MAX_PATTERN_COST};
use crate::json::Json;

/// The largest cost of one schema: some 700 arguments without patterns, or 500 with a dozen patterns. One unit
/// takes some 0.1 µs natively. The most expensive schema must take less than 20 ms and 4 MB as Wasm
/// (benches `worst_case_schema_compile_*`).
pub const MAX_COST: usize = 50_000;

/// The cost of a part that may be a schema itself.
const PART: usize = 60;

/// The cost of any other value.
const VALUE: usize = 2;

/// Bytes of a text, or of a path, for one unit of cost.
const TEXT_BYTES: usize = 64;
const PATH_BYTES: usize = 8;

/// Computes the cost of compiling a schema. Computing the cost of a pattern takes at most as long as that
/// cost, which is subtracted from `patterns_left`. At zero, no more patterns are examined.
///
/// # Errors
///
/// Says which bound is exceeded.
pub fn cost(schema: &Json, patterns_left: &mut usize) -> Result<usize, String> {
    let mut counter = Counter { root: schema, cost: 0, seen: HashSet::new(), patterns_left };
    counter.count(schema, 0, 0, true)?;
    Ok(counter.cost)
}

struct Counter<'s, 'l> {
    root: &'s Json,
    cost: usize,
    /// References that were counted.
    seen: HashSet<&'s str>,
    patterns_left: &'l mut usize,
}

impl<'s> Counter<'s, '_> {
    /// Counts a value with this length of its path. If `first`, references are counted too.
    fn count(
        &mut self,
        json: &'s Json,
        depth: usize,
        path: usize,
        first: bool,
    ) -> Result<(), String> {
        let part = PART + path / PATH_BYTES + path * depth / TEXT_BYTES;
        match json {
            Json::Object(fields) => {
                self.take(part)?;
                for (key, value) in fields {
                    match value {
                        Json::String(text) if key == "pattern" => self.pattern(text)?,
                        Json::String(to) if first && is_reference(key) => self.reference(to)?,
                        Json::Object(schemas) if key == "patternProperties" => {
                            for (pattern, _) in schemas {
                                self.pattern(pattern)?;
                            }
                        }
                        _ => {}
                    }
                    self.count(value, depth + 1, path + 1 + key.len(), first)?;
                }
                Ok(())
            }
            Json::Array(items) => {
                self.take(VALUE)?;
                items.iter().try_for_each(|item| self.count(item, depth + 1, path + 5, first))
            }
            Json::Bool(_) => self.take(part),
            Json::String(text) => self.take(VALUE + text.len() / TEXT_BYTES),
            _ => self.take(VALUE),
        }
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        if *self.patterns_left == 0 {
            return Err("the patterns of the tools before it cost too much".to_owned());
        }
        let cost = patterns::cost(pattern);
        let took = cost.unwrap_or(MAX_PATTERN_COST);
        *self.patterns_left = self.patterns_left.saturating_sub(took);
        self.take(cost.map_err(|what| format!("it has a pattern {what}"))?)
    }

    fn reference(&mut self, to: &'s str) -> Result<(), String> {
        if to == "#" || !self.seen.insert(to) {
            return Ok(());
        }
        let Some(target) = part(self.root, to) else {
            return Err("it refers to a part that it does not have".to_owned());
        };
        self.count(target, to.matches('/').count(), to.len(), false)
    }

    fn take(&mut self, cost: usize) -> Result<(), String> {
        self.cost += cost;
        match self.cost <= MAX_COST {
            true => Ok(()),
            false => {
                Err("it costs too much to compile: it has too many parts or patterns".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_schema_that_costs_too_much_is_rejected_before_it_is_compiled() {
        let parts = |count: usize| vec!["{}"; count].join(",");
        let patterns = |count: usize| vec![r#"{"pattern":"^a+$"}"#; count].join(",");
        let long = "k".repeat(2_000);
        let chain = |levels: usize, inner: &str| {
            format!("{}{inner}{}", r#"{"x":"#.repeat(levels), "}".repeat(levels))
        };
        let pointers = (1..25).map(|at| format!(r##"{{"$ref":"#{}"}}"##, "/x".repeat(at)));
        let pointers = pointers.collect::<Vec<_>>().join(",");
        let descriptions = format!(r#"{{"description":"{}"}}"#, "d".repeat(60_000));
        let bombs = vec![r#"{"pattern":"^(?:a{0,200}){0,200}$"}"#; 200].join(",");
        for (schema, expected) in [
            ("{}".to_owned(), None),
            ("true".to_owned(), None),
            (descriptions, None),
            (format!(r#"{{"anyOf":[{}]}}"#, parts(400)), None),
            (format!(r#"{{"anyOf":[{}]}}"#, patterns(200)), None),
            (r##"{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#"}}}"##.to_owned(), None),
            (format!(r#"{{"anyOf":[{}]}}"#, parts(1_000)), Some("too much")),
            (format!(r#"{{"anyOf":[{}]}}"#, patterns(800)), Some("too much")),
            (
                r#"{"patternProperties":{"^(?:a{0,200}){0,200}$":{}}}"#.to_owned(),
                Some("compiled form is too large"),
            ),
            (format!(r#"{{"anyOf":[{bombs}]}}"#), Some("compiled form is too large")),
            // Long paths.
            (
                format!(r#"{{"{long}":{{"{long}":{{"anyOf":[{}]}}}}}}"#, parts(100)),
                Some("too much"),
            ),
            // Each level is validated against the meta-schema again.
            (
                format!(
                    r#"{{"anyOf":[{pointers}],"x":{}}}"#,
                    chain(24, &format!(r#"{{"anyOf":[{}]}}"#, parts(100)))
                ),
                Some("too much"),
            ),
            (r##"{"$ref":"#/allOf/00","allOf":[{}]}"##.to_owned(), Some("does not have")),
        ] {
            let found = cost(&json::parse(schema.as_bytes()).unwrap(), &mut { MAX_COST });
            match (found, expected) {
                (Ok(_), None) => {}
                (Err(message), Some(expected)) if message.contains(expected) => {}
                (found, expected) => panic!("{schema:.80}: {found:?}, not {expected:?}"),
            }
        }
    }
}
