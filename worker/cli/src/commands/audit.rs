use clap::Subcommand;

use crate::arguments::{PageArguments, TimeArguments};
use crate::plan::Plan;
use crate::request::Request;
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("at"),
    Field::column("kind"),
    Field::column("source"),
    Field::column("lane"),
    Field::column("count"),
    Field::column("event_id"),
    Field::detail("decision_id"),
    Field::column("detail"),
];

/// Audit events: decisions, rejections, and who changed what (scope audit:read)
#[derive(Subcommand, Debug)]
pub enum Audit {
    /// List audit events, newest first
    #[command(after_long_help = "\
Example:
  gateward audit list --from 2026-11-01T00:00:00Z --limit 100")]
    List {
        /// Only events of this kind
        #[arg(long)]
        kind: Option<String>,
        #[command(flatten)]
        time: TimeArguments,
        #[command(flatten)]
        page: PageArguments,
    },
}

impl Audit {
    pub fn plan(self) -> Plan {
        let Self::List { kind, time, page } = self;
        let request = Request::get(&["audit-events"])
            .parameter("kind", kind.as_deref())
            .parameter("from", time.from.as_deref())
            .parameter("to", time.to.as_deref());
        Plan::list(request, "audit_events", FIELDS, &page)
    }
}
