//! The lines of the log: one JSON object each. docs/logs.md has the schema, and what to do about each event.
//!
//! INVARIANT (nothing of a request): a line has names, ids, and errors of the runtime and of Gateward. It never has
//! a credential, arguments or a result.

use serde::Serialize;

use crate::id;
use crate::json;
use crate::text_enum::text_enum;
use crate::trace::TraceId;

/// Bytes of a line's `detail`. Errors of D1 and of the runtime have some hundred; a stack trace is cut.
pub const MAX_DETAIL_BYTES: usize = 1_024;

text_enum! {
    /// How bad an event is.
    Level {
        /// Something failed for a caller, was lost, or needs a person.
        Error = "error",
        /// Gateward tries again by itself.
        Warn = "warn",
        /// Nothing failed.
        Info = "info",
    }
}

/// Defines [`Event`] from a list, so that an event is added in one line.
macro_rules! events {
    ($($name:ident = $level:ident, $code:literal, $sentence:literal;)+) => {
        /// What is logged. Programs compare the code; the sentence is for people.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Event {
            $($name,)+
        }

        impl Event {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            #[must_use]
            pub const fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)+
                }
            }

            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)+
                }
            }

            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)+
                }
            }
        }
    };
}

// docs/logs.md has a row for each. A test compares them.
events! {
    AlarmFailed = Warn, "alarm_failed", "A run of the lane's alarm failed; it runs again.";
    AlarmNotSet = Warn, "alarm_not_set", "The lane's alarm could not be set; the next request to the lane sets it.";
    AnswerWithheld = Warn, "answer_withheld", "The shield withheld a message of a server that belongs to no call.";
    AuditCountLost = Error, "audit_count_lost", "A count of failed authentications was not written.";
    CallNotWithdrawn = Warn, "call_not_withdrawn", "A call that did not pass stays counted in a window of its tenant.";
    ChangeNotPushed = Error, "change_not_pushed", "Lanes did not confirm a change of the registry, and will not be told again.";
    ChangeNotWritten = Error, "change_not_written", "It is not known whether a change of the registry was written.";
    CredentialUnreadable = Error, "credential_unreadable", "A stored credential cannot be read.";
    DatabaseFailed = Error, "database_failed", "D1 did not answer a read.";
    FlushFailed = Warn, "flush_failed", "Journal rows were not copied to D1; the lane tries again.";
    HeadLogNotTold = Warn, "head_log_not_told", "The tenant's head log was not told of a checkpoint or of a change; it is told later.";
    JournalUnreadable = Error, "journal_unreadable", "Rows of a lane's journal cannot be read, so a list lacks its newest approvals.";
    LaneStorageFailed = Error, "lane_storage_failed", "The lane's storage failed, so a request was refused.";
    LaneUnavailable = Error, "lane_unavailable", "A lane did not answer.";
    LimitNotLeased = Error, "limit_not_leased", "The counter of a shared limit did not answer, so calls were denied.";
    LogNotPublished = Warn, "log_not_published", "A checkpoint was not published; the lane tries again.";
    LogRestored = Warn, "log_restored", "D1 was restored to an earlier time; the lane wrote again what it still had.";
    LogStopped = Error, "log_stopped", "D1's checkpoint is of another tree than the lane's, so the lane writes nothing more.";
    MetricsUnavailable = Error, "metrics_unavailable", "Metrics could not be read, or a count of them was not written.";
    Misconfigured = Error, "misconfigured", "A setting is missing or invalid, so requests are refused.";
    NonceNotWritten = Error, "nonce_not_written", "The nonce of a signed request was not written, so the request was refused.";
    OutcomeNotRecorded = Error, "outcome_not_recorded", "The outcome of a forwarded call was not recorded.";
    PruneFailed = Error, "prune_failed", "Records past their retention period were not deleted.";
    ReceiptsLost = Error, "receipts_lost", "D1 was restored, and lacks receipts that the lane no longer has.";
    RegistryUnreadable = Error, "registry_unreadable", "A record of the registry cannot be read.";
    ResponseFailed = Error, "response_failed", "The runtime could not create a response.";
    ToolsNotRegistered = Error, "tools_not_registered", "New or changed tools of a server were not registered.";
    UpstreamAddressRefused = Error, "upstream_address_refused", "The registered address of a server is not allowed.";
    UpstreamCredentialUnusable = Error, "upstream_credential_unusable", "The credential for a server cannot be used.";
    WasmRestarted = Info, "wasm_restarted", "The Wasm module was started again after it failed.";
    WasmTrapped = Error, "wasm_trapped", "The Wasm module failed, and is started again for the next request.";
    WebhookNotDelivered = Warn, "webhook_not_delivered", "A message to a webhook was not delivered; it is sent again.";
    WebhookOutboxFailed = Warn, "webhook_outbox_failed", "Messages to a webhook were not sent; they are sent later.";
    WindowNotAnswered = Error, "window_not_answered", "The object of a tenant's window did not answer, so a call was denied.";
    WitnessFailed = Warn, "witness_failed", "A witness did not cosign a checkpoint; it is asked again with the next one.";
}

