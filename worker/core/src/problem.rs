//! Problems: the responses to requests that get no decision (RFC 9457 problem details).
//!
//! Codes are stable, and no others exist. `detail` is for the caller and contains nothing internal; details
//! for the log are passed separately.

use serde::Serialize;

use crate::bounds::{RETRY_AFTER_OVERLOADED_S, RETRY_AFTER_UNAVAILABLE_S};
use crate::json;
use crate::json::JsonError;
use crate::limit::Violation;

/// The prefix of `type`, before the code.
pub const PROBLEM_TYPE_BASE: &str = "https://gateward.dev/problems/";

/// Defines [`ProblemCode`] from a list, so that adding a code takes one line.
macro_rules! problem_codes {
    ($($name:ident = $code:literal, $status:literal, $title:literal;)+) => {
        /// Why a request got no decision, as a stable code for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ProblemCode {
            $($name,)+
        }

        impl ProblemCode {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)+
                }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)+
                }
            }

            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)+
                }
            }
        }
    };
}

// docs/api.md has a row for each. A test compares them.
problem_codes! {
    MalformedRequest = "malformed_request", 400, "The request is malformed";
    InputInvalid = "input_invalid", 400, "The JSON is ambiguous";
    Unauthorized = "unauthorized", 401, "The credential is not valid";
    CredentialExpired = "credential_expired", 401, "The credential has expired";
    WarrantRefused = "warrant_refused", 401, "The warrant does not identify the caller";
    SignatureInvalid = "signature_invalid", 401, "The signature is not valid";
    SignatureRequired = "signature_required", 401, "The credential requires signed requests";
    Forbidden = "forbidden", 403, "The credential does not allow this";
    ApprovalRequired = "approval_required", 403, "Members of a protected group must approve this";
    SourceAddressForbidden = "source_address_forbidden", 403, "The credential must not be used from this address";
    AgentMismatch = "agent_mismatch", 403, "The body names another agent";
    EnvironmentMismatch = "environment_mismatch", 403, "The body names another environment";
    CallDenied = "call_denied", 403, "The call is not allowed";
    ResultBlocked = "result_blocked", 403, "The call ran, and what the server returned is withheld";
    OriginalRequestUnknown = "original_request_unknown", 403, "The gateway does not describe the original request";
    OriginalRequestConflict = "original_request_conflict", 403, "The gateway describes two different requests";
    NotFound = "not_found", 404, "It does not exist";
    MethodNotAllowed = "method_not_allowed", 405, "The path does not support this method";
    RequestIdConflict = "request_id_conflict", 409, "The request id belongs to another call";
    NonceReplayed = "nonce_replayed", 409, "The nonce was used before";
    TimestampStale = "timestamp_stale", 409, "The timestamp is too far from the current time";
    NameTaken = "name_taken", 409, "The name is taken";
    StateConflict = "state_conflict", 409, "The state does not allow this";
    LimitReached = "limit_reached", 409, "The limit is reached";
    AlreadyBootstrapped = "already_bootstrapped", 409, "An administrator already exists";
    LastAdministrator = "last_administrator", 409, "The last administrator cannot be removed";
    PreconditionFailed = "precondition_failed", 412, "The record was changed in the meantime";
    BodyTooLarge = "body_too_large", 413, "The body is too large";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json";
    InvalidField = "invalid_field", 422, "A field is not valid";
    IdempotencyKeyReused = "idempotency_key_reused", 422, "The idempotency key belongs to another request";
    RateLimited = "rate_limited", 429, "Too many requests";
    Internal = "internal", 500, "Gateward failed";
    UpstreamForbidden = "upstream_forbidden", 502, "The server's address is not allowed";
    UpstreamUnreachable = "upstream_unreachable", 502, "The server cannot be reached";
    UpstreamInvalid = "upstream_invalid", 502, "The server's response cannot be forwarded";
    UpstreamTimeout = "upstream_timeout", 504, "The server took too long";
    JournalFull = "journal_full", 503, "The journal is full";
    LaneUnavailable = "lane_unavailable", 503, "The lane is unavailable";
    RegistryUnavailable = "registry_unavailable", 503, "The registry is unavailable";
    Misconfigured = "misconfigured", 503, "Gateward is not configured";
    DefinitionChanged = "definition_changed", 409, "The tool's definition is not the reviewed one";
    Overloaded = "overloaded", 503, "Too many requests are in progress";
}

