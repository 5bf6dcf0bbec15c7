//! What one event adds to: a metric and the values of its labels.
//!
//! As JSON, a series is an array: the metric's key, the values of its closed labels, its names, and for a histogram
//! the observed milliseconds. The bucket of a histogram is its last closed label; `null` is the last bucket.
//! Persisted in journal rows and in D1.

use std::borrow::Cow;

use super::bounds::MAX_OBSERVED_MS;
use super::list::{Kind, Metric};
use crate::decision::Decision;
use crate::json;
use crate::text_enum::text_enum;

text_enum! {
    /// How a reservation began or ended.
    ReservationEvent {
        Opened = "opened",
        /// The call used what it held.
        Settled = "settled",
        /// The call did nothing, so all of it was given back.
        Returned = "returned",
        /// The outcome does not say whether the call did anything.
        Unclear = "unclear",
        /// No outcome was reported in time.
        Expired = "expired",
    }
}

text_enum! {
    /// How a forwarded call ended.
    Ended {
        /// The server answered with a status below 500.
        Answered = "answered",
        /// The server answered with a status from 500 on.
        ServerError = "server_error",
        CallerGone = "caller_gone",
        UpstreamFailed = "upstream_failed",
        TimedOut = "timed_out",
        TooLarge = "too_large",
        Refused = "refused",
    }
}

/// Appends texts one after the other.
macro_rules! put {
    ($out:ident, $($text:expr),+) => {{ $($out.push_str($text);)+ }};
}

