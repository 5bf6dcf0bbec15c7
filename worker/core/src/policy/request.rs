//! What the policies are asked about a call, and what they answer.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of Cedar, of an attribute or in a context.
pub use cedar_policy_core::ast::Value;

use crate::policy::bundle::PolicyRecord;

/// The entities of a call. Ids are those of Cedar's entities.
#[derive(Debug, Clone, Copy)]
pub struct CallEntities<'a> {
    /// The tenant of agent and server. Its overlay is added to the base policies.
    pub tenant: &'a str,
    /// `<tenant>/<agent>`.
    pub agent: &'a str,
    /// `<tenant>/<group>`: the agent's groups.
    pub groups: &'a [String],
    /// `<server>/<tool>`. Its ancestors are `call`, and `read` or `write`.
    pub tool: &'a str,
    pub mutates: bool,
    /// Whether the tool is in `egress` too. It is then in `write`, whether it mutates or not.
    pub egress: bool,
    /// Whether the tool is in `canary` too.
    pub canary: bool,
    /// `<tenant>/<server>`.
    pub server: &'a str,
}

/// A record's fields.
pub type Fields = Vec<(&'static str, Value)>;

/// A record of these fields.
#[must_use]
pub fn record(fields: Vec<(&str, Value)>) -> Value {
    Value::record_arc(by_name(fields), None)
}

/// The fields by name, in Cedar's type for texts. They are inserted one by one, and this is compiled once: collecting a map
/// would add a sort to the Wasm for each kind of iterator.
pub(super) fn by_name<K: Ord + for<'a> From<&'a str>>(
    fields: Vec<(&str, Value)>,
) -> Arc<BTreeMap<K, Value>> {
    let mut all = BTreeMap::new();
    for (name, value) in fields {
        all.insert(name.into(), value);
    }
    Arc::new(all)
}

/// A call in Cedar's terms.
pub struct PolicyRequest<'a> {
    pub entities: CallEntities<'a>,
    pub agent_attributes: Fields,
    pub server_attributes: Fields,
    pub context: Fields,
}

/// The result of an evaluation.
#[derive(Debug, Clone)]
pub struct Evaluation {
    pub allowed: bool,
    /// The determining policies, sorted by id.
    pub determining: Vec<&'static PolicyRecord>,
    /// Policies whose evaluation failed, sorted by id.
    pub erring: Vec<&'static PolicyRecord>,
}

impl Evaluation {
    /// Whether both evaluations allow or deny, by the same policies.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same = |ours: &[&PolicyRecord], theirs: &[&PolicyRecord]| {
            ours.iter().map(|record| record.id).eq(theirs.iter().map(|record| record.id))
        };
        self.allowed == other.allowed
            && same(&self.determining, &other.determining)
            && same(&self.erring, &other.erring)
    }
}

/// The bundle has a policy that cannot be evaluated. The build should have refused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError(pub String);
