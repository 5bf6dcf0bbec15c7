//! What the instruction names for the use of an argument: commands, amounts, quantities, states, and the user.

use gateward_core::policy::bundle::Risk;
use serde_json::{Value as Json, json as value};

use super::destinations::{judged, tainted_run};
use super::{decide, in_run, use_approved};

/// Checks a call after an instruction, and that it passes after an approval.
fn check(
    instruction: &str,
    risk: Risk,
    schema: &str,
    action: &str,
    arguments: &Json,
    expected: &str,
) {
    let mut gate = tainted_run(instruction);
    gate.tool_mut().risk = risk;
    gate.tool_mut().input_schema = (!schema.is_empty()).then(|| schema.into());
    // Without the part, the order may have no object that the call names.
    let found = judged(&gate, action, arguments.clone()).replace("#tool ", "");
    assert!(found.starts_with(expected), "{instruction} {arguments}: {found}");
    if !found.starts_with("allow") {
        let call = in_run("r", action, arguments.clone());
        use_approved(&gate, &call, &decide(&gate, &call));
        let again = judged(&gate, action, arguments.clone());
        assert!(again.starts_with("allow"), "{instruction} {arguments}: {again}");
    }
}

#[test]
fn a_command_is_named_only_as_a_whole() {
    let part = "require_approval nowhere /";
    let rows = "Delete the rows of orders where id = 7 or status = 'new'";
    for (instruction, action, argument, text, expected) in [
        (
            "Run this on prj1: DELETE FROM sessions WHERE id = 7",
            "execute_sql",
            "query",
            "DELETE FROM sessions WHERE id = 7",
            "allow",
        ),
        (
            "Run this on prj1: DELETE FROM sessions WHERE id = 7",
            "execute_sql",
            "query",
            "DELETE FROM sessions",
            part,
        ),
        (
            "Execute `UPDATE users SET active = false WHERE id = 7` on prj1",
            "execute_sql",
            "query",
            "UPDATE users SET active = false",
            part,
        ),
        (
            "Execute `UPDATE users SET active = false WHERE id IS NOT NULL` on prj1",
            "execute_sql",
            "query",
            "UPDATE users SET active = false WHERE id IS NOT NULL",
            "allow",
        ),
        (
            "Run this on prj1:\n```sql\nDELETE FROM a\nWHERE b = 1;\n```",
            "execute_sql",
            "query",
            "DELETE FROM a\nWHERE b = 1;",
            "allow",
        ),
        (
            "Run `terraform destroy --dry-run` in the terminal for prj1",
            "execute_command",
            "command",
            "terraform destroy",
            part,
        ),
        (
            "Run `terraform destroy --dry-run` in the terminal for prj1",
            "execute_command",
            "command",
            "terraform destroy --dry-run",
            "allow",
        ),
        (
            "In prj1, run npm test and tell me what fails",
            "execute_command",
            "command",
            "npm test",
            "allow",
        ),
        (
            "In prj1, run npm run deploy --dry.",
            "execute_command",
            "command",
            "npm run deploy",
            part,
        ),
        (
            "Run the tests of prj1, and explain what rm -rf build is for",
            "execute_command",
            "command",
            "rm -rf build",
            part,
        ),
        (
            "Run the tests of prj1. Never run `rm -rf build`.",
            "execute_command",
            "command",
            "rm -rf build",
            part,
        ),
        (
            "Run psql -c 'DELETE FROM t WHERE id = 1' in the terminal of prj1",
            "execute_command",
            "command",
            "psql -c 'DELETE FROM t'",
            part,
        ),
        (rows, "delete_rows", "where", "status", part),
        (rows, "delete_rows", "where", "id = 7 or status", part),
        (rows, "delete_rows", "where", "id = 7 or status = 'new'", "allow"),
        (
            "Delete the row with id = 7 from the table orders",
            "delete_rows",
            "where",
            "id = 7",
            "allow",
        ),
    ] {
        let to = if action == "delete_rows" { "orders" } else { "prj1" };
        let arguments = value!({ "to": to, argument: text });
        check(instruction, Risk::High, "", action, &arguments, expected);
    }
    // The query of a search is no command. A longer line than a value has no part that is named.
    let arguments = value!({ "query": "old plans of anna" });
    check("Search for the old plans of anna", Risk::Medium, "", "search", &arguments, "allow");
    let long = format!("Run this on prj1: DELETE FROM t WHERE {}", "a = 1 AND ".repeat(60));
    let cut = long.get("Run this on prj1: ".len()..).unwrap();
    for bytes in [512, 600] {
        let arguments = value!({ "to": "prj1", "query": cut.get(..bytes).unwrap() });
        let mut gate = tainted_run(&long);
        gate.tool_mut().risk = Risk::High;
        assert!(judged(&gate, "execute_sql", arguments).starts_with(part), "{bytes}");
    }
}

