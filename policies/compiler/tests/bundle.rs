//! What a bundle holds: ids, index, digest, types, and its two forms.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gateward_core::policy::bundle::{AnnotatedDecision, Bundle, Risk, entity_symbol, type_symbol};
use gateward_core::shield::Shield;
use gateward_policy_compiler::{
    ReadError, SourceFile, Sources, compile, compile_unvalidated, read_sources,
};

const SCHEMA: &str = include_str!("../../schema.cedarschema");

fn sources(policies: &[(&str, &str)]) -> Sources {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    Sources {
        schema: SCHEMA.to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: Vec::new(),
        policies: policies.iter().map(file).collect(),
    }
}

fn bundle(policies: &[(&str, &str)]) -> &'static Bundle {
    compile_unvalidated(&sources(policies)).unwrap().leak()
}

const ANYONE: &str = "permit (principal, action, resource);";

#[test]
fn policies_of_two_files_never_clash() {
    // Cedar would call the first policy of each of these `policy0`.
    let text = format!("@id(\"same\") {ANYONE}");
    let bundle = compile(&sources(&[
        ("tenants/demo/a.cedar", &text),
        ("base/b.cedar", &text),
        ("tenants/other/a.cedar", &text),
        ("base/a.cedar", &text),
    ]))
    .unwrap()
    .leak();
    let found: Vec<_> = bundle.policies.iter().map(|p| (p.id, p.tenant, p.text)).collect();
    assert_eq!(
        found,
        [
            ("base/a#same", None, text.as_str()),
            ("base/b#same", None, text.as_str()),
            ("tenants/demo/a#same", Some("demo"), text.as_str()),
            ("tenants/other/a#same", Some("other"), text.as_str()),
        ]
    );
}

