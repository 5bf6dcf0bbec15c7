//! What a caller is told when there is no decision: RFC 9457 problem details.
//!
//! Codes are stable and their list is closed. `detail` is for the caller and holds nothing
//! internal; what the log needs travels separately.

use serde::Serialize;

/// Prefix of `type`; the code follows.
pub const PROBLEM_TYPE_BASE: &str = "https://gateward.dev/problems/";

/// Why a request got no decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemCode {
    MalformedRequest,
    InputInvalid,
    Unauthorized,
    CredentialExpired,
    Forbidden,
    AgentMismatch,
    EnvironmentMismatch,
    NotFound,
    MethodNotAllowed,
    RequestIdConflict,
    NonceReplayed,
    TimestampStale,
    BodyTooLarge,
    UnsupportedMediaType,
    RateLimited,
    Internal,
    JournalFull,
    LaneUnavailable,
    RegistryUnavailable,
    Misconfigured,
}

impl ProblemCode {
    /// Code, HTTP status and title: the whole closed list.
    #[must_use]
    pub const fn parts(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::MalformedRequest => ("malformed_request", 400, "The request is malformed"),
            Self::InputInvalid => ("input_invalid", 400, "The arguments are ambiguous"),
            Self::Unauthorized => ("unauthorized", 401, "The credential is not valid"),
            Self::CredentialExpired => ("credential_expired", 401, "The credential has expired"),
            Self::Forbidden => ("forbidden", 403, "The credential does not open this"),
            Self::AgentMismatch => ("agent_mismatch", 403, "The body names another agent"),
            Self::EnvironmentMismatch => {
                ("environment_mismatch", 403, "The body names another environment")
            }
            Self::NotFound => ("not_found", 404, "There is no such thing"),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "The method does not fit"),
            Self::RequestIdConflict => {
                ("request_id_conflict", 409, "The request id belongs to another call")
            }
            Self::NonceReplayed => ("nonce_replayed", 409, "The nonce was used before"),
            Self::TimestampStale => ("timestamp_stale", 409, "The timestamp is too far off"),
            Self::BodyTooLarge => ("body_too_large", 413, "The body is too large"),
            Self::UnsupportedMediaType => {
                ("unsupported_media_type", 415, "The body must be application/json")
            }
            Self::RateLimited => ("rate_limited", 429, "The agent is over its rate"),
            Self::Internal => ("internal", 500, "Gateward failed"),
            Self::JournalFull => ("journal_full", 503, "The journal is full"),
            Self::LaneUnavailable => ("lane_unavailable", 503, "The lane cannot answer"),
            Self::RegistryUnavailable => {
                ("registry_unavailable", 503, "The registry cannot answer")
            }
            Self::Misconfigured => ("misconfigured", 503, "Gateward is not configured"),
        }
    }

    #[must_use]
    pub const fn code(self) -> &'static str {
        self.parts().0
    }

    #[must_use]
    pub const fn status(self) -> u16 {
        self.parts().1
    }
}

/// A problem with its sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: ProblemCode,
    pub detail: String,
    /// Seconds after which trying again makes sense.
    pub retry_after_s: Option<u32>,
}

/// Seconds that a caller is asked to wait when a part is unavailable: long enough for a lane to
/// start anew, short enough that an agent does not give up.
pub const RETRY_AFTER_UNAVAILABLE_S: u32 = 2;

impl Problem {
    #[must_use]
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let retry_after_s = (code.status() == 503).then_some(RETRY_AFTER_UNAVAILABLE_S);
        Self { code, detail: detail.into(), retry_after_s }
    }

    /// The `application/problem+json` body.
    #[must_use]
    pub fn to_json(&self, request_id: &str) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            code: &'a str,
            request_id: &'a str,
        }
        let (code, status, title) = self.code.parts();
        serde_json::to_string(&Body {
            r#type: format!("{PROBLEM_TYPE_BASE}{code}"),
            title,
            status,
            detail: &self.detail,
            code,
            request_id,
        })
        .unwrap_or_else(|_| String::from("{}"))
    }
}
