//! Step 10: Cedar, on the policies that can match.
//!
//! Cedar visits every policy of the set that it is given, so the set is cut first: the bundle's
//! index finds the policies whose scopes can match this principal, action and resource, and
//! only those are parsed, once, and kept. A policy outside the slice has a scope that is false
//! for the call; Cedar would look at its scope and skip it, so the slice decides exactly as the
//! full set does (`tests/slice_equals_full_set.rs`).

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cedar_policy::{
    Authorizer, Context, Decision as CedarDecision, Entities, Entity, EntityId, EntityTypeName,
    EntityUid, Policy, PolicyId, PolicySet, Request, RestrictedExpression,
};

use crate::bundle::{
    ANY, Bundle, IndexEntry, PolicyRecord, ToolRecord, entity_symbol, type_symbol,
};

/// Slices that are kept; beyond it all are dropped and built again. Agents of the same groups
/// calling the same tool share one, so a lane has few; a slice of nine policies is some 20 KB.
const MAX_SLICES: usize = 512;

/// Who, what and on what, with ancestors: what the index is asked.
#[derive(Debug, Clone, Copy)]
pub struct SliceKeys<'a> {
    /// The tenant whose overlay is added to base.
    pub tenant: &'a str,
    /// Entity type and raw id of the principal, then of every ancestor.
    pub principal: &'a [(&'a str, &'a str)],
    pub principal_type: &'a str,
    pub action: &'a [(&'a str, &'a str)],
    pub resource: &'a [(&'a str, &'a str)],
    pub resource_type: &'a str,
}

/// A call in Cedar's terms.
pub struct PolicyRequest<'a> {
    pub keys: SliceKeys<'a>,
    pub principal_attributes: Vec<(String, RestrictedExpression)>,
    pub resource_attributes: Vec<(String, RestrictedExpression)>,
    pub context: Vec<(String, RestrictedExpression)>,
}

/// What Cedar said.
#[derive(Debug, Clone)]
pub struct Evaluation {
    pub allowed: bool,
    /// The determining policies, sorted by id.
    pub determining: Vec<&'static PolicyRecord>,
    /// Policies whose evaluation failed, sorted by id.
    pub erring: Vec<String>,
}

/// Why there was no evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyError {
    /// The bundle holds a policy that does not parse: the build let a mistake through.
    Bundle(String),
    /// The arguments do not form a Cedar context.
    Context(String),
}

/// The bundle with what was parsed of it so far.
pub struct PolicyEngine {
    bundle: &'static Bundle,
    authorizer: Authorizer,
    /// The entity types of calls, parsed once.
    types: HashMap<&'static str, EntityTypeName>,
    parsed: RefCell<HashMap<u32, Policy>>,
    slices: RefCell<HashMap<Vec<u32>, Arc<PolicySet>>>,
}

impl PolicyEngine {
    #[must_use]
    pub fn new(bundle: &'static Bundle) -> Self {
        Self {
            bundle,
            authorizer: Authorizer::new(),
            types: ["Action", "Agent", "Group", "Server", "Tenant"]
                .into_iter()
                .filter_map(|name| Some((name, name.parse().ok()?)))
                .collect(),
            parsed: RefCell::default(),
            slices: RefCell::default(),
        }
    }

