//! One change of the registry: what it depends on, and what it becomes.

use gateward_core::approval::{Approval, ApproverGroup};
use gateward_core::gate::LaneAction;
use gateward_core::network::Network;
use gateward_core::problem::Problem;
use gateward_core::registry::upstream::Upstream;
use gateward_core::registry::{ChangeEvent, ChangedKey};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::Statement;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::answer::AnswerBody;
use crate::manifest::ToolManifest;
use crate::resource::read_record;

/// The administrator who changes the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The administrator's tenant.
    pub tenant: String,
    /// The administrator's name.
    pub name: String,
    pub key_id: String,
    pub scopes: Vec<Scope>,
    /// Limits of the actor's own credential.
    pub expires_at_ms: Option<u64>,
    pub allowed_networks: Option<Vec<Network>>,
    pub signed: bool,
}

impl Actor {
    /// Gateward itself.
    #[must_use]
    pub fn gateward() -> Self {
        Self {
            tenant: String::new(),
            name: "gateward".to_owned(),
            key_id: String::new(),
            scopes: Vec::new(),
            expires_at_ms: None,
            allowed_networks: None,
            signed: false,
        }
    }
}

/// The request that asks for a change.
#[derive(Debug)]
pub struct At<'a> {
    pub actor: &'a Actor,
    /// The tenant whose registry changes.
    pub tenant: &'a str,
    pub now_ms: u64,
    /// The `If-Match` header.
    pub if_match: Option<&'a str>,
    /// The manifest that [`Write::discovers`] asked for, once the server has answered.
    pub discovered: Option<&'a ToolManifest>,
    /// The approval that the request presents. Its lane checks its status and hash when it uses it,
    /// before the change is committed.
    pub approval: Option<&'a Approval>,
}

impl At<'_> {
    /// Who creates a record or issues a credential. No administrator's name starts with an
    /// underscore.
    pub(super) fn issuer(&self) -> String {
        match self.actor.tenant.as_str() {
            "" => format!("_{}", self.actor.name),
            own if own == self.tenant => self.actor.name.clone(),
            // An operator of another tenant.
            other => format!("{other}/{}", self.actor.name),
        }
    }
}

/// The rows that the statement of [`Write::read`] returned, as JSON texts. A field is `None` if there is no such row.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Loaded {
    /// `None` if the tenant does not exist.
    pub epoch: Option<u64>,
    pub lanes: Option<u16>,
    pub record: Option<String>,
    /// Other data that the change depends on.
    pub extra: Option<String>,
}

impl Loaded {
    /// The tenant's epoch after a change that is decided with these rows.
    #[must_use]
    pub fn next_epoch(&self) -> u64 {
        self.epoch.unwrap_or(0) + 1
    }

    pub(super) fn record<T: DeserializeOwned>(&self) -> Result<Option<T>, Problem> {
        self.record.as_deref().map(read_record).transpose()
    }

    pub(super) fn extra<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        read_record(self.extra.as_deref().unwrap_or("null"))
    }
}

/// How many records of a kind there are, counted up to one more than the limit.
#[derive(serde::Deserialize)]
pub(super) struct Count {
    pub count: u64,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The request is a no-op: everything is already as asked.
    Unchanged(AnswerBody),
    Changed(Change),
    /// It changes who can approve, so members of protected groups must approve it first.
    NeedsApproval(RequiredApproval),
}

/// A change that needs the approval of protected groups' members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredApproval {
    /// The audit event that the change would write.
    pub event: ChangeEvent,
    /// What the change is about: a member, a credential's holder, or a group.
    pub resource: String,
    /// Sorted.
    pub groups: Vec<ApproverGroup>,
}

/// A change of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub statements: Vec<Statement>,
    /// The audit event's kind.
    pub event: ChangeEvent,
    /// The audit event's detail; no secrets.
    pub detail: Json,
    /// Records that lanes must drop.
    pub keys: Vec<ChangedKey>,
    pub created: bool,
    /// Whether it uses the approval that the request presented.
    pub approved: bool,
    pub answer: AnswerBody,
    /// JSON pointers to the secrets in the answer: shown once, stored nowhere.
    pub secrets: &'static [&'static str],
}

impl Change {
    pub(super) fn new(event: ChangeEvent, answer: AnswerBody, statements: Vec<Statement>) -> Self {
        let keys = Vec::new();
        let detail = json!({});
        Self {
            statements,
            event,
            detail,
            keys,
            created: false,
            approved: false,
            answer,
            secrets: &[],
        }
    }

    #[must_use]
    pub fn status(&self) -> u16 {
        if self.created { 201 } else { 200 }
    }
}

/// One write of the administration API.
pub trait Write {
    /// The statement that reads what the change depends on.
    fn read(&self, at: &At<'_>) -> Statement;

    /// Decides the change.
    ///
    /// # Errors
    ///
    /// The problem for the caller; then nothing is written.
    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem>;

    /// The server whose tools must be listed first. Then the change is read and decided again, with
    /// the manifest.
    ///
    /// # Errors
    ///
    /// As [`Write::apply`]: no server is asked for a request that is refused anyway.
    fn discovers(&self, _: &At<'_>, _: &Loaded) -> Result<Option<Upstream>, Problem> {
        Ok(None)
    }

    /// What the lane of the answer's agent must do after the change.
    fn lane_action(&self) -> Option<LaneAction> {
        None
    }
}
