//! How a tool is approved, disabled, quarantined and restored.

use gateward_core::field::{Name, ToolName, present};
use gateward_core::policy::bundle::Risk;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::ChangeEvent;
use gateward_core::route::StateAction;
use gateward_core::sql::administration::{self as sql, Statement};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use super::{ToolRow, conclude, context, existing, load};
use crate::change::{At, Loaded, Outcome, Write};
use crate::refusal::conflict;

/// An approval of a tool, with the reviewer's findings. It is one change, so the tool is never
/// callable with other values. Members that are left out stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveTool {
    /// The `definition_sha256` of the definition that was reviewed. Required if the tool has one;
    /// if it differs from the tool's current one, the tool is not approved.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = String, required = false)]
    definition_sha256: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    mutates: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    egress: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Risk, required = false)]
    risk: Option<Risk>,
}

impl ApproveTool {
    /// Whether the reviewed definition is the current one.
    fn check(&self, tool: &ToolRow, has_definition: bool) -> Result<(), Problem> {
        match (&self.definition_sha256, &tool.definition_sha256) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Problem::field(
                DEFINITION_SHA256,
                format!(
                    "`{DEFINITION_SHA256}`: must be the hash of the definition that you reviewed"
                ),
            )),
            (reviewed, known) if reviewed != known => Err(Problem::new(
                ProblemCode::DefinitionChanged,
                "the tool's definition is not the one that you reviewed: review it again",
            )),
            _ if !has_definition => {
                Err(conflict("the definition that the server lists cannot be used"))
            }
            _ => Ok(()),
        }
    }
}

const DEFINITION_SHA256: &str = "definition_sha256";

/// [`StateAction`] on one tool.
pub struct ActOnTool {
    pub server: Name,
    pub tool: ToolName,
    pub action: StateAction,
    /// The body of an approval.
    pub approval: ApproveTool,
}

impl Write for ActOnTool {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, &self.tool)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let approves = self.action == StateAction::Approve;
        if approves {
            self.approval.check(&before, context(loaded)?.has_definition)?;
        }
        // Only an approval has these members.
        let ApproveTool { mutates, egress, risk, .. } = self.approval;
        let row = ToolRow {
            states: before.states.after(self.action),
            mutates: mutates.unwrap_or(before.mutates),
            egress: egress.unwrap_or(before.egress),
            risk: risk.unwrap_or(before.risk),
            ..before.clone()
        };
        let event = match self.action {
            StateAction::Approve => ChangeEvent::ToolApproved,
            StateAction::Disable => ChangeEvent::ToolDisabled,
            StateAction::Quarantine => ChangeEvent::ToolQuarantined,
            StateAction::Restore => ChangeEvent::ToolRestored,
        };
        let mut outcome = conclude(at, loaded, Some(&before), row, event)?;
        if let Outcome::Changed(change) = &mut outcome
            && approves
        {
            if let (Json::Object(detail), Some(reviewed)) =
                (&mut change.detail, &self.approval.definition_sha256)
            {
                detail.insert(DEFINITION_SHA256.to_owned(), json!(reviewed));
            }
            let values = vec![at.tenant.into(), (&*self.server).into(), (&*self.tool).into()];
            change.statements.push(Statement::new(sql::KEEP_APPROVED_DEFINITION, values));
        }
        Ok(outcome)
    }
}
