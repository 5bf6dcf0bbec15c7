//! A page of a list. Its rows have the API's own text.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{from_str, to_string};

use crate::failure::Failure;

#[derive(Debug)]
pub struct Page {
    pub rows: Vec<Box<RawValue>>,
    pub next_cursor: Option<String>,
    /// The members of the answer besides rows and cursor.
    pub others: BTreeMap<String, Box<RawValue>>,
}

impl Page {
    /// `plural` is the name of the member with the rows.
    pub fn parse(text: &str, plural: &str) -> Result<Self, Failure> {
        let unreadable = || Failure::Other(format!("the answer is not a list of {plural}"));
        let mut others: BTreeMap<String, Box<RawValue>> =
            from_str(text).map_err(|_| unreadable())?;
        let rows = others.remove(plural).ok_or_else(unreadable)?;
        let cursor = others.remove("next_cursor").ok_or_else(unreadable)?;
        Ok(Self {
            rows: from_str(rows.get()).map_err(|_| unreadable())?,
            next_cursor: from_str(cursor.get()).map_err(|_| unreadable())?,
            others,
        })
    }

    /// The list with the rows of the next page added.
    pub fn append(&mut self, next: Self) {
        self.rows.extend(next.rows);
        self.next_cursor = next.next_cursor;
    }

    /// The list in the form of the API's answer.
    pub fn to_json(&self, plural: &str) -> Result<String, Failure> {
        to_string(&Answer { page: self, plural }).map_err(|error| Failure::Other(error.to_string()))
    }
}

/// A list with the name of the member with its rows. Rows come first, then the cursor.
struct Answer<'a> {
    page: &'a Page,
    plural: &'a str,
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Page { rows, next_cursor, others } = self.page;
        let mut map = serializer.serialize_map(Some(2 + others.len()))?;
        map.serialize_entry(self.plural, rows)?;
        map.serialize_entry("next_cursor", next_cursor)?;
        for (name, value) in others {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_one_list_in_the_apis_own_text() {
        let first = r#"{"agents":[{"b":1,"a":1.0}],"next_cursor":"x","flushed_through":[]}"#;
        let mut list = Page::parse(first, "agents").unwrap();
        assert_eq!(list.to_json("agents").unwrap(), first);
        list.append(
            Page::parse(r#"{"agents":[{"c":null}],"next_cursor":null}"#, "agents").unwrap(),
        );
        let expected =
            r#"{"agents":[{"b":1,"a":1.0},{"c":null}],"next_cursor":null,"flushed_through":[]}"#;
        assert_eq!(list.to_json("agents").unwrap(), expected);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "[]", "{}", r#"{"agents":[]}"#, r#"{"agents":{},"next_cursor":null}"#] {
            assert!(Page::parse(text, "agents").is_err(), "{text}");
        }
    }
}
