//! The parameters of a request's query: filters, times, flags, and which page of a list.

use gateward_core::bounds::MAX_LABEL_BYTES;
use gateward_core::field::parse_time;
use gateward_core::problem::{Problem, ProblemCode};

use super::page::{DEFAULT_PAGE, MAX_PAGE};

/// Names with their values, decoded.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a>(pub &'a [(String, String)]);

impl<'a> Query<'a> {
    /// The first value of this parameter.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// A time, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// `malformed_request`: it is not an RFC 3339 time.
    pub fn time(self, name: &str) -> Result<Option<u64>, Problem> {
        let time = |text| parse_time(text).ok_or_else(|| malformed(name, "an RFC 3339 time"));
        self.get(name).map(time).transpose()
    }

    /// A flag; false if it is absent.
    ///
    /// # Errors
    ///
    /// `malformed_request`: it is neither `true` nor `false`.
    pub fn flag(self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(malformed(name, "`true` or `false`")),
        }
    }

    /// `limit` and `cursor`.
    ///
    /// # Errors
    ///
    /// `malformed_request`: one of them is not valid, or there is a parameter that is neither one of them nor one of
    /// these filters.
    pub fn page(self, filters: &[&str]) -> Result<(u32, &'a str), Problem> {
        let (mut limit, mut cursor) = (DEFAULT_PAGE, "");
        for (name, value) in self.0 {
            match name.as_str() {
                "limit" => {
                    let parsed = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                    let expected = format!("a number from 1 to {MAX_PAGE}");
                    limit = parsed.ok_or_else(|| malformed("limit", &expected))?;
                }
                "cursor" if is_cursor(value) => cursor = value.as_str(),
                "cursor" => return Err(malformed("cursor", "the `next_cursor` of a page")),
                other if filters.contains(&other) => {}
                other => return Err(malformed(other, "left out: this parameter does not exist")),
            }
        }
        Ok((limit, cursor))
    }
}

/// Cursors consist of names, ids, times and addresses.
fn is_cursor(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:*".contains(&byte);
    text.len() <= MAX_LABEL_BYTES && text.bytes().all(plain)
}

/// The problem of a parameter that is not as `expected`.
#[must_use]
pub fn malformed(name: &str, expected: &str) -> Problem {
    Problem::new(ProblemCode::MalformedRequest, format!("`{name}` must be {expected}"))
}