#[test]
fn an_overlay_adds_and_disables_rules_of_the_shield_for_its_tenant_alone() {
    let rule = |id: &str, word: &str| {
        format!(
            r#"{{"id": "{id}", "category": "secret", "severity": "high", "sentence": "S.", "phrase": [["{word}"]],
                "matches": ["{word}"], "passes": ["plugh"]}}"#
        )
    };
    let file = |path: &str, text: String| SourceFile { path: path.to_owned(), text };
    let base = format!(r#"{{"rules": [{}, {}]}}"#, rule("one", "xyzzy"), rule("two", "frobozz"));
    let overlay = format!(r#"{{"rules": [{}], "disable": ["one"]}}"#, rule("mine", "grue"));
    let mut sources = sources(&[]);
    sources.shield =
        vec![file("tenants/demo/shield.json", overlay), file("shield/base.json", base)];
    let compiled = compile(&sources).unwrap();
    let digest = compiled.digest().to_owned();
    let shield = Shield::new(compiled.leak().shield);
    for (tenant, expected) in [("demo", &["two", "mine"][..]), ("other", &["one", "two"])] {
        let found = shield.matches(tenant, "xyzzy frobozz grue");
        let rules: Vec<&str> = found.iter().map(|it| it.rule).collect();
        assert_eq!(rules, expected, "{tenant}");
    }
    sources.shield.remove(0);
    assert_ne!(compile(&sources).unwrap().digest(), digest);
}

#[test]
fn annotations_are_kept_with_their_policy() {
    let bundle = bundle(&[(
        "base/x.cedar",
        r#"
        @id("a") permit (principal, action, resource);
        @id("b") @decision("quarantine") @reason("Said \"so\".")
        forbid (principal, action, resource);
        @id("c") @decision("require_approval") @approver_group("g")
        permit (principal, action, resource);
        @id("d") @decision("require_approval") @approver_group("g") @quorum("16")
        permit (principal, action, resource);
        @id("e") @decision("redact") @redact_fields("phone, email")
        permit (principal, action, resource);
        "#,
    )]);
    let found: Vec<_> = bundle
        .policies
        .iter()
        .map(|p| {
            let a = p.annotations;
            (p.forbid, a.decision, a.reason, a.approver_group, a.quorum, a.redact_fields)
        })
        .collect();
    let none: &[&str] = &[];
    assert_eq!(
        found,
        [
            (false, AnnotatedDecision::Plain, None, None, 1, none),
            (true, AnnotatedDecision::Quarantine, Some("Said \"so\"."), None, 1, none),
            (false, AnnotatedDecision::RequireApproval, None, Some("g"), 1, none),
            (false, AnnotatedDecision::RequireApproval, None, Some("g"), 16, none),
            (false, AnnotatedDecision::Redact, None, None, 1, &["email", "phone"]),
        ]
    );
}

#[test]
fn a_scope_is_indexed_by_the_entity_or_type_that_it_needs() {
    let any = String::new();
    let agent = |id: &str| entity_symbol("Agent", id);
    let action = |id: &str| entity_symbol("Action", id);
    for (scope, expected) in [
        ("principal, action, resource", vec![(any.clone(), any.clone(), any.clone())]),
        (
            r#"principal == Agent::"demo/a", action == Action::"g/t", resource is Server"#,
            vec![(agent("demo/a"), action("g/t"), type_symbol("Server"))],
        ),
        (
            r#"principal in Group::"demo/g", action in Action::"read", resource in Tenant::"demo""#,
            vec![(
                entity_symbol("Group", "demo/g"),
                action("read"),
                entity_symbol("Tenant", "demo"),
            )],
        ),
        (
            r#"principal is A::B::C, action in [Action::"x", Action::"y", Action::"x"], resource"#,
            vec![
                (type_symbol("A::B::C"), action("x"), any.clone()),
                (type_symbol("A::B::C"), action("y"), any.clone()),
            ],
        ),
        (
            r#"principal is Agent in Group::"g", action, resource is Server in Tenant::"t""#,
            vec![(entity_symbol("Group", "g"), any.clone(), entity_symbol("Tenant", "t"))],
        ),
        (
            // Ids are indexed as they are, not as they are written.
            r#"principal == Agent::"\"q\"\u{e9}\n", action, resource"#,
            vec![(agent("\"q\"é\n"), any.clone(), any.clone())],
        ),
        ("principal, action in [], resource", vec![]),
    ] {
        let policy = format!("@id(\"p\") permit ({scope});");
        for (path, tenant) in
            [("base/x.cedar", any.clone()), ("tenants/t/x.cedar", entity_symbol("Tenant", "t"))]
        {
            let bundle = bundle(&[(path, &policy)]);
            let symbol = |number: u32| match number {
                0 => String::new(),
                _ => bundle.symbols[number as usize - 1].to_owned(),
            };
            let found: BTreeSet<_> = bundle
                .index
                .iter()
                .map(|e| {
                    assert_eq!(bundle.postings[e.start as usize..e.end as usize], [0]);
                    let (p, a, r) = (symbol(e.principal), symbol(e.action), symbol(e.resource));
                    (symbol(e.tenant), (p, a, r))
                })
                .collect();
            let expected =
                expected.iter().map(|keys| (tenant.clone(), keys.clone())).collect::<BTreeSet<_>>();
            assert_eq!(found, expected, "{scope} in {path}");
        }
    }
}

#[test]
fn index_and_symbols_are_sorted_and_cover_every_policy() {
    let text: String = (0..40)
        .map(|n| {
            format!(
                "@id(\"p{n}\") permit (principal in Group::\"g{}\", action in \
                 [Action::\"a{}\", Action::\"a{}\"], resource);\n",
                n % 3,
                n % 4,
                n % 5
            )
        })
        .collect();
    let bundle = bundle(&[("base/x.cedar", &text), ("tenants/demo/x.cedar", &text)]);
    assert!(bundle.symbols.is_sorted_by(|a, b| a < b));
    assert!(bundle.policies.is_sorted_by(|a, b| a.id < b.id));
    let key = |e: &gateward_core::policy::bundle::IndexEntry| {
        (e.tenant, e.principal, e.action, e.resource)
    };
    assert!(bundle.index.is_sorted_by(|a, b| key(a) < key(b)));
    let mut next = 0;
    for entry in bundle.index {
        assert_eq!(entry.start, next, "ranges follow each other");
        assert!(entry.start < entry.end);
        let range = &bundle.postings[entry.start as usize..entry.end as usize];
        assert!(range.is_sorted_by(|a, b| a < b));
        next = entry.end;
    }
    assert_eq!(next as usize, bundle.postings.len());
    let covered: BTreeSet<u32> = bundle.postings.iter().copied().collect();
    assert_eq!(covered.len(), bundle.policies.len());
}

#[test]
fn a_json_schema_becomes_the_type_of_the_arguments() {
    let tools = r#"{ "tools": [
      { "name": "closed", "_meta": { "gateward/mutates": true, "gateward/risk": "critical" },
        "inputSchema": { "type": "object", "additionalProperties": false, "required": ["s", "n"],
          "properties": {
            "s": { "type": "string", "enum": ["a"], "description": "d" },
            "n": { "type": "number", "minimum": 0 },
            "i": { "type": "integer" },
            "b": { "type": "boolean", "default": true },
            "set": { "type": "array", "items": { "type": "array", "items": { "type": "integer" } } },
            "rec": { "type": "object", "required": ["x"],
                     "properties": { "x": { "type": "string" }, "a b": { "type": "boolean" } } }
          } } },
      { "name": "Open.v1/x", "title": "ignored", "annotations": { "readOnlyHint": true },
        "_meta": { "gateward/mutates": false, "gateward/risk": "low", "gateward/canary": true,
                   "vendor/other": 1 },
        "inputSchema": { "$schema": "https://json-schema.org/draft/2020-12/schema",
                         "type": "object" } },
      { "name": "send", "inputSchema": { "type": "object" },
        "_meta": { "gateward/mutates": false, "gateward/risk": "low", "gateward/egress": true } }
    ] }"#;
    let policies = r#"
        @id("typed") permit (principal, action == Action::"git/closed", resource)
        when {
          context.input.s == "x" && context.input.n.lessThan(decimal("1.5")) &&
          context.input has i && context.input.i < 3 && context.input has b && context.input.b &&
          context.input has set && context.input.set.contains([1]) &&
          context.input has rec.x && context.input.rec.x == "y" &&
          context.input.rec has "a b" && context.input.rec["a b"] && context.sensitive
        };
        @id("canary") forbid (principal, action == Action::"git/Open.v1/x", resource)
        when { action in Action::"canary" && action in Action::"read" };
        @id("egress") forbid (principal, action == Action::"git/send", resource)
        when { action in Action::"egress" && action in Action::"write" };
    "#;
    let compiled = compile(&Sources {
        tools: vec![SourceFile { path: "tools/git.json".to_owned(), text: tools.to_owned() }],
        ..sources(&[("base/x.cedar", policies)])
    })
    .unwrap();
    assert_eq!(compiled.warnings(), []);
    assert!(compiled.schema_text().contains("action \"git/closed\" in [Action::\"write\"]"));
    let bundle = compiled.leak();
    let found: Vec<_> = bundle
        .tools
        .iter()
        .map(|t| (t.id, t.mutates, t.egress, t.risk, t.canary, t.input.open))
        .collect();
    assert_eq!(
        found,
        [
            ("git/Open.v1/x", false, false, Risk::Low, true, true),
            ("git/closed", true, false, Risk::Critical, false, false),
            ("git/send", false, true, Risk::Low, false, true),
        ]
    );
    let fields: Vec<_> = bundle.tools[1]
        .input
        .fields
        .iter()
        .map(|f| format!("{}{} {:?}", f.name, if f.required { "" } else { "?" }, f.kind))
        .collect();
    assert_eq!(
        fields,
        [
            "b? Bool",
            "i? Long",
            "n Decimal",
            "rec? Record(RecordType { fields: [Field { name: \"a b\", required: false, \
             kind: Bool }, Field { name: \"x\", required: true, kind: String }], open: true })",
            "s String",
            "set? Set(Set(Long))",
        ]
    );
}

