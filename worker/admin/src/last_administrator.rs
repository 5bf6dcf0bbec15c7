//! The last administrator of a tenant, and the last operator of all.

use gateward_core::problem::{Problem, ProblemCode};

/// Whether a change ends the last credentials that can administer.
#[derive(serde::Deserialize)]
pub(super) struct LastAdministrator {
    /// Whether it ends the tenant's last credential with which an administrator can change the registry.
    last_administrator: bool,
    /// Whether it ends the last credential, of all tenants, with which an operator can administer tenants.
    last_operator: bool,
}

impl LastAdministrator {
    /// Refuses the change unless the request confirms it.
    pub(super) fn check(&self, meant: bool) -> Result<(), Problem> {
        let left = match self {
            _ if meant => return Ok(()),
            Self { last_administrator: true, .. } => {
                "no administrator who can change the tenant (scope `registry:write`)"
            }
            Self { last_operator: true, .. } => "no operator (scope `tenants:admin`)",
            _ => return Ok(()),
        };
        let detail = format!(
            "this would leave {left}, and only `bootstrap` could create another: to confirm, send \
             `?last=true` (`gateward`: `--yes`)"
        );
        Err(Problem::new(ProblemCode::LastAdministrator, detail))
    }
}
