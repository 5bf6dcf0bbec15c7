//! The lines of an export, as they are written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateward_core::tlog::Hash;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Export {
        tenant: String,
        origin: String,
    },
    Log {
        log: String,
        first: u64,
        begin: u64,
        edge: Vec<Hash>,
        prev_hash: String,
    },
    Entry {
        log: String,
        index: u64,
        body: String,
    },
    Missing {
        log: String,
        index: u64,
        leaf_hash: Hash,
    },
    Event {
        log: String,
        index: u64,
        event: Option<String>,
    },
    Checkpoint {
        log: String,
        note: String,
    },
    End {
        entries: u64,
    },
    /// A line that the format does not have.
    Raw(String),
}

impl Line {
    /// The line, without its end.
    pub fn text(&self) -> String {
        match self {
            Self::Export { tenant, origin } => json!({
                "type": "export", "version": 1, "tenant": tenant, "origin": origin,
                "created_at": "2026-11-24T00:00:00.000Z",
            }),
            Self::Log { log, first, begin, edge, prev_hash } => {
                let edge: Vec<_> = edge.iter().map(|hash| STANDARD.encode(hash)).collect();
                json!({
                    "type": "log", "log": log, "first": first, "begin": begin, "edge": edge,
                    "prev_hash": prev_hash,
                })
            }
            Self::Entry { log, index, body } => {
                json!({"type": "entry", "log": log, "index": index, "body": body})
            }
            Self::Missing { log, index, leaf_hash } => json!({
                "type": "missing", "log": log, "index": index,
                "leaf_hash": STANDARD.encode(leaf_hash),
            }),
            Self::Event { log, index, event } => {
                json!({"type": "event", "log": log, "index": index, "event": event})
            }
            Self::Checkpoint { log, note } => {
                json!({"type": "checkpoint", "log": log, "note": note})
            }
            Self::End { entries } => json!({"type": "end", "entries": entries}),
            Self::Raw(text) => return text.clone(),
        }
        .to_string()
    }

    /// The log that the line is of; empty if it is of none.
    pub fn log(&self) -> &str {
        match self {
            Self::Log { log, .. }
            | Self::Entry { log, .. }
            | Self::Missing { log, .. }
            | Self::Event { log, .. }
            | Self::Checkpoint { log, .. } => log,
            Self::Export { .. } | Self::End { .. } | Self::Raw(_) => "",
        }
    }

    /// Whether it is an entry of this log.
    pub fn is_entry(&self, of: &str) -> bool {
        matches!(self, Self::Entry { log, .. } if log == of)
    }

    /// The body of an entry.
    pub fn body(&self) -> Option<Value> {
        match self {
            Self::Entry { body, .. } => serde_json::from_str(body).ok(),
            _ => None,
        }
    }
}

/// The export as it is in a file.
pub fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}