impl Event {
    /// Whether the event means that D1 or another object does not answer. Such an event happens with every request.
    #[must_use]
    pub const fn is_outage(self) -> bool {
        matches!(
            self,
            Self::AuditCountLost
                | Self::CallNotWithdrawn
                | Self::DatabaseFailed
                | Self::LaneUnavailable
                | Self::LimitNotLeased
                | Self::MetricsUnavailable
                | Self::NonceNotWritten
                | Self::WindowNotAnswered
        )
    }
}

/// A line. Absent members are left out.
#[derive(Debug)]
pub struct Line<'a> {
    pub event: Event,
    pub tenant: Option<&'a str>,
    pub lane: Option<u16>,
    pub request_id: Option<&'a str>,
    pub trace_id: Option<TraceId>,
    pub decision_id: Option<&'a str>,
    pub detail: String,
}

/// A line as it is written, in this order.
#[derive(Serialize)]
struct Written<'a> {
    time: &'a str,
    level: Level,
    event: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_id: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

impl<'a> Line<'a> {
    /// `detail` says what failed, and why. It is cut at [`MAX_DETAIL_BYTES`].
    #[must_use]
    pub fn new(event: Event, detail: impl std::fmt::Display) -> Self {
        let detail = detail.to_string();
        Self {
            event,
            tenant: None,
            lane: None,
            request_id: None,
            trace_id: None,
            decision_id: None,
            detail,
        }
    }

    /// The line of something that a lane does.
    #[must_use]
    pub fn in_lane(self, tenant: &'a str, lane: u16) -> Self {
        Self { tenant: Some(tenant), lane: Some(lane), ..self }
    }

    /// The line as JSON, without a line break.
    #[must_use]
    pub fn json(&self, now_ms: u64) -> String {
        let end = self.detail.floor_char_boundary(MAX_DETAIL_BYTES);
        let written = Written {
            time: &id::rfc3339(now_ms),
            level: self.event.level(),
            event: self.event.code(),
            message: self.event.sentence(),
            tenant: self.tenant,
            lane: self.lane,
            request_id: self.request_id,
            trace_id: self.trace_id.map(|id| id.to_string()),
            decision_id: self.decision_id,
            detail: self.detail.get(..end).unwrap_or_default(),
        };
        // Plain data always serializes.
        json::to_string(&written)
    }
}

/// A JSON error for the log or a caller. The error's own message can repeat a value.
#[must_use]
pub fn of_json(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Io => "it could not be read",
        serde_json::error::Category::Syntax => "it is not JSON",
        serde_json::error::Category::Data => "a member is missing, unknown, or of another type",
        serde_json::error::Category::Eof => "it is cut off",
    };
    format!("{kind}, at line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MS: u64 = 1_767_225_600_000;

    #[test]
    fn a_line_is_one_json_object_with_the_members_that_are_known() {
        let id = TraceId::new([0xab; 16]);
        let all = Line {
            request_id: Some("req-1"),
            trace_id: id,
            decision_id: Some("d"),
            ..Line::new(Event::OutcomeNotRecorded, "the \"lane\"\nis away").in_lane("demo", 3)
        };
        for (line, expected) in [
            (
                all,
                r#"{"time":"2026-01-01T00:00:00.000Z","level":"error","event":"outcome_not_recorded","message":"The outcome of a forwarded call was not recorded.","tenant":"demo","lane":3,"request_id":"req-1","trace_id":"abababababababababababababababab","decision_id":"d","detail":"the \"lane\"\nis away"}"#,
            ),
            (
                Line::new(Event::FlushFailed, ""),
                r#"{"time":"2026-01-01T00:00:00.000Z","level":"warn","event":"flush_failed","message":"Journal rows were not copied to D1; the lane tries again."}"#,
            ),
        ] {
            assert_eq!(line.json(AT_MS), expected);
        }
    }

    #[test]
    fn a_detail_is_cut_between_characters() {
        for (detail, expected) in [
            ("x".repeat(MAX_DETAIL_BYTES), MAX_DETAIL_BYTES),
            ("x".repeat(MAX_DETAIL_BYTES + 1), MAX_DETAIL_BYTES),
            (format!("x{}", "é".repeat(MAX_DETAIL_BYTES)), MAX_DETAIL_BYTES - 1),
        ] {
            let line = Line::new(Event::DatabaseFailed, &detail).json(AT_MS);
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["detail"].as_str().unwrap().len(), expected);
        }
    }

    #[test]
    fn every_event_has_a_code_of_its_own_in_order() {
        let codes: Vec<&str> = Event::ALL.iter().map(|event| event.code()).collect();
        assert!(codes.is_sorted_by(|one, next| one < next), "{codes:?}");
        for event in Event::ALL {
            let is_code = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(event.code().bytes().all(is_code), "{event:?}");
            assert!(event.sentence().ends_with('.'), "{event:?}");
        }
    }

    #[test]
    fn a_json_error_repeats_no_value() {
        for (text, expected) in [
            (
                r#"{"a":"secret"}"#,
                "a member is missing, unknown, or of another type, at line 1, column 13",
            ),
            (r#"{"a":secret}"#, "it is not JSON, at line 1, column 6"),
            (r#"{"a":1"#, "it is cut off, at line 1, column 6"),
        ] {
            let read = serde_json::from_str::<std::collections::BTreeMap<String, u64>>(text);
            assert_eq!(of_json(&read.unwrap_err()), expected, "{text}");
        }
    }
}
