//! A request to the API, before it is sent. Pure: commands create requests, `client` sends them.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: Method,
    /// Percent-encoded, from the first slash on.
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    /// The revision that the record must still have.
    pub if_match: Option<u64>,
}

impl Request {
    /// `segments` follow `/v1`; each is percent-encoded.
    pub fn new(method: Method, segments: &[&str]) -> Self {
        let mut path = String::from("/v1");
        for segment in segments {
            path.push('/');
            path.push_str(&percent_encoded(segment));
        }
        Self { method, path, query: Vec::new(), body: None, if_match: None }
    }

    pub fn get(segments: &[&str]) -> Self {
        Self::new(Method::Get, segments)
    }

    pub fn post(segments: &[&str]) -> Self {
        Self::new(Method::Post, segments)
    }

    pub fn body(mut self, fields: Fields) -> Self {
        self.body = Some(Value::Object(fields.0));
        self
    }

    pub fn if_match(mut self, revision: Option<u64>) -> Self {
        self.if_match = revision;
        self
    }

    /// Adds a parameter, unless it is absent.
    pub fn parameter(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    /// Path and query, as in the URL.
    pub fn target(&self) -> String {
        let mut target = self.path.clone();
        for (at, (name, value)) in self.query.iter().enumerate() {
            target.push(if at == 0 { '?' } else { '&' });
            target.push_str(name);
            target.push('=');
            target.push_str(&percent_encoded(value));
        }
        target
    }
}

/// The fields of a body. An absent field is left out, so a change keeps its value.
#[derive(Debug, Default, PartialEq)]
pub struct Fields(Map<String, Value>);

impl Fields {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Object(fields.0)
    }
}

/// Encodes everything except RFC 3986's unreserved characters as `%XX`, so that no character of a
/// name or a filter can end its segment of the URL.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_or_a_filter_ends_its_place_in_the_url() {
        for (segment, value, expected) in [
            ("github", "coder", "/v1/servers/github?agent=coder"),
            (
                "repos/get.v1",
                "2026-01-02T03:04:05+01:00",
                "/v1/servers/repos%2Fget.v1?agent=2026-01-02T03%3A04%3A05%2B01%3A00",
            ),
            ("a?b#c", "a&b=c", "/v1/servers/a%3Fb%23c?agent=a%26b%3Dc"),
            ("ä %", "", "/v1/servers/%C3%A4%20%25?agent="),
        ] {
            let request = Request::get(&["servers", segment]).parameter("agent", Some(value));
            assert_eq!(request.target(), expected);
        }
    }
}
