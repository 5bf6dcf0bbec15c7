//! What the journal rows of a batch add to metrics, so that D1 reads each series once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::bounds::{OTHER, UNKNOWN};
use super::decision::KeyHash;

use crate::json;

/// The members of a journal row that say what it adds to. Each is the member's JSON text, or empty if the row lacks it.
/// Most rows of a batch have the same ones, so they are compared as texts, and read only once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowMembers<'a> {
    /// A [`CountedDecision`](super::decision::CountedDecision).
    pub counted: &'a str,
    pub decision: &'a str,
    pub reason_code: &'a str,
    pub server: &'a str,
    pub tool: &'a str,
    /// The series that the row adds to besides those of its decision.
    pub series: &'a str,
}

/// The credential of a row's decision.
#[derive(Deserialize)]
#[serde(untagged)]
enum Credential {
    Hash(KeyHash),
    /// Of an older version, which wrote the label.
    Label(String),
}

impl<'a> RowMembers<'a> {
    /// What cannot be read adds nothing: a row is flushed in any case.
    fn each_series(&self) -> Vec<Cow<'a, str>> {
        let series: Vec<&RawValue> = serde_json::from_str(self.series).unwrap_or_default();
        let series = series.into_iter().map(|series| Cow::Borrowed(series.get()));
        self.of_decision().into_iter().flatten().map(Cow::Owned).chain(series).collect()
    }

    fn of_decision(&self) -> Option<[String; 2]> {
        let (credential, names): (Credential, u8) = serde_json::from_str(self.counted).ok()?;
        let raw = |text: &'a str| serde_json::from_str::<&'a RawValue>(text).ok();
        let (decision, reason_code) = (raw(self.decision)?, raw(self.reason_code)?);
        let (server, tool) = (raw(self.server)?, raw(self.tool)?);
        let unknown = &*to_raw_value(UNKNOWN).ok()?;
        let server = if names >= 1 { server } else { unknown };
        let tool = if names >= 2 { tool } else { unknown };
        let credential = match credential {
            Credential::Hash(hash) => hash.label(),
            Credential::Label(label) => label,
        };
        let of_tool = ("decisions", [decision, reason_code], [server, tool]);
        let of_credential = ("credential_decisions", [decision], [credential]);
        Some([json::to_string(&of_tool), json::to_string(&of_credential)])
    }
}

/// The sequence numbers of a batch's rows by what they add to.
#[derive(Debug, Default)]
pub struct RowsByMembers<'a>(BTreeMap<RowMembers<'a>, Vec<u64>>);

/// What a batch adds to metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchMetrics {
    /// A JSON array of series.
    pub series: String,
    /// A JSON array of numbers: how many rows add to each series.
    pub counts: String,
    /// A JSON array of arrays: the sequence numbers of each series's rows.
    pub rows: String,
    /// The series that have names, each as [`named`] makes it.
    pub named: BTreeSet<String>,
}

impl BatchMetrics {
    /// The series that have names, as a JSON array.
    #[must_use]
    pub fn named_series(&self) -> String {
        let named: Vec<&str> = self.named.iter().map(String::as_str).collect();
        format!("[{}]", named.join(","))
    }
}

impl<'a> RowsByMembers<'a> {
    pub fn add(&mut self, seq: u64, members: RowMembers<'a>) {
        self.0.entry(members).or_default().push(seq);
    }

    #[must_use]
    pub fn metrics(&self) -> BatchMetrics {
        let mut by_series = BTreeMap::<Cow<'_, str>, Vec<u64>>::new();
        for (members, rows) in &self.0 {
            for series in members.each_series() {
                by_series.entry(series).or_default().extend(rows);
            }
        }
        let counts: Vec<usize> = by_series.values().map(Vec::len).collect();
        let rows: Vec<&Vec<u64>> = by_series.values().collect();
        let series: Vec<&str> = by_series.keys().map(Cow::as_ref).collect();
        let mut all_named = BTreeSet::new();
        all_named.extend(series.iter().filter_map(|series| named(series)));
        // Plain data always serializes.
        BatchMetrics {
            counts: json::to_string(&counts),
            rows: json::to_string(&rows),
            series: format!("[{}]", series.join(",")),
            named: all_named,
        }
    }
}

/// The metric, labels and names of a series as a JSON array, if it has names of its own.
#[must_use]
pub fn named(series: &str) -> Option<String> {
    let members: Vec<&RawValue> = serde_json::from_str(series).ok()?;
    let [metric, labels, names, ..] = members.as_slice() else { return None };
    let has_names = names.get() != "[]" && names.get() != format!("[\"{OTHER}\"]");
    has_names.then(|| format!("[{},{},{}]", metric.get(), labels.get(), names.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECISION: RowMembers<'_> = RowMembers {
        counted: "[1985229328,2]",
        decision: r#""allow""#,
        reason_code: r#""policy_allow""#,
        server: r#""git\"hub""#,
        tool: r#""read""#,
        series: "[]",
    };

    #[test]
    fn rows_are_counted_by_series() {
        let mut rows = RowsByMembers::default();
        rows.add(1, DECISION);
        rows.add(2, DECISION);
        let write = r#"[["writes",["allow","false","none"],[]]]"#;
        rows.add(3, RowMembers { series: write, ..DECISION });
        let outcome = r#"[["proxied_ms",["answered",50],["crm"],11]]"#;
        rows.add(4, RowMembers { series: outcome, ..RowMembers::default() });
        // Of older versions: one had the series of a decision among the others, one the credential's label. And one
        // that cannot be read.
        let older = r#"[["decisions",["allow","policy_allow"],["git\"hub","read"]]]"#;
        rows.add(5, RowMembers { series: older, ..RowMembers::default() });
        rows.add(9, RowMembers { counted: r#"["kh_01234567",2]"#, ..DECISION });
        rows.add(6, RowMembers { series: "?", counted: "?", ..RowMembers::default() });
        rows.add(7, RowMembers { tool: "", ..DECISION });
        let other = r#"[["limits_hit",["rate"],["_other"]]]"#;
        rows.add(8, RowMembers { series: other, ..RowMembers::default() });
        let metrics = rows.metrics();
        let series = [
            r#"["credential_decisions",["allow"],["kh_01234567"]]"#,
            r#"["decisions",["allow","policy_allow"],["git\"hub","read"]]"#,
            r#"["limits_hit",["rate"],["_other"]]"#,
            r#"["proxied_ms",["answered",50],["crm"],11]"#,
            r#"["writes",["allow","false","none"],[]]"#,
        ];
        assert_eq!(metrics.series, format!("[{}]", series.join(",")));
        assert_eq!(metrics.counts, "[4,5,1,1,1]");
        assert_eq!(metrics.rows, "[[9,3,1,2],[5,9,3,1,2],[8],[4],[3]]");
        let proxied = r#"["proxied_ms",["answered",50],["crm"]]"#;
        let named = [series[0], series[1], proxied].map(str::to_owned);
        assert_eq!(metrics.named, BTreeSet::from(named));
    }

    #[test]
    fn a_name_that_metrics_may_not_show_is_unknown() {
        for (counted, names) in [
            ("[1985229328,0]", r#"["unknown","unknown"]"#),
            ("[1985229328,1]", r#"["git\"hub","unknown"]"#),
        ] {
            let [decisions, _] = RowMembers { counted, ..DECISION }.of_decision().unwrap();
            assert_eq!(decisions, format!(r#"["decisions",["allow","policy_allow"],{names}]"#));
        }
    }
}
