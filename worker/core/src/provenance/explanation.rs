//! The provenance of one call, as callers, approvers and receipts see it.

use serde::{Deserialize, Serialize};

use super::level::Level;
use super::roles::Reach;

/// Sinks that an explanation names: those of the lowest levels come first.
pub const MAX_EXPLAINED_SINKS: usize = 16;

/// Sinks that a reason has a sentence for. The others stand in the explanation's list.
const MAX_SENTENCES: usize = 4;

/// Where the destinations of a call came from. It holds no values. Fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Provenance {
    /// Whether the run has an instruction.
    pub instruction_known: bool,
    /// The lowest level among the sinks; `nowhere` if there are none.
    pub lowest: Level,
    /// Whom the call reaches.
    pub reach: Reach,
    /// The lowest first; at most 16.
    pub sinks: Vec<SinkOrigin>,
}

/// Where the value of one sink came from. Fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkOrigin {
    /// The number of that call among the run's results, from 1; absent if no result has the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub call: Option<u32>,
    /// The decision on the call whose result first had the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub decision_id: Option<String>,
    pub level: Level,
    /// A JSON Pointer to the argument. `#links` after it: a link or address inside of a content.
    pub sink: String,
    /// The tool of that call, as `server/tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub tool: Option<String>,
}

impl SinkOrigin {
    #[must_use]
    pub const fn new(sink: String, level: Level) -> Self {
        Self { call: None, decision_id: None, level, sink, tool: None }
    }

    /// The origin in words that follow "was".
    #[must_use]
    pub fn words(&self, instruction_known: bool) -> String {
        let Self { call, decision_id, level, tool, .. } = self;
        let seen = match (level, tool, call) {
            (Level::Instruction, ..) => {
                return "named by the instruction or plan, or approved in this run".to_owned();
            }
            (Level::Allowed, ..) => return "found on the tenant's allow-list".to_owned(),
            (_, Some(tool), Some(call)) => {
                let decision = decision_id
                    .as_ref()
                    .map_or_else(String::new, |id| [", decision ", id].concat());
                let trust = if *level == Level::Trusted { "trusted" } else { "untrusted" };
                format!("first seen in the {trust} result of `{tool}` (result {call}{decision})")
            }
            (Level::Trusted, ..) => "first seen in a trusted result".to_owned(),
            (Level::Untrusted, ..) => "first seen in an untrusted result".to_owned(),
            (Level::Nowhere, ..) => "seen in no result".to_owned(),
        };
        let instruction = match instruction_known {
            true => "; the instruction does not name it",
            false => "; the run has no instruction",
        };
        seen + instruction
    }
}

impl Provenance {
    /// The same with at most [`MAX_EXPLAINED_SINKS`] sinks.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.sinks.truncate(MAX_EXPLAINED_SINKS);
        self
    }

    /// The sinks of one level.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &str> {
        self.sinks.iter().filter(move |sink| sink.level == level).map(|sink| sink.sink.as_str())
    }

    /// A sentence for each of the lowest sinks that neither the instruction nor the allow-list has. Without
    /// values: approvers read them beside it.
    #[must_use]
    pub fn sentences(&self) -> String {
        let unsaid = self.sinks.iter().filter(|sink| sink.level < Level::Allowed);
        let sentences = unsaid
            .take(MAX_SENTENCES)
            .map(|it| format!("`{}` was {}.", it.sink, it.words(self.instruction_known)));
        sentences.collect::<Vec<_>>().join(" ")
    }
}
