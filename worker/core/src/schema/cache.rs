//! The compiled schemas that an isolate caches.

use std::collections::HashMap;
use std::rc::Rc;

use super::compiled::Schema;
use crate::json::Json;

/// Bytes of all cached schemas, by [`Schema::bytes`]. Beyond it the cache is emptied. The isolate has 128 MB,
/// which all its tenants share.
pub const MAX_CACHED_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a cache entry without the schema: an error message and overhead.
const ENTRY_BYTES: usize = 512;

/// Why a call's arguments are rejected, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// They do not match the schema. The sentence says where, and what is allowed there.
    Arguments(String),
    /// The schema cannot be used, so no arguments match it.
    Schema(String),
}

/// The compiled schemas by their text: equal schemas are compiled once, and a changed schema is a new entry.
#[derive(Default)]
pub struct Schemas {
    compiled: HashMap<Rc<str>, Result<Rc<Schema>, String>>,
}

impl Schemas {
    /// Checks arguments; compiles the schema if it is not cached, and returns it.
    ///
    /// # Errors
    ///
    /// The arguments do not match the schema, or it cannot be used.
    pub fn check(&mut self, text: &str, input: &Json) -> Result<Rc<Schema>, Misfit> {
        match self.get(text) {
            Ok(schema) => schema.check(input).map(|()| schema).map_err(Misfit::Arguments),
            Err(error) => Err(Misfit::Schema(format!("The tool's schema cannot be used: {error}"))),
        }
    }

    /// The schema; compiles it if it is not cached.
    ///
    /// # Errors
    ///
    /// It cannot be used.
    pub fn get(&mut self, text: &str) -> Result<Rc<Schema>, String> {
        match self.compiled.get(text) {
            Some(compiled) => compiled.clone(),
            None => self.compile(text),
        }
    }

    fn compile(&mut self, text: &str) -> Result<Rc<Schema>, String> {
        let compiled = Schema::compile(text).map(Rc::new);
        self.compiled.insert(Rc::from(text), compiled.clone());
        if self.bytes() > MAX_CACHED_BYTES {
            self.compiled.retain(|kept, _| &**kept == text);
        }
        compiled
    }

    /// Whether the schema is cached.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        self.compiled.contains_key(text)
    }

    /// The largest number of bytes that all entries can use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = |(text, compiled): (&Rc<str>, &Result<Rc<Schema>, String>)| {
            text.len() + ENTRY_BYTES + compiled.as_ref().map_or(0, |schema| schema.bytes())
        };
        self.compiled.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn schema(at: usize) -> String {
        let text = "d".repeat(30_000);
        format!(r#"{{"title":"{at}","description":"{text}","items":{{"pattern":"^[a-z]+$"}}}}"#)
    }

    #[test]
    fn a_schema_is_compiled_once_and_the_cache_stays_within_its_bytes() {
        let mut schemas = Schemas::default();
        let text = Json::Array(vec![Json::String("a".repeat(10))]);
        assert!(schemas.check(&schema(0), &text).is_ok());
        let first = schemas.compiled.values().next().unwrap().clone().unwrap();
        assert!(schemas.check(&schema(0), &text).is_ok());
        assert!(Rc::ptr_eq(&first, schemas.compiled.values().next().unwrap().as_ref().unwrap()));
        // Many schemas, some of which cannot be used.
        let mut most = 0;
        for at in 1..200 {
            let text = match at % 2 {
                0 => schema(at),
                _ => format!(r#"{{"type":"{}"}}"#, "x".repeat(60_000 + at)),
            };
            let _ = schemas.check(&text, &json::parse(b"[]").unwrap());
            most = most.max(schemas.bytes());
            assert!(schemas.holds(&text));
        }
        assert!(most <= MAX_CACHED_BYTES && most > MAX_CACHED_BYTES / 2, "{most}");
    }
}
