//! Mistakes in policies, and policies that only seem to have one.

use gateward_policy_compiler::bounds::{
    MAX_EXPRESSION_DEPTH, MAX_FIELD_BYTES, MAX_POLICY_BYTES, MAX_POLICY_NESTING, MAX_REASON_BYTES,
    MAX_REDACT_FIELDS,
};
use gateward_policy_compiler::{Compiled, PolicyError, Sources, compile};

use super::{SCHEMA, TOOLS, assert_refused, file};

fn compile_policy(text: &str) -> Result<Compiled, Vec<PolicyError>> {
    compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: vec![file("tools/git.json", TOOLS)],
        policies: vec![file("base/x.cedar", text)],
    })
}

#[test]
fn a_mistake_in_a_policy_is_told_with_its_line_and_text() {
    let anyone = "permit (principal, action, resource);";
    let merge = r#"@id("a") permit (principal, action == Action::"git/merge", resource)"#;
    let cases: &[(&str, String, &str, &[&str])] = &[
        (
            "unknown annotation",
            format!("@id(\"a\")\n@foo\n{anyone}"),
            "base/x.cedar:2:",
            &["unknown annotation `@foo`"],
        ),
        (
            "unknown annotation with a value",
            format!("@id(\"a\") @quorums(\"2 (two)\") {anyone}"),
            "base/x.cedar:1:",
            &["unknown annotation `@quorums(\"2 (two)\")`"],
        ),
        (
            "unknown decision value",
            format!("// a comment\n\n@id(\"a\")\n@decision(\"explode\")\n{anyone}"),
            "base/x.cedar:4:",
            &["`quarantine`, `require_approval` or `redact`, not `@decision(\"explode\")`"],
        ),
        (
            "missing id",
            format!("@id(\"a\")\n{anyone}\n\n// no id;\n{anyone}"),
            "base/x.cedar:5:",
            &["missing `@id` on `permit (principal, action, resource);`"],
        ),
        ("empty id", format!("@id\n{anyone}"), "base/x.cedar:1:", &["missing `@id` on `@id`"]),
        (
            "id of another form",
            format!("@id(\"A b\")\n{anyone}"),
            "base/x.cedar:1:",
            &["not `@id(\"A b\")`"],
        ),
        (
            "repeated id",
            format!("@id(\"a\") {anyone}\n@id(\"b\") {anyone}\n@id(\"a\") {anyone}"),
            "base/x.cedar:3:",
            &["the file uses this id twice: `@id(\"a\")`"],
        ),
        (
            "annotation twice on one policy",
            format!("@id(\"a\")\n@id(\"b\")\n{anyone}"),
            "base/x.cedar:2:",
            &["duplicate annotation: @id"],
        ),
        (
            "type error",
            "@id(\"a\")\npermit (principal, action, resource)\nwhen {\n  context.sensitive &&\n  \
             context.shield.max_severity < \"9\"\n};"
                .to_owned(),
            "base/x.cedar:5:",
            &["unexpected type: expected Long but saw String, at `\"9\"`"],
        ),
        (
            "comparison of two types",
            "@id(\"a\")\npermit (principal, action, resource)\nwhen { context.source_trust == 1 };"
                .to_owned(),
            "base/x.cedar:3:",
            &["not compatible", "`context.source_trust == 1`"],
        ),
        (
            "unknown attribute",
            "@id(\"a\")\npermit (principal, action, resource)\nwhen { principal.level == 1 };"
                .to_owned(),
            "base/x.cedar:3:",
            &["attribute `level`", "`principal.level`"],
        ),
        (
            "unknown argument",
            format!("{merge}\nwhen {{ context.input.bace == \"main\" }};"),
            "base/x.cedar:2:",
            &["attribute `input.bace` in context for Action::\"git/merge\" not found"],
        ),
        (
            "argument of one tool in a policy about all",
            "@id(\"a\")\npermit (principal, action in Action::\"write\", resource)\n\
             when { context.input.base == \"main\" };"
                .to_owned(),
            "base/x.cedar:3:",
            &["attribute `input.base` in context for Action::\"write\" not found"],
        ),
        (
            "optional argument that may be missing",
            format!("{merge} when {{ context.input.method == \"squash\" }};"),
            "base/x.cedar:1:",
            &["optional attribute `input.method`"],
        ),
        (
            "amount compared as an integer",
            format!("{merge} when {{ context.input.amount > 5 }};"),
            "base/x.cedar:1:",
            &["expected", "decimal", "`context.input.amount"],
        ),
        (
            "unknown action",
            "@id(\"a\")\npermit (\n  principal,\n  action == Action::\"git/merg\",\n  resource\n);"
                .to_owned(),
            "base/x.cedar:4:",
            &["unrecognized action `Action::\"git/merg\"`"],
        ),
        (
            "unknown action in a list",
            "@id(\"a\") permit (principal, action in [Action::\"read\",\n Action::\"raed\"], \
             resource);"
                .to_owned(),
            "base/x.cedar:2:",
            &["unrecognized action `Action::\"raed\"`"],
        ),
        (
            "unknown entity type",
            "@id(\"a\") permit (principal in Team::\"x\", action, resource);".to_owned(),
            "base/x.cedar:1:",
            &["unrecognized entity type `Team`"],
        ),
        (
            "groups of an agent that is not the caller",
            "@id(\"a\") forbid (principal, action, resource)\n\
             when { Agent::\"demo/x\" in Group::\"demo/y\" };"
                .to_owned(),
            "base/x.cedar:2:",
            &["only the groups of `principal`", "`Agent::\"demo/x\" in Group::\"demo/y\"`"],
        ),
        (
            "groups of an agent that may be the caller",
            "@id(\"a\") forbid (principal, action, resource) unless {\n\
             (if context.sensitive then principal else Agent::\"demo/x\") in\n\
             [Group::\"demo/y\", Group::\"demo/z\"] };"
                .to_owned(),
            "base/x.cedar:2:",
            &["only the groups of `principal`"],
        ),
        (
            "kind of a tool that is not the one called",
            "@id(\"a\") forbid (principal, action, resource)\n\
             when { context.sensitive && Action::\"git/merge\" in Action::\"write\" };"
                .to_owned(),
            "base/x.cedar:2:",
            &["only of `action`", "`Action::\"git/merge\" in Action::\"write\"`"],
        ),
        (
            "attribute of an entity that is not the call's",
            "@id(\"a\") forbid (principal, action, resource)\n\
             when { Agent::\"demo/x\".risk_tier == \"high\" };"
                .to_owned(),
            "base/x.cedar:2:",
            &["only `principal` and `resource` have attributes", "`Agent::\"demo/x\".risk_tier`"],
        ),
        (
            "whether an entity that is not the call's has an attribute",
            "@id(\"a\") forbid (principal, action, resource)\n\
             unless { Server::\"demo/x\" has trust };"
                .to_owned(),
            "base/x.cedar:2:",
            &["only `principal` and `resource` have attributes", "`Server::\"demo/x\" has trust`"],
        ),
        (
            "quarantine on a permit",
            format!("@id(\"a\")\n@decision(\"quarantine\")\n{anyone}"),
            "base/x.cedar:2:",
            &["a permit cannot have `@decision(\"quarantine\")`"],
        ),
        (
            "redaction on a forbid",
            "@id(\"a\") @decision(\"redact\") @redact_fields(\"f\")\n\
             forbid (principal, action, resource);"
                .to_owned(),
            "base/x.cedar:1:",
            &["a forbid cannot have `@decision(\"redact\")`"],
        ),
        (
            "approval on a forbid",
            "@id(\"a\") @decision(\"require_approval\") @approver_group(\"g\")\n\
             forbid (principal, action, resource);"
                .to_owned(),
            "base/x.cedar:1:",
            &["a forbid cannot have `@decision(\"require_approval\")`"],
        ),
        (
            "approval by nobody",
            format!("@id(\"a\") @decision(\"require_approval\")\n{anyone}"),
            "base/x.cedar:1:",
            &["missing `@approver_group` on"],
        ),
        (
            "approver group without approval",
            format!("@id(\"a\")\n@approver_group(\"g\")\n{anyone}"),
            "base/x.cedar:2:",
            &["only `@decision(\"require_approval\")` can have `@approver_group(\"g\")`"],
        ),
        (
            "approver group that is no name",
            format!(
                "@id(\"a\") @decision(\"require_approval\")\n@approver_group(\"A B\")\n{anyone}"
            ),
            "base/x.cedar:2:",
            &["`@approver_group(\"A B\")`"],
        ),
        (
            "quorum of none",
            format!(
                "@id(\"a\") @decision(\"require_approval\") @approver_group(\"g\")\n\
                 @quorum(\"0\")\n{anyone}"
            ),
            "base/x.cedar:2:",
            &["from 1 to 16, not `@quorum(\"0\")`"],
        ),
        (
            "quorum out of range",
            format!(
                "@id(\"a\") @decision(\"require_approval\") @approver_group(\"g\")\n\
                 @quorum(\"17\")\n{anyone}"
            ),
            "base/x.cedar:2:",
            &["from 1 to 16, not `@quorum(\"17\")`"],
        ),
        (
            "quorum that is written otherwise",
            format!(
                "@id(\"a\") @decision(\"require_approval\") @approver_group(\"g\")\n\
                 @quorum(\"02\")\n{anyone}"
            ),
            "base/x.cedar:2:",
            &["not `@quorum(\"02\")`"],
        ),
        (
            "quorum without approval",
            format!("@id(\"a\") @quorum(\"2\") {anyone}"),
            "base/x.cedar:1:",
            &["only `@decision(\"require_approval\")` can have `@quorum(\"2\")`"],
        ),
        (
            "redaction of nothing",
            format!("@id(\"a\") @decision(\"redact\")\n{anyone}"),
            "base/x.cedar:1:",
            &["missing `@redact_fields` on"],
        ),
        (
            "empty redacted field",
            format!("@id(\"a\") @decision(\"redact\")\n@redact_fields(\"email,,phone\")\n{anyone}"),
            "base/x.cedar:2:",
            &["`@redact_fields(\"email,,phone\")`"],
        ),
        (
            "redacted field twice",
            format!("@id(\"a\") @decision(\"redact\")\n@redact_fields(\"b, a, b\")\n{anyone}"),
            "base/x.cedar:2:",
            &["different fields"],
        ),
        (
            "redacted fields without redaction",
            format!("@id(\"a\") @redact_fields(\"b\") {anyone}"),
            "base/x.cedar:1:",
            &["only `@decision(\"redact\")` can have `@redact_fields(\"b\")`"],
        ),
        (
            "too many redacted fields",
            format!(
                "@id(\"a\") @decision(\"redact\") @redact_fields(\"{}\") {anyone}",
                (0..=MAX_REDACT_FIELDS).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
            ),
            "base/x.cedar:1:",
            &["1 to 64 different fields"],
        ),
        (
            "too long redacted field",
            format!(
                "@id(\"a\") @decision(\"redact\") @redact_fields(\"{}\") {anyone}",
                "f".repeat(MAX_FIELD_BYTES + 1)
            ),
            "base/x.cedar:1:",
            &["different fields"],
        ),
        (
            "empty reason",
            format!("@id(\"a\") @reason(\" \") {anyone}"),
            "base/x.cedar:1:",
            &["`@reason(\" \")`"],
        ),
        (
            "too long reason",
            format!("@id(\"a\") @reason(\"{}\") {anyone}", "r".repeat(MAX_REASON_BYTES + 1)),
            "base/x.cedar:1:",
            &["at most 512 bytes"],
        ),
        (
            "template",
            "@id(\"a\")\npermit (\n  principal == ?principal,\n  action,\n  resource\n);"
                .to_owned(),
            "base/x.cedar:3:",
            &["template", "`?principal`"],
        ),
        (
            "syntax error",
            format!("@id(\"a\") {anyone}\n\n@id(\"b\")\npermit (principal, action resource);"),
            "base/x.cedar:4:",
            &["unexpected token `resource`"],
        ),
        (
            "policy that does not end",
            format!("@id(\"a\") {anyone}\n@id(\"b\")\npermit (principal, action, resource)\n\n"),
            "base/x.cedar:3:",
            &["unexpected end of input", "`permit (principal, action, resource)`"],
        ),
        (
            "string that does not end",
            format!("@id(\"a\") {anyone}\n@id(\"b)\n{anyone}"),
            "base/x.cedar:2:",
            &["invalid token"],
        ),
        (
            "too long policy",
            format!(
                "\n@id(\"a\") permit (principal, action, resource) when {{ context.resource == \
                 \"{}\" }};",
                "r".repeat(MAX_POLICY_BYTES)
            ),
            "base/x.cedar:2:",
            &["at most 16384 bytes, not: `@id(\"a\") permit"],
        ),
        (
            "too deep brackets",
            format!(
                "@id(\"a\") permit (principal, action, resource) when {{ {}true{} }};",
                "(".repeat(MAX_POLICY_NESTING),
                ")".repeat(MAX_POLICY_NESTING)
            ),
            "base/x.cedar:1:",
            &["nest at most 24 levels"],
        ),
        (
            "too long chain",
            format!(
                "@id(\"a\") permit (principal, action, resource) when {{ {}true }};",
                "context.sensitive && ".repeat(MAX_EXPRESSION_DEPTH / 2)
            ),
            "base/x.cedar:1:",
            &["at most 128 levels in Cedar"],
        ),
    ];
    for (name, source, place, fragments) in cases {
        assert_refused(name, compile_policy(source), place, fragments);
    }
}

