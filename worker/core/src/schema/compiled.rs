//! A schema that is compiled, and the checks before that.

use std::cell::Cell;
use std::error::Error;

use boon::{Compiler, Draft, SchemaIndex, UrlLoader};
use serde_json::Value;

use super::applications::{self, MAX_APPLICATIONS};
use super::cost::{self, Cost, MAX_COST};
use super::mismatch::{self, quoted, shortened};
use super::{names, numbers};
use crate::json::{self, Json};

/// Bytes of a schema: a hundred arguments, each with a description of a paragraph.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Bytes of a message's part that comes from a schema or from the arguments' own names.
const MAX_PART_BYTES: usize = 128;

/// Where the library takes the schema to be; nothing is ever fetched.
const LOCATION: &str = "urn:tool:input";

/// Bytes that a schema takes for each byte of its text: as values, and as the text itself.
const BYTES_PER_TEXT: usize = 8;

/// Bytes that a schema takes for each unit that it costs.
const BYTES_PER_COST: usize = 64;

/// The most that matching one pattern makes the engine remember: two caches of states.
const MAX_REMEMBERED_BYTES: usize = 2 * 2 * 1024 * 1024;

/// Bytes that the engine may remember for each byte of a text that it matches: a state.
const BYTES_PER_STATE: usize = 1_024;

/// A schema that arguments can be held against.
pub struct Schema {
    document: Json,
    text_bytes: usize,
    schemas: boon::Schemas,
    root: SchemaIndex,
    /// What it takes per unit of the arguments' weight at most; `None` when that must be counted.
    size: Option<usize>,
    cost: Cost,
    /// Bytes of arguments that were held against it.
    matched: Cell<usize>,
}

/// What is known of a schema within the bounds.
struct Bounded {
    document: Json,
    size: Option<usize>,
    cost: Cost,
}

/// Whether a schema is within the bounds of what may be compiled; compiles nothing. What its patterns
/// would cost is taken off `patterns_left`: to find it out takes the most of the time.
///
/// # Errors
///
/// A sentence that says which bound it is beyond.
pub fn check(text: &str, patterns_left: &mut usize) -> Result<(), String> {
    bounded(text, patterns_left).map(drop)
}

/// What no argument can meet: a sentence for each, as far as the bounds go. A call that it applies to is
/// denied.
#[must_use]
pub fn unsatisfiable(schema: &Json) -> Vec<String> {
    let sentence = |(place, keyword): (String, &str)| {
        let place = if place.is_empty() {
            "its root".to_owned()
        } else {
            quoted(&shortened(&place, MAX_PART_BYTES))
        };
        format!("no argument can meet `{keyword}` at {place}")
    };
    numbers::unsatisfiable(schema).into_iter().map(sentence).collect()
}

fn bounded(text: &str, patterns_left: &mut usize) -> Result<Bounded, String> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!("it has more than {MAX_SCHEMA_BYTES} bytes"));
    }
    let document = json::parse_definition(text.as_bytes()).map_err(|error| error.message)?;
    let size = applications::size(&document)?;
    let cost = cost::cost(&document, patterns_left)?;
    if !applications::are_bounded_on_nothing(&document) {
        return Err("it applies too many schemas to one value, or one without end".to_owned());
    }
    Ok(Bounded { document, size, cost })
}

impl Schema {
    /// Compiles a schema: draft 2020-12 unless it says otherwise.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with it.
    pub fn compile(text: &str) -> Result<Self, String> {
        let Bounded { document, size, cost } = bounded(text, &mut { MAX_COST })?;
        let schema = numbers::value(&document);
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(Nowhere));
        compiler
            .add_resource(LOCATION, schema)
            .map_err(|error| shortened(&error.to_string(), MAX_PART_BYTES))?;
        let mut schemas = boon::Schemas::new();
        let root = compiler
            .compile(LOCATION, &mut schemas)
            .map_err(|error| shortened(&error.to_string(), MAX_PART_BYTES))?;
        let (text_bytes, matched) = (text.len(), Cell::new(0));
        Ok(Self { document, text_bytes, schemas, root, size, cost, matched })
    }

    /// Whether the arguments fit.
    ///
    /// # Errors
    ///
    /// A sentence that says where they do not and by which keyword.
    pub fn check(&self, input: &Json) -> Result<(), String> {
        let weight = applications::weight(input);
        let most = self.size.map(|size| size.saturating_mul(weight));
        let within = || applications::are_bounded(&self.document, input);
        if most.is_none_or(|most| most > MAX_APPLICATIONS) && !within() {
            return Err(
                "The arguments take too long to check against the tool's schema.".to_owned()
            );
        }
        self.matched.set(self.matched.get().saturating_add(bytes(input)));
        let input = numbers::value(input);
        let checked = self.schemas.validate(&input, self.root);
        checked.map_err(|error| mismatch::describe(&error))
    }

    /// The most bytes that it takes: what it was compiled to, and what its patterns remember of the
    /// arguments so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let remembered = self.matched.get().saturating_mul(BYTES_PER_STATE);
        self.text_bytes * BYTES_PER_TEXT
            + self.cost.total * BYTES_PER_COST
            + self.cost.patterns * remembered.min(MAX_REMEMBERED_BYTES)
    }

    /// What was compiled.
    #[must_use]
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// Whether no argument has a name that an API may take for another one of the schema's.
    ///
    /// # Errors
    ///
    /// A sentence that says which name can be taken so.
    pub fn check_names(&self, input: &Json) -> Result<(), String> {
        match names::mistaken(&self.document, input) {
            None => Ok(()),
            Some("") => Err("The names of the arguments take too long to check.".to_owned()),
            Some(name) => {
                let name = quoted(&shortened(name, MAX_PART_BYTES));
                Err(format!("{name} can be taken for another name of the tool's schema."))
            }
        }
    }
}

