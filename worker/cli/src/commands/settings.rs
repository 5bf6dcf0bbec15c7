use clap::Subcommand;

use crate::arguments::{DEFAULT, Limit, Revision, Shield, Switch, Trust};
use crate::failure::Failure;
use crate::plan::{Plan, patch};
use crate::request::{Fields, Request};
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("risk_denials").null(DEFAULT),
    Field::column("risk_window_s").null(DEFAULT),
    Field::column("risk_quiet_s").null(DEFAULT),
    Field::column("taint_s").null(DEFAULT),
    Field::column("grace_read_s").null(DEFAULT),
    Field::column("grace_write_s").null(DEFAULT),
    Field::column("grace_high_risk_s").null(DEFAULT),
    Field::column("warrant_max_links").null(DEFAULT),
    Field::column("warrant_proof_windows").null(DEFAULT),
    Field::column("warrant_reads_once").null(DEFAULT),
    Field::column("warrant_required").null(DEFAULT),
    Field::column("warrant_alone_trust").null(DEFAULT),
    Field::column("log_public").null(DEFAULT),
    Field::column("shield").null(DEFAULT),
    Field::column("revision"),
];

/// The tenant's settings
#[derive(Subcommand, Debug)]
#[expect(clippy::large_enum_variant, reason = "a command line is parsed once")]
pub enum Settings {
    /// Show the settings; `default` is the worker's default
    Show,
    /// Set settings; `default` resets one to the worker's default
    ///
    /// More than --risk-denials denials within --risk-window-s seconds raise an agent's risk tier
    /// by one step. --risk-quiet-s seconds without a denial lower it by one step.
    #[command(after_long_help = "\
Example:
  gateward settings set --risk-denials 20 --risk-window-s 60")]
    Set {
        /// How many denials an agent may have in the window, or `default`
        #[arg(long, value_name = "DENIALS")]
        risk_denials: Option<Limit>,
        /// The length of the window in seconds, or `default`
        #[arg(long, value_name = "SECONDS")]
        risk_window_s: Option<Limit>,
        /// The length of a quiet period in seconds, or `default`
        #[arg(long, value_name = "SECONDS")]
        risk_quiet_s: Option<Limit>,
        /// How many seconds taint lasts after the last text of an untrusted server, or `default` (a
        /// day)
        #[arg(long, value_name = "SECONDS")]
        taint_s: Option<Limit>,
        /// How many seconds reads are still decided while the database is away, or `default` (900)
        #[arg(long, value_name = "SECONDS")]
        grace_read_s: Option<Limit>,
        /// The same for writes, or `default` (0)
        #[arg(long, value_name = "SECONDS")]
        grace_write_s: Option<Limit>,
        /// The same for tools of high or critical risk, or `default` (0)
        #[arg(long, value_name = "SECONDS")]
        grace_high_risk_s: Option<Limit>,
        /// How many links a chain of warrants may have, or `default` (8)
        #[arg(long, value_name = "LINKS")]
        warrant_max_links: Option<Limit>,
        /// In how many windows of time a proof of possession is accepted, or `default` (5)
        #[arg(long, value_name = "WINDOWS")]
        warrant_proof_windows: Option<Limit>,
        /// Whether a proof is accepted only once also for reads, or `default` (false)
        #[arg(long, value_name = "BOOL")]
        warrant_reads_once: Option<Switch>,
        /// Whether each call of the tenant's agents needs a warrant, or `default` (false)
        #[arg(long, value_name = "BOOL")]
        warrant_required: Option<Switch>,
        /// The highest source trust that a call with a warrant and no credential may state, or `default` (such calls are refused)
        #[arg(long, value_name = "TRUST")]
        warrant_alone_trust: Option<Trust>,
        /// Whether anybody may read the tenant's transparency logs, or `default` (false)
        #[arg(long, value_name = "BOOL")]
        log_public: Option<Switch>,
        #[command(flatten)]
        shield: Shield,
        #[command(flatten)]
        revision: Revision,
    },
}

impl Settings {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Show => Request::get(&["settings"]),
            Self::Set {
                risk_denials,
                risk_window_s,
                risk_quiet_s,
                taint_s,
                grace_read_s,
                grace_write_s,
                grace_high_risk_s,
                warrant_max_links,
                warrant_proof_windows,
                warrant_reads_once,
                warrant_required,
                warrant_alone_trust,
                log_public,
                shield,
                revision,
            } => {
                let fields = Fields::new()
                    .with("risk_denials", risk_denials)
                    .with("risk_window_s", risk_window_s)
                    .with("risk_quiet_s", risk_quiet_s)
                    .with("taint_s", taint_s)
                    .with("grace_read_s", grace_read_s)
                    .with("grace_write_s", grace_write_s)
                    .with("grace_high_risk_s", grace_high_risk_s)
                    .with("warrant_max_links", warrant_max_links)
                    .with("warrant_proof_windows", warrant_proof_windows)
                    .with("warrant_reads_once", warrant_reads_once)
                    .with("warrant_required", warrant_required)
                    .with("warrant_alone_trust", warrant_alone_trust)
                    .with("log_public", log_public)
                    .with("shield", shield.shield);
                patch(&["settings"], fields, revision.if_match)?
            }
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}
