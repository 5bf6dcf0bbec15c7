//! The peer of every policy operation: Cedar as its documentation shows it.
//!
//! Once: every policy of the bundle is parsed into one set. For each request: principal, action
//! and resource are parsed from Cedar's spelling, context and entities are made from JSON values
//! without a schema (making these values is part of it, as an application would have to), and the
//! whole set is evaluated. Nothing is sliced, cached or built from parts.

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, Policy, PolicyId, PolicySet, Response,
};
use gateward_core::policy::Evaluation;
use gateward_core::policy::bundle::Bundle;
use serde_json::Value;

pub const PLAIN_CEDAR: &str = "plain_cedar";

pub struct Plain {
    set: PolicySet,
    authorizer: Authorizer,
}

pub struct Request {
    pub principal: String,
    pub action: String,
    pub resource: String,
    pub context: Value,
    pub entities: Value,
}

impl Plain {
    pub fn new(bundle: &Bundle) -> Self {
        // Each policy alone: a Wasm stack is too small for Cedar to parse thousands in one text.
        let policies = bundle
            .policies
            .iter()
            .map(|record| Policy::parse(Some(PolicyId::new(record.id)), record.text).unwrap());
        Self { set: PolicySet::from_policies(policies).unwrap(), authorizer: Authorizer::new() }
    }

    pub fn authorize(&self, request: Request) -> Response {
        let uid = |text: &str| -> EntityUid { text.parse().unwrap() };
        let context = Context::from_json_value(request.context, None).unwrap();
        let entities = Entities::from_json_value(request.entities, None).unwrap();
        let request = cedar_policy::Request::new(
            uid(&request.principal),
            uid(&request.action),
            uid(&request.resource),
            context,
            None,
        )
        .unwrap();
        self.authorizer.is_authorized(&request, &self.set, &entities)
    }
}

/// Both have the same decision, by the same policies.
pub fn assert_same(name: &str, plain: &Response, gateward: &Evaluation) {
    assert_eq!(plain.decision() == Decision::Allow, gateward.allowed, "{name}");
    assert_eq!(plain.diagnostics().errors().count(), gateward.erring.len(), "{name}");
    let mut determining: Vec<&str> = plain.diagnostics().reason().map(AsRef::as_ref).collect();
    determining.sort_unstable();
    let expected: Vec<&str> = gateward.determining.iter().map(|record| record.id).collect();
    assert_eq!(determining, expected, "{name}");
}