/// The build accepts questions that an entity's name answers.
#[test]
fn a_policy_can_name_entities() {
    for condition in [
        "Action::\"read\" in Action::\"call\"",
        "Action::\"git/merge\" in Action::\"call\"",
        "Action::\"read\" in Action::\"write\"",
        "Group::\"demo/support\" in Tenant::\"demo\"",
        "Agent::\"demo/x\" in Tenant::\"demo\"",
        "Agent::\"demo/x\" in [Agent::\"demo/x\", principal]",
        "Server::\"demo/crm\" is Server in Tenant::\"demo\"",
        "principal in [Group::\"demo/support\", Group::\"demo/sales\"]",
        "action in Action::\"write\"",
        "principal == Agent::\"demo/x\" && principal.risk_tier == \"high\"",
        "(if principal == Agent::\"demo/x\" then context else context).sensitive",
        "[Group::\"demo/a\", Group::\"demo/b\"].contains(Group::\"demo/a\")",
    ] {
        for keyword in ["when", "unless"] {
            let text = format!(
                "@id(\"a\") forbid (principal, action, resource) {keyword} {{ {condition} }};"
            );
            compile_policy(&text).expect(condition);
        }
    }
}

#[test]
fn a_policy_at_every_bound_compiles() {
    let fits = |condition: String| {
        format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};")
    };
    let nested = MAX_POLICY_NESTING - 1;
    let padding = MAX_POLICY_BYTES - fits("context.resource == \"\"".to_owned()).len();
    let chain = (1..MAX_EXPRESSION_DEPTH)
        .map(|n| fits(format!("{}true", "context.sensitive && ".repeat(n))))
        .take_while(|text| compile_policy(text).is_ok())
        .count();
    assert!(chain > 50, "only {chain} conditions can be joined");
    for text in [
        fits(format!("{}true{}", "(".repeat(nested), ")".repeat(nested))),
        fits(format!("context.resource == \"{}\"", "r".repeat(padding))),
    ] {
        compile_policy(&text).unwrap();
    }
}
