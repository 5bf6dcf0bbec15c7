//! For every policy of the shipped bundle, what is evaluated is what its text says.

use std::thread;

use cedar_policy_core::ast::{Policy, PolicyID};
use cedar_policy_core::parser::parse_policy;
use gateward_core::policy::expression::{Expressions, decode, encode};
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};

/// A third of the worker's.
const STACK_BYTES: usize = 384 * 1024;

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

/// Decoding used to recurse, and took more than this.
#[test]
fn the_deepest_policy_that_compiles_is_decoded_in_a_small_stack() {
    let compiled = |conditions: usize| {
        let conditions = vec!["context.n == 1"; conditions].join(" && ");
        let text =
            format!("@id(\"p\") permit (principal, action, resource) when {{ {conditions} }};");
        let file = SourceFile { path: "base/x.cedar".to_owned(), text };
        compile_unvalidated(&Sources { policies: vec![file], ..Sources::default() }).ok()
    };
    let deepest = (1..200).map_while(compiled).last().unwrap().leak();
    let decoding = || decode(deepest.policies.first().unwrap().expressions).unwrap();
    let decoded = thread::Builder::new().stack_size(STACK_BYTES).spawn(decoding).unwrap();
    assert!(decoded.join().unwrap().condition.is_some());
}
