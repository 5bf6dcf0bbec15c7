//! Every policy of the bundle that ships is evaluated by what its text says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cedar_policy_core::ast::{Policy, PolicyID};
use cedar_policy_core::parser::parse_policy;
use gateward_core::policy::expression::{Expressions, decode, encode};

#[test]
fn the_bundle_holds_each_policy_as_its_text_is_parsed() {
    let policies = gateward_policies::bundle().policies;
    assert!(!policies.is_empty());
    for record in policies {
        let parsed = parse_policy(Some(PolicyID::from_string(record.id)), record.text).unwrap();
        let expected = Expressions {
            scope: [
                parsed.principal_constraint_expr(),
                parsed.action_constraint_expr(),
                parsed.resource_constraint_expr(),
            ],
            condition: parsed.non_scope_constraints().cloned(),
        };
        assert_eq!(decode(record.expressions), Ok(expected), "{}", record.id);
        assert_eq!(encode(&Policy::from(parsed)).unwrap(), record.expressions, "{}", record.id);
    }
}
