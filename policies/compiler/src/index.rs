//! The index from the keys of a call to policies, as [`gateward_core::policy::bundle`] describes it.
//!
//! INVARIANT (superset): if a call satisfies a policy's scope, the policy is found under the call's
//! keys. Each key is a necessary condition of the scope: `==` and `in` require the call's entity or one
//! of its ancestors, `is` requires its type. Cedar leaves out policies that are found but do not apply.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{ActionConstraint, EntityUid, PrincipalConstraint, ResourceConstraint};
use gateward_core::policy::bundle::{ANY, IndexEntry, entity_symbol, type_symbol};

use crate::policies::Parsed;

/// The fields of [`gateward_core::policy::bundle::Bundle`] with the same names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub symbols: Vec<String>,
    pub entries: Vec<IndexEntry>,
    pub postings: Vec<u32>,
}

/// Tenant, principal, action and resource. `None` means no constraint.
type Keys = [Option<String>; 4];

/// `parsed` is sorted by id, as the bundle's policies are.
pub(crate) fn build(parsed: &[Parsed]) -> Index {
    let mut positions: BTreeMap<Keys, BTreeSet<u32>> = BTreeMap::new();
    for (position, policy) in (0..).zip(parsed) {
        for keys in keys(policy) {
            positions.entry(keys).or_default().insert(position);
        }
    }
    let symbols: BTreeSet<&String> = positions.keys().flatten().flatten().collect();
    let numbers: BTreeMap<&String, u32> = symbols.iter().copied().zip(1..).collect();

    // The order by number is the order by text: `None` and zero come first, then the sorted symbols.
    let mut index = Index::default();
    for (keys, found) in &positions {
        let [tenant, principal, action, resource] = keys
            .each_ref()
            .map(|key| key.as_ref().and_then(|key| numbers.get(key)).copied().unwrap_or(ANY));
        let start = length(&index.postings);
        index.postings.extend(found);
        let end = length(&index.postings);
        index.entries.push(IndexEntry { tenant, principal, action, resource, start, end });
    }
    index.symbols = symbols.into_iter().cloned().collect();
    index
}

/// The keys for each action that the scope names. Empty for `action in []`, which never applies.
fn keys(parsed: &Parsed) -> Vec<Keys> {
    let tenant = parsed.tenant.map(|tenant| entity_symbol("Tenant", tenant));
    let principal = match parsed.policy.principal_constraint() {
        PrincipalConstraint::Any => None,
        PrincipalConstraint::Is(entity_type) => Some(type_symbol(&entity_type.to_string())),
        PrincipalConstraint::Eq(entity)
        | PrincipalConstraint::In(entity)
        | PrincipalConstraint::IsIn(_, entity) => Some(symbol(&entity)),
    };
    let resource = match parsed.policy.resource_constraint() {
        ResourceConstraint::Any => None,
        ResourceConstraint::Is(entity_type) => Some(type_symbol(&entity_type.to_string())),
        ResourceConstraint::Eq(entity)
        | ResourceConstraint::In(entity)
        | ResourceConstraint::IsIn(_, entity) => Some(symbol(&entity)),
    };
    let actions = match parsed.policy.action_constraint() {
        ActionConstraint::Any => vec![None],
        ActionConstraint::Eq(action) => vec![Some(symbol(&action))],
        ActionConstraint::In(actions) => {
            actions.iter().map(|action| Some(symbol(action))).collect()
        }
    };
    actions
        .into_iter()
        .map(|action| [tenant.clone(), principal.clone(), action, resource.clone()])
        .collect()
}

fn symbol(entity: &EntityUid) -> String {
    entity_symbol(&entity.type_name().to_string(), entity.id().unescaped())
}

/// The number of postings is at most the number of actions that policies name. That number is bounded,
/// because the bytes of a policy and of a bundle are.
fn length(postings: &[u32]) -> u32 {
    u32::try_from(postings.len()).unwrap_or(u32::MAX)
}