    #[must_use]
    pub fn bundle(&self) -> &'static Bundle {
        self.bundle
    }

    /// The tool's description, if the bundle has one.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&'static ToolRecord> {
        let tools = self.bundle.tools;
        tools.binary_search_by(|tool| tool.id.cmp(id)).ok().and_then(|at| tools.get(at))
    }

    /// The policies that can match, parsed.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Bundle`].
    pub fn slice(&self, keys: &SliceKeys<'_>) -> Result<Arc<PolicySet>, PolicyError> {
        let positions = self.positions(keys);
        if let Some(slice) = self.slices.borrow().get(&positions) {
            return Ok(Arc::clone(slice));
        }
        let mut set = PolicySet::new();
        for position in &positions {
            set.add(self.parsed(*position)?).map_err(|e| PolicyError::Bundle(e.to_string()))?;
        }
        let slice = Arc::new(set);
        let mut slices = self.slices.borrow_mut();
        if slices.len() >= MAX_SLICES {
            slices.clear();
        }
        slices.insert(positions, Arc::clone(&slice));
        Ok(slice)
    }

    /// Positions of the policies that can match, ascending, each once.
    fn positions(&self, keys: &SliceKeys<'_>) -> Vec<u32> {
        let tenants = self.symbols([entity_symbol("Tenant", keys.tenant)]);
        let principals = self.scope_symbols(keys.principal, keys.principal_type);
        let actions = self.scope_symbols(keys.action, "Action");
        let resources = self.scope_symbols(keys.resource, keys.resource_type);
        let mut positions = Vec::new();
        for tenant in &tenants {
            for principal in &principals {
                for action in &actions {
                    for resource in &resources {
                        let found = self.postings(*tenant, *principal, *action, *resource);
                        positions.extend_from_slice(found);
                    }
                }
            }
        }
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    fn scope_symbols(&self, entities: &[(&str, &str)], entity_type: &str) -> Vec<u32> {
        let entities = entities.iter().map(|(entity_type, id)| entity_symbol(entity_type, id));
        self.symbols(entities.chain([type_symbol(entity_type)]))
    }

    /// The numbers of those texts that the bundle knows, and [`ANY`].
    fn symbols(&self, texts: impl IntoIterator<Item = String>) -> Vec<u32> {
        let known = |text: String| self.bundle.symbols.binary_search(&text.as_str()).ok();
        let numbers =
            texts.into_iter().filter_map(known).filter_map(|at| u32::try_from(at + 1).ok());
        std::iter::once(ANY).chain(numbers).collect()
    }

    fn postings(&self, tenant: u32, principal: u32, action: u32, resource: u32) -> &'static [u32] {
        let wanted = (tenant, principal, action, resource);
        let key =
            |entry: &IndexEntry| (entry.tenant, entry.principal, entry.action, entry.resource);
        let index = self.bundle.index;
        let entry = index.binary_search_by_key(&wanted, key).ok().and_then(|at| index.get(at));
        entry
            .and_then(|entry| self.bundle.postings.get(entry.start as usize..entry.end as usize))
            .unwrap_or(&[])
    }

    fn parsed(&self, position: u32) -> Result<Policy, PolicyError> {
        if let Some(policy) = self.parsed.borrow().get(&position) {
            return Ok(policy.clone());
        }
        let record = self
            .bundle
            .policies
            .get(position as usize)
            .ok_or_else(|| PolicyError::Bundle(format!("there is no policy {position}")))?;
        let policy = Policy::parse(Some(PolicyId::new(record.id)), record.text)
            .map_err(|e| PolicyError::Bundle(format!("policy `{}`: {e}", record.id)))?;
        self.parsed.borrow_mut().insert(position, policy.clone());
        Ok(policy)
    }

    /// Decides `request`. Errors in policies are part of the evaluation, and the caller must
    /// deny on any: Cedar skips an erring forbid.
    ///
    /// # Errors
    ///
    /// [`PolicyError`]; the caller must deny.
    pub fn evaluate(&self, request: PolicyRequest<'_>) -> Result<Evaluation, PolicyError> {
        let keys = request.keys;
        let slice = self.slice(&keys)?;
        let context = |e: String| PolicyError::Context(e);
        let principal = self.entity(keys.principal, request.principal_attributes)?;
        let action = self.entity(keys.action, Vec::new())?;
        let resource = self.entity(keys.resource, request.resource_attributes)?;
        let (p, a, r) = (principal.uid(), action.uid(), resource.uid());
        let entities = Entities::from_entities([principal, action, resource], None)
            .map_err(|e| context(e.to_string()))?;
        let values = Context::from_pairs(request.context).map_err(|e| context(e.to_string()))?;
        let cedar_request =
            Request::new(p, a, r, values, None).map_err(|e| context(e.to_string()))?;
        let response = self.authorizer.is_authorized(&cedar_request, &slice, &entities);

        let mut determining: Vec<&'static PolicyRecord> =
            response.diagnostics().reason().filter_map(|id| self.record(id)).collect();
        determining.sort_unstable_by_key(|record| record.id);
        let mut erring: Vec<String> = response
            .diagnostics()
            .errors()
            .map(|error| match error {
                cedar_policy::AuthorizationError::PolicyEvaluationError(e) => {
                    e.policy_id().to_string()
                }
            })
            .collect();
        erring.sort_unstable();
        Ok(Evaluation { allowed: response.decision() == CedarDecision::Allow, determining, erring })
    }

    fn record(&self, id: &PolicyId) -> Option<&'static PolicyRecord> {
        let id: &str = id.as_ref();
        let policies = self.bundle.policies;
        policies.binary_search_by(|policy| policy.id.cmp(id)).ok().and_then(|at| policies.get(at))
    }

    /// An entity from its own key and its ancestors' keys.
    fn entity(
        &self,
        keys: &[(&str, &str)],
        attributes: Vec<(String, RestrictedExpression)>,
    ) -> Result<Entity, PolicyError> {
        let mut uids = keys.iter().map(|(entity_type, id)| self.uid(entity_type, id));
        let own = uids
            .next()
            .ok_or_else(|| PolicyError::Context("an entity without key".to_owned()))??;
        let parents: Result<HashSet<EntityUid>, PolicyError> = uids.collect();
        Entity::new(own, attributes.into_iter().collect(), parents?)
            .map_err(|e| PolicyError::Context(e.to_string()))
    }

    fn uid(&self, entity_type: &str, id: &str) -> Result<EntityUid, PolicyError> {
        let unknown = || PolicyError::Context(format!("entity type `{entity_type}`"));
        let name = self.types.get(entity_type).cloned().ok_or_else(unknown)?;
        Ok(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
    }
}
