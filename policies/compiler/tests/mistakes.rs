//! Every mistake in a source is refused, and reported with its file, line and text.

use gateward_policy_compiler::bounds::{
    MAX_EXPRESSION_DEPTH, MAX_FIELD_BYTES, MAX_POLICY_BYTES, MAX_POLICY_NESTING, MAX_PROPERTIES,
    MAX_REASON_BYTES, MAX_REDACT_FIELDS, MAX_TYPE_DEPTH,
};
use gateward_policy_compiler::{Compiled, PolicyError, SourceFile, Sources, compile};

const SCHEMA: &str = include_str!("../../schema.cedarschema");

const TOOLS: &str = r#"{ "tools": [{
  "name": "merge",
  "inputSchema": {
    "type": "object",
    "properties": {
      "base": { "type": "string" },
      "method": { "type": "string" },
      "labels": { "type": "array", "items": { "type": "string" } },
      "amount": { "type": "number" }
    },
    "required": ["base", "amount"]
  },
  "_meta": { "gateward/mutates": true, "gateward/risk": "high" }
}] }"#;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

fn compile_policy(text: &str) -> Result<Compiled, Vec<PolicyError>> {
    compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: vec![file("tools/git.json", TOOLS)],
        policies: vec![file("base/x.cedar", text)],
    })
}

fn compile_tools(text: &str) -> Result<Compiled, Vec<PolicyError>> {
    compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: vec![file("tools/git.json", text)],
        policies: Vec::new(),
    })
}

fn compile_shield(path: &str, text: &str) -> Result<Compiled, Vec<PolicyError>> {
    let base = r#"{"rules": [{"id": "base-rule", "category": "secret", "severity": "high", "sentence": "S.",
        "phrase": [["xyzzy"]], "matches": ["xyzzy"], "passes": ["plugh"]}]}"#;
    compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: vec![file("shield/base.json", base), file(path, text)],
        tools: Vec::new(),
        policies: Vec::new(),
    })
}

/// There must be exactly one message, and it must contain all `fragments`.
#[track_caller]
fn assert_refused(
    name: &str,
    result: Result<Compiled, Vec<PolicyError>>,
    place: &str,
    fragments: &[&str],
) {
    let errors = result.err().unwrap_or_default();
    let told: String = errors.iter().map(|error| format!("{error}\n")).collect();
    assert_eq!(errors.len(), 1, "{name}: {told:?}");
    assert!(told.starts_with(&format!("policies/{place}")), "{name}: {told:?}");
    for fragment in fragments {
        assert!(told.contains(fragment), "{name}: {told:?} lacks {fragment:?}");
    }
}

