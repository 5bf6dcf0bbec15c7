//! The entities that conditions name, and what is known about them.
//!
//! A call gives Cedar three entities: `principal`, `action` and `resource`. A condition can also
//! test another entity: `Group::"demo/support" in Tenant::"demo"`. Cedar treats an entity that it
//! was not given as having no ancestors, so a forbid with such a condition would never apply.
//!
//! This module solves that in two parts:
//!
//! - [`named`]: the entities that the evaluator needs besides the call's. Their ids say what their
//!   ancestors are, so no registry is needed.
//! - [`unanswerable`]: the conditions for which ids are not enough. The build refuses them, and conditions in which
//!   [`windows`] would not find every name.
//!
//! [`windows`] is for the build too: the windows that conditions name.
//!
//! INVARIANT (exact): a condition that the build accepts evaluates with the call's entities and
//! those of [`named`] as it would with a store of all entities. Only `in`, attributes and tags look
//! up an entity, and [`literals`] finds every named entity that they can look up.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use cedar_policy_core::ast::{BinaryOp, Entity, EntityUID, Expr, ExprKind, Literal, Policy, Var};

use crate::policy::expression::{entity_type, uid};

/// A part of a condition that cannot be evaluated exactly, or hides the name of a window.
#[derive(Debug)]
pub struct Unanswerable {
    /// Where it is, in bytes of the policy's text; `None` if Cedar does not say.
    pub range: Option<Range<usize>>,
    /// Why it is refused. The caller appends the text of the part to this sentence.
    pub why: &'static str,
}

/// The entities that the condition names and whose ancestors it tests, without duplicates.
#[must_use]
pub fn named(condition: &Expr) -> Vec<Arc<Entity>> {
    let asked = condition.subexpressions().flat_map(|part| match part.expr_kind() {
        ExprKind::BinaryApp { op: BinaryOp::In, arg1, .. } => literals(arg1),
        _ => Vec::new(),
    });
    let asked: HashSet<&EntityUID> = asked.collect();
    let entity = |name: &EntityUID| {
        let ancestors = ancestor(name).flatten().into_iter().collect();
        let (attributes, tags) = (Vec::new(), Vec::new());
        Entity::new_with_attr_partial_value(
            name.clone(),
            attributes,
            HashSet::new(),
            ancestors,
            tags,
        )
    };
    asked.into_iter().map(|name| Arc::new(entity(name))).collect()
}

/// The parts of the policy's conditions that cannot be evaluated exactly, or hide the name of a window.
#[must_use]
pub fn unanswerable(policy: &Policy) -> Vec<Unanswerable> {
    let Some(condition) = policy.non_scope_constraints() else { return Vec::new() };
    let found = condition.subexpressions().filter_map(|part| {
        let why = match part.expr_kind() {
            ExprKind::BinaryApp { op: BinaryOp::In, arg1, arg2 } => {
                let right = literals(arg2);
                literals(arg1).into_iter().find_map(|left| why_not_in(left, &right))
            }
            ExprKind::GetAttr { expr, .. }
            | ExprKind::HasAttr { expr, .. }
            | ExprKind::ExtHasAttr { expr, .. }
            | ExprKind::BinaryApp { op: BinaryOp::GetTag | BinaryOp::HasTag, arg1: expr, .. } => {
                (!literals(expr).is_empty()).then_some(
                    "cannot be evaluated, because only `principal` and `resource` have attributes:",
                )
            }
            // Otherwise `{v: context.velocity}.v has x` would name a window that `windows` does not find.
            ExprKind::Record(fields) => fields
                .values()
                .any(|value| is_context(value) || is_velocity(value))
                .then_some("cannot be checked, because it hides the names of windows:"),
            _ => None,
        };
        let range = part.source_loc().map(|place| place.start()..place.end());
        why.map(|why| Unanswerable { range, why })
    });
    found.collect()
}

