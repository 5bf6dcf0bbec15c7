//! The bytes of each form, pinned, and that expressions come back as they were.

use cedar_policy_core::ast::PolicyID;
use cedar_policy_core::parser::parse_policy;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn parsed(text: &str) -> Policy {
    parse_policy(Some(PolicyID::from_string("p")), text).unwrap().into()
}

/// The bundle's digest covers these bytes, and receipts carry it. A new encoding needs a new version.
#[test]
fn each_form_is_encoded_as_it_always_was() {
    for (policy, expected) in [
        ("permit (principal, action, resource);", "0103000100010001"),
        (
            r#"permit (principal == A::"i", action in [Action::"r"], resource is S in T::"t");"#,
            "010d040003010141016909000401030106416374696f6e01721001090604020f0101530402030101540174090606",
        ),
    ] {
        let encoded = encode(&parsed(policy)).unwrap();
        assert_eq!(hex::encode(encoded), expected, "{policy}");
    }
    for (condition, expected) in [
        ("true", "0001"),
        ("-5", "0109"),
        ("300", "01d804"),
        (r#""é""#, "0202c3a9"),
        (r#"N::M::A::"i""#, "0303014e014d01410169"),
        ("principal", "0400"),
        ("action", "0401"),
        ("resource", "0402"),
        ("context", "0403"),
        ("if true then 1 else 2", "00010102010405"),
        ("principal && action", "0400040106"),
        ("principal || action", "0400040107"),
        ("!context", "04030800"),
        ("-context", "04030801"),
        ("context.isEmpty()", "04030802"),
        ("1 == 2", "010201040900"),
        ("1 < 2", "010201040901"),
        ("1 <= 2", "010201040902"),
        ("1 + 2", "010201040903"),
        ("1 - 2", "010201040904"),
        ("1 * 2", "010201040905"),
        ("1 in 2", "010201040906"),
        ("context.contains(1)", "040301020907"),
        ("context.containsAll(1)", "040301020908"),
        ("context.containsAny(1)", "040301020909"),
        ("context.getTag(1)", "04030102090a"),
        ("context.hasTag(1)", "04030102090b"),
        (r#"decimal("1.0")"#, "0203312e300a0107646563696d616c01"),
        ("context.a", "04030b0161"),
        ("context has a", "04030c0161"),
        ("context has a.b", "04030d0201610162"),
        (r#"context like "a*""#, "04030e0201016100"),
        ("context is N::A", "04030f02014e0141"),
        ("[1, 2]", "010201041002"),
        ("{b: 1, a: 2}", "01040102110201610162"),
    ] {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        let encoded = hex::encode(encode(&parsed(&text)).unwrap());
        // The version, the number of steps, and the three of the scope come first.
        assert_eq!(encoded.get(4..), Some(&*["000100010001", expected].concat()), "{condition}");
    }
}

#[test]
fn a_template_is_not_encoded() {
    let slot = ExprBuilder::new().slot(cedar_policy_core::ast::SlotId::principal());
    assert_eq!(add_steps(&slot, &mut Vec::new()), Err(NotEncodable));
}

#[test]
fn bytes_that_are_cut_short_or_of_another_version_are_refused() {
    let condition = r#"context has a.b && N::A::"i" in [principal] || decimal("1.0") == {c: 1}"#;
    let text = format!("permit (principal, action, resource) when {{ {condition} }};");
    let whole = encode(&parsed(&text)).unwrap();
    assert!(decode(&whole).is_ok());
    for length in 0..whole.len() {
        assert_eq!(decode(&whole[..length]), Err(NotDecodable), "{length}");
    }
    assert_eq!(decode(&[whole.as_slice(), &[0]].concat()), Err(NotDecodable), "longer");
    assert_eq!(decode(&[&[VERSION + 1], &whole[1..]].concat()), Err(NotDecodable), "version");
}

fn any_name() -> impl Strategy<Value = Name> {
    let names = select(vec!["A", "Group", "decimal", "_x1"]);
    vec(names, 1..4).prop_map(|path| named(&path).unwrap())
}

fn any_kind() -> impl Strategy<Value = Expr> {
    let expr = |kind| ExprBuilder::new().with_expr_kind(kind);
    let leaf = prop_oneof![
        any::<bool>().prop_map(|it| ExprKind::Lit(it.into())),
        any::<i64>().prop_map(|it| ExprKind::Lit(it.into())),
        any::<String>().prop_map(|it| ExprKind::Lit(it.into())),
        (any_name(), any::<String>()).prop_map(|(name, id)| {
            ExprKind::Lit(EntityUID::from_components(name.into(), Eid::new(id), None).into())
        }),
        select(VARIABLES.to_vec()).prop_map(ExprKind::Var),
    ];
    leaf.prop_map(expr).prop_recursive(6, 64, 4, move |inner| {
        let one = inner.clone().prop_map(Arc::new).boxed();
        let some = vec(inner.clone(), 0..4).prop_map(Arc::new).boxed();
        let text = any::<String>().prop_map(Into::into).boxed();
        let two = (one.clone(), one.clone());
        prop_oneof![
            (one.clone(), one.clone(), one.clone()).prop_map(
                |(test_expr, then_expr, else_expr)| ExprKind::If {
                    test_expr,
                    then_expr,
                    else_expr
                }
            ),
            two.clone().prop_map(|(left, right)| ExprKind::And { left, right }),
            two.clone().prop_map(|(left, right)| ExprKind::Or { left, right }),
            (select(UNARY.to_vec()), one.clone())
                .prop_map(|(op, arg)| ExprKind::UnaryApp { op, arg }),
            (select(BINARY.to_vec()), two).prop_map(|(op, (arg1, arg2))| ExprKind::BinaryApp {
                op,
                arg1,
                arg2
            }),
            (any_name(), some.clone())
                .prop_map(|(fn_name, args)| ExprKind::ExtensionFunctionApp { fn_name, args }),
            (one.clone(), text.clone()).prop_map(|(expr, attr)| ExprKind::GetAttr { expr, attr }),
            (one.clone(), text.clone()).prop_map(|(expr, attr)| ExprKind::HasAttr { expr, attr }),
            (one.clone(), text.clone(), vec(text.clone(), 0..3)).prop_map(
                |(expr, first, others)| ExprKind::ExtHasAttr {
                    expr,
                    attrs: (first, others).into()
                }
            ),
            (one.clone(), vec(option::of(any::<char>()), 0..6)).prop_map(|(expr, pattern)| {
                let element =
                    |it: Option<char>| it.map_or(PatternElem::Wildcard, PatternElem::Char);
                ExprKind::Like { expr, pattern: pattern.into_iter().map(element).collect() }
            }),
            (one, any_name())
                .prop_map(|(expr, name)| ExprKind::Is { expr, entity_type: name.into() }),
            some.prop_map(ExprKind::Set),
            btree_map(text, inner, 0..4).prop_map(|fields| ExprKind::Record(fields.into())),
        ]
        .prop_map(expr)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_expression_comes_back_as_it_was(
        scope in [any_kind(), any_kind(), any_kind()],
        condition in option::of(any_kind()),
    ) {
        let encoded = encode_expressions(&scope, condition.as_ref()).unwrap();
        prop_assert_eq!(decode(&encoded), Ok(Expressions { scope, condition }));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&[&[VERSION], bytes.as_slice()].concat());
    }
}
