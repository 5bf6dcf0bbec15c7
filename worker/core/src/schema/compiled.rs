//! Compiling a schema, and the checks before that.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::error::Error;

use boon::{Compiler, Draft, SchemaIndex, UrlLoader};
use serde_json::Value;

use super::applications::{self, MAX_APPLICATIONS};
use super::cost::{self, MAX_COST};
use super::mismatch::{self, quoted, shortened};
use super::{names, numbers};
use crate::json::{self, Json};

/// Bytes of a schema: a hundred arguments, each with a description of a paragraph.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Bytes of a part of a message that comes from a schema or from an argument's name.
const MAX_PART_BYTES: usize = 128;

/// The error if patterns exceed [`MAX_VISITS`].
const TOO_LONG_TO_MATCH: &str =
    "The arguments take too long to match against the patterns of the tool's schema.";

/// The URL by which the library refers to the schema. Nothing is fetched.
const LOCATION: &str = "urn:tool:input";

/// Bytes of memory for each byte of a schema's text: the parsed values, the text itself, and the declared names.
const BYTES_PER_TEXT: usize = 16;

/// Bytes of memory for each unit of a schema's cost.
const BYTES_PER_COST: usize = 64;

/// Visits of states by all patterns in one check. Each takes 2 to 3 ns natively. A search for `.{0,200}!` in 64 KB
/// without `!` takes 52 million. For each character, `^[a-z ]+$` takes five.
const MAX_VISITS: u64 = 60_000_000;

/// A compiled schema.
pub struct Schema {
    document: Json,
    text_bytes: usize,
    schemas: boon::Schemas,
    root: SchemaIndex,
    /// The largest number of applications per unit of the arguments' weight; `None` if they must be counted.
    size: Option<usize>,
    cost: usize,
    /// See [`Schema::declared`].
    declared: OnceCell<HashSet<Box<str>>>,
}

/// A parsed schema that is within the bounds.
struct Bounded {
    document: Json,
    size: Option<usize>,
    cost: usize,
}

/// Checks that a schema may be compiled, without compiling it. The cost of its patterns is subtracted from
/// `patterns_left`, since computing that cost takes most of the time.
///
/// # Errors
///
/// Says which bound is exceeded.
pub fn check(text: &str, patterns_left: &mut usize) -> Result<(), String> {
    bounded(text, patterns_left).map(drop)
}

/// The keywords that no argument can satisfy, with a sentence for each of the first ones. Calls to which such
/// a keyword applies are denied.
#[must_use]
pub fn unsatisfiable(schema: &Json) -> Vec<String> {
    let sentence = |(place, keyword): (String, &str)| {
        let place = if place.is_empty() {
            "its root".to_owned()
        } else {
            quoted(&shortened(&place, MAX_PART_BYTES))
        };
        format!("no argument can satisfy `{keyword}` at {place}")
    };
    numbers::unsatisfiable(schema).into_iter().map(sentence).collect()
}

fn bounded(text: &str, patterns_left: &mut usize) -> Result<Bounded, String> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!("it must have at most {MAX_SCHEMA_BYTES} bytes"));
    }
    let document = json::parse_definition(text.as_bytes()).map_err(|error| error.message)?;
    let size = applications::size(&document)?;
    let cost = cost::cost(&document, patterns_left)?;
    if !applications::are_bounded_on_empty(&document) {
        return Err(
            "it applies too many schemas to one value, or endlessly refers to itself".to_owned()
        );
    }
    Ok(Bounded { document, size, cost })
}