/// The parts of the policy's conditions that name a window of `context.velocity`, each with the window's name. The
/// build refuses unknown names: Cedar takes `has` with an unknown name as false, so a forbid with a misspelled name would
/// never apply.
#[must_use]
pub fn windows(policy: &Policy) -> Vec<(Option<Range<usize>>, &str)> {
    let Some(condition) = policy.non_scope_constraints() else { return Vec::new() };
    let found = condition.subexpressions().filter_map(|part| {
        let name = match part.expr_kind() {
            ExprKind::GetAttr { expr, attr } | ExprKind::HasAttr { expr, attr } => {
                is_velocity(expr).then_some(attr)
            }
            // `context has velocity.x`, and `context.velocity has x.count`.
            ExprKind::ExtHasAttr { expr, attrs } => match is_velocity(expr) {
                true => Some(&attrs.head),
                false => attrs.tail.first().filter(|_| is_context(expr) && attrs.head == VELOCITY),
            },
            _ => None,
        };
        let range = part.source_loc().map(|place| place.start()..place.end());
        name.map(|name| (range, name.as_str()))
    });
    found.collect()
}

/// The attribute of `context` that has the windows.
const VELOCITY: &str = "velocity";

/// Whether `expr` can evaluate to `context.velocity`.
fn is_velocity(expr: &Expr) -> bool {
    match expr.expr_kind() {
        ExprKind::GetAttr { expr, attr } => attr == VELOCITY && is_context(expr),
        ExprKind::If { then_expr, else_expr, .. } => {
            is_velocity(then_expr) || is_velocity(else_expr)
        }
        _ => false,
    }
}

fn is_context(expr: &Expr) -> bool {
    match expr.expr_kind() {
        ExprKind::Var(Var::Context) => true,
        ExprKind::If { then_expr, else_expr, .. } => is_context(then_expr) || is_context(else_expr),
        _ => false,
    }
}

/// Why it is not known whether `left` is in one of `right`. Variables on the right are an agent, a
/// tool and a server. These contain only themselves.
fn why_not_in(left: &EntityUID, right: &[&EntityUID]) -> Option<&'static str> {
    if ancestor(left).is_none() {
        return Some(
            "cannot be evaluated, because the groups and parents of this entity are not known:",
        );
    }
    let is = |name: &EntityUID, expected: &str| name.entity_type().to_string() == expected;
    let is_kind = |name: &EntityUID| {
        is(name, "Action") && ["read", "write", "egress", "canary"].contains(&id(name))
    };
    if is(left, "Agent") && right.iter().any(|name| is(name, "Group")) {
        return Some("cannot be evaluated, because only the groups of `principal` are known:");
    }
    // The ids of tools have a slash. Those of groups of tools do not.
    if is(left, "Action") && id(left).contains('/') && right.iter().any(|name| is_kind(name)) {
        return Some(
            "cannot be evaluated, since only of `action` is known whether it reads, writes, is an \
             egress tool or a canary:",
        );
    }
    None
}

/// The entity's ancestor, as its id says; `None` for a type that no call has. An agent's groups and
/// a tool's kind are in the registry, not in an id.
fn ancestor(entity: &EntityUID) -> Option<Option<EntityUID>> {
    match entity.entity_type().to_string().as_str() {
        "Tenant" => Some(None),
        "Action" => Some((id(entity) != "call").then(|| uid(&entity_type("Action"), "call"))),
        "Agent" | "Group" | "Server" => {
            Some(id(entity).split_once('/').map(|(tenant, _)| uid(&entity_type("Tenant"), tenant)))
        }
        _ => None,
    }
}

fn id(entity: &EntityUID) -> &str {
    entity.eid().as_ref()
}

/// The entities in the text that `expr` can evaluate to, alone or in a set or record. All other
/// expressions are variables, or evaluate to no entity: no attribute of a call's entities is an
/// entity.
fn literals(expr: &Expr) -> Vec<&EntityUID> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => vec![uid.as_ref()],
        ExprKind::If { then_expr, else_expr, .. } => {
            [then_expr, else_expr].into_iter().flat_map(|branch| literals(branch)).collect()
        }
        ExprKind::Set(items) => items.iter().flat_map(literals).collect(),
        ExprKind::Record(fields) => fields.values().flat_map(literals).collect(),
        ExprKind::GetAttr { expr, .. } => literals(expr),
        _ => Vec::new(),
    }
}
