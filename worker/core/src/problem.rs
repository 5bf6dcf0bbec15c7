//! What a caller is told when there is no decision: RFC 9457 problem details.
//!
//! Codes are stable and their list is closed. `detail` is for the caller and holds nothing
//! internal; what the log needs travels separately.

use serde::Serialize;

use crate::json::JsonError;

/// Prefix of `type`; the code follows.
pub const PROBLEM_TYPE_BASE: &str = "https://gateward.dev/problems/";

/// Defines [`ProblemCode`] from its list, so that a code is added in one line.
macro_rules! problem_codes {
    ($($name:ident = $code:literal, $status:literal, $title:literal;)+) => {
        /// Why a request got no decision, as a stable code. Callers may compare it.
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

// docs/api.md has a row for each; a test compares.
problem_codes! {
    MalformedRequest = "malformed_request", 400, "The request is malformed";
    InputInvalid = "input_invalid", 400, "The JSON is ambiguous";
    Unauthorized = "unauthorized", 401, "The credential is not valid";
    CredentialExpired = "credential_expired", 401, "The credential has expired";
    SignatureInvalid = "signature_invalid", 401, "The signature is not valid";
    SignatureRequired = "signature_required", 401, "The credential needs signed requests";
    Forbidden = "forbidden", 403, "The credential does not open this";
    ApprovalRequired = "approval_required", 403, "Members of a protected group must approve this";
    SourceAddressForbidden = "source_address_forbidden", 403, "The credential is not for this address";
    AgentMismatch = "agent_mismatch", 403, "The body names another agent";
    EnvironmentMismatch = "environment_mismatch", 403, "The body names another environment";
    CallDenied = "call_denied", 403, "The call is not allowed";
    OriginalRequestUnknown = "original_request_unknown", 403, "The gateway does not tell the request";
    OriginalRequestConflict = "original_request_conflict", 403, "The gateway tells two requests";
    NotFound = "not_found", 404, "There is no such thing";
    MethodNotAllowed = "method_not_allowed", 405, "The path does not take this method";
    RequestIdConflict = "request_id_conflict", 409, "The request id belongs to another call";
    NonceReplayed = "nonce_replayed", 409, "The nonce was used before";
    TimestampStale = "timestamp_stale", 409, "The timestamp is too far off";
    NameTaken = "name_taken", 409, "The name is taken";
    StateConflict = "state_conflict", 409, "The state does not allow this";
    LimitReached = "limit_reached", 409, "There can be no more of these";
    AlreadyBootstrapped = "already_bootstrapped", 409, "There is an administrator already";
    LastAdministrator = "last_administrator", 409, "Nobody would be left to administer this";
    PreconditionFailed = "precondition_failed", 412, "It was changed in the meantime";
    BodyTooLarge = "body_too_large", 413, "The body is too large";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json";
    InvalidField = "invalid_field", 422, "A field is not valid";
    IdempotencyKeyReused = "idempotency_key_reused", 422, "The idempotency key belongs to another request";
    RateLimited = "rate_limited", 429, "The agent is over its rate";
    Internal = "internal", 500, "Gateward failed";
    UpstreamForbidden = "upstream_forbidden", 502, "The server is not where it may be";
    UpstreamUnreachable = "upstream_unreachable", 502, "The server cannot be reached";
    UpstreamInvalid = "upstream_invalid", 502, "The server's answer cannot be passed on";
    UpstreamTimeout = "upstream_timeout", 504, "The server took too long";
    JournalFull = "journal_full", 503, "The journal is full";
    LaneUnavailable = "lane_unavailable", 503, "The lane cannot answer";
    RegistryUnavailable = "registry_unavailable", 503, "The registry cannot answer";
    Misconfigured = "misconfigured", 503, "Gateward is not configured";
    DefinitionChanged = "definition_changed", 409, "The tool's definition is not the reviewed one";
    Overloaded = "overloaded", 503, "Too much is under way";
}

/// A problem with its sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: ProblemCode,
    pub detail: String,
    /// The field that is wrong, as a dotted path, when the code is `invalid_field`.
    pub field: Option<String>,
    /// The approval that was asked for, when the code is `approval_required`.
    pub approval_id: Option<String>,
    /// Seconds after which trying again makes sense.
    pub retry_after_s: Option<u32>,
    /// What the header `Allow` says, when the code is `method_not_allowed`.
    pub allow: Option<String>,
}

/// Why a request was not done (RFC 9457).
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Body<'a> {
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
    /// As in the header `X-Request-Id`.
    request_id: &'a str,
}

/// Seconds that a caller is asked to wait when a part is unavailable: long enough for a lane to
/// start anew, short enough that an agent does not give up.
pub const RETRY_AFTER_UNAVAILABLE_S: u32 = 2;

/// Seconds that a caller is asked to wait when the isolate's memory is in use: most calls end within a
/// fraction of one.
pub const RETRY_AFTER_OVERLOADED_S: u32 = 1;

impl From<JsonError> for Problem {
    /// `input_invalid` for what two readers could read differently, else `malformed_request`.
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
        let (field, approval_id, allow) = (None, None, None);
        Self { code, detail: detail.into(), field, approval_id, retry_after_s, allow }
    }

    /// `method_not_allowed`; `methods` are those that the path takes, as `Allow` lists them.
    #[must_use]
    pub fn method_not_allowed(methods: String) -> Self {
        let detail = format!("this path takes {methods} only");
        Self { allow: Some(methods), ..Self::new(ProblemCode::MethodNotAllowed, detail) }
    }

    /// `not_found`: there is no such thing, or the caller may not know of it.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(ProblemCode::NotFound, format!("there is no such {what}"))
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
            "members of a protected group must approve this change: once they approved \
             `{approval_id}`, send the same request with it"
        );
        let approval_id = Some(approval_id.to_owned());
        Self { approval_id, ..Self::new(ProblemCode::ApprovalRequired, detail) }
    }

    /// `overloaded`: the isolate's memory is in use by other requests.
    #[must_use]
    pub fn overloaded() -> Self {
        let detail = "other requests hold the memory that this one needs; try again";
        let retry_after_s = Some(RETRY_AFTER_OVERLOADED_S);
        Self { retry_after_s, ..Self::new(ProblemCode::Overloaded, detail) }
    }

    /// The `application/problem+json` body.
    #[must_use]
    pub fn to_json(&self, request_id: &str) -> String {
        self.to_json_as(self.code.status(), request_id)
    }

    /// The same where the answer has another status than the code's.
    #[must_use]
    pub fn to_json_as(&self, status: u16, request_id: &str) -> String {
        let code = self.code.code();
        serde_json::to_string(&Body {
            r#type: format!("{PROBLEM_TYPE_BASE}{code}"),
            title: self.code.title(),
            status,
            detail: &self.detail,
            code: self.code,
            field: self.field.as_deref(),
            approval_id: self.approval_id.as_deref(),
            request_id,
        })
        .unwrap_or_else(|_| String::from("{}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_problem_with_a_field_names_one() {
        let named = Problem::field("limits.rate", "it must be a number").to_json("r");
        assert_eq!(
            named,
            r#"{"type":"https://gateward.dev/problems/invalid_field","title":"A field is not valid","status":422,"detail":"it must be a number","code":"invalid_field","field":"limits.rate","request_id":"r"}"#
        );
        assert!(!Problem::new(ProblemCode::NotFound, "").to_json("r").contains("field"));
    }
}