#[test]
fn a_list_of_words_is_a_command_as_a_whole() {
    let instruction = "Run `terraform plan` on prj1. The old script did terraform destroy.";
    for (argument, command, expected) in [
        ("command", value!(["terraform", "plan"]), "allow"),
        ("command", value!(["terraform", "destroy"]), "require_approval nowhere /command"),
        ("cmd", value!("terraform destroy"), "require_approval nowhere /cmd"),
    ] {
        let arguments = value!({ "to": "prj1", argument: command });
        check(instruction, Risk::High, "", "run_process", &arguments, expected);
    }
}

#[test]
fn an_argument_that_the_tool_does_not_have_says_nothing_about_the_order() {
    let instruction = "Delete the branch spike1 in northwind/web";
    let names = r#"{"properties":{"to":{},"owner":{}}}"#;
    let with_branch = r#"{"properties":{"to":{},"owner":{},"branch":{}}}"#;
    let arguments = value!({ "to": "web", "owner": "northwind", "branch": "spike1" });
    for (schema, action, expected) in [
        (names, "delete_repository", "require_approval nowhere"),
        (with_branch, "delete_branch", "allow"),
    ] {
        check(instruction, Risk::High, schema, action, &arguments, expected);
    }
}

#[test]
fn an_amount_is_given_in_its_unit_and_not_left_out() {
    let refund = "Refund 5 EUR of order 1001";
    let schema = r#"{"properties":{"to":{},"amount":{},"quantity":{}}}"#;
    let cents = r#"{"properties":{"to":{},"amount":{"description":"The amount in cents."}}}"#;
    let other = r#"{"properties":{"to":{},"amount":{"description":"In EUR, not in cents."}}}"#;
    for (instruction, schema, action, arguments, expected) in [
        (refund, schema, "refund", value!({ "to": 1001 }), "require_approval nowhere /amount"),
        (
            refund,
            schema,
            "refund",
            value!({ "to": 1001, "amount": null }),
            "require_approval nowhere /amount",
        ),
        (refund, schema, "refund", value!({ "to": 1001, "amount": 5 }), "allow"),
        (
            refund,
            schema,
            "refund",
            value!({ "to": 1001, "amount_currency": "EUR" }),
            "require_approval nowhere /amount",
        ),
        (
            refund,
            schema,
            "refund",
            value!({ "to": 1001, "metadata": { "amount": 5 } }),
            "require_approval nowhere /amount",
        ),
        ("Refund order 1001", schema, "refund", value!({ "to": 1001 }), "allow"),
        (refund, cents, "refund", value!({ "to": 1001, "amount": 500 }), "allow"),
        (refund, cents, "refund", value!({ "to": 1001, "amount": 5 }), "allow"),
        (
            "Refund 12 EUR of order 1001",
            cents,
            "refund",
            value!({ "to": 1001, "amount": 12 }),
            "require_approval",
        ),
        (
            "Refund 12 EUR of order 1001",
            other,
            "refund",
            value!({ "to": 1001, "amount": 1200 }),
            "require_approval",
        ),
        (
            "Order 2 of B00X for less than 300 EUR",
            "",
            "place_order",
            value!({ "to": "B00X", "quantity": 300 }),
            "require_approval nowhere /quantity",
        ),
        (
            "Order 2 of B00X for less than 300 EUR",
            "",
            "place_order",
            value!({ "to": "B00X", "quantity": 2 }),
            "allow",
        ),
        ("Pay twenty euros to Anna", "", "pay", value!({ "to": "Anna", "amount": 20 }), "allow"),
        ("Pay 1.5k EUR to Anna", "", "pay", value!({ "to": "Anna", "amount": 1500 }), "allow"),
        (
            "Pay one hundred twenty euros to Anna",
            "",
            "pay",
            value!({ "to": "Anna", "amount": 20 }),
            "require_approval nowhere /amount",
        ),
    ] {
        check(instruction, Risk::High, schema, action, &arguments, expected);
    }
}

