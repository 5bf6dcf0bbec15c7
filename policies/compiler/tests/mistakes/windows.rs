//! Mistakes in velocity windows, and in policies that name windows.

use gateward_policy_compiler::{Compiled, PolicyError, Sources, compile};

use super::{SCHEMA, TOOLS, assert_refused, file};

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
