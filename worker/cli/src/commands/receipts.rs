use clap::Subcommand;

use super::Plan;
use crate::arguments::{ROWS_MAX, segment};
use crate::chain::Verify;
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

/// The record that nobody can change unnoticed: each receipt holds the hash of the one before it (scope
/// audit:read)
///
/// A lane is the part of Gateward that decides for a share of a tenant's agents; its receipts are one
/// chain, numbered from 1. A tenant has one lane, number 0, unless it was given more.
#[derive(Subcommand, Debug)]
pub enum Receipts {
    /// List a lane's receipts in order
    ///
    /// `what` is the decision, or the step of an approval, or the change, or how a forwarded call
    /// ended, depending on the kind.
    #[command(after_long_help = "\
Examples:
  gateward receipts list --from 100 --limit 20
  gateward --json receipts list --lane 2 > lane-2.json")]
    List {
        /// The lane, 0 unless given
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        lane: u16,
        /// The first receipt's number, 1 unless given
        #[arg(long, value_name = "SEQ", default_value_t = 1, hide_default_value = true,
            value_parser = clap::value_parser!(u64).range(1..))]
        from: u64,
        /// Print at most this many, 50000 unless given
        #[arg(long, value_name = "ROWS", default_value_t = ROWS_MAX, hide_default_value = true,
            value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_MAX)))]
        limit: u32,
    },
    /// Show a receipt, and whether its hash is that of its text
    Show {
        #[arg(value_parser = segment)]
        receipt_id: String,
    },
    /// Verify receipts on this machine
    ///
    /// Reads the receipts, computes each hash anew (SHA-256 over RFC 8785), checks that each names the
    /// hash of the one before, and compares the last with the newest that the lane itself holds. Says
    /// whether that one was reached. Exits with 1 if anything is not as it was sealed.
    #[command(after_long_help = "\
Examples:
  gateward receipts verify
  gateward --json receipts verify --lane 0 --from 1000 --to 2000")]
    Verify {
        /// Only this lane's, all lanes' unless given
        #[arg(long)]
        lane: Option<u16>,
        /// The first receipt's number; the first that was not deleted unless given
        #[arg(long, value_name = "SEQ", requires = "lane",
            value_parser = clap::value_parser!(u64).range(1..))]
        from: Option<u64>,
        /// The last receipt's number; the newest unless given
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
            Self::Verify { lane, from, to } => Plan::VerifyReceipts(Verify { lane, from, to }),
        }
    }
}
