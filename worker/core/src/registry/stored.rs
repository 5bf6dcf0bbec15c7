//! Records as JSON texts: as D1 returns them, and as a lane stores them.

use serde::Deserialize;

use super::records::Loaded;
use crate::text_enum::text_enum;

/// The answer of D1 to a load: each record as JSON text, `None` if it is not registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct LoadedTexts {
    pub tenant: Option<String>,
    pub agent: Option<String>,
    pub credential: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    /// `None` if the tenant's lists were not requested.
    pub bans: Option<String>,
    pub warrants: Option<String>,
}

impl LoadedTexts {
    /// # Errors
    ///
    /// Absent is not the same as unreadable: a record that does not parse fails the call.
    pub fn parse(&self) -> serde_json::Result<Loaded> {
        Ok(Loaded {
            tenant: record(&self.tenant)?,
            agent: record(&self.agent)?,
            credential: record(&self.credential)?,
            server: record(&self.server)?,
            tool: record(&self.tool)?,
            bans: record(&self.bans)?,
            warrants: record(&self.warrants)?,
        })
    }
}

fn record<'a, T: Deserialize<'a>>(text: &'a Option<String>) -> serde_json::Result<Option<T>> {
    text.as_deref().map(serde_json::from_str).transpose()
}

/// A record as a lane stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    pub kind: RecordKind,
    /// Empty if the tenant has only one of its kind.
    pub name: String,
    /// JSON; `null` if it is not registered.
    pub text: String,
}

text_enum! {
    /// The kind of a stored record.
    RecordKind {
        Tenant = "tenant",
        Agent = "agent",
        Credential = "credential",
        Server = "server",
        Tool = "tool",
        Bans = "bans",
        Warrants = "warrants",
        /// All tools of a server.
        Listing = "listing",
    }
}
