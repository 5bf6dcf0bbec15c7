//! A line of an export: a JSON object whose member `type` says which other members it has.

use gateward_core::json;
use gateward_core::tlog::Hash;

use super::members::Members;

/// The version of the format.
const VERSION: u64 = 1;

/// A log's name is text here: whether it is one depends on the export's tenant.
#[derive(Debug)]
pub enum Line {
    Export {
        tenant: String,
        origin: String,
    },
    Log(LogLine),
    Entry {
        log: String,
        index: u64,
        body: String,
    },
    /// An entry whose row is lost.
    Missing {
        log: String,
        index: u64,
        leaf_hash: Hash,
    },
    /// What a registry event of the head says. `None` if it is gone.
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
}

/// The beginning of a log.
#[derive(Debug)]
pub struct LogLine {
    pub log: String,
    /// The number of the receipt with index 0.
    pub first: u64,
    /// The index of the first entry that follows.
    pub begin: u64,
    /// The perfect subtrees of the entries below `begin`.
    pub edge: Vec<Hash>,
    /// The hash of the receipt before.
    pub prev_hash: String,
}

impl Line {
    /// Reads a line. The error is a sentence, which can have text from the line.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let json = json::parse(bytes).map_err(|error| format!("it must be valid JSON: {error}"))?;
        let mut members = Members::of(json)?;
        let line = match members.text("type")?.as_str() {
            "export" => {
                let version = members.number("version")?;
                if version != VERSION {
                    return Err(format!(
                        "this program reads the version {VERSION} of exports, not {version}"
                    ));
                }
                members.time("created_at")?;
                Self::Export { tenant: members.text("tenant")?, origin: members.text("origin")? }
            }
            "log" => Self::Log(LogLine {
                log: members.text("log")?,
                first: members.number("first")?,
                begin: members.number("begin")?,
                edge: members.hashes("edge")?,
                prev_hash: members.hex_hash("prev_hash")?,
            }),
            "entry" => Self::Entry {
                log: members.text("log")?,
                index: members.number("index")?,
                body: members.text("body")?,
            },
            "missing" => Self::Missing {
                log: members.text("log")?,
                index: members.number("index")?,
                leaf_hash: members.hash("leaf_hash")?,
            },
            "event" => Self::Event {
                log: members.text("log")?,
                index: members.number("index")?,
                event: members.text_or_null("event")?,
            },
            "checkpoint" => {
                Self::Checkpoint { log: members.text("log")?, note: members.text("note")? }
            }
            "end" => Self::End { entries: members.number("entries")? },
            other => return Err(format!("there is no type `{other}`")),
        };
        members.end()?;
        Ok(line)
    }

    /// Its `type`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Export { .. } => "export",
            Self::Log(_) => "log",
            Self::Entry { .. } => "entry",
            Self::Missing { .. } => "missing",
            Self::Event { .. } => "event",
            Self::Checkpoint { .. } => "checkpoint",
            Self::End { .. } => "end",
        }
    }
}
