//! What one event adds to: a metric and the values of its labels.
//!
//! As JSON, a series is an array: the metric's key, the values of its closed labels, its names, and for a histogram
//! the observed milliseconds. The bucket of a histogram is its last closed label; `null` is the last bucket.
//! Persisted in journal rows and in D1.

use super::bounds::MAX_OBSERVED_MS;
use super::list::{Kind, Metric};
use crate::decision::{Decision, ReasonCode};
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

/// A key id as metrics show it: `kh_` and eight hexadecimal digits of a keyed hash. A reader of metrics cannot test
/// guesses of key ids, because the hash's key is derived from the worker's MAC key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; 11]);

impl KeyHash {
    /// The text of a hash.
    #[must_use]
    pub fn new(hash: u64) -> Self {
        let mut text = *b"kh_00000000";
        for (at, digit) in text.iter_mut().skip(3).enumerate() {
            let nibble = (hash >> (4 * at) & 0xf) as u8;
            *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        }
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// One more of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series<'a> {
    Decision {
        decision: Decision,
        reason: ReasonCode,
        server: &'a str,
        tool: &'a str,
    },
    CredentialDecision {
        decision: Decision,
        credential: KeyHash,
    },
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
            Self::Decision { .. } => Metric::Decisions,
            Self::CredentialDecision { .. } => Metric::CredentialDecisions,
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

    /// Appends the series as JSON text. A decision does this a few times, so it writes the texts as they are, and
    /// has serde escape only names that need it.
    pub fn push(&self, out: &mut String) {
        let key = self.metric().key();
        let mut put = |labels: &[&str], names: &[&str]| push(out, key, labels, names, None);
        match *self {
            Self::Decision { decision, reason, server, tool } => {
                put(&[decision.as_str(), reason.code()], &[server, tool]);
            }
            Self::CredentialDecision { decision, credential } => {
                put(&[decision.as_str()], &[credential.as_str()]);
            }
            Self::Write { decision, tainted, provenance } => {
                let tainted = if tainted { "true" } else { "false" };
                put(&[decision.as_str(), tainted, provenance], &[]);
            }
            Self::LimitHit { kind, limit } => put(&[kind], &[limit]),
            Self::Reservation(event) => put(&[event.as_str()], &[]),
            Self::Approval(label) | Self::Event(label) => put(&[label], &[]),
            Self::ApprovalClosed { event, after_ms } => {
                push(out, key, &[event], &[], Some(self.observed(after_ms)));
            }
            Self::Proxied { outcome, server, duration_ms } => {
                let observed = Some(self.observed(duration_ms));
                push(out, key, &[outcome.as_str()], &[server], observed);
            }
            Self::FailedAuthentication(code) => put(&[code], &[]),
            Self::WebhookAttempt { delivered } => {
                put(&[if delivered { "delivered" } else { "failed" }], &[]);
            }
            Self::DegradedDecision | Self::DeadLetter | Self::FlushError => put(&[], &[]),
        }
    }

    /// The upper bound of the bucket of a value, `None` for the last, and the value.
    fn observed(&self, value_ms: u64) -> (Option<u64>, u64) {
        let value_ms = value_ms.min(MAX_OBSERVED_MS);
        let bucket = match self.metric().definition().kind {
            Kind::Histogram(bounds) => bounds.iter().copied().find(|bound| value_ms <= *bound),
            Kind::Counter | Kind::Gauge => None,
        };
        (bucket, value_ms)
    }
}

/// `labels` are of closed lists, and need no escapes. `observed`: of a histogram, the bucket and the value.
fn push(
    out: &mut String,
    key: &str,
    labels: &[&str],
    names: &[&str],
    observed: Option<(Option<u64>, u64)>,
) {
    out.push_str("[\"");
    out.push_str(key);
    out.push_str("\",[");
    push_texts(out, labels, false);
    if let Some((bucket, _)) = observed {
        out.push(',');
        match bucket {
            Some(bound) => out.push_str(itoa::Buffer::new().format(bound)),
            None => out.push_str("null"),
        }
    }
    out.push_str("],[");
    push_texts(out, names, true);
    if let Some((_, value)) = observed {
        out.push_str("],");
        out.push_str(itoa::Buffer::new().format(value));
        out.push(']');
    } else {
        out.push_str("]]");
    }
}

/// Each push has a cost, so quotes and commas go together.
fn push_texts(out: &mut String, texts: &[&str], may_need_escapes: bool) {
    for (at, text) in texts.iter().enumerate() {
        out.push_str(if at == 0 { "\"" } else { "\",\"" });
        if may_need_escapes && needs_escapes(text) {
            // A text always serializes.
            let escaped = serde_json::to_string(text).unwrap_or_default();
            out.push_str(escaped.get(1..escaped.len().saturating_sub(1)).unwrap_or_default());
        } else {
            out.push_str(text);
        }
    }
    if !texts.is_empty() {
        out.push('"');
    }
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
            (
                Series::Decision {
                    decision: Decision::Allow,
                    reason: ReasonCode::PolicyAllow,
                    server: "github",
                    tool: "get_issue",
                },
                r#"["decisions",["allow","policy_allow"],["github","get_issue"]]"#,
            ),
            (
                Series::CredentialDecision {
                    decision: Decision::Deny,
                    credential: KeyHash::new(0xdead_beef_0123_45af),
                },
                r#"["credential_decisions",["deny"],["kh_fa543210"]]"#,
            ),
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
