//! Records as texts: as D1 gives them, and as a lane stores them.

use serde::Deserialize;

use super::{Loaded, LoadedListing, tool_id};
use crate::call::command::GateCommand;

/// What D1 answered to a load: each record as JSON text, `None` for what is not registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct LoadedTexts {
    pub tenant: Option<String>,
    pub agent: Option<String>,
    pub credential: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    /// `None` when they were not asked for.
    pub bans: Option<String>,
}

impl LoadedTexts {
    /// # Errors
    ///
    /// Absent is not the same as unreadable: a record that does not parse stops the call.
    pub fn parse(&self) -> serde_json::Result<Loaded> {
        Ok(Loaded {
            tenant: record(&self.tenant)?,
            agent: record(&self.agent)?,
            credential: record(&self.credential)?,
            server: record(&self.server)?,
            tool: record(&self.tool)?,
            bans: record(&self.bans)?,
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
    /// Empty where there is only one of its kind.
    pub name: String,
    /// JSON; `null` for what is not registered.
    pub text: String,
}

/// What a stored record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    Tenant,
    Agent,
    Credential,
    Server,
    Tool,
    Bans,
    /// All tools of a server.
    Listing,
}

impl RecordKind {
    const ALL: [Self; 7] = [
        Self::Tenant,
        Self::Agent,
        Self::Credential,
        Self::Server,
        Self::Tool,
        Self::Bans,
        Self::Listing,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Credential => "credential",
            Self::Server => "server",
            Self::Tool => "tool",
            Self::Bans => "bans",
            Self::Listing => "listing",
        }
    }

    /// The name of the one that a command needs.
    fn name(self, command: &GateCommand) -> String {
        match self {
            Self::Tenant | Self::Bans => String::new(),
            Self::Agent => command.call.agent.clone(),
            Self::Credential => command.key_id.clone(),
            Self::Server | Self::Listing => command.call.server.clone(),
            Self::Tool => tool_id(command),
        }
    }
}

/// Kind and name of every record that a command needs.
#[must_use]
pub fn needed(command: &GateCommand) -> Vec<(RecordKind, String)> {
    RecordKind::ALL.into_iter().map(|kind| (kind, kind.name(command))).collect()
}

/// What was loaded for a command, as it is stored.
#[must_use]
pub fn stored(command: &GateCommand, loaded: LoadedTexts) -> Vec<StoredRecord> {
    let null = || "null".to_owned();
    let LoadedTexts { tenant, agent, credential, server, tool, bans } = loaded;
    [
        (RecordKind::Tenant, Some(tenant.unwrap_or_else(null))),
        (RecordKind::Agent, Some(agent.unwrap_or_else(null))),
        (RecordKind::Credential, Some(credential.unwrap_or_else(null))),
        (RecordKind::Server, Some(server.unwrap_or_else(null))),
        (RecordKind::Tool, Some(tool.unwrap_or_else(null))),
        (RecordKind::Bans, bans),
    ]
    .into_iter()
    .filter_map(|(kind, text)| Some(StoredRecord { kind, name: kind.name(command), text: text? }))
    .collect()
}

/// All tools of a command's server, as they are stored.
#[must_use]
pub fn stored_listing(command: &GateCommand, loaded: &LoadedListing) -> StoredRecord {
    let kind = RecordKind::Listing;
    // Plain data always serializes; what were empty could not be read.
    let text = serde_json::to_string(&loaded.tools).unwrap_or_default();
    StoredRecord { kind, name: kind.name(command), text }
}
