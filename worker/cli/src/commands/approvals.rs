use clap::{Args, Subcommand};
use serde_json::{Value, from_str};

use super::Plan;
use crate::approval::{Decide, Verdict};
use crate::arguments::{PageArguments, Revision, object, segment};
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

const STATUSES: [&str; 6] = ["pending", "approved", "rejected", "cancelled", "expired", "used"];

/// Calls that wait for people, who decide on them (scope approvals:decide)
#[derive(Subcommand, Debug)]
pub enum Approvals {
    /// List approvals, newest first
    ///
    /// Approvals that were requested a moment ago are there, unless the tenant has more than 32 lanes:
    /// then lists are about a second behind. Of each approver group they say how many of its members
    /// must approve, as `release-managers: 1`.
    #[command(after_long_help = "\
Examples:
  gateward approvals list --status pending --group release-managers
  gateward --json approvals list --agent coder --limit 20")]
    List {
        /// Only those that stand so
        #[arg(long, value_parser = STATUSES)]
        status: Option<String>,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Print approvals that are pending, each once and again when it changed, until interrupted
    ///
    /// It begins with those that are pending already. What appears together is printed oldest
    /// first. With --json, each is a line.
    #[command(after_long_help = "\
Example:
  gateward --json approvals watch --group release-managers | while read -r approval; do ...")]
    Watch {
        #[command(flatten)]
        filter: Filter,
    },
    /// Show who asks for what, and why, and who must approve it
    Show {
        #[arg(value_parser = segment)]
        approval_id: String,
    },
    /// Approve a call: it may pass once
    ///
    /// The approval is read first and shown on standard error, unless --json is given. What is
    /// approved is the call that was shown: if it was changed meanwhile the command fails with
    /// `precondition_failed`. Approving what an earlier `show` printed takes --if-match too, and so
    /// does a call that an approver edited.
    ///
    /// Only a member of one of the approver groups may, and never the agent that asks.
    #[command(after_long_help = "\
Examples:
  gateward approvals approve appr_0_17 --comment 'release 2.4'
  gateward approvals approve appr_0_17 --if-match 3
  gateward approvals approve appr_0_18 --edit '{\"amount\": 200, \"note\": null}'
  gateward approvals approve appr_0_18 --edit @narrower.json")]
    Approve {
        #[command(flatten)]
        decision: Decision,
        /// Narrow the call: a JSON Merge Patch (RFC 7396) of its arguments, in which null removes
        /// one; `@FILE` reads it from a file. The edited call alone is good then, and who approved
        /// before has to approve again
        #[arg(long, value_name = "JSON|@FILE", value_parser = edit)]
        edit: Option<Value>,
    },
    /// Reject a call that is pending
    ///
    /// The approval is shown first, as by `approve`; who may is the same.
    #[command(after_long_help = "\
Example:
  gateward approvals reject appr_0_17 --comment 'not before the freeze ends'")]
    Reject(Decision),
    /// Take an approval back that was not used yet, or end one that is pending
    ///
    /// The approval is shown first, as by `approve`. No membership in a group is needed.
    #[command(after_long_help = "\
Example:
  gateward approvals cancel appr_0_17 --comment 'the agent was replaced'")]
    Cancel(Decision),
}

#[derive(Args, Debug)]
pub struct Filter {
    /// Only those that ask this group
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Only this agent's
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

#[derive(Args, Debug)]
pub struct Decision {
    #[arg(value_parser = segment)]
    approval_id: String,
    /// Why, for the audit and for whoever asked
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
            Self::Watch { filter } => Plan::Watch(filter.request(Some("pending"))),
            Self::Show { approval_id } => {
                Plan::ShowApproval(Request::get(&["approvals", &approval_id]))
            }
            Self::Approve { decision, edit } => decision.plan(Verdict::Approve { edit }),
            Self::Reject(decision) => decision.plan(Verdict::Reject),
            Self::Cancel(decision) => decision.plan(Verdict::Cancel),
        }
    }
}

/// Reads an edit: a JSON object, or `@` and the file that holds one.
fn edit(text: &str) -> Result<Value, String> {
    if let Some(file) = text.strip_prefix('@') {
        return object(file);
    }
    let value: Value = from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("not a JSON object".to_owned()) }
}