/// A problem with its sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: ProblemCode,
    pub detail: String,
    /// The field that is wrong, as a dotted path, when the code is `invalid_field`.
    pub field: Option<String>,
    /// The approval that was requested, when the code is `approval_required`.
    pub approval_id: Option<String>,
    /// Seconds after which the caller may retry.
    pub retry_after_s: Option<u32>,
    /// The value of the header `Allow`, when the code is `method_not_allowed`.
    pub allow: Option<Box<str>>,
    /// The limit that the call violates, when the code is `rate_limited` or `call_denied`.
    pub violated_limit: Option<Box<Violation>>,
    /// The approvals that the call's warrant asks for, when the code is `call_denied`.
    pub warrant_approvals: Option<Box<serde_json::Value>>,
}

/// Why a request was not done (RFC 9457).
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// `https://gateward.dev/problems/` and the code.
    r#type: String,
    title: &'a str,
    status: u16,
    /// What was wrong with this request.
    detail: &'a str,
    code: ProblemCode,
    /// The field that is wrong, as a dotted path; only with the code `invalid_field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    field: Option<&'a str>,
    /// The approval that was asked for; only with the code `approval_required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    approval_id: Option<&'a str>,
    /// The limits that the call violates; only with the codes `rate_limited` and `call_denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Violation>, required = false)]
    violated_limits: Option<[&'a Violation; 1]>,
    /// The approvals that the call's warrant asks for: `{request_hash, got, need}`; only with the code `call_denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    warrant_approvals: Option<&'a serde_json::Value>,
    /// As in the header `X-Request-Id`.
    request_id: &'a str,
}

impl From<JsonError> for Problem {
    /// `input_invalid` for ambiguous JSON, else `malformed_request`.
    fn from(error: JsonError) -> Self {
        let code = match error.ambiguous {
            true => ProblemCode::InputInvalid,
            false => ProblemCode::MalformedRequest,
        };
        Self::new(code, error.message)
    }
}

impl Problem {
    #[must_use]
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let retry_after_s = (code.status() == 503).then_some(RETRY_AFTER_UNAVAILABLE_S);
        Self {
            code,
            detail: detail.into(),
            field: None,
            approval_id: None,
            retry_after_s,
            allow: None,
            violated_limit: None,
            warrant_approvals: None,
        }
    }

    /// `method_not_allowed`. `methods` is the value of `Allow`.
    #[must_use]
    pub fn method_not_allowed(methods: String) -> Self {
        let detail = format!("this path only accepts {methods}");
        Self { allow: Some(methods.into()), ..Self::new(ProblemCode::MethodNotAllowed, detail) }
    }

    /// `not_found`: the record does not exist, or the caller may not see it.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(ProblemCode::NotFound, format!("this {what} does not exist"))
    }

    /// `invalid_field`; `field` is a dotted path.
    #[must_use]
    pub fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = Some(field.into());
        Self { field, ..Self::new(ProblemCode::InvalidField, detail) }
    }

    /// `approval_required`: the change waits for this approval.
    #[must_use]
    pub fn approval_required(approval_id: &str) -> Self {
        let detail = format!(
            "members of a protected group must approve this change: after they approved \
             `{approval_id}`, send the same request with this approval id"
        );
        let approval_id = Some(approval_id.to_owned());
        Self { approval_id, ..Self::new(ProblemCode::ApprovalRequired, detail) }
    }

    /// `overloaded`: the isolate's memory is in use by other requests.
    #[must_use]
    pub fn overloaded() -> Self {
        let detail = "other requests use the memory that this one needs; try again";
        let retry_after_s = Some(RETRY_AFTER_OVERLOADED_S);
        Self { retry_after_s, ..Self::new(ProblemCode::Overloaded, detail) }
    }

    /// The `application/problem+json` body.
    #[must_use]
    pub fn to_json(&self, request_id: &str) -> String {
        self.to_json_as(self.code.status(), request_id)
    }

    /// The same for a response with another status than the code's.
    #[must_use]
    pub fn to_json_as(&self, status: u16, request_id: &str) -> String {
        let code = self.code.code();
        json::to_string(&ProblemBody {
            r#type: format!("{PROBLEM_TYPE_BASE}{code}"),
            title: self.code.title(),
            status,
            detail: &self.detail,
            code: self.code,
            field: self.field.as_deref(),
            approval_id: self.approval_id.as_deref(),
            violated_limits: self.violated_limit.as_deref().map(|limit| [limit]),
            warrant_approvals: self.warrant_approvals.as_deref(),
            request_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_a_field_only_if_the_problem_is_about_one() {
        let named = Problem::field("limits.rate", "it must be a number").to_json("r");
        assert_eq!(
            named,
            r#"{"type":"https://gateward.dev/problems/invalid_field","title":"A field is not valid","status":422,"detail":"it must be a number","code":"invalid_field","field":"limits.rate","request_id":"r"}"#
        );
        assert!(!Problem::new(ProblemCode::NotFound, "").to_json("r").contains("field"));
    }
}
