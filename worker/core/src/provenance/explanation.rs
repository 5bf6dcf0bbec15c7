//! The provenance of one call, as callers, approvers and receipts see it.

use serde::{Deserialize, Serialize};

use super::action;
use super::level::Level;
use super::pointers::unescaped;
use super::roles::Reach;

/// Sinks that an explanation names: those of the lowest levels come first.
pub const MAX_EXPLAINED_SINKS: usize = 16;

/// The sink of a tool of high or critical risk: the action itself, which the user must ask for.
pub const TOOL: &str = "#tool";

/// Bytes of a sink's pointer in JSON, as far as it is kept. A registered pointer has at most 256, and each of its stars
/// becomes a number of up to four digits. Without registered ones, the caller names the arguments.
const MAX_SHOWN_BYTES: usize = 384;

/// What may follow the last name of a sink.
const MARKS: [&str; 3] = ["#links", "#name", "#pair"];

/// Sinks that a reason has a sentence for. The others are only in the explanation's list.
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
    /// A JSON Pointer to the argument, shortened. `#links` after it: a link or address inside of a content. `#name` after
    /// it: its last name, which the tool's schema does not declare. `#pair` after it: what it names together with another
    /// argument, or the two parts of `owner/name`. `…` at its end: it is longer. `#tool`: the action itself. `*` in it: a
    /// name in which the shield found something.
    pub sink: String,
    /// The tool of that call, as `server/tool`. Of `#tool`: the tool that is called.
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
        let Self { call, decision_id, level, tool, sink } = self;
        let name = tool.as_deref().unwrap_or_default();
        let is_action = sink == TOOL;
        let action = if is_action { action::of_tool(name) } else { String::new() };
        let number = call.unwrap_or_default().to_string();
        let decision = decision_id.as_deref().unwrap_or_default();
        let comma = if decision_id.is_some() { ", decision " } else { "" };
        let trusted = if *level == Level::Trusted { "trusted" } else { "untrusted" };
        let not_named = match instruction_known {
            true => "; the instruction does not name it",
            false => "; the run has no instruction",
        };
        let words: &[&str] = match level {
            Level::Instruction if is_action => {
                &["asked for by the instruction or plan, or approved in this run"]
            }
            _ if is_action && instruction_known => {
                &["not asked for: the instruction does not ask to ", &action]
            }
            _ if is_action => &["not asked for: the run has no instruction"],
            Level::Instruction => &["named by the instruction or plan, or approved in this run"],
            Level::Allowed => &["found on the tenant's allow-list"],
            _ if tool.is_some() && call.is_some() => &[
                "first seen in the ",
                trusted,
                " result of `",
                name,
                "` (result ",
                &number,
                comma,
                decision,
                ")",
                not_named,
            ],
            Level::Trusted => &["first seen in a trusted result", not_named],
            Level::Untrusted => &["first seen in an untrusted result", not_named],
            Level::Nowhere => &["seen in no result", not_named],
        };
        words.concat()
    }
}

/// A pointer of at most [`MAX_SHOWN_BYTES`].
fn shortened(mut pointer: String) -> String {
    let mut bytes = 0;
    let end = pointer.char_indices().find_map(|(at, c)| {
        bytes += match c {
            '"' | '\\' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        (bytes > MAX_SHOWN_BYTES).then_some(at)
    });
    if let Some(end) = end {
        pointer.truncate(end);
        pointer.push('…');
    }
    pointer
}

impl Provenance {
    /// The same with at most [`MAX_EXPLAINED_SINKS`] sinks, whose pointers are not longer than [`MAX_SHOWN_BYTES`].
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.sinks.truncate(MAX_EXPLAINED_SINKS);
        for origin in &mut self.sinks {
            origin.sink = shortened(std::mem::take(&mut origin.sink));
        }
        self
    }

    /// The first [`MAX_EXPLAINED_SINKS`] sinks, with `*` in place of each name that is hidden. So is a name of which a
    /// pointer would show only the beginning.
    #[must_use]
    pub fn masked(mut self, is_hidden: &mut dyn FnMut(&str) -> bool) -> Self {
        self.sinks.truncate(MAX_EXPLAINED_SINKS);
        let mut masked = |step: &str| {
            let marked = MARKS.iter().find_map(|mark| Some((step.strip_suffix(*mark)?, *mark)));
            let (name, mark) = marked.unwrap_or((step, ""));
            let is_long = name.len() > MAX_SHOWN_BYTES;
            match is_long || is_hidden(&unescaped(name)) {
                true => ["*", mark].concat(),
                false => step.to_owned(),
            }
        };
        for origin in &mut self.sinks {
            origin.sink = origin.sink.split('/').map(&mut masked).collect::<Vec<_>>().join("/");
        }
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
        let sentence = |it: &SinkOrigin| {
            ["`", &it.sink, "` was ", &it.words(self.instruction_known), "."].concat()
        };
        unsaid.take(MAX_SENTENCES).map(sentence).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_hidden_is_in_no_pointer() {
        let long = ["/", &"a".repeat(MAX_SHOWN_BYTES + 1)].concat();
        for (pointer, expected) in [
            ("", ""),
            ("#tool", "#tool"),
            ("#resource", "#resource"),
            ("/to/0#links", "/to/0#links"),
            ("/a@b", "/*"),
            ("/a@b/c~1@/d#name", "/*/*/d#name"),
            ("/to/a@b#name", "/to/*#name"),
            ("/a@b#c#pair", "/*#pair"),
            (
                "request/params/inputResponses/a@b/content",
                "request/params/inputResponses/*/content",
            ),
            (long.as_str(), "/*"),
        ] {
            let found = Provenance {
                instruction_known: false,
                lowest: Level::Nowhere,
                reach: Reach::Outside,
                sinks: vec![SinkOrigin::new(pointer.to_owned(), Level::Nowhere)],
            };
            let found = found.masked(&mut |name| name.contains('@'));
            assert_eq!(found.sinks[0].sink, expected, "{pointer}");
        }
    }

    #[test]
    fn a_long_pointer_is_shortened_and_says_so() {
        let long = MAX_SHOWN_BYTES;
        for (pointer, expected) in [
            ("/to".to_owned(), "/to".to_owned()),
            ("a".repeat(long), "a".repeat(long)),
            ("a".repeat(long + 1), "a".repeat(long) + "…"),
            ("é".repeat(long), "é".repeat(long / 2) + "…"),
            ("\"".repeat(long), "\"".repeat(long / 2) + "…"),
            ("\u{1}".repeat(long), "\u{1}".repeat(long / 6) + "…"),
        ] {
            let short = shortened(pointer);
            assert_eq!(short, expected);
            let json = serde_json::to_string(&short).unwrap();
            assert!(json.len() <= MAX_SHOWN_BYTES + "\"…\"".len(), "{json}");
        }
    }
}
