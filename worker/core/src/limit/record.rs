//! A limit as lanes have it.

use std::cell::Cell;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::definition::{Access, Definition, Kind, UTC, Unclear};
use super::rate_item::push_item;
use super::rule::{Calendar, Rule};
use super::window::{self, Local, OffsetS, Period, Window};
use crate::bucket::Rate;
use crate::glob::Glob;

/// A limit as lanes have it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct Limit {
    pub limit_id: String,
    /// The name of its counter: a limit that is created again, or gets another kind or window, starts from zero.
    pub counter: Rc<str>,
    pub kind: Kind,
    pub access: Option<Access>,
    pub tools: Option<Vec<Glob>>,
    pub rule: Rule,
    pub unclear: Unclear,
    /// Its item of `RateLimit-Policy`; `None` for `hours`.
    pub(super) policy: Option<Box<str>>,
    /// The revision of the limit's record.
    pub revision: u64,
    /// Where its counter was in the book that was last searched.
    pub(super) place: Cached<usize>,
    /// A part of the calendar, and since when it is known: the limit's window, or a minute in which `hours` allow
    /// calls.
    period: Cached<(u64, Period)>,
}

/// What a limit remembers. It is not part of the limit's value, so it does not affect equality.
#[derive(Debug, Clone, Default)]
pub(super) struct Cached<T: Copy>(Cell<T>);

impl<T: Copy> Cached<T> {
    pub fn get(&self) -> T {
        self.0.get()
    }

    pub fn set(&self, value: T) {
        self.0.set(value);
    }
}

impl<T: Copy> PartialEq for Cached<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Deserialize)]
struct Stored {
    limit_id: String,
    #[serde(default)]
    created_at_ms: u64,
    #[serde(default)]
    revision: u64,
    rule: Definition,
}

// A limit is parsed from its own text, so that the code for this is compiled once, and not once for each reader of a record
// that has limits.
impl TryFrom<Box<RawValue>> for Limit {
    type Error = String;

    fn try_from(stored: Box<RawValue>) -> Result<Self, String> {
        let Stored { limit_id, created_at_ms, revision, rule: definition } =
            serde_json::from_str(stored.get()).map_err(|error| error.to_string())?;
        let rule = definition.rule().map_err(|(field, why)| format!("`{field}`: {why}"))?;
        let window = definition.window.map_or("", Window::as_str);
        let kind = definition.kind.as_str();
        let policy = rule.max().map(|max| {
            let window_s = match &rule {
                Rule::Rate(rate) => Some(rate.window_s()),
                rule => rule.calendar().map(|calendar| calendar.window.longest_s()),
            };
            let mut policy = String::new();
            push_item(&mut policy, &limit_id, ("q", max.floor()), ("w", window_s));
            policy.into()
        });
        Ok(Self {
            counter: format!("{limit_id}.{created_at_ms}.{kind}.{window}").into(),
            limit_id,
            policy,
            kind: definition.kind,
            access: definition.access,
            tools: definition.tools,
            rule,
            unclear: definition.unclear.unwrap_or(Unclear::Keep),
            revision,
            place: Cached::default(),
            period: Cached::default(),
        })
    }
}

/// The limit of an agent's requests ([`super::Covers::Requests`]). An agent has one bucket for its requests, in its
/// state and not in a book. The bucket stays if the limit is changed, deleted, or replaced by another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Limit")]
pub struct RequestRate {
    pub limit_id: String,
    pub rate: Rate,
}

impl TryFrom<Limit> for RequestRate {
    type Error = &'static str;

    fn try_from(Limit { limit_id, rule, .. }: Limit) -> Result<Self, Self::Error> {
        match rule {
            Rule::Rate(rate) => Ok(Self { limit_id, rate }),
            _ => Err("a limit of requests is of the kind `rate`"),
        }
    }
}

impl Limit {
    /// The window of now. `None` if the time zone is unknown.
    #[must_use]
    pub fn period(&self, calendar: &Calendar, now_ms: u64, offset_s: OffsetS) -> Option<Period> {
        self.known_period(now_ms).or_else(|| self.find_period(calendar, now_ms, offset_s))
    }

    /// Whether calls are allowed now, by a limit of the kind `hours`. `None` if the time zone is unknown.
    #[must_use]
    pub fn is_open(&self, now_ms: u64, offset_s: OffsetS) -> Option<bool> {
        match self.known_period(now_ms) {
            Some(_) => Some(true),
            None => self.find_open(now_ms, offset_s),
        }
    }

    /// When a limit of the kind `hours` next allows calls; `None` if never, or if the time zone is unknown.
    #[must_use]
    pub fn opens_at(&self, now_ms: u64, offset_s: OffsetS) -> Option<u64> {
        let Rule::Hours { days, hours, time_zone } = &self.rule else { return None };
        window::opens_at(time_zone, now_ms, (days.as_deref(), hours.as_deref()), offset_s)
    }

    pub(super) fn known_period(&self, now_ms: u64) -> Option<Period> {
        let (since_ms, period) = self.period.get();
        (since_ms..period.ends_at_ms).contains(&now_ms).then_some(period)
    }

    // Cold functions are not inlined. The compiler would compute the calendar for each call, even if it is known.
    #[cold]
    fn find_period(&self, calendar: &Calendar, now_ms: u64, offset_s: OffsetS) -> Option<Period> {
        let period = window::period(calendar.window, &calendar.time_zone, now_ms, offset_s)?;
        self.period.set((now_ms, period));
        Some(period)
    }

    #[cold]
    fn find_open(&self, now_ms: u64, offset_s: OffsetS) -> Option<bool> {
        let Rule::Hours { days, hours, time_zone } = &self.rule else { return Some(true) };
        let local = Local::at(time_zone, now_ms, offset_s)?;
        let is_open = window::is_open(local, days.as_deref(), hours.as_deref());
        // Parts of a day begin and end with a minute.
        if is_open && let Some(minute) = window::period(Window::Minute, UTC, now_ms, offset_s) {
            self.period.set((now_ms, minute));
        }
        Some(is_open)
    }

    /// Whether it covers calls of a tool, `server/tool`. `reads`: the registry does not say that it writes.
    /// `writes`: the registry or the caller says so.
    #[must_use]
    pub fn covers(&self, tool: &str, reads: bool, writes: bool) -> bool {
        let covers = |access| match access {
            Access::Read => reads,
            Access::Write => writes,
        };
        self.access.is_none_or(covers)
            && self.tools.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(tool)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_covers_what_it_names() {
        let limit = |access: Option<&str>, tools: Option<&[&str]>| -> Limit {
            let definition = json!({"kind": "quota", "max": "3", "window": "day", "access": access, "tools": tools});
            serde_json::from_value(json!({"limit_id": "l", "rule": definition})).unwrap()
        };
        for (access, tools, tool, writes, expected) in [
            (None, None, "s/x", false, true),
            (Some("write"), None, "s/x", false, false),
            (Some("write"), None, "s/x", true, true),
            (Some("read"), None, "s/x", false, true),
            (None, Some(&["s/*", "t/y"][..]), "t/y", true, true),
            (None, Some(&["s/*", "t/y"][..]), "t/z", true, false),
        ] {
            assert_eq!(
                limit(access, tools).covers(tool, !writes, writes),
                expected,
                "{access:?} {tools:?}"
            );
        }
    }
}
