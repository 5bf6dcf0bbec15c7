//! Scopes: what a credential may be used for.
//!
//! INVARIANT (no default): [`Scope::ACTION_GROUPS`] says which scope a tool needs. A tool whose group is
//! missing there cannot be called. A scope that this version does not know grants nothing.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// What a credential may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub enum Scope {
    #[serde(rename = "tools:read")]
    ToolsRead,
    #[serde(rename = "tools:write")]
    ToolsWrite,
    #[serde(rename = "approvals:decide")]
    ApprovalsDecide,
    #[serde(rename = "registry:read")]
    RegistryRead,
    #[serde(rename = "registry:write")]
    RegistryWrite,
    #[serde(rename = "audit:read")]
    AuditRead,
    #[serde(rename = "metrics:read")]
    MetricsRead,
    #[serde(rename = "tenants:admin")]
    TenantsAdmin,
}

/// The text is not a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeError;

impl Scope {
    pub const ALL: [Self; 8] = [
        Self::ToolsRead,
        Self::ToolsWrite,
        Self::ApprovalsDecide,
        Self::RegistryRead,
        Self::RegistryWrite,
        Self::AuditRead,
        Self::MetricsRead,
        Self::TenantsAdmin,
    ];

    /// The action groups of the Cedar schema, with the scope that their actions need. `None`: the group needs
    /// no scope of its own, because each of its actions is also in `read` or `write`.
    pub const ACTION_GROUPS: [(&str, Option<Self>); 5] = [
        ("call", None),
        ("read", Some(Self::ToolsRead)),
        ("write", Some(Self::ToolsWrite)),
        ("egress", None),
        ("canary", None),
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolsRead => "tools:read",
            Self::ToolsWrite => "tools:write",
            Self::ApprovalsDecide => "approvals:decide",
            Self::RegistryRead => "registry:read",
            Self::RegistryWrite => "registry:write",
            Self::AuditRead => "audit:read",
            Self::MetricsRead => "metrics:read",
            Self::TenantsAdmin => "tenants:admin",
        }
    }

    /// The scope that an action of this group needs. `None`: the action is denied.
    #[must_use]
    pub fn of_action_group(group: &str) -> Option<Self> {
        Self::ACTION_GROUPS.into_iter().find(|(name, _)| *name == group)?.1
    }

    /// Whether an agent's credential can have this scope. Agents never administer or approve.
    #[must_use]
    pub const fn agent_may_have(self) -> bool {
        matches!(self, Self::ToolsRead | Self::ToolsWrite)
    }

    /// Reads a stored list. Unknown scopes are dropped.
    ///
    /// # Errors
    ///
    /// The value is not a list of strings.
    pub fn deserialize_known<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Self>, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(ScopeError)
    }
}

impl std::fmt::Display for ScopeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it must be a scope: one of ")?;
        let names: Vec<String> =
            Scope::ALL.iter().map(|scope| format!("`{}`", scope.as_str())).collect();
        f.write_str(&names.join(", "))
    }
}

impl std::error::Error for ScopeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_group_of_the_schema_is_in_the_table_and_no_other() {
        let schema = include_str!("../../../policies/schema.cedarschema");
        let mut groups: Vec<&str> = schema
            .lines()
            .filter_map(|line| line.strip_prefix("action \"")?.split('"').next())
            .collect();
        let mut table: Vec<&str> = Scope::ACTION_GROUPS.iter().map(|(group, _)| *group).collect();
        groups.sort_unstable();
        table.sort_unstable();
        assert_eq!(groups, table);
        assert_eq!(Scope::of_action_group("delete"), None, "an unmapped group");
    }

    #[test]
    fn a_scope_is_parsed_from_its_name_and_an_unknown_one_grants_nothing() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
        }
        assert_eq!("tools:*".parse::<Scope>(), Err(ScopeError));
        let mut stored = serde_json::Deserializer::from_str(r#"["tools:all","tools:read",""]"#);
        assert_eq!(Scope::deserialize_known(&mut stored).unwrap(), [Scope::ToolsRead]);
        let mut wrong = serde_json::Deserializer::from_str(r#"[1]"#);
        assert!(Scope::deserialize_known(&mut wrong).is_err());
    }

    #[test]
    fn an_agent_can_only_use_tools() {
        let scopes: Vec<_> = Scope::ALL.into_iter().filter(|s| s.agent_may_have()).collect();
        assert_eq!(scopes, [Scope::ToolsRead, Scope::ToolsWrite]);
    }
}