#[test]
fn a_policy_that_can_never_apply_is_a_warning() {
    let compiled = compile(&sources(&[(
        "base/x.cedar",
        "@id(\"a\")\npermit (principal, action, resource)\nwhen { resource is Agent };",
    )]))
    .unwrap();
    let [warning] = compiled.warnings() else { panic!("{:?}", compiled.warnings()) };
    assert_eq!((warning.file.as_str(), warning.line), ("base/x.cedar", 1));
    assert!(warning.message.contains("impossible"), "{warning}");
}

#[test]
fn the_digest_changes_with_what_decides_and_with_nothing_else() {
    let tool = |name: &str| SourceFile {
        path: "tools/git.json".to_owned(),
        text: format!(
            r#"{{ "tools": [{{ "name": "{name}", "inputSchema": {{ "type": "object" }},
               "_meta": {{ "gateward/mutates": true, "gateward/risk": "low" }} }}] }}"#
        ),
    };
    let digest = |sources: &Sources| compile(sources).unwrap().digest().to_owned();
    let text = format!("@id(\"a\") {ANYONE}");
    let base = sources(&[("base/x.cedar", &text), ("base/y.cedar", &text)]);
    let expected = digest(&base);
    assert_eq!(expected.len(), 64);

    let reordered = sources(&[("base/y.cedar", &text), ("base/x.cedar", &text)]);
    assert_eq!(digest(&reordered), expected, "files in another order");
    let commented =
        sources(&[("base/x.cedar", &format!("// new;\n{text}")), ("base/y.cedar", &text)]);
    assert_eq!(digest(&commented), expected, "a comment between policies");

    let forbid = text.replace("permit", "forbid");
    let other_id = text.replace("\"a\"", "\"b\"");
    let mut seen = BTreeSet::from([expected]);
    for (name, changed) in [
        ("text", sources(&[("base/x.cedar", &forbid), ("base/y.cedar", &text)])),
        ("id", sources(&[("base/x.cedar", &other_id), ("base/y.cedar", &text)])),
        ("file", sources(&[("base/x.cedar", &text), ("base/z.cedar", &text)])),
        ("tenant", sources(&[("base/x.cedar", &text), ("tenants/t/y.cedar", &text)])),
        ("fewer", sources(&[("base/x.cedar", &text)])),
        ("schema", Sources { schema: format!("{SCHEMA}\nentity Extra;"), ..base.clone() }),
        ("windows", Sources { velocity: "{}".to_owned(), ..base.clone() }),
        ("tool", Sources { tools: vec![tool("a")], ..base.clone() }),
        ("another tool", Sources { tools: vec![tool("b")], ..base }),
    ] {
        assert!(seen.insert(digest(&changed)), "{name}");
    }
}