/// One more of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series<'a> {
    DegradedDecision,
    /// `provenance` is the lowest level of the destinations, or `none` if they were not looked up.
    Write {
        decision: Decision,
        tainted: bool,
        provenance: &'static str,
    },
    LimitHit {
        kind: &'a str,
        limit: &'a str,
    },
    Reservation(ReservationEvent),
    /// The name of an approval's step.
    Approval(&'static str),
    ApprovalClosed {
        event: &'static str,
        after_ms: u64,
    },
    Proxied {
        outcome: Ended,
        server: &'a str,
        duration_ms: u64,
    },
    /// The name of an event that is counted.
    Event(&'static str),
    /// The code of a problem, or the reason code of a refused warrant.
    FailedAuthentication(&'static str),
    WebhookAttempt {
        delivered: bool,
    },
    DeadLetter,
    FlushError,
}

impl Series<'_> {
    #[must_use]
    pub const fn metric(&self) -> Metric {
        match self {
            Self::DegradedDecision => Metric::DegradedDecisions,
            Self::Write { .. } => Metric::Writes,
            Self::LimitHit { .. } => Metric::LimitsHit,
            Self::Reservation(_) => Metric::Reservations,
            Self::Approval(_) => Metric::Approvals,
            Self::ApprovalClosed { .. } => Metric::ApprovalSeconds,
            Self::Proxied { .. } => Metric::ProxiedSeconds,
            Self::Event(_) => Metric::Events,
            Self::FailedAuthentication(_) => Metric::FailedAuthentications,
            Self::WebhookAttempt { .. } => Metric::WebhookAttempts,
            Self::DeadLetter => Metric::DeadLetters,
            Self::FlushError => Metric::FlushErrors,
        }
    }

    /// The series as JSON text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        self.push(&mut text);
        text
    }

    /// Appends the series as JSON text. A decision does this a few times. So the text between two values is one literal,
    /// whose length is a constant, and serde escapes only names that need it.
    pub fn push(&self, out: &mut String) {
        match *self {
            Self::DegradedDecision => put!(out, r#"["degraded_decisions",[],[]]"#),
            Self::Write { decision, tainted, provenance } => {
                let tainted = if tainted { "true" } else { "false" };
                put!(out, r#"["writes",[""#, decision.as_str(), r#"",""#, tainted, r#"",""#);
                put!(out, provenance, r#""],[]]"#);
            }
            Self::LimitHit { kind, limit } => {
                put!(out, r#"["limits_hit",[""#, kind, r#""],[""#, &escaped(limit), r#""]]"#);
            }
            Self::Reservation(event) => {
                put!(out, r#"["reservations",[""#, event.as_str(), r#""],[]]"#);
            }
            Self::Approval(step) => put!(out, r#"["approvals",[""#, step, r#""],[]]"#),
            Self::ApprovalClosed { event, after_ms } => {
                let Observed { bucket, value } = &self.observed(after_ms);
                put!(out, r#"["approval_ms",[""#, event, r#"","#, bucket, "],[],", value, "]");
            }
            Self::Proxied { outcome, server, duration_ms } => {
                let Observed { bucket, value } = &self.observed(duration_ms);
                put!(out, r#"["proxied_ms",[""#, outcome.as_str(), r#"","#, bucket, r#"],[""#);
                put!(out, &escaped(server), r#""],"#, value, "]");
            }
            Self::Event(name) => put!(out, r#"["events",[""#, name, r#""],[]]"#),
            Self::FailedAuthentication(code) => {
                put!(out, r#"["failed_authentications",[""#, code, r#""],[]]"#);
            }
            Self::WebhookAttempt { delivered } => {
                let result = if delivered { "delivered" } else { "failed" };
                put!(out, r#"["webhook_attempts",[""#, result, r#""],[]]"#);
            }
            Self::DeadLetter => put!(out, r#"["dead_letters",[],[]]"#),
            Self::FlushError => put!(out, r#"["flush_errors",[],[]]"#),
        }
    }

    fn observed(&self, value_ms: u64) -> Observed {
        let value_ms = value_ms.min(MAX_OBSERVED_MS);
        let bucket = match self.metric().definition().kind {
            Kind::Histogram(bounds) => bounds.iter().find(|bound| value_ms <= **bound),
            Kind::Counter | Kind::Gauge => None,
        };
        let bucket = bucket.map_or_else(|| "null".to_owned(), u64::to_string);
        Observed { bucket, value: value_ms.to_string() }
    }
}

/// A value of a histogram as JSON: the upper bound of its bucket, `null` for the last bucket, and the value.
struct Observed {
    bucket: String,
    value: String,
}

/// A name as it stands between the quotes of JSON.
fn escaped(name: &str) -> Cow<'_, str> {
    if !needs_escapes(name) {
        return Cow::Borrowed(name);
    }
    // A text always serializes.
    let text = json::to_string(name);
    Cow::Owned(text.get(1..text.len().saturating_sub(1)).unwrap_or_default().to_owned())
}

/// Looks at every byte, so that the compiler can look at many at once.
fn needs_escapes(text: &str) -> bool {
    let needs = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    text.bytes().fold(false, |found, byte| found | needs(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_format_unchanged() {
        for (series, expected) in [
            (Series::DegradedDecision, r#"["degraded_decisions",[],[]]"#),
            (
                Series::Write { decision: Decision::Allow, tainted: true, provenance: "none" },
                r#"["writes",["allow","true","none"],[]]"#,
            ),
            (
                Series::LimitHit { kind: "amount", limit: "spend" },
                r#"["limits_hit",["amount"],["spend"]]"#,
            ),
            (
                Series::Reservation(ReservationEvent::Returned),
                r#"["reservations",["returned"],[]]"#,
            ),
            (Series::Approval("approval_used"), r#"["approvals",["approval_used"],[]]"#),
            (
                Series::ApprovalClosed { event: "approval_expired", after_ms: 1_800_000 },
                r#"["approval_ms",["approval_expired",1800000],[],1800000]"#,
            ),
            (
                Series::Proxied { outcome: Ended::Answered, server: "crm", duration_ms: 11 },
                r#"["proxied_ms",["answered",50],["crm"],11]"#,
            ),
            (
                Series::Proxied { outcome: Ended::TimedOut, server: "crm", duration_ms: 60_001 },
                r#"["proxied_ms",["timed_out",null],["crm"],60001]"#,
            ),
            // By a clock that jumped.
            (
                Series::Proxied { outcome: Ended::Answered, server: "crm", duration_ms: u64::MAX },
                r#"["proxied_ms",["answered",null],["crm"],604800000]"#,
            ),
            (
                Series::ApprovalClosed { event: "approval_expired", after_ms: u64::MAX },
                r#"["approval_ms",["approval_expired",null],[],604800000]"#,
            ),
            (Series::Event("status_denied"), r#"["events",["status_denied"],[]]"#),
            (
                Series::FailedAuthentication("unauthorized"),
                r#"["failed_authentications",["unauthorized"],[]]"#,
            ),
            (Series::WebhookAttempt { delivered: false }, r#"["webhook_attempts",["failed"],[]]"#),
            (
                Series::LimitHit { kind: "rate", limit: "a\"\\\n\u{e9}" },
                r#"["limits_hit",["rate"],["a\"\\\né"]]"#,
            ),
            (Series::DeadLetter, r#"["dead_letters",[],[]]"#),
            (Series::FlushError, r#"["flush_errors",[],[]]"#),
        ] {
            assert_eq!(series.encode(), expected);
            assert!(expected.starts_with(&format!(r#"["{}","#, series.metric().key())));
        }
    }

    #[test]
    fn a_series_has_a_value_for_every_label() {
        let series = [
            Series::Write { decision: Decision::Deny, tainted: false, provenance: "nowhere" },
            Series::Proxied { outcome: Ended::Refused, server: "", duration_ms: 0 },
            Series::LimitHit { kind: "rate", limit: "a" },
            Series::DeadLetter,
        ];
        for series in series {
            let encoded: serde_json::Value = serde_json::from_str(&series.encode()).unwrap();
            let definition = series.metric().definition();
            let bucket = usize::from(matches!(definition.kind, Kind::Histogram(_)));
            let length = |at: usize| encoded[at].as_array().unwrap().len();
            assert_eq!(length(1), definition.labels.len() + bucket, "{encoded}");
            assert_eq!(length(2), definition.names.len(), "{encoded}");
        }
    }
}
