//! Kinds, trust and statuses of the registry's records. They are parsed when a row of D1, a stored
//! record or a request is read. A text that is not in these lists makes the record unreadable, and
//! the call or request fails.

use crate::text_enum::text_enum;

text_enum! {
    /// Whether a tenant's agents may call.
    TenantStatus {
        Active = "active",
        Suspended = "suspended",
        Deleted = "deleted",
    }
}

text_enum! {
    /// What administrators did to an agent. A lane's own quarantine is not part of it in the lane's
    /// records; it is in answers of the administration.
    AgentStatus {
        Active = "active",
        Frozen = "frozen",
        Quarantined = "quarantined",
        Revoked = "revoked",
        Deleted = "deleted",
    }
}

text_enum! {
    /// The kind of a member.
    MemberKind {
        Agent = "agent",
        Administrator = "administrator",
    }
}

text_enum! {
    /// Whose credential it is.
    CredentialKind {
        Agent = "agent",
        Administrator = "administrator",
    }
}

text_enum! {
    /// Whether a credential can be used. D1 stores `active` and `revoked`; `expired` follows from the
    /// time.
    CredentialStatus {
        Active = "active",
        Expired = "expired",
        Revoked = "revoked",
    }
}

text_enum! {
    /// The kind of a server. Gateward forwards calls to `mcp` and `http` servers that have an
    /// upstream. A `named` server is only a name for tools that are called without Gateward; their
    /// callers ask `/v1/authorize` first.
    ServerKind {
        Mcp = "mcp",
        Http = "http",
        Named = "named",
    }
}

text_enum! {
    /// Whether a server's answers are trusted. Answers of an untrusted server taint.
    #[derive(Default)]
    ServerTrust {
        Trusted = "trusted",
        #[default]
        Untrusted = "untrusted",
    }
}

text_enum! {
    /// The state of a server: only tools of an active one can be called.
    ServerStatus {
        Active = "active",
        Pending = "pending",
        Disabled = "disabled",
        Quarantined = "quarantined",
        Deleted = "deleted",
    }
}

text_enum! {
    /// The state of a tool: only an active one can be called.
    ToolStatus {
        Active = "active",
        Pending = "pending",
        Disabled = "disabled",
        Quarantined = "quarantined",
    }
}

impl From<ToolStatus> for ServerStatus {
    fn from(status: ToolStatus) -> Self {
        match status {
            ToolStatus::Active => Self::Active,
            ToolStatus::Pending => Self::Pending,
            ToolStatus::Disabled => Self::Disabled,
            ToolStatus::Quarantined => Self::Quarantined,
        }
    }
}

text_enum! {
    /// Whether warrants that a key roots are accepted.
    WarrantRootStatus {
        Active = "active",
        Disabled = "disabled",
    }
}

text_enum! {
    /// What a tainted call of a tool needs.
    #[derive(Default)]
    TaintRule {
        /// Nothing more. Policies judge the call by the trust that the caller states.
        Allow = "allow",
        /// A person's approval, if the call writes.
        #[default]
        RequireApproval = "require_approval",
        /// As `require_approval`, but a write that would wait for approval because of taint is denied.
        DenyUnknown = "deny_unknown",
        /// The call is denied, even if it only reads.
        Forbid = "forbid",
    }
}

/// The subject of a limit that each agent, group, user and so on has separately.
pub const EACH: &str = "*";

text_enum! {
    /// Whose calls a limit counts.
    SubjectKind {
        Agent = "agent",
        Credential = "credential",
        /// All calls of the tenant.
        Tenant = "tenant",
        /// Of agents that are members.
        Group = "group",
        /// To a tool.
        Tool = "tool",
        /// To a server.
        Server = "server",
        /// For a user that a harness stated.
        User = "user",
    }
}

impl SubjectKind {
    /// Whether the subject's calls come through several lanes, so that an object of its own counts them.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::Agent | Self::Credential)
    }
}