#[test]
fn the_digest_of_known_sources_is_unchanged() {
    let known = Sources {
        schema: "s".to_owned(),
        velocity: String::new(),
        shield: Vec::new(),
        tools: Vec::new(),
        policies: vec![SourceFile {
            path: "base/x.cedar".to_owned(),
            text: "@id(\"a\") permit (principal, action, resource);".to_owned(),
        }],
    };
    // Receipts carry the digest: what it is taken over must not change unseen. Computed with
    // Python's hashlib over the parts that `digest` documents.
    assert_eq!(
        compile_unvalidated(&known).unwrap().digest(),
        "db9eb2c2bf9236d679b24e60ce8c32367c85d10832f0641f22bbfdd017da81cf"
    );
}

#[test]
fn the_rendered_bundle_is_the_one_in_memory() {
    let read = || read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let rendered = compile(&read()).unwrap().render();
    // As Rust's `Debug` shows it, without the paths, references and trailing commas that source
    // needs; texts are the same in both.
    let source = rendered
        .strip_prefix("pub static BUNDLE: ::gateward_core::policy::bundle::Bundle = ")
        .and_then(|source| source.strip_suffix(";\n"))
        .unwrap();
    let mut plain = source.to_owned();
    for (written, shown) in [
        ("::gateward_core::policy::bundle::AnnotatedDecision::", ""),
        ("::gateward_core::policy::bundle::ArgumentType::", ""),
        ("::gateward_core::policy::bundle::Risk::", ""),
        ("::gateward_core::policy::bundle::", ""),
        ("::gateward_core::shield::rule::Detector::", ""),
        ("::gateward_core::shield::rule::Alphabet::", ""),
        ("::gateward_core::shield::rule::Check::", ""),
        ("::gateward_core::shield::rule::Test::", ""),
        ("::gateward_core::shield::rule::", ""),
        ("::gateward_core::shield::Category::", ""),
        ("::gateward_core::shield::Severity::", ""),
        ("::gateward_core::shield::", ""),
        ("::gateward_core::velocity::Counts::", ""),
        ("::gateward_core::velocity::KeyPart::", ""),
        ("::gateward_core::velocity::Reach::", ""),
        ("::gateward_core::velocity::", ""),
        ("&[", "["),
        ("Set(&", "Set("),
        (",\n", ", "),
        ("{\n", "{ "),
        ("[\n", "["),
        (", ]", "]"),
        (", }", " }"),
    ] {
        plain = plain.replace(written, shown);
    }
    assert_eq!(plain, format!("{:?}", compile(&read()).unwrap().leak()));
}

