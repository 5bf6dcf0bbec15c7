//! Mistakes in descriptions of tools.

use gateward_policy_compiler::bounds::{MAX_FIELD_BYTES, MAX_PROPERTIES, MAX_TYPE_DEPTH};
use gateward_policy_compiler::{Compiled, PolicyError, Sources, compile};

use super::{SCHEMA, assert_refused, file};

fn compile_tools(text: &str) -> Result<Compiled, Vec<PolicyError>> {
    compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: vec![file("tools/git.json", text)],
        policies: Vec::new(),
    })
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
