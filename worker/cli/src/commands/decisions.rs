use clap::{Args, Subcommand};
use gateward_core::decision::Decision;

use crate::arguments::{PageArguments, TimeArguments, segment};
use crate::follow::Matching;
use crate::plan::Plan;
use crate::request::Request;
use crate::table::Field;

pub const FIELDS: &[Field] = &[
    Field::column("at"),
    Field::column("decision"),
    Field::column("agent"),
    Field::column("server"),
    Field::column("tool"),
    Field::column("trust").at(&["/response/trust/effective"]),
    Field::column("reason_code"),
    Field::column("decision_id"),
];

/// Decisions on calls (scope audit:read)
#[derive(Subcommand, Debug)]
pub enum Decisions {
    /// List decisions, newest first
    ///
    /// Lists are about a second behind: they have only decisions that were copied to the database.
    /// `trust` is the trust of the call's source that counted.
    #[command(after_long_help = "\
Example:
  gateward decisions list --agent coder --decision deny --from 2026-11-01T00:00:00Z")]
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        time: TimeArguments,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a decision with everything that explains it; available at once
    ///
    /// Shows the trust that the call claimed, the trust that counted and why, the policies that
    /// decided with their text, obligations (what must happen before the call passes), the
    /// approval, the outcome of the call, and the receipt, whose hash is verified. With --json,
    /// only the API's record.
    Show {
        #[arg(value_parser = segment)]
        decision_id: String,
    },
    /// Print decisions as they appear, each once, until interrupted
    ///
    /// Decisions that appear together are printed oldest first. With --json, each is a line.
    #[command(after_long_help = "\
Example:
  gateward --json decisions follow --decision quarantine | while read -r decision; do ...")]
    Follow {
        #[command(flatten)]
        filter: Filter,
    },
}

#[derive(Args, Debug)]
pub struct Filter {
    /// Only decisions of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only decisions with this result
    #[arg(long, value_parser = Decision::ALL.map(Decision::as_str))]
    decision: Option<String>,
}

impl Filter {
    fn request(&self) -> Request {
        Request::get(&["decisions"])
            .parameter("agent", self.agent.as_deref())
            .parameter("decision", self.decision.as_deref())
    }
}

impl Decisions {
    pub fn plan(self) -> Plan {
        match self {
            Self::List { filter, time, page } => {
                let request = filter
                    .request()
                    .parameter("from", time.from.as_deref())
                    .parameter("to", time.to.as_deref());
                Plan::list(request, "decisions", FIELDS, &page)
            }
            Self::Show { decision_id } => {
                Plan::ShowDecision(Request::get(&["decisions", &decision_id]))
            }
            Self::Follow { filter: Filter { agent, decision } } => Plan::Follow {
                request: Request::get(&["decisions"]),
                matching: Matching { agent, decision },
            },
        }
    }
}
