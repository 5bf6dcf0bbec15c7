use clap::{Args, Subcommand};
use gateward_core::approval::ApprovalStatus;
use serde_json::{Value, from_str};

use crate::approval::{Decide, Verdict};
use crate::arguments::{PageArguments, Revision, object, segment};
use crate::plan::Plan;
use crate::request::Request;
use crate::table::Field;

pub const FIELDS: &[Field] = &[
    Field::column("created_at"),
    Field::column("status"),
    Field::column("agent"),
    Field::column("server"),
    Field::column("tool"),
    Field::column("approver_groups").members(&["group", "quorum"]),
    Field::column("approvers").members(&["administrator"]),
    Field::column("expires_at"),
    Field::column("approval_id"),
];

/// Calls that wait for approval by people (scope approvals:decide)
#[derive(Subcommand, Debug)]
pub enum Approvals {
    /// List approvals, newest first
    ///
    /// The list has approvals that were requested a moment ago. If the tenant has more than 32
    /// lanes, it is about a second behind. `approver_groups` has each group with the number of
    /// members that must approve, such as `release-managers: 1`.
    #[command(after_long_help = "\
Examples:
  gateward approvals list --status pending --group release-managers
  gateward --json approvals list --agent coder --limit 20")]
    List {
        /// Only approvals with this status
        #[arg(long, value_parser = ApprovalStatus::ALL.map(ApprovalStatus::as_str))]
        status: Option<String>,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Print pending approvals until interrupted: each once, and again when it changes
    ///
    /// It begins with those that are pending already. Approvals that appear together are printed
    /// oldest first. With --json, each is a line.
    #[command(after_long_help = "\
Example:
  gateward --json approvals watch --group release-managers | while read -r approval; do ...")]
    Watch {
        #[command(flatten)]
        filter: Filter,
    },
    /// Show an approval: who asks for what, why, and who must approve it
    Show {
        #[arg(value_parser = segment)]
        approval_id: String,
    },
    /// Approve a call, so that it may pass once
    ///
    /// The command reads the approval and shows it on standard error, unless --json is given. It
    /// approves exactly the call that it showed: if the call was changed meanwhile, the command
    /// fails with `precondition_failed`. To approve what an earlier `show` printed, or a call that
    /// an approver edited, give --if-match too.
    ///
    /// You must be a member of one of the approver groups. The agent that asks cannot approve.
    #[command(after_long_help = "\
Examples:
  gateward approvals approve appr_0_17 --comment 'release 2.4'
  gateward approvals approve appr_0_17 --if-match 3
  gateward approvals approve appr_0_18 --edit '{\"amount\": 200, \"note\": null}'
  gateward approvals approve appr_0_18 --edit @narrower.json")]
    Approve {
        #[command(flatten)]
        decision: Decision,
        /// Edit the call: a JSON Merge Patch (RFC 7396) of its arguments, in which null removes
        /// one; `@FILE` reads it from a file. After that only the edited call is valid, and people
        /// who approved before must approve again
        #[arg(long, value_name = "JSON|@FILE", value_parser = edit)]
        edit: Option<Value>,
    },
    /// Reject a call that is pending
    ///
    /// The approval is shown first, as by `approve`. You must be a member of one of the approver
    /// groups.
    #[command(after_long_help = "\
Example:
  gateward approvals reject appr_0_17 --comment 'not before the freeze ends'")]
    Reject(Decision),
    /// Cancel an approval that is pending, or that is approved and not used yet
    ///
    /// The approval is shown first, as by `approve`. No membership in a group is needed.
    #[command(after_long_help = "\
Example:
  gateward approvals cancel appr_0_17 --comment 'the agent was replaced'")]
    Cancel(Decision),
}

#[derive(Args, Debug)]
pub struct Filter {
    /// Only approvals for which this group must approve
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Only approvals of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

#[derive(Args, Debug)]
pub struct Decision {
    #[arg(value_parser = segment)]
    approval_id: String,
    /// The reason, for the audit and for the agent that asked
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    #[command(flatten)]
    revision: Revision,
}

impl Filter {
    fn request(&self, status: Option<&str>) -> Request {
        Request::get(&["approvals"])
            .parameter("status", status)
            .parameter("group", self.group.as_deref())
            .parameter("agent", self.agent.as_deref())
    }
}

impl Decision {
    fn plan(self, verdict: Verdict) -> Plan {
        let Self { approval_id, comment, revision } = self;
        Plan::Decide(Decide { approval_id, verdict, comment, revision: revision.if_match })
    }
}

impl Approvals {
    pub fn plan(self) -> Plan {
        match self {
            Self::List { status, filter, page } => {
                Plan::list(filter.request(status.as_deref()), "approvals", FIELDS, &page)
            }
            Self::Watch { filter } => {
                Plan::Watch(filter.request(Some(ApprovalStatus::Pending.as_str())))
            }
            Self::Show { approval_id } => {
                Plan::ShowApproval(Request::get(&["approvals", &approval_id]))
            }
            Self::Approve { decision, edit } => decision.plan(Verdict::Approve { edit }),
            Self::Reject(decision) => decision.plan(Verdict::Reject),
            Self::Cancel(decision) => decision.plan(Verdict::Cancel),
        }
    }
}

/// Reads an edit: a JSON object, or `@` and the name of a file with one.
fn edit(text: &str) -> Result<Value, String> {
    if let Some(file) = text.strip_prefix('@') {
        return object(file);
    }
    let value: Value = from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("it must be a JSON object".to_owned()) }
}
