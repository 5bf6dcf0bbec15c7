use clap::Subcommand;

use crate::arguments::{ROWS_MAX, segment};
use crate::chain::VerifyReceipts;
use crate::plan::Plan;
use crate::request::Request;
use crate::table::Field;

pub const FIELDS: &[Field] = &[
    Field::column("seq"),
    Field::column("time").at(&["/body/time"]),
    Field::column("kind").at(&["/body/kind"]),
    Field::column("what").at(&["/body/decision", "/body/change", "/body/ending"]),
    Field::column("agent").at(&["/body/agent"]),
    Field::column("server").at(&["/body/server"]),
    Field::column("tool").at(&["/body/tool"]),
    Field::column("receipt_hash"),
];

/// Receipts, which nobody can change unnoticed: each holds the hash of the one before it (scope
/// audit:read)
///
/// A lane is the part of Gateward that decides for a share of a tenant's agents. Its receipts are
/// one chain, numbered from 1. A tenant has one lane, number 0, unless an operator gave it more.
#[derive(Subcommand, Debug)]
pub enum Receipts {
    /// List a lane's receipts in order
    ///
    /// Depending on the kind, `what` is the decision, the step of an approval, the change, or how a
    /// forwarded call ended.
    #[command(after_long_help = "\
Examples:
  gateward receipts list --from 100 --limit 20
  gateward --json receipts list --lane 2 > lane-2.json")]
    List {
        /// The lane (default 0)
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        lane: u16,
        /// The number of the first receipt (default 1)
        #[arg(long, value_name = "SEQ", default_value_t = 1, hide_default_value = true,
            value_parser = clap::value_parser!(u64).range(1..))]
        from: u64,
        /// Print at most this many (default 50000)
        #[arg(long, value_name = "ROWS", default_value_t = ROWS_MAX, hide_default_value = true,
            value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_MAX)))]
        limit: u32,
    },
    /// Show a receipt, and whether its hash matches its text
    Show {
        #[arg(value_parser = segment)]
        receipt_id: String,
    },
    /// Verify receipts on this machine
    ///
    /// Reads the receipts, computes each hash (SHA-256 over RFC 8785), checks that each receipt has
    /// the hash of the one before, and compares the last one with a checkpoint that the lane signed,
    /// or with the newest receipt that the lane itself holds. Says which of them it was. Exits with 1
    /// if a receipt is not what the lane sealed.
    #[command(after_long_help = "\
Examples:
  gateward receipts verify
  gateward --json receipts verify --lane 0 --from 1000 --to 2000")]
    Verify {
        /// Only this lane (default: all lanes)
        #[arg(long)]
        lane: Option<u16>,
        /// The number of the first receipt (default: the first that was not deleted)
        #[arg(long, value_name = "SEQ", requires = "lane",
            value_parser = clap::value_parser!(u64).range(1..))]
        from: Option<u64>,
        /// The number of the last receipt (default: the newest)
        #[arg(long, value_name = "SEQ", requires = "lane",
            value_parser = clap::value_parser!(u64).range(1..))]
        to: Option<u64>,
    },
}

impl Receipts {
    pub fn plan(self) -> Plan {
        match self {
            Self::List { lane, from, limit } => Plan::ListReceipts { lane, from, limit },
            Self::Show { receipt_id } => {
                Plan::ShowReceipt(Request::get(&["receipts", &receipt_id]))
            }
            Self::Verify { lane, from, to } => {
                Plan::VerifyReceipts(VerifyReceipts { lane, from, to })
            }
        }
    }
}