/// Bytes of all texts of the arguments, names included.
fn bytes(json: &Json) -> usize {
    match json {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(bytes).sum(),
        Json::Object(fields) => fields.iter().map(|(name, field)| name.len() + bytes(field)).sum(),
        _ => 0,
    }
}

/// Refuses what a schema refers to elsewhere.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("what a schema refers to must be in it".into())
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.document.canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::{Misfit, Schemas};
    use super::*;

    fn check(schema: &str, input: &str) -> Result<(), String> {
        Schema::compile(schema)?.check(&json::parse(input.as_bytes()).unwrap())
    }

    #[test]
    fn a_schema_that_reaches_elsewhere_or_is_none_is_refused() {
        let deep = format!("{}true{}", r#"{"not":"#.repeat(40), "}".repeat(40));
        let large = format!(r#"{{"description":"{}"}}"#, "x".repeat(MAX_SCHEMA_BYTES));
        for schema in [
            r#"{"$ref":"https://example.com/schema.json"}"#,
            r#"{"$ref":"file:///etc/hosts"}"#,
            r#"{"$schema":"https://example.com/dialect"}"#,
            r#"{"type":"text"}"#,
            r#"{"pattern":"(?=a)b"}"#,
            "[]",
            "{",
            &deep,
            &large,
        ] {
            assert!(Schema::compile(schema).is_err(), "{schema:.60}");
            let misfit = Schemas::default().check(schema, &Json::Object(Vec::new())).unwrap_err();
            let Misfit::Schema(why) = misfit else { panic!("{misfit:?}") };
            assert!(why.starts_with("The tool's schema cannot be used"), "{why}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let list = r##"{"type":"object","properties":{"next":{"$ref":"#"}}}"##;
        assert_eq!(check(list, r#"{"next":{"next":{}}}"#), Ok(()));
        assert!(check(list, r#"{"next":{"next":1}}"#).is_err());
        assert!(check(r##"{"$ref":"#"}"##, "{}").is_err());
    }

    #[test]
    fn a_schema_that_takes_too_long_is_not_applied() {
        let chain: Vec<String> = (0..40)
            .map(|n| {
                format!(
                    r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                    n + 1
                )
            })
            .collect();
        let chain = format!(r##""d40":{{}},{}"##, chain.join(","));
        let at_once = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{chain}}}}}"##);
        assert!(Schema::compile(&at_once).unwrap_err().contains("too many schemas"));
        let below =
            format!(r##"{{"properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{chain}}}}}"##);
        assert_eq!(check(&below, r#"{"b":1}"#), Ok(()));
        assert!(check(&below, r#"{"a":1}"#).unwrap_err().contains("too long"));
        // One without references needs many arguments.
        let many =
            format!(r#"{{"items":{{"anyOf":[{}{{}}]}}}}"#, r#"{"type":"string"},"#.repeat(100));
        let items = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert_eq!(check(&many, &items(900)), Ok(()));
        assert!(check(&many, &items(1_000)).unwrap_err().contains("too long"));
    }

    #[test]
    fn two_hundred_patterns_that_each_compile_to_megabytes_are_not_compiled() {
        let bomb = |at| format!(r#""p{at}":{{"type":"string","pattern":"^\\p{{L}}{{0,60}}$"}}"#);
        let bombs = (0..200).map(bomb).collect::<Vec<_>>().join(",");
        for schema in [
            format!(r#"{{"properties":{{{bombs}}}}}"#),
            format!(r#"{{"properties":{{{}}}}}"#, bomb(0)),
        ] {
            let refused = super::check(&schema, &mut { MAX_COST }).unwrap_err();
            assert_eq!(refused, "it has a pattern that compiles to too much");
            assert_eq!(Schema::compile(&schema).unwrap_err(), refused);
            let mut schemas = Schemas::default();
            let misfit = schemas.check(&schema, &Json::Object(Vec::new())).unwrap_err();
            assert_eq!(
                misfit,
                Misfit::Schema(format!("The tool's schema cannot be used: {refused}"))
            );
        }
    }
}
