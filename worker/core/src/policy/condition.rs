//! The value of a condition, also if part of the context is unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use cedar_policy_core::ast::{
    Context, Expr, Literal, PartialValue, SlotEnv, Unknown, Value, ValueKind,
};
use cedar_policy_core::evaluator::Evaluator;

use crate::policy::request::{Fields, by_name};

/// The value of an expression; `None` if it fails or is not a boolean.
pub(super) fn holds(evaluator: &Evaluator<'_>, expr: &Expr) -> Option<bool> {
    match evaluator.interpret(expr, &SlotEnv::new()).ok()?.value {
        ValueKind::Lit(Literal::Bool(held)) => Some(held),
        _ => None,
    }
}

/// The same if part of the context is unknown; `None` if the value depends on that part. `later` is
/// from [`partly_known`].
pub(super) fn could_hold(
    evaluator: &Evaluator<'_>,
    expr: &Expr,
    later: &[(&'static str, Value)],
) -> Result<Option<bool>, ()> {
    let mut result = evaluator.partial_interpret(expr, &SlotEnv::new());
    if let Ok(PartialValue::Residual(rest)) = &result
        && !later.is_empty()
    {
        let values = later.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        result = evaluator.partial_interpret(&rest.substitute(&values), &SlotEnv::new());
    }
    match result {
        Ok(PartialValue::Value(Value { value: ValueKind::Lit(Literal::Bool(held)), .. })) => {
            Ok(Some(held))
        }
        Ok(PartialValue::Residual(_)) => Ok(None),
        _ => Err(()),
    }
}

/// A context of known and unknown fields. Cedar holds it as one expression, and can read a field of
/// it only if no field calls a function. A decimal is a call of `decimal`. So a known field with a
/// decimal is made unknown too, and returned: its value is put into what remains of each condition.
pub(super) fn partly_known(fields: Fields, unknown: &[&'static str]) -> (Context, Fields) {
    // Cedar takes such an expression only if something is unknown.
    if unknown.is_empty() {
        return (known(fields), Fields::new());
    }
    let unknown_field = |name: &'static str| Expr::unknown(Unknown::new_untyped(name));
    let mut context = BTreeMap::new();
    let mut later = Vec::new();
    for name in unknown {
        context.insert((*name).into(), unknown_field(name));
    }
    for (name, value) in fields {
        let expr = Expr::from(value.clone());
        if expr.is_projectable() {
            context.insert(name.into(), expr);
        } else {
            context.insert(name.into(), unknown_field(name));
            later.push((name, value));
        }
    }
    (Context::RestrictedResidual(Arc::new(context)), later)
}

pub(super) fn known(context: Fields) -> Context {
    Context::Value(by_name(context))
}