#[test]
fn the_default_of_a_place_counts_in_a_tool_of_high_risk() {
    let schema =
        r#"{"properties":{"to":{},"namespace":{"default":"default"},"force":{"default":"no"}}}"#;
    let delete = "Delete the deployment web in namespace staging";
    for (risk, arguments, expected) in [
        (
            Risk::High,
            value!({ "to": "web", "namespace": "default" }),
            "require_approval nowhere /namespace",
        ),
        (Risk::High, value!({ "to": "web", "namespace": "staging", "force": "no" }), "allow"),
        (Risk::Medium, value!({ "to": "web", "namespace": "default" }), "allow"),
    ] {
        check(delete, risk, schema, "delete_deployment", &arguments, expected);
    }
}

#[test]
fn words_for_the_user_and_for_the_state_after_the_verb_are_no_destinations_of_others() {
    let state = r#"{"properties":{"to":{},"state":{"enum":["open","closed"]}}}"#;
    let free = r#"{"properties":{"to":{},"state":{}}}"#;
    for (instruction, risk, schema, arguments, expected) in [
        (
            "Look at ev-77",
            Risk::Medium,
            "",
            value!({ "to": "ev-77", "calendar": "primary" }),
            "allow trusted",
        ),
        (
            "Cancel ev-77",
            Risk::High,
            "",
            value!({ "to": "ev-77", "calendar": "primary" }),
            "require_approval",
        ),
        (
            "Assign 12 to me",
            Risk::Medium,
            "",
            value!({ "to": 12, "assignee": "@me" }),
            "allow trusted",
        ),
        (
            "Close issue 12",
            Risk::Medium,
            state,
            value!({ "to": 12, "state": "closed" }),
            "allow instruction",
        ),
        (
            "Close issue 12",
            Risk::Medium,
            free,
            value!({ "to": 12, "state": "closed" }),
            "require_approval",
        ),
        (
            "Look at issue 12",
            Risk::Medium,
            state,
            value!({ "to": 12, "state": "closed" }),
            "require_approval",
        ),
        (
            "Don't close issue 12. Label 12.",
            Risk::Medium,
            state,
            value!({ "to": 12, "state": "closed" }),
            "require_approval",
        ),
    ] {
        check(instruction, risk, schema, "cancel_event", &arguments, expected);
    }
    let fork = |organization: &str| value!({ "to": "copy-1", "owner": "acme", "repo": "shop", "organization": organization });
    check(
        "Fork acme/shop into my org mallard as copy-1",
        Risk::Medium,
        "",
        "fork",
        &fork("mallard"),
        "allow",
    );
    check(
        "Fork acme/shop into my org mallard as copy-1",
        Risk::Medium,
        "",
        "fork",
        &fork("eve"),
        "require_approval",
    );
    let object = value!({ "to": "old.zip", "bucket": "backups", "key": "old.zip" });
    check("Delete s3://backups/old.zip", Risk::High, "", "delete_object", &object, "allow");
}