#[test]
fn sources_are_read_in_order_and_nothing_else_is_left_beside_them() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("read_sources");
    let write = |path: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text").unwrap();
    };
    let reset = || {
        let _ = fs::remove_dir_all(&dir);
        for path in [
            "Cargo.toml",
            "base/b.cedar",
            "base/a.cedar",
            "cases/x.json",
            "compiler/src/lib.rs",
            "schema.cedarschema",
            "src/lib.rs",
            "tenants/demo/a.cedar",
            "tenants/acme/b.cedar",
            "tools/git.json",
        ] {
            write(path);
        }
    };
    reset();
    let sources = read_sources(&dir).unwrap();
    let paths = |files: &[SourceFile]| files.iter().map(|f| f.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&sources.tools), ["tools/git.json"]);
    assert_eq!(
        paths(&sources.policies),
        ["base/a.cedar", "base/b.cedar", "tenants/acme/b.cedar", "tenants/demo/a.cedar"]
    );
    assert_eq!(sources.schema, "text");

    for unexpected in [
        "extra.cedar",
        "other.cedarschema",
        "overlays/x.cedar",
        "base/x.txt",
        "base/.x.cedar.swp",
        "base/sub/x.cedar",
        "tenants/x.cedar",
        "tenants/demo/x.json",
        "tenants/demo/sub/x.cedar",
        "tools/x.cedar",
        "tools/sub/x.json",
    ] {
        reset();
        write(unexpected);
        let error = read_sources(&dir).expect_err(unexpected);
        assert!(matches!(error, ReadError::Unexpected { .. }), "{unexpected}: {error}");
    }
    reset();
    fs::write(dir.join("base/a.cedar"), b"\xff").unwrap();
    assert!(matches!(read_sources(&dir), Err(ReadError::Io { .. })));
    fs::remove_file(dir.join("schema.cedarschema")).unwrap();
    assert!(matches!(read_sources(&dir), Err(ReadError::Io { .. })));
}
