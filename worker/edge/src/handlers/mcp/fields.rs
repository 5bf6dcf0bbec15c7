//! The request headers of MCP.

use gateward_core::mcp::message::Headers;
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::{Era, SESSION_VERSIONS};

/// A request's headers; names are in lower case.
pub struct Fields<'a>(pub &'a [(String, String)]);

impl Fields<'_> {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn about_the_body(&self) -> Headers {
        let owned = |name| self.get(name).map(str::to_owned);
        let parameters = self.0.iter().filter_map(|(name, value)| {
            Some((name.strip_prefix("mcp-param-")?.to_owned(), value.clone()))
        });
        Headers {
            protocol_version: owned("mcp-protocol-version"),
            method: owned("mcp-method"),
            name: owned("mcp-name"),
            parameters: parameters.collect(),
        }
    }

    /// Whether the client names a revision with sessions, or none.
    pub fn names_session_version(&self) -> bool {
        let version = self.get("mcp-protocol-version");
        version.is_none_or(|version| SESSION_VERSIONS.contains(&version))
    }

    /// Whether the client accepts a response of this media type.
    pub fn accepts(&self, wanted: &str) -> bool {
        let (kind, _) = wanted.split_once('/').unwrap_or_default();
        self.get("accept").is_none_or(|accept| {
            accept.split(',').any(|range| {
                let range = range.split(';').next().unwrap_or_default().trim();
                range.eq_ignore_ascii_case(wanted)
                    || range == "*/*"
                    || range.strip_suffix("/*").is_some_and(|own| own.eq_ignore_ascii_case(kind))
            })
        })
    }

    /// Whether the client names exactly this media type. A wildcard does not count.
    pub fn names(&self, wanted: &str) -> bool {
        let named = |range: &str| {
            range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
        };
        self.get("accept").is_some_and(|accept| accept.split(',').any(named))
    }

    /// The headers that are forwarded with a message of this era: those that were compared with the body, except
    /// headers that repeat a redacted argument.
    pub fn forwarded(&self, era: Era, removed: &Removed) -> Vec<(String, String)> {
        let method = self.get("mcp-method").unwrap_or_default().trim();
        let calls = method == "tools/call";
        let names = calls || matches!(method, "prompts/get" | "resources/read");
        let goes = |(name, value): &&(String, String)| match (name.as_str(), era) {
            ("mcp-protocol-version", _)
            | ("mcp-method", Era::Stateless)
            | ("last-event-id", Era::Session) => true,
            ("mcp-name", Era::Stateless) => names,
            (name, Era::Stateless) => {
                calls && name.starts_with("mcp-param-") && !removed.shows(value)
            }
            _ => false,
        };
        self.0.iter().filter(goes).cloned().collect()
    }
}
