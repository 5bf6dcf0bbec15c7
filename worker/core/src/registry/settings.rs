//! A tenant's settings, in one list for D1's row, the lane's record and the API. Their columns are in
//! [`crate::sql`].

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::shield::{Category, Mode, Modes};
use crate::trust::SourceTrust;

/// A tenant's settings. Null: the default applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Settings {
    /// More denials than this in the window raise an agent's risk tier by a step.
    pub risk_denials: Option<u32>,
    pub risk_window_s: Option<u32>,
    /// Each period of this length without a denial lowers a raised tier by a step.
    pub risk_quiet_s: Option<u32>,
    /// How long taint lasts after the last text of an untrusted server.
    pub taint_s: Option<u32>,
    /// How long lanes decide calls that read while the database does not confirm the registry.
    /// Default 900; at least `REGISTRY_TTL_MS`.
    pub grace_read_s: Option<u32>,
    /// The same for calls that write. Default 0.
    pub grace_write_s: Option<u32>,
    /// The same for tools of high or critical risk, whether they read or write. Default 0.
    pub grace_high_risk_s: Option<u32>,
    /// Links that a chain of warrants may have. Default 8.
    pub warrant_max_links: Option<u32>,
    /// Windows of time in which a proof of possession is accepted. Default 5.
    pub warrant_proof_windows: Option<u32>,
    /// Whether a proof is accepted only once also for calls that read. Default false: then it is accepted once only for
    /// calls that write.
    pub warrant_reads_once: Option<bool>,
    /// Whether each call of the tenant's agents needs a warrant. Default false.
    pub warrant_required: Option<bool>,
    /// The highest `source_trust` that a call with a warrant and no credential may state. Default: such calls are
    /// refused.
    pub warrant_alone_trust: Option<SourceTrust>,
    /// Whether anybody may read the tenant's transparency logs. Default false.
    pub log_public: Option<bool>,
    /// The shield's mode of each category of findings, unless the tool or its server has one. Default `detect`.
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    pub shield: Option<Modes>,
}
