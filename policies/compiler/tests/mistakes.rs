//! Every mistake in a source is refused, and reported with its file, line and text.

#[path = "mistakes/policies.rs"]
mod policies;
#[path = "mistakes/tools.rs"]
mod tools;
#[path = "mistakes/windows.rs"]
mod windows;

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
