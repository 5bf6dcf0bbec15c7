//! A tenant's settings: the thresholds that raise an agent's risk tier, and
//! grace periods. They are columns of the tenant's row.

use gateward_core::field::{Whole, present};
use gateward_core::problem::Problem;
use gateward_core::registry::{ChangeEvent, MAX_GRACE_S, Settings};
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::Statement;
use gateward_core::trust::SourceTrust;
use gateward_core::warrant::bounds::{DEFAULT_PROOF_WINDOWS, MAX_LINKS};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{At, Loaded, Outcome, Write};
use crate::resource::Resource;
use crate::shield::modes;
use crate::tenant::{self, TenantRow};

/// The shortest taint: a model works with a result for about a minute.
const MIN_TAINT_S: u32 = 60;

/// The longest window, quiet period or taint: 30 days.
const MAX_PERIOD_S: u32 = 2_592_000;

/// The longest chain of warrants that a tenant can accept: one link for each level of an organization, and of agents
/// that start agents. Each link costs the verification of a signature.
const MAX_WARRANT_LINKS: u32 = MAX_LINKS as u32;

/// A proof that is made at the end of a window arrives in the next one, so one window is too few.
const MIN_PROOF_WINDOWS: u32 = 2;

/// The most windows of proofs. Before the worker refuses a proof, it tries all of them.
const MAX_PROOF_WINDOWS: u32 = DEFAULT_PROOF_WINDOWS;

/// The settings in an answer.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SettingsView {
    #[serde(flatten)]
    settings: Settings,
    revision: u64,
}

/// The tenant's row, which has the settings.
#[derive(Debug, Deserialize)]
pub struct SettingsRow(TenantRow);

impl Resource for SettingsRow {
    const SINGULAR: &'static str = "settings";
    const PLURAL: &'static str = "settings";
    type View = SettingsView;

    fn cursor(&self) -> String {
        String::new()
    }

    fn revision(&self) -> Option<u64> {
        self.0.revision()
    }

    fn view(&self, _: u64) -> SettingsView {
        SettingsView { settings: self.0.settings.clone(), revision: self.0.revision }
    }
}

/// A change of the settings; members that are left out stay as they are, null clears.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchSettings {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000)]
    risk_denials: Option<Option<Whole<1, 1_000_000>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 2_592_000)]
    risk_window_s: Option<Option<Whole<1, MAX_PERIOD_S>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 2_592_000)]
    risk_quiet_s: Option<Option<Whole<1, MAX_PERIOD_S>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 60, maximum = 2_592_000)]
    taint_s: Option<Option<Whole<MIN_TAINT_S, MAX_PERIOD_S>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, maximum = 3_600)]
    grace_read_s: Option<Option<Whole<0, MAX_GRACE_S>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, maximum = 3_600)]
    grace_write_s: Option<Option<Whole<0, MAX_GRACE_S>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, maximum = 3_600)]
    grace_high_risk_s: Option<Option<Whole<0, MAX_GRACE_S>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 64)]
    warrant_max_links: Option<Option<Whole<1, MAX_WARRANT_LINKS>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 2, maximum = 5)]
    warrant_proof_windows: Option<Option<Whole<MIN_PROOF_WINDOWS, MAX_PROOF_WINDOWS>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    warrant_reads_once: Option<Option<bool>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    warrant_required: Option<Option<bool>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<SourceTrust>)]
    warrant_alone_trust: Option<Option<SourceTrust>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<bool>)]
    log_public: Option<Option<bool>>,
    /// Replaces all modes.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
}

impl Write for PatchSettings {
    fn read(&self, at: &At<'_>) -> Statement {
        tenant::load(at)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        fn set<const MIN: u32, const MAX: u32>(
            setting: &mut Option<u32>,
            patch: Option<Option<Whole<MIN, MAX>>>,
        ) {
            if let Some(value) = patch {
                *setting = value.map(|value| value.0);
            }
        }
        let before = tenant::existing(at, loaded)?;
        let mut row = before.clone();
        let settings = &mut row.settings;
        set(&mut settings.risk_denials, self.risk_denials);
        set(&mut settings.risk_window_s, self.risk_window_s);
        set(&mut settings.risk_quiet_s, self.risk_quiet_s);
        set(&mut settings.taint_s, self.taint_s);
        set(&mut settings.grace_read_s, self.grace_read_s);
        set(&mut settings.grace_write_s, self.grace_write_s);
        set(&mut settings.grace_high_risk_s, self.grace_high_risk_s);
        set(&mut settings.warrant_max_links, self.warrant_max_links);
        set(&mut settings.warrant_proof_windows, self.warrant_proof_windows);
        for (flag, patch) in [
            (&mut settings.warrant_reads_once, self.warrant_reads_once),
            (&mut settings.warrant_required, self.warrant_required),
            (&mut settings.log_public, self.log_public),
        ] {
            *flag = patch.unwrap_or(*flag);
        }
        if let Some(trust) = self.warrant_alone_trust {
            settings.warrant_alone_trust = trust;
        }
        settings.shield = self.shield.unwrap_or(settings.shield);
        let mut outcome =
            tenant::conclude(at, loaded, &before, row.clone(), ChangeEvent::SettingsChanged)?;
        let (answer, revision) = match &mut outcome {
            Outcome::Unchanged(answer) => (answer, before.revision),
            Outcome::Changed(change) => {
                change.detail = json!(row.settings);
                (&mut change.answer, loaded.next_epoch())
            }
            Outcome::NeedsApproval(_) => return Ok(outcome),
        };
        *answer =
            AnswerBody::of(&SettingsView { settings: row.settings, revision }, Some(revision))?;
        Ok(outcome)
    }
}
