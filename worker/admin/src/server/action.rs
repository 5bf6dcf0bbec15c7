//! How a server is approved, disabled, quarantined, restored and deleted.

use gateward_core::field::Name;
use gateward_core::problem::Problem;
use gateward_core::registry::ChangeEvent;
use gateward_core::route::StateAction;
use gateward_core::sql::administration::{self as sql, Statement};

use super::{ManifestSource, ServerRow, conclude, existing, load};
use crate::answer::AnswerBody;
use crate::change::{At, Loaded, Outcome, Write};
use crate::precondition::check_match;
use crate::resource::Resource;

/// [`StateAction`] on one server.
pub struct ActOnServer {
    pub server: Name,
    pub action: StateAction,
}

impl Write for ActOnServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let row = ServerRow { states: before.states.after(self.action), ..before.clone() };
        let event = match self.action {
            StateAction::Approve => ChangeEvent::ServerApproved,
            StateAction::Disable => ChangeEvent::ServerDisabled,
            StateAction::Quarantine => ChangeEvent::ServerQuarantined,
            StateAction::Restore => ChangeEvent::ServerRestored,
        };
        conclude(at, loaded, Some(&before), row, ManifestSource::None, event)
    }
}

/// Deletes a server. Its tools can no longer be called.
pub struct DeleteServer {
    pub server: Name,
}

impl Write for DeleteServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let mut row: ServerRow = loaded.record()?.ok_or_else(|| Problem::not_found("server"))?;
        if row.deleted {
            return AnswerBody::of(&row.view(at.now_ms), None).map(Outcome::Unchanged);
        }
        check_match(at, row.revision)?;
        row.deleted = true;
        let values = vec![
            at.tenant.into(),
            row.server.as_str().into(),
            at.now_ms.into(),
            loaded.next_epoch().into(),
        ];
        let mut change = row.changed(at, loaded, ChangeEvent::ServerDeleted)?;
        change.statements = vec![Statement::new(sql::DELETE_SERVER, values)];
        change.answer.revision = None;
        Ok(Outcome::Changed(change))
    }
}