impl Schema {
    /// Compiles a schema. Without `$schema`, it is read as draft 2020-12.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the schema.
    pub fn compile(text: &str) -> Result<Self, String> {
        let Bounded { document, size, cost } = bounded(text, &mut { MAX_COST })?;
        let schema = numbers::value(&document);
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(NoLoader));
        compiler
            .add_resource(LOCATION, schema)
            .map_err(|error| shortened(&error.to_string(), MAX_PART_BYTES).into_owned())?;
        let mut schemas = boon::Schemas::new();
        let root = compiler
            .compile(LOCATION, &mut schemas)
            .map_err(|error| shortened(&error.to_string(), MAX_PART_BYTES).into_owned())?;
        let (text_bytes, declared) = (text.len(), OnceCell::new());
        Ok(Self { document, text_bytes, schemas, root, size, cost, declared })
    }

    /// Checks arguments.
    ///
    /// # Errors
    ///
    /// A sentence that says where they do not match, and by which keyword; or that the check takes too long.
    pub fn check(&self, input: &Json) -> Result<(), String> {
        let weight = applications::weight(input);
        let most = self.size.map(|size| size.saturating_mul(weight));
        let within = || applications::are_bounded(&self.document, input);
        if most.is_none_or(|most| most > MAX_APPLICATIONS) && !within() {
            return Err(
                "The arguments take too long to check against the tool's schema.".to_owned()
            );
        }
        let input = numbers::value(input);
        let checked = regex::within(MAX_VISITS, || {
            let checked = self.schemas.validate(&input, self.root);
            checked.map_err(|error| mismatch::describe(&error))
        });
        checked.unwrap_or_else(|| Err(TOO_LONG_TO_MATCH.to_owned()))
    }

    /// The largest number of bytes that the schema can use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text_bytes * BYTES_PER_TEXT + self.cost * BYTES_PER_COST
    }

    /// The parsed schema.
    #[must_use]
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// The names that some `properties` of the schema lists, wherever it stands.
    #[must_use]
    pub fn declared(&self) -> &HashSet<Box<str>> {
        self.declared.get_or_init(|| names::declared(&self.document))
    }

    /// Checks that no argument's name is confusable with a property of the schema.
    ///
    /// # Errors
    ///
    /// A sentence with the confusable name.
    pub fn check_names(&self, input: &Json) -> Result<(), String> {
        match names::confusable(&self.document, input) {
            None => Ok(()),
            Some("") => Err("The names of the arguments take too long to check.".to_owned()),
            Some(name) => {
                let name = quoted(&shortened(name, MAX_PART_BYTES));
                Err(format!(
                    "{name} differs from a name in the tool's schema in case or encoding only."
                ))
            }
        }
    }
}

/// Rejects external references.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema must not refer to another document".into())
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
    fn an_invalid_schema_or_one_with_external_references_is_rejected() {
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
    fn a_recursive_schema_can_be_checked() {
        let list = r##"{"type":"object","properties":{"next":{"$ref":"#"}}}"##;
        assert_eq!(check(list, r#"{"next":{"next":{}}}"#), Ok(()));
        assert!(check(list, r#"{"next":{"next":1}}"#).is_err());
        assert!(check(r##"{"$ref":"#"}"##, "{}").is_err());
    }

    #[test]
    fn a_schema_with_too_many_applications_is_not_applied() {
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
        // A schema without references exceeds the bound only with many arguments.
        let many =
            format!(r#"{{"items":{{"anyOf":[{}{{}}]}}}}"#, r#"{"type":"string"},"#.repeat(100));
        let items = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert_eq!(check(&many, &items(900)), Ok(()));
        assert!(check(&many, &items(1_000)).unwrap_err().contains("too long"));
    }

    #[test]
    fn patterns_that_compile_to_megabytes_are_not_compiled() {
        let bomb =
            |at| format!(r#""p{at}":{{"type":"string","pattern":"^(?:a{{0,200}}){{0,200}}$"}}"#);
        let bombs = (0..200).map(bomb).collect::<Vec<_>>().join(",");
        for schema in [
            format!(r#"{{"properties":{{{bombs}}}}}"#),
            format!(r#"{{"properties":{{{}}}}}"#, bomb(0)),
        ] {
            let refused = super::check(&schema, &mut { MAX_COST }).unwrap_err();
            assert_eq!(refused, "it has a pattern whose compiled form is too large");
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
