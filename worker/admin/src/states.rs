//! The states of a server or a tool, and what administrators do to them.

use gateward_core::registry::ToolStatus;
use gateward_core::route::StateAction;
use serde::Deserialize;

/// The marks of a server or a tool. `restore` clears `disabled` and `quarantined`; only an approval
/// ends `pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct States {
    pub approved: bool,
    pub disabled: bool,
    pub quarantined: bool,
}

impl States {
    /// A new server or tool waits for approval.
    pub const PENDING: Self = Self { approved: false, disabled: false, quarantined: false };

    #[must_use]
    pub fn after(self, action: StateAction) -> Self {
        match action {
            StateAction::Approve => Self { approved: true, ..self },
            StateAction::Disable => Self { disabled: true, ..self },
            StateAction::Quarantine => Self { quarantined: true, ..self },
            StateAction::Restore => Self { disabled: false, quarantined: false, ..self },
        }
    }

    /// The strictest of them.
    #[must_use]
    pub const fn status(self) -> ToolStatus {
        match self {
            Self { quarantined: true, .. } => ToolStatus::Quarantined,
            Self { disabled: true, .. } => ToolStatus::Disabled,
            Self { approved: false, .. } => ToolStatus::Pending,
            _ => ToolStatus::Active,
        }
    }
}
