//! Bodies without a type of their own in the code, since they are read or written part by part.

use gateward_core::field::ToolName;
use gateward_core::trust::SourceTrust;
use utoipa::ToSchema;

/// Additional members of an answer if not all lanes confirmed a change.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what the worker adds to an answer")]
pub(super) struct PendingLanes {
    /// The lanes that did not confirm it.
    pending_lanes: Vec<u16>,
}

/// A tool call. Unknown fields are ignored, and null counts as absent.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::call` parses")]
pub(super) struct AuthorizeRequest {
    agent: CallingAgent,
    tool_call: RequestedCall,
    context: CallContext,
    user: Option<CallUser>,
    trace: Option<CallTrace>,
    /// The same call again, with the same credential, gets the same answer for 24 hours.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
    #[schema(max_length = 128)]
    approval_id: Option<String>,
    /// Accepted once; needs a timestamp.
    #[schema(min_length = 1, max_length = 128)]
    nonce: Option<String>,
    /// Within 300 seconds of now if there is a nonce.
    #[schema(format = DateTime)]
    timestamp: Option<String>,
    /// Decides and explains, but writes nothing.
    dry_run: Option<bool>,
    warrant: Option<CallWarrant>,
}

/// A warrant for the call, unless the headers `X-Tenuo-…` have it. Then the call must not have a nonce.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::warrant` parses")]
pub(super) struct CallWarrant {
    /// A warrant or a stack of warrants, from the root to the leaf: base64 or PEM.
    warrant: String,
    /// The proof of possession: the base64 of an Ed25519 signature by the leaf's holder.
    signature: Option<String>,
    /// The base64 of signed approvals.
    approvals: Option<Vec<String>>,
}

/// Who calls; must match the credential and the registry.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::call` parses")]
pub(super) struct CallingAgent {
    #[schema(max_length = 256)]
    id: String,
    #[schema(max_length = 256)]
    environment: String,
}

/// The tool to call.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::call` parses")]
pub(super) struct RequestedCall {
    /// The server's name; `mcp:<server>` means the same.
    #[schema(pattern = "^(mcp:)?[a-z0-9][a-z0-9_-]{0,62}$")]
    tool: String,
    /// The tool's name.
    #[schema(value_type = ToolName)]
    action: String,
    /// The arguments.
    #[schema(value_type = Object)]
    parameters: (),
    /// `true` makes a read count as a write; `false` has no effect.
    mutates_state: bool,
    /// What the call is about. In a call with a warrant: empty, or the value of an argument.
    #[schema(max_length = 2048)]
    resource: Option<String>,
}

/// Where the call comes from.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::call` parses")]
pub(super) struct CallContext {
    /// Counts at most as the credential's `max_source_trust`.
    source_trust: SourceTrust,
    contains_sensitive_data: bool,
}

/// For whom the agent works.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::call` parses")]
pub(super) struct CallUser {
    #[schema(max_length = 256)]
    id: Option<String>,
    #[schema(max_length = 256)]
    role: Option<String>,
}

/// The run that the call belongs to.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `gateward_core::call` parses")]
pub(super) struct CallTrace {
    #[schema(max_length = 256)]
    run_id: Option<String>,
    #[schema(max_length = 256)]
    trace_id: Option<String>,
    #[schema(max_length = 256)]
    parent_run_id: Option<String>,
    /// How far the run's root is trusted; can only lower what is reported.
    root_trust_level: Option<SourceTrust>,
}
