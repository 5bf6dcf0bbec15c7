//! Step 10: evaluates the policies that can match a call, with Cedar's evaluator.
//!
//! Cedar's authorizer visits every policy of a set for every request, and joins scope and condition
//! again each time. Here that is split in two:
//!
//! - The match of a policy's scope depends only on agent, tool and server, so it is computed once.
//!   The bundle's index finds the policies whose scopes may match. These are decoded
//!   ([`crate::policy::expression`]) and their scopes are evaluated. Those that match are the
//!   call's [`Slice`], which is cached.
//! - For each call, the conditions of its slice are evaluated.
//!
//! The evaluator gets the call's entities, and the entities whose ancestors the conditions test
//! ([`crate::policy::hierarchy`]).
//!
//! The result follows Cedar's rule: a forbid wins, and without a permit the call is denied
//! (<https://docs.cedarpolicy.com/auth/authorization.html>). `tests/slice_equals_full_set.rs` shows
//! that the result equals that of Cedar's authorizer on all policies.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use cedar_policy_core::ast::{
    Context, Entity, EntityType, EntityUID, EntityUIDEntry, Expr, Request,
};
use cedar_policy_core::entities::{Dereference, Entities, NoEntitiesSchema, TCComputation};
use cedar_policy_core::evaluator::Evaluator;

use crate::policy::bundle::{
    ANY, Bundle, IndexEntry, PolicyRecord, ToolRecord, entity_symbol, type_symbol,
};
use crate::policy::condition::{could_hold, holds, known, partly_known};
use crate::policy::expression::{self, Expressions, entity_type, uid};
use crate::policy::request::{CallEntities, Evaluation, Fields, PolicyError, PolicyRequest};
use crate::policy::{decimal, hierarchy};
use crate::schema::Schemas;
use crate::shield::Shield;
use crate::warrant::Cache;

/// The highest weight of the cached slices together; above it the cache is emptied. Calls share a
/// slice if the policies' scopes cannot tell their agents, tools and servers apart. Each symbol of
/// its key, each of its policies and each entity that they name weighs one, which is four bytes in
/// Wasm; a slice weighs [`SLICE_OVERHEAD`] more. A full cache takes about 4 MB. It holds tens of
/// thousands of ordinary slices, or a hundred of 10,000 policies.
const MAX_SLICE_WEIGHT: usize = 1_000_000;

/// What each slice weighs in addition, for the map and the allocations.
const SLICE_OVERHEAD: usize = 20;

/// A policy, decoded.
#[derive(Debug)]
struct Rule {
    record: &'static PolicyRecord,
    scope: [Expr; 3],
    /// The condition besides the scope; `None` if there is none.
    condition: Option<Arc<Expr>>,
    /// The entities that the condition names and looks up, besides the call's.
    named: Vec<Arc<Entity>>,
}

/// The policies whose scopes match a call.
#[derive(Debug, Default)]
pub struct Slice {
    /// Sorted by id.
    rules: Vec<Rc<Rule>>,
    /// The entities that their conditions look up; empty for almost every slice.
    named: Vec<Arc<Entity>>,
}

impl Slice {
    /// The number of policies.
    #[must_use]
    pub fn policies(&self) -> usize {
        self.rules.len()
    }
}

/// The bundle, and the part of it that was decoded so far.
pub struct PolicyEngine {
    bundle: &'static Bundle,
    names: Names,
    decoded: RefCell<HashMap<u32, Rc<Rule>>>,
    slices: RefCell<Slices>,
    schemas: RefCell<Schemas>,
    chains: RefCell<Cache>,
    shield: OnceCell<Shield>,
    /// Sees what is evaluated. Tests check with it that every request conforms to the schema.
    #[cfg(debug_assertions)]
    pub inspect: Option<fn(&CallEntities<'_>, &Entities, &Context)>,
}

/// The cached slices, by [`Symbols::key`].
#[derive(Default)]
struct Slices {
    by_key: HashMap<Vec<u32>, Rc<Slice>>,
    weight: usize,
}

/// The names that are the same in every call: entity types, groups of actions, and their symbols.
struct Names {
    agent: EntityType,
    group: EntityType,
    server: EntityType,
    tenant: EntityType,
    action: EntityType,
    is_agent: Option<u32>,
    is_server: Option<u32>,
    read: ActionGroup,
    write: ActionGroup,
    call: ActionGroup,
    egress: ActionGroup,
    canary: ActionGroup,
}

struct ActionGroup {
    uid: EntityUID,
    symbol: Option<u32>,
}

/// A call's entities as symbols, for looking up the index.
struct Symbols {
    tenant: Option<u32>,
    principals: Vec<u32>,
    actions: Vec<u32>,
    resources: Vec<u32>,
}

impl PolicyEngine {
    #[must_use]
    pub fn new(bundle: &'static Bundle) -> Self {
        Self {
            bundle,
            names: Names::new(bundle),
            decoded: RefCell::default(),
            slices: RefCell::default(),
            schemas: RefCell::default(),
            chains: RefCell::default(),
            shield: OnceCell::new(),
            #[cfg(debug_assertions)]
            inspect: None,
        }
    }