#[test]
fn a_mistake_in_a_rule_of_the_shield_is_told_with_its_line() {
    const OVERLAY: &str = "tenants/demo/shield.json";
    let rule = |id: &str, rest: &str| {
        format!(
            "{{\"rules\": [\n{{\"id\": \"{id}\", \"category\": \"secret\", \"severity\": \"high\", \"sentence\": \"S.\", {rest}}}]}}"
        )
    };
    let examples = r#""matches": ["frobozz"], "passes": ["plugh"]"#;
    let many: Vec<String> = (0..2_100).map(|at| format!("\"literal{at}\"")).collect();
    let cases: &[(&str, &str, String, &str, &[&str])] = &[
        (
            "a rule of the base pack that does not exist is disabled",
            OVERLAY,
            r#"{"disable": ["no-such-rule"]}"#.to_owned(),
            "tenants/demo/shield.json:1:",
            &["no rule of the base pack is `no-such-rule`"],
        ),
        (
            "the base pack disables a rule",
            "shield/more.json",
            r#"{"disable": ["base-rule"]}"#.to_owned(),
            "shield/more.json:1:",
            &["only a tenant's overlay can disable rules"],
        ),
        (
            "two rules have one id",
            OVERLAY,
            rule("base-rule", &format!(r#""phrase": [["frobozz"]], {examples}"#)),
            "tenants/demo/shield.json:2:",
            &["two rules have this id"],
        ),
        (
            "an example that must match does not",
            OVERLAY,
            rule(
                "mine",
                r#""phrase": [["frobozz"]], "matches": ["frobnicate"], "passes": ["plugh"]"#,
            ),
            "tenants/demo/shield.json:",
            &["mine"],
        ),
        (
            "an example that must pass matches",
            OVERLAY,
            rule(
                "mine",
                r#""phrase": [["frobozz"]], "matches": ["frobozz"], "passes": ["a frobozz"]"#,
            ),
            "tenants/demo/shield.json:",
            &["mine"],
        ),
        (
            "no example that must pass",
            OVERLAY,
            rule("mine", r#""phrase": [["frobozz"]], "matches": ["frobozz"], "passes": []"#),
            "tenants/demo/shield.json:2:",
            &["must have examples"],
        ),
        (
            "an unknown member",
            OVERLAY,
            rule("mine", &format!(r#""phrase": [["frobozz"]], "regex": "a+", {examples}"#)),
            "tenants/demo/shield.json:2:",
            &["regex"],
        ),
        (
            "rules that cost too much",
            OVERLAY,
            rule("mine", &format!(r#""phrase": [[{}, "frobozz"]], {examples}"#, many.join(","))),
            "shield",
            &["the rules cost too much", "at most 2000"],
        ),
    ];
    for (name, path, text, place, fragments) in cases {
        assert_refused(name, compile_shield(path, text), place, fragments);
    }
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

#[test]
fn a_mistake_in_a_tool_is_told_with_its_line_tool_and_property() {
    let meta = r#""_meta": { "gateward/mutates": false, "gateward/risk": "low" }"#;
    let tool = |schema: &str| {
        format!("{{ \"tools\": [{{\n\"name\": \"t\",\n{meta},\n\"inputSchema\": {schema}\n}}] }}")
    };
    let property = |schema: &str| {
        tool(&format!(
            "{{ \"type\": \"object\", \"properties\": {{\n\"ok\": {{ \"type\": \"string\" }},\n\
             \"p\": {schema} }} }}"
        ))
    };
    let meta_only = |meta: &str| {
        format!(
            "{{ \"tools\": [{{ \"name\": \"t\",\n\"inputSchema\": {{ \"type\": \"object\" }},\n\
             \"_meta\": {meta} }}] }}"
        )
    };
    let about_p = "tool `t`, property `p`: ";
    let cases: &[(&str, String, &str, &[&str])] = &[
        ("no JSON", "{\n\"tools\": [,]\n}".to_owned(), "tools/git.json:2:", &["expected value"]),
        (
            "no tools",
            "{ \"tool\": [] }".to_owned(),
            "tools/git.json:1:",
            &["missing array `tools`"],
        ),
        (
            "repeated key",
            "{ \"tools\": [],\n\"tools\": [] }".to_owned(),
            "tools/git.json:2:",
            &["an object has this key twice: `\"tools\": [] }`"],
        ),
        (
            "repeated property",
            tool(
                "{ \"type\": \"object\", \"properties\": { \"p\": { \"type\": \"string\" },\n\
                 \"p\": { \"type\": \"integer\" } } }",
            ),
            "tools/git.json:5:",
            &["an object has this key twice: `\"p\""],
        ),
        (
            "tool name of another form",
            format!(
                "{{ \"tools\": [\n{{ \"name\": \"a b\", \"inputSchema\": {{ \"type\": \"object\" }}, \
                 {meta} }}] }}"
            ),
            "tools/git.json:2:",
            &["a tool's name", "`\"name\": \"a b\""],
        ),
        (
            "tool described twice",
            format!(
                "{{ \"tools\": [\n{{ \"name\": \"t\", \"inputSchema\": {{ \"type\": \"object\" }}, \
                 {meta} }},\n{{ \"name\": \"t\", \"inputSchema\": {{ \"type\": \"object\" }}, \
                 {meta} }}] }}"
            ),
            "tools/git.json:3:",
            &["tool `t`: the file describes this tool twice"],
        ),
        (
            "no input schema",
            format!("{{ \"tools\": [\n{{ \"name\": \"t\", {meta} }}] }}"),
            "tools/git.json:2:",
            &["tool `t`: missing `inputSchema`"],
        ),
        (
            "input that is no object",
            tool("{ \"type\": \"string\" }"),
            "tools/git.json:4:",
            &["tool `t`: `inputSchema` must have type `object`"],
        ),
        (
            "mutation left open",
            meta_only("{ \"gateward/risk\": \"low\" }"),
            "tools/git.json:3:",
            &["tool `t`", "`gateward/mutates`"],
        ),
        (
            "unknown risk",
            meta_only("{ \"gateward/mutates\": true,\n\"gateward/risk\": \"lowish\" }"),
            "tools/git.json:4:",
            &["tool `t`", "`low`, `medium`, `high` or `critical`"],
        ),
        (
            "canary that is no Boolean",
            meta_only(
                "{ \"gateward/mutates\": true, \"gateward/risk\": \"low\",\n\"gateward/canary\": \
                 1 }",
            ),
            "tools/git.json:4:",
            &["tool `t`", "`gateward/canary` must be `true` or `false`"],
        ),
        (
            "egress that is no Boolean",
            meta_only(
                "{ \"gateward/mutates\": false, \"gateward/risk\": \"low\",\n\"gateward/egress\": \
                 \"yes\" }",
            ),
            "tools/git.json:4:",
            &["tool `t`", "`gateward/egress` must be `true` or `false`"],
        ),
        (
            "misspelt canary",
            meta_only(
                "{ \"gateward/mutates\": true, \"gateward/risk\": \"low\",\n\"gateward/canery\": \
                 true }",
            ),
            "tools/git.json:4:",
            &["tool `t`: unknown key `\"gateward/canery\": true"],
        ),
        ("no type", property("{}"), "tools/git.json:6:", &[about_p, "missing `type`"]),
        (
            "union of types",
            property("{\n\"type\": [\"string\", \"null\"] }"),
            "tools/git.json:7:",
            &[about_p, "`type` must be the name of one type"],
        ),
        (
            "null",
            property("{ \"type\": \"null\" }"),
            "tools/git.json:6:",
            &[about_p, "no Cedar type for `\"type\": \"null\""],
        ),
        (
            "any of",
            property("{ \"anyOf\": [{ \"type\": \"string\" }, { \"type\": \"integer\" }] }"),
            "tools/git.json:6:",
            &[about_p, "keyword `anyOf` is not supported"],
        ),
        (
            "reference",
            property("{ \"$ref\": \"#/$defs/x\" }"),
            "tools/git.json:6:",
            &[about_p, "keyword `$ref` is not supported"],
        ),
        (
            "nullable",
            property("{ \"type\": \"string\", \"nullable\": true }"),
            "tools/git.json:6:",
            &[about_p, "keyword `nullable` is not supported"],
        ),
        (
            "schema that is no object",
            property("true"),
            "tools/git.json:6:",
            &[about_p, "a schema must be an object"],
        ),
        (
            "array of anything",
            property("{ \"type\": \"array\" }"),
            "tools/git.json:6:",
            &[about_p, "an array must have `items`"],
        ),
        (
            "mistake deep inside",
            property(
                "{ \"type\": \"array\", \"items\": { \"type\": \"object\", \"properties\": {\n\
                 \"q/r\": { \"type\": \"uuid\" } } } }",
            ),
            "tools/git.json:7:",
            &["tool `t`, property `p[].q/r`: there is no Cedar type for `\"type\": \"uuid\""],
        ),
        (
            "typed additional properties",
            property(
                "{ \"type\": \"object\", \"additionalProperties\": { \"type\": \"string\" } }",
            ),
            "tools/git.json:6:",
            &[about_p, "`additionalProperties` must be `true` or `false`"],
        ),
        (
            "required property that does not exist",
            tool("{ \"type\": \"object\", \"properties\": {},\n\"required\": [\"q\"] }"),
            "tools/git.json:5:",
            &["tool `t`: `required` must name a property, not `\"q\""],
        ),
        (
            "too deep types",
            property(&format!(
                "{}{{ \"type\": \"string\" }}{}",
                "{ \"type\": \"array\", \"items\": ".repeat(MAX_TYPE_DEPTH),
                " }".repeat(MAX_TYPE_DEPTH)
            )),
            "tools/git.json:6:",
            &["types can nest at most 16 levels"],
        ),
        (
            "too many properties",
            tool(&format!(
                "{{ \"type\": \"object\", \"properties\": {{ {} }} }}",
                (0..=MAX_PROPERTIES)
                    .map(|n| format!("\"p{n}\": {{ \"type\": \"string\" }}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
            "tools/git.json:4:",
            &["at most 256 properties"],
        ),
        (
            "too long property name",
            tool(&format!(
                "{{ \"type\": \"object\", \"properties\": {{ \"{}\": {{ \"type\": \"string\" }} }} }}",
                "p".repeat(MAX_FIELD_BYTES + 1)
            )),
            "tools/git.json:4:",
            &["1 to 128 bytes"],
        ),
    ];
    for (name, source, place, fragments) in cases {
        assert_refused(name, compile_tools(source), place, fragments);
    }
}

#[test]
fn a_mistake_in_the_schema_is_told_with_its_line() {
    let without_egress = SCHEMA.replace("action \"egress\"", "action \"egresses\"");
    let without_canary = SCHEMA.replace("action \"canary\"", "action \"canaries\"");
    let cases: &[(&str, String, &str, &[&str])] = &[
        (
            "syntax error",
            "entity Tenant;\nentity;\n".to_owned(),
            "schema.cedarschema:2:",
            &["unexpected token"],
        ),
        (
            "unknown type",
            format!("{SCHEMA}\nentity Extra {{ x: Strin }};"),
            "schema.cedarschema",
            &["Strin"],
        ),
        (
            "no call context",
            "entity Tenant;".to_owned(),
            "schema.cedarschema:1:",
            &["must define `type CallContext"],
        ),
        (
            "no canary group",
            without_canary,
            "schema.cedarschema:1:",
            &["must define `action \"canary\"`"],
        ),
        (
            "no egress group",
            without_egress,
            "schema.cedarschema:1:",
            &["must define `action \"egress\"`"],
        ),
        (
            "action of a described tool",
            format!(
                "{SCHEMA}\naction \"git/merge\" in [\"write\"] appliesTo {{ principal: [Agent], \
                 resource: [Server], context: CallContext }};"
            ),
            "schema.cedarschema:1:",
            &["also defines: `git/merge`"],
        ),
    ];
    for (name, schema, place, fragments) in cases {
        let result = compile(&Sources {
            schema: schema.clone(),
            velocity: String::new(),
            shield: Vec::new(),
            tools: vec![file("tools/git.json", TOOLS)],
            policies: Vec::new(),
        });
        assert_refused(name, result, place, fragments);
    }
}

fn compile_windows(windows: &str, policy: &str) -> Result<Compiled, Vec<PolicyError>> {
    compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: windows.to_owned(),
        shield: Vec::new(),
        tools: vec![file("tools/git.json", TOOLS)],
        policies: vec![file("base/x.cedar", policy)],
    })
}

#[test]
fn a_mistake_in_a_window_is_told_with_its_line() {
    let window = |fields: &str| format!("{{\n  \"w\": {{ {fields} }}\n}}");
    let cases: &[(&str, String, &str)] = &[
        ("no JSON", "{".to_owned(), "velocity.json:1:"),
        ("name", window("").replace("\"w\"", "\"W\""), "a name must be of"),
        (
            "missing field",
            window(r#""tools": ["*"], "reach": "agent""#),
            "missing field `window_s`",
        ),
        (
            "unknown field",
            window(r#""tools": ["*"], "window_s": 1, "reach": "agent", "x": 1"#),
            "unknown field `x`",
        ),
        (
            "reach",
            window(r#""tools": ["*"], "window_s": 1, "reach": "world""#),
            "unknown variant `world`",
        ),
        (
            "no tools",
            window(r#""tools": [], "window_s": 1, "reach": "agent""#),
            "`tools` must have a glob",
        ),
        (
            "glob",
            window(r#""tools": ["a b"], "window_s": 1, "reach": "agent""#),
            "each of `tools` must be a glob",
        ),
        (
            "no time",
            window(r#""tools": ["*"], "window_s": 0, "reach": "agent""#),
            "`window_s` must be from 1 to 2678400",
        ),
        (
            "long time",
            window(r#""tools": ["*"], "window_s": 2678401, "reach": "agent""#),
            "`window_s` must be from 1 to 2678400",
        ),
        (
            "key",
            window(r#""tools": ["*"], "key": ["base"], "window_s": 1, "reach": "agent""#),
            "or a JSON Pointer",
        ),
        (
            "long key",
            window(
                r#""tools": ["*"], "key": ["/a", "/b", "/c", "/d", "/e"], "window_s": 1, "reach": "agent""#,
            ),
            "at most 4 parts",
        ),
        (
            "denials by argument",
            window(
                r#""tools": ["*"], "counts": "denied", "key": ["/a"], "window_s": 1, "reach": "agent""#,
            ),
            "only calls that passed",
        ),
        (
            "denials of a tenant",
            window(r#""tools": ["x/*"], "counts": "denied", "window_s": 1, "reach": "tenant""#),
            "only calls that passed",
        ),
        (
            "sum that is no number",
            window(r#""tools": ["git/*"], "sum": "/labels", "window_s": 1, "reach": "agent""#),
            "`/labels` of the tool `git/merge` is not a number",
        ),
    ];
    let policy = "@id(\"a\") permit (principal, action, resource);";
    for (name, windows, fragment) in cases {
        assert_refused(name, compile_windows(windows, policy), "velocity.json:", &[fragment]);
    }
    // The description of this tool names all arguments.
    let closed = TOOLS.replace("\"required\"", "\"additionalProperties\": false, \"required\"");
    for (field, fragment) in [
        (r#""key": ["/to"]"#, "no argument `/to`"),
        (r#""sum": "/base/x""#, "no argument `/base/x`"),
    ] {
        let result = compile(&Sources {
            schema: SCHEMA.to_owned(),
            velocity: window(&format!(
                r#""tools": ["git/*"], {field}, "window_s": 1, "reach": "tenant""#
            )),
            shield: Vec::new(),
            tools: vec![file("tools/git.json", &closed)],
            policies: Vec::new(),
        });
        assert_refused(field, result, "velocity.json:2:", &[fragment]);
    }
    let many = |count: usize, reach: &str, key: &str| {
        let windows: Vec<String> = (0..count)
            .map(|n| format!(r#""w{n}": {{ "tools": ["*"], "key": [{key}], "window_s": 1, "reach": "{reach}" }}"#))
            .collect();
        format!("{{{}}}", windows.join(","))
    };
    for (windows, fragment) in [
        (many(65, "agent", "\"run\""), "at most 64 windows"),
        (many(9, "agent", ""), "at most 8 windows whose key is only the agent"),
        (many(9, "tenant", ""), "at most 8 windows of the reach `tenant`"),
    ] {
        assert_refused(fragment, compile_windows(&windows, policy), "velocity.json:", &[fragment]);
    }
}

#[test]
fn a_policy_can_name_only_windows_that_count_its_tool() {
    const WINDOWS: &str = r#"{
      "all": { "tools": ["*"], "window_s": 60, "reach": "agent" },
      "merges": { "tools": ["git/*"], "sum": "/amount", "window_s": 60, "reach": "tenant" },
      "mails": { "tools": ["mail/*"], "window_s": 60, "reach": "tenant" }
    }"#;
    let of = |action: &str, condition: &str| {
        let policy =
            format!("@id(\"a\") permit (principal, {action}, resource) when {{ {condition} }};");
        compile_windows(WINDOWS, &policy).is_ok()
    };
    let merge = r#"action == Action::"git/merge""#;
    let any = r#"action in Action::"write""#;
    for (action, condition, compiles) in [
        (merge, "context.velocity.all.count > 1", true),
        (any, "context.velocity.all.count > 1", true),
        (merge, r#"context.velocity.merges.sum.greaterThan(decimal("1.0"))"#, true),
        (any, "context.velocity.merges.count > 1", false),
        (any, "context.velocity has merges && context.velocity.merges.count > 1", true),
        (merge, "context.velocity.mails.count > 1", false),
        (merge, "context.velocity.unknown.count > 1", false),
        (merge, r#"context.velocity.all.sum.greaterThan(decimal("1.0"))"#, false),
    ] {
        assert_eq!(of(action, condition), compiles, "{action} {condition}");
    }
}

#[test]
fn a_window_that_does_not_exist_is_told_also_if_the_condition_tests_for_it() {
    const WINDOWS: &str = r#"{
      "all": { "tools": ["*"], "window_s": 60, "reach": "agent" },
      "mails": { "tools": ["mail/*"], "window_s": 60, "reach": "tenant" }
    }"#;
    let told = |condition: &str| -> String {
        let policy = format!(
            "@id(\"a\") @reason(\"r\") forbid (principal, action, resource)\nwhen {{ {condition} }};"
        );
        let errors = compile_windows(WINDOWS, &policy).err().unwrap_or_default();
        errors.iter().map(|error| format!("{error}\n")).collect()
    };
    for condition in [
        "context.velocity has unknown && context.velocity.unknown.count > 1",
        "(context.velocity has unknown && context.velocity.unknown.count > 1) || context.velocity.all.count > 1",
        "context.velocity has unknown",
        "!(context.velocity has unknown)",
        "context has velocity.unknown",
        "context has velocity.unknown.count && context.velocity.unknown.count > 1",
        "context.velocity has unknown.count",
        r#"context["velocity"] has "unknown""#,
        "(if context.sensitive then context.velocity else context.velocity) has unknown",
        "context.velocity.unknown.count > 1",
    ] {
        let told = told(condition);
        assert!(told.starts_with("policies/base/x.cedar:2:"), "{condition}: {told}");
        assert!(told.contains("unknown"), "{condition}: {told}");
    }
    for condition in [
        "{v: context.velocity}.v has unknown && {v: context.velocity}.v.unknown.count > 1",
        "{v: {w: context.velocity}}.v.w has unknown",
        "{v: if context.sensitive then context.velocity else context.velocity}.v has unknown",
        "{v: context}.v.velocity has unknown",
        "{v: context} has v.velocity.unknown",
    ] {
        let told = told(condition);
        assert!(told.starts_with("policies/base/x.cedar:2:"), "{condition}: {told}");
        assert!(told.contains("it hides the names of windows"), "{condition}: {told}");
    }
    for condition in [
        "context.velocity has mails && context.velocity.mails.count > 1",
        "context has velocity.mails && context.velocity.mails.count > 1",
        "context.velocity has mails.count",
        "context has velocity && context.velocity.all.count > 1",
    ] {
        assert_eq!(told(condition), "", "{condition}");
    }
}

#[test]
fn a_file_elsewhere_is_refused() {
    let policy = "@id(\"a\") permit (principal, action, resource);";
    for path in [
        "x.cedar",
        "base/X.cedar",
        "base/x.txt",
        "base/sub/x.cedar",
        "tenants/x.cedar",
        "tenants/Demo/x.cedar",
        "tenants/demo/sub/x.cedar",
        "/base/x.cedar",
        "../base/x.cedar",
    ] {
        let errors = compile(&Sources {
            schema: SCHEMA.to_owned(),
            velocity: String::new(),
            shield: Vec::new(),
            tools: Vec::new(),
            policies: vec![file(path, policy)],
        })
        .expect_err(path);
        assert!(errors[0].message.contains("policies must be at"), "{errors:?}");
    }
    for path in ["git.json", "tools/Git.json", "tools/git.yaml", "tools/sub/git.json"] {
        let errors = compile(&Sources {
            schema: SCHEMA.to_owned(),
            velocity: String::new(),
            shield: Vec::new(),
            tools: vec![file(path, TOOLS)],
            policies: Vec::new(),
        })
        .expect_err(path);
        assert!(errors[0].message.contains("tool descriptions must be at"), "{errors:?}");
    }
    let twice = vec![file("base/x.cedar", policy), file("base/x.cedar", policy)];
    let errors = compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: Vec::new(),
        policies: twice,
    })
    .expect_err("twice");
    assert!(errors[0].message.contains("given twice"), "{errors:?}");
}

#[test]
fn all_mistakes_are_told_at_once_in_order() {
    let errors = compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: vec![file("tools/git.json", TOOLS)],
        policies: vec![
            file("tenants/demo/y.cedar", "permit (principal, action, resource);"),
            file(
                "base/x.cedar",
                "@id(\"a\") @foo permit (principal, action, resource) when { context.nope };\n\
                 permit (;\n\
                 @id(\"a\") @bar forbid (principal, action == Action::\"nope\", resource);",
            ),
        ],
    })
    .expect_err("mistakes");
    let found: Vec<_> = errors.iter().map(|e| (e.file.as_str(), e.line, e.text.as_str())).collect();
    assert_eq!(
        found,
        [
            ("base/x.cedar", 1, "context.nope"),
            ("base/x.cedar", 1, "@foo"),
            ("base/x.cedar", 2, ";"),
            ("base/x.cedar", 3, "@id(\"a\")"),
            ("base/x.cedar", 3, "@bar"),
            ("base/x.cedar", 3, "Action::\"nope\""),
            ("tenants/demo/y.cedar", 1, "permit (principal, action, resource);"),
        ]
    );
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
