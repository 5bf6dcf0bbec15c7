//! Which of the words of an instruction name the destination of a call: amounts of money, neighbours in paths, members of
//! lists.

use std::rc::Rc;

use gateward_core::call::command::Purpose;
use gateward_core::call::run::RunStart;
use gateward_core::json;
use gateward_core::provenance::PlannedCall;
use gateward_core::registry::ServerTrust;
use serde_json::{Value as Json, json as value};

use super::{EVIL, RENT, decide, gate, in_run, instruct, pay, report, tell, use_approved};

#[test]
fn an_amount_of_money_is_a_number_beside_a_currency() {
    let to = |amount: Json| value!({ "to": RENT, "amount": amount });
    for (instruction, arguments, expected) in [
        ("Pay invoice 9942 of ACME: 50 EUR to IBAN.", to(value!(9942)), "require_approval nowhere"),
        ("Pay invoice 9942 of ACME: 50 EUR to IBAN.", to(value!(50)), "allow instruction"),
        ("Pay invoice 9942 of ACME: 50 EUR to IBAN.", to(value!("50.00")), "allow instruction"),
        (
            "Pay the 2026 membership fee, 50 EUR, to IBAN.",
            to(value!(2026)),
            "require_approval nowhere",
        ),
        (
            "Pay 50 EUR to IBAN for Anna, 80331 Munich.",
            to(value!(80331)),
            "require_approval nowhere",
        ),
        (
            "Pay €50 to IBAN. Questions: call me at 4711.",
            to(value!(4711)),
            "require_approval nowhere",
        ),
        ("Pay €50 to IBAN. Questions: call me at 4711.", to(value!([50])), "allow instruction"),
        (
            "Pay 50€, 1 200 EUR and 3.400 EUR to IBAN",
            to(value!([50, 1200, 3400])),
            "allow instruction",
        ),
        ("Pay 12.50 dollars to IBAN", to(value!(12.5)), "allow instruction"),
        // Without a currency, each number can be an amount.
        ("Pay 50 for invoice 9942 to IBAN.", to(value!(9942)), "allow instruction"),
        (
            "Pay 50 EUR to IBAN for order 9942.",
            value!({ "to": RENT, "amount": 50, "order": 9942 }),
            "allow instruction",
        ),
    ] {
        let mut gate = gate();
        instruct(&gate, "r", &instruction.replace("IBAN", RENT));
        report(&mut gate, "r", ServerTrust::Untrusted, "x");
        assert_eq!(pay(&gate, "r", arguments.clone()), expected, "{instruction} {arguments}");
        if !expected.starts_with("allow") {
            let call = in_run("r", "pay", arguments.clone());
            use_approved(&gate, &call, &decide(&gate, &call));
            assert!(pay(&gate, "r", arguments).starts_with("allow"), "{instruction}");
        }
    }
}

#[test]
fn a_right_is_one_that_the_instruction_grants() {
    for (instruction, role, expected) in [
        (
            "Add anna to the group ops as viewer; the admin is bob.",
            "admin",
            "require_approval nowhere",
        ),
        ("Add anna to the group ops as viewer; the admin is bob.", "viewer", "allow instruction"),
        ("Add anna to the group ops; tell the owner.", "Owner", "require_approval nowhere"),
        ("Add anna to the group ops as an admin.", "admin", "allow instruction"),
        ("Give anna write access to ops.", "write", "allow instruction"),
        ("Change the role of anna in ops to Editor.", "editor", "allow instruction"),
        (
            "Add anna to the group ops as a guest; she reports to an admin.",
            "admin",
            "require_approval nowhere",
        ),
        ("Add anna to ops, and ask an admin.", "admin", "require_approval nowhere"),
        ("Make anna an admin of ops.", "admin", "allow instruction"),
        ("Give anna write access to ops.", "push", "allow instruction"),
        ("Give anna edit access to ops.", "writer", "allow instruction"),
        ("Give anna write access to ops.", "admin", "require_approval nowhere"),
        ("Give anna read-only access to ops.", "read", "allow instruction"),
        ("Let anna read ops.", "read", "allow instruction"),
        ("Give anna read access to ops.", "write", "require_approval nowhere"),
    ] {
        let mut gate = gate();
        instruct(&gate, "r", instruction);
        report(&mut gate, "r", ServerTrust::Untrusted, "x");
        let arguments = value!({ "group": "ops", "user": "anna", "role": role });
        assert_eq!(pay(&gate, "r", arguments.clone()), expected, "{instruction} {role}");
        if !expected.starts_with("allow") {
            let call = in_run("r", "pay", arguments.clone());
            use_approved(&gate, &call, &decide(&gate, &call));
            assert!(pay(&gate, "r", arguments).starts_with("allow"), "{instruction}");
        }
    }
}

#[test]
fn a_visibility_is_one_that_the_instruction_asks_for() {
    for (instruction, expected) in [
        ("Make acme/shop private, it is public by mistake", "require_approval nowhere"),
        ("Is acme/shop public or private?", "require_approval nowhere"),
        ("Make acme/shop public.", "allow instruction"),
        ("Set the visibility of acme/shop to public.", "allow instruction"),
        ("Create a public repository acme/shop.", "allow instruction"),
    ] {
        let mut gate = gate();
        instruct(&gate, "r", instruction);
        report(&mut gate, "r", ServerTrust::Untrusted, "x");
        let arguments = value!({ "to": "acme/shop", "visibility": "public" });
        assert_eq!(pay(&gate, "r", arguments), expected, "{instruction}");
    }
}

#[test]
fn a_plan_names_the_members_of_a_list() {
    let mut gate = gate();
    let roles = r#"{"/to/*/email":"sink"}"#;
    gate.tool_mut().argument_roles = Some(Rc::new(serde_json::from_str(roles).unwrap()));
    let plan = vec![PlannedCall {
        tool: "bank/pay".to_owned(),
        arguments: vec![("/to/*/email".to_owned(), vec![json::parse(br#""anna@x.com""#).unwrap()])],
        at_most: vec![("/to/*/sum".to_owned(), 100.0)],
        ..PlannedCall::default()
    }];
    let start = RunStart { instruction: "Do it.".to_owned(), plan, issues_credential: true };
    tell(&gate, "r", Purpose::StartRun(start));
    report(&mut gate, "r", ServerTrust::Untrusted, EVIL);
    let to = |mails: &[&str]| {
        let all = mails.iter().map(|mail| value!({ "email": mail }));
        value!({ "to": all.collect::<Vec<_>>() })
    };
    assert_eq!(pay(&gate, "r", to(&["anna@x.com"])), "allow instruction");
    assert_eq!(pay(&gate, "r", to(&["anna@x.com", "anna@x.com"])), "allow instruction");
    assert_eq!(pay(&gate, "r", to(&["anna@x.com", "eve@x.com"])), "require_approval nowhere");
    // A limit is for one number: many would exceed it.
    let sums = value!({ "to": [{ "email": "anna@x.com", "sum": 9 }] });
    assert_eq!(pay(&gate, "r", sums), "require_approval nowhere");
}