    /// The compiled schemas of tools that were called. An isolate has one engine, and so one cache.
    #[must_use]
    pub fn schemas(&self) -> &RefCell<Schemas> {
        &self.schemas
    }

    /// The rules of the shield. Their tables are built when a call first needs them.
    pub fn shield(&self) -> &Shield {
        self.shield.get_or_init(|| Shield::new(self.bundle.shield))
    }

    /// The chains of warrants that were verified.
    #[must_use]
    pub fn chains(&self) -> &RefCell<Cache> {
        &self.chains
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

    /// Evaluates `request`. Errors in policies are part of the evaluation. The caller must deny if
    /// there is one, because Cedar skips a forbid that fails.
    ///
    /// # Errors
    ///
    /// [`PolicyError`]; the caller must deny.
    pub fn evaluate(&self, request: PolicyRequest<'_>) -> Result<Evaluation, PolicyError> {
        let PolicyRequest { entities: call, agent_attributes, server_attributes, context } =
            request;
        let slice = self.slice(&call)?;
        let entities = self.entities(&call, agent_attributes, server_attributes, &slice.named)?;
        let context = known(context);
        #[cfg(debug_assertions)]
        if let Some(inspect) = self.inspect {
            inspect(&call, &entities, &context);
        }
        Ok(self.ask(&call, &entities, context, |evaluator| {
            let (mut permits, mut forbids, mut erring) = (Vec::new(), Vec::new(), Vec::new());
            for rule in &slice.rules {
                match rule.condition.as_ref().map_or(Some(true), |expr| holds(evaluator, expr)) {
                    Some(true) if rule.record.forbid => forbids.push(rule.record),
                    Some(true) => permits.push(rule.record),
                    Some(false) => {}
                    None => erring.push(rule.record),
                }
            }
            let allowed = forbids.is_empty() && !permits.is_empty();
            let determining = if forbids.is_empty() { permits } else { forbids };
            Evaluation { allowed, determining, erring }
        }))
    }

    /// Whether a call could be permitted if part of its context is unknown. Each of `cases` adds
    /// known fields to the context; the fields `unknown` are not known in any case. The call could
    /// not be permitted in a case if a forbid applies whatever the unknown fields are, or if no
    /// permit can apply. If the answer depends on the unknown fields, it could.
    ///
    /// # Errors
    ///
    /// [`PolicyError`]; the caller must treat it as no.
    pub fn could_permit(
        &self,
        request: PolicyRequest<'_>,
        cases: &[Fields],
        unknown: &[&'static str],
    ) -> Result<bool, PolicyError> {
        let PolicyRequest { entities: call, agent_attributes, server_attributes, context } =
            request;
        let slice = self.slice(&call)?;
        let entities = self.entities(&call, agent_attributes, server_attributes, &slice.named)?;
        Ok(cases.iter().any(|case| {
            let context = [context.as_slice(), case].concat();
            let (context, later) = partly_known(context, unknown);
            self.ask(&call, &entities, context, |evaluator| {
                let mut permitted = false;
                for rule in &slice.rules {
                    let condition = rule.condition.as_ref();
                    match condition.map_or(Ok(Some(true)), |c| could_hold(evaluator, c, &later)) {
                        // It fails whatever the unknown fields are, and a failure is a denial.
                        Err(()) => return false,
                        Ok(Some(true)) if rule.record.forbid => return false,
                        Ok(Some(false)) => {}
                        // It applies, or may apply.
                        Ok(_) => permitted |= !rule.record.forbid,
                    }
                }
                permitted
            })
        }))
    }

    /// The policies whose scopes match.
    ///
    /// # Errors
    ///
    /// [`PolicyError`].
    pub fn slice(&self, call: &CallEntities<'_>) -> Result<Rc<Slice>, PolicyError> {
        let symbols = self.symbols(call);
        let key = symbols.key();
        if let Some(slice) = self.slices.borrow().by_key.get(&key) {
            return Ok(Rc::clone(slice));
        }
        let candidates: Result<Vec<_>, _> =
            self.positions(&symbols).into_iter().map(|position| self.rule(position)).collect();
        let candidates = candidates?;
        let entities = self.entities(call, Vec::new(), Vec::new(), &[])?;
        let rules: Result<Vec<_>, _> = self.ask(call, &entities, known(Vec::new()), |evaluator| {
            let scoped = candidates.into_iter().map(|rule| Ok((rule.in_scope(evaluator)?, rule)));
            scoped.filter(|scoped| !matches!(scoped, Ok((false, _)))).collect()
        });
        let rules: Vec<Rc<Rule>> = rules?.into_iter().map(|(_, rule)| rule).collect();
        let named = rules.iter().flat_map(|rule| &rule.named);
        let named: HashMap<_, _> = named.map(|entity| (entity.uid(), entity)).collect();
        let named = named.into_values().cloned().collect();
        let slice = Rc::new(Slice { rules, named });
        self.slices.borrow_mut().keep(key, &slice);
        Ok(slice)
    }

    fn symbols(&self, call: &CallEntities<'_>) -> Symbols {
        let names = &self.names;
        let symbol = |entity_type, id| self.bundle.symbol(&entity_symbol(entity_type, id));
        let tenant = symbol("Tenant", call.tenant);
        let groups = call.groups.iter().filter_map(|group| symbol("Group", group));
        let kind = names.kind(call);
        let egress = if call.egress { names.egress.symbol } else { None };
        let canary = if call.canary { names.canary.symbol } else { None };
        let list = |found: &[Option<u32>]| {
            std::iter::once(ANY).chain(found.iter().copied().flatten()).collect::<Vec<u32>>()
        };
        let mut principals = list(&[symbol("Agent", call.agent), names.is_agent, tenant]);
        principals.extend(groups);
        Symbols {
            tenant,
            principals,
            actions: list(&[
                symbol("Action", call.tool),
                kind.symbol,
                names.call.symbol,
                egress,
                canary,
            ]),
            resources: list(&[symbol("Server", call.server), names.is_server, tenant]),
        }
    }

    /// The positions of the policies whose scopes may match, ascending, without duplicates.
    fn positions(&self, symbols: &Symbols) -> Vec<u32> {
        let mut positions = Vec::new();
        for tenant in [Some(ANY), symbols.tenant].into_iter().flatten() {
            for principal in &symbols.principals {
                for action in &symbols.actions {
                    for resource in &symbols.resources {
                        let found = self.postings(tenant, *principal, *action, *resource);
                        positions.extend_from_slice(found);
                    }
                }
            }
        }
        positions.sort_unstable();
        positions.dedup();
        positions
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

    fn rule(&self, position: u32) -> Result<Rc<Rule>, PolicyError> {
        if let Some(rule) = self.decoded.borrow().get(&position) {
            return Ok(Rc::clone(rule));
        }
        let record = self
            .bundle
            .policies
            .get(position as usize)
            .ok_or_else(|| PolicyError(format!("policy {position} does not exist")))?;
        let rule = Rc::new(Rule::decode(record)?);
        self.decoded.borrow_mut().insert(position, Rc::clone(&rule));
        Ok(rule)
    }

    /// The call's entities, and those of `named` that are not among them.
    fn entities(
        &self,
        call: &CallEntities<'_>,
        agent: Fields,
        server: Fields,
        named: &[Arc<Entity>],
    ) -> Result<Entities, PolicyError> {
        let names = &self.names;
        let tenant = uid(&names.tenant, call.tenant);
        let mut of_agent: HashSet<EntityUID> =
            call.groups.iter().map(|group| uid(&names.group, group)).collect();
        of_agent.insert(tenant.clone());
        let kind = names.kind(call);
        let mut of_tool = HashSet::from([kind.uid.clone(), names.call.uid.clone()]);
        of_tool.extend(call.egress.then(|| names.egress.uid.clone()));
        of_tool.extend(call.canary.then(|| names.canary.uid.clone()));
        let entity = |uid, attributes: Fields, ancestors| {
            let attributes: Vec<_> =
                attributes.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            // The same type as the attributes, so that Cedar's maps are compiled once.
            let tags = Vec::new();
            Entity::new_with_attr_partial_value(uid, attributes, HashSet::new(), ancestors, tags)
        };
        let of_call = [
            entity(uid(&names.agent, call.agent), agent, of_agent),
            entity(uid(&names.action, call.tool), Vec::new(), of_tool),
            entity(uid(&names.server, call.server), server, HashSet::from([tenant])),
        ];
        // The entities list all their ancestors, so Cedar need not compute them.
        let (schema, closure) = (None::<&NoEntitiesSchema>, TCComputation::AssumeAlreadyComputed);
        let extensions = decimal::extensions();
        // Cedar's error is not shown. It can contain any expression, and writing an expression
        // needs the parser.
        let failed = |_| PolicyError("the entities of a call".to_owned());
        let entities =
            Entities::from_entities(of_call, schema, closure, extensions).map_err(failed)?;
        if named.is_empty() {
            return Ok(entities);
        }
        let is_new =
            |named: &&Arc<Entity>| !matches!(entities.entity(named.uid()), Dereference::Data(_));
        let new: Vec<_> = named.iter().filter(is_new).cloned().collect();
        entities.add_entities(new, schema, closure, extensions).map_err(failed)
    }

    /// Runs a function with Cedar's evaluator for this call.
    fn ask<T>(
        &self,
        call: &CallEntities<'_>,
        entities: &Entities,
        context: Context,
        run: impl FnOnce(&Evaluator<'_>) -> T,
    ) -> T {
        let names = &self.names;
        let entity = |entity_type, id| EntityUIDEntry::known(uid(entity_type, id), None);
        let request = Request::new_unchecked(
            entity(&names.agent, call.agent),
            entity(&names.action, call.tool),
            entity(&names.server, call.server),
            Some(context),
        );
        run(&Evaluator::new(request, entities, decimal::extensions()))
    }
}

impl Slices {
    fn keep(&mut self, key: Vec<u32>, slice: &Rc<Slice>) {
        let weight = key.len() + slice.policies() + slice.named.len() + SLICE_OVERHEAD;
        if self.weight + weight > MAX_SLICE_WEIGHT {
            *self = Self::default();
        }
        self.weight += weight;
        self.by_key.insert(key, Rc::clone(slice));
    }
}

impl Rule {
    fn decode(record: &'static PolicyRecord) -> Result<Self, PolicyError> {
        let Expressions { scope, condition } = expression::decode(record.expressions)
            .map_err(|_| PolicyError(format!("policy `{}` cannot be decoded", record.id)))?;
        let named = condition.as_ref().map(hierarchy::named).unwrap_or_default();
        Ok(Self { record, scope, condition: condition.map(Arc::new), named })
    }

    fn in_scope(&self, evaluator: &Evaluator<'_>) -> Result<bool, PolicyError> {
        for constraint in &self.scope {
            match holds(evaluator, constraint) {
                Some(true) => {}
                Some(false) => return Ok(false),
                // A scope only compares entities, so this cannot happen. If it does, the call is
                // not decided.
                None => return Err(PolicyError(format!("the scope of `{}`", self.record.id))),
            }
        }
        Ok(true)
    }
}

impl Names {
    fn new(bundle: &Bundle) -> Self {
        let action = entity_type("Action");
        let group = |id| ActionGroup {
            uid: uid(&action, id),
            symbol: bundle.symbol(&entity_symbol("Action", id)),
        };
        Self {
            agent: entity_type("Agent"),
            group: entity_type("Group"),
            server: entity_type("Server"),
            tenant: entity_type("Tenant"),
            is_agent: bundle.symbol(&type_symbol("Agent")),
            is_server: bundle.symbol(&type_symbol("Server")),
            read: group("read"),
            write: group("write"),
            call: group("call"),
            egress: group("egress"),
            canary: group("canary"),
            action,
        }
    }

    /// The group `read` or `write`.
    const fn kind(&self, call: &CallEntities<'_>) -> &ActionGroup {
        if call.mutates || call.egress { &self.write } else { &self.read }
    }
}

impl Symbols {
    /// Calls with the same key have the same slice. A scope names entities by symbols of the
    /// bundle. It can only test the type of any other entity, and this is the same in every call.
    /// Each part begins with [`ANY`], so no two different lists give one key.
    fn key(&self) -> Vec<u32> {
        [self.principals.as_slice(), &self.actions, &self.resources].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_slices_stay_within_their_bound() {
        let mut slices = Slices::default();
        let slice = Rc::new(Slice::default());
        let (mut most, mut dropped) = (0, false);
        for at in 0..200_000 {
            let before = slices.by_key.len();
            slices.keep(vec![at], &slice);
            dropped |= slices.by_key.len() < before;
            most = most.max(slices.weight);
            assert!(slices.by_key.contains_key(&vec![at]));
        }
        assert!(dropped && most <= MAX_SLICE_WEIGHT);
    }
}
