//! What a schema costs to compile, known before it is compiled.
//!
//! Two things are added up: the programs of its patterns ([`patterns`]), and its parts. The library
//! looks each part up in a list of all others, holds it against the meta-schema, and writes down the
//! path that leads to it; so a part costs more the deeper it is and the longer its path. What a
//! reference leads to may be held against the meta-schema once more.
//!
//! A keyword is counted wherever it is, though it may be the name of an argument or part of an example:
//! references can make a schema of anything.

use std::collections::HashSet;

use super::applications::{is_reference, part};
use super::patterns::{self, MAX_PATTERN_COST};
use crate::json::Json;

/// What one schema may cost: some 700 arguments without patterns, or 500 and a dozen patterns. A unit
/// takes some 0.1 µs natively. The costliest schema that there can be must take less than 20 ms and
/// 4 MB as Wasm (benches `worst_case_schema_compile_*`).
pub const MAX_COST: usize = 50_000;

/// Patterns of one schema. Matching fills a cache of up to 2 MB for each.
pub const MAX_PATTERNS: usize = 16;

/// What a part of a schema costs that may be a schema itself.
const PART: usize = 60;

/// What any other value costs.
const VALUE: usize = 2;

/// Bytes of a text, or of a path, that cost one unit.
const TEXT_BYTES: usize = 64;
const PATH_BYTES: usize = 8;

/// What compiling takes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub total: usize,
    pub patterns: usize,
}

/// What compiling the schema takes. To find out what a pattern costs takes as long as that cost, or
/// less, and is taken off `patterns_left`; when nothing is left, no more patterns are looked at.
///
/// # Errors
///
/// A sentence that says which bound it is beyond.
pub fn cost(schema: &Json, patterns_left: &mut usize) -> Result<Cost, String> {
    let (cost, seen) = (Cost::default(), HashSet::new());
    let mut counter = Counter { root: schema, cost, seen, patterns_left };
    counter.count(schema, 0, 0, true)?;
    Ok(counter.cost)
}

struct Counter<'s, 'l> {
    root: &'s Json,
    cost: Cost,
    /// References that were counted.
    seen: HashSet<&'s str>,
    patterns_left: &'l mut usize,
}

impl<'s> Counter<'s, '_> {
    /// Counts a value, to which a path of this length leads; what it refers to only the first time.
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
                        Json::String(text) if key == "pattern" => self.pattern(text, first)?,
                        Json::String(to) if first && is_reference(key) => self.reference(to)?,
                        Json::Object(schemas) if key == "patternProperties" => {
                            for (pattern, _) in schemas {
                                self.pattern(pattern, first)?;
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

    fn pattern(&mut self, pattern: &str, first: bool) -> Result<(), String> {
        if first {
            self.cost.patterns += 1;
            if self.cost.patterns > MAX_PATTERNS {
                return Err(format!("it has more than {MAX_PATTERNS} patterns"));
            }
        }
        if *self.patterns_left == 0 {
            return Err("the patterns before it cost too much".to_owned());
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
            return Err("what it refers to is not in it".to_owned());
        };
        self.count(target, to.matches('/').count(), to.len(), false)
    }

    fn take(&mut self, cost: usize) -> Result<(), String> {
        self.cost.total += cost;
        match self.cost.total <= MAX_COST {
            true => Ok(()),
            false => {
                Err("it takes too much to compile: it has too many parts or patterns".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_schema_is_refused_before_it_is_compiled_when_that_takes_too_much() {
        let parts = |count: usize| vec!["{}"; count].join(",");
        let patterns = |count: usize| vec![r#"{"pattern":"^a+$"}"#; count].join(",");
        let long = "k".repeat(2_000);
        let chain = |levels: usize, inner: &str| {
            format!("{}{inner}{}", r#"{"x":"#.repeat(levels), "}".repeat(levels))
        };
        let pointers = (1..25).map(|at| format!(r##"{{"$ref":"#{}"}}"##, "/x".repeat(at)));
        let pointers = pointers.collect::<Vec<_>>().join(",");
        let descriptions = format!(r#"{{"description":"{}"}}"#, "d".repeat(60_000));
        let bombs = vec![r#"{"pattern":"^\\p{L}{0,60}$"}"#; 200].join(",");
        for (schema, expected) in [
            ("{}".to_owned(), None),
            ("true".to_owned(), None),
            (descriptions, None),
            (format!(r#"{{"anyOf":[{}]}}"#, parts(400)), None),
            (format!(r#"{{"anyOf":[{}]}}"#, patterns(MAX_PATTERNS)), None),
            (r##"{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#"}}}"##.to_owned(), None),
            (format!(r#"{{"anyOf":[{}]}}"#, parts(1_000)), Some("too much")),
            (format!(r#"{{"anyOf":[{}]}}"#, patterns(MAX_PATTERNS + 1)), Some("16 patterns")),
            (
                r#"{"patternProperties":{"^\\p{L}{0,60}$":{}}}"#.to_owned(),
                Some("compiles to too much"),
            ),
            (format!(r#"{{"anyOf":[{bombs}]}}"#), Some("compiles to too much")),
            // Each path is long.
            (
                format!(r#"{{"{long}":{{"{long}":{{"anyOf":[{}]}}}}}}"#, parts(100)),
                Some("too much"),
            ),
            // Each level is held against the meta-schema by itself.
            (
                format!(
                    r#"{{"anyOf":[{pointers}],"x":{}}}"#,
                    chain(24, &format!(r#"{{"anyOf":[{}]}}"#, parts(100)))
                ),
                Some("too much"),
            ),
            (r##"{"$ref":"#/allOf/00","allOf":[{}]}"##.to_owned(), Some("not in it")),
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
