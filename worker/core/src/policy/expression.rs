//! A policy's expressions as the build ships them: bytes that become Cedar's own expressions without
//! parsing text.
//!
//! [`encode`] runs in the build and [`decode`] in the worker. The bytes are [`VERSION`], then a
//! postcard `Encoded`: the scope's three constraints and the condition. The bundle's digest covers
//! them, and tests pin them and show that each expression comes back as it was.
//!
//! This module also owns how names of entity types and functions are made. Cedar's own ways parse
//! them, and its parser is not in the Wasm (docs/decisions/0034-policy-parser.md).

use std::sync::Arc;

use cedar_policy_core::ast::{
    BinaryOp, Eid, EntityUID, Expr, ExprBuilder, ExprKind, Id, InternalName, Literal, Name,
    PatternElem, Policy, UnaryOp, Var,
};
use cedar_policy_core::expr_builder::ExprBuilder as _;
use cedar_policy_core::parser::{Node, cst};
use serde::{Deserialize, Serialize};

/// The first byte. A change of what follows takes another one.
const VERSION: u8 = 1;

/// What a policy is evaluated by.
#[derive(Debug, PartialEq, Eq)]
pub struct Expressions {
    /// Of principal, action and resource.
    pub scope: [Expr; 3],
    /// What must be true besides; `None` when nothing must.
    pub condition: Option<Expr>,
}

/// An expression that no static policy has, such as a template's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotEncodable;

/// The bytes are not what [`encode`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDecodable;

#[derive(Serialize, Deserialize)]
struct Encoded<'a> {
    #[serde(borrow)]
    scope: [Form<'a>; 3],
    #[serde(borrow)]
    condition: Option<Form<'a>>,
}

/// An expression. Postcard numbers the variants in this order: add new ones at the end.
#[derive(Serialize, Deserialize)]
enum Form<'a> {
    Bool(bool),
    Long(i64),
    String(&'a str),
    /// The type and the id.
    Entity(#[serde(borrow)] Path<'a>, &'a str),
    /// A position in [`VARIABLES`].
    Variable(u8),
    If(#[serde(borrow)] Box<[Form<'a>; 3]>),
    And(#[serde(borrow)] Box<[Form<'a>; 2]>),
    Or(#[serde(borrow)] Box<[Form<'a>; 2]>),
    /// A position in [`UNARY`].
    Unary(u8, #[serde(borrow)] Box<Form<'a>>),
    /// A position in [`BINARY`].
    Binary(u8, #[serde(borrow)] Box<[Form<'a>; 2]>),
    Call(#[serde(borrow)] Path<'a>, #[serde(borrow)] Vec<Form<'a>>),
    Attribute(#[serde(borrow)] Box<Form<'a>>, &'a str),
    Has(#[serde(borrow)] Box<Form<'a>>, &'a str),
    /// Each attribute in the one before it; there is at least one.
    HasPath(#[serde(borrow)] Box<Form<'a>>, #[serde(borrow)] Vec<&'a str>),
    /// `None` is the wildcard.
    Like(#[serde(borrow)] Box<Form<'a>>, Vec<Option<char>>),
    Is(#[serde(borrow)] Box<Form<'a>>, #[serde(borrow)] Path<'a>),
    Set(#[serde(borrow)] Vec<Form<'a>>),
    Record(#[serde(borrow)] Vec<(&'a str, Form<'a>)>),
}

/// A name's namespaces, and last the name itself.
type Path<'a> = Vec<&'a str>;

const VARIABLES: [Var; 4] = [Var::Principal, Var::Action, Var::Resource, Var::Context];

const UNARY: [UnaryOp; 3] = [UnaryOp::Not, UnaryOp::Neg, UnaryOp::IsEmpty];

const BINARY: [BinaryOp; 12] = [
    BinaryOp::Eq,
    BinaryOp::Less,
    BinaryOp::LessEq,
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::In,
    BinaryOp::Contains,
    BinaryOp::ContainsAll,
    BinaryOp::ContainsAny,
    BinaryOp::GetTag,
    BinaryOp::HasTag,
];

/// The policy's expressions as bytes.
///
/// # Errors
///
/// [`NotEncodable`], which no static policy that Cedar parsed causes.
pub fn encode(policy: &Policy) -> Result<Vec<u8>, NotEncodable> {
    let scope = [
        policy.principal_constraint().as_expr(),
        policy.action_constraint().as_expr(),
        policy.resource_constraint().as_expr(),
    ];
    encode_expressions(&scope, policy.non_scope_constraints())
}

fn encode_expressions(
    scope: &[Expr; 3],
    condition: Option<&Expr>,
) -> Result<Vec<u8>, NotEncodable> {
    let [principal, action, resource] = scope;
    let encoded = Encoded {
        scope: [form(principal)?, form(action)?, form(resource)?],
        condition: condition.map(form).transpose()?,
    };
    postcard::to_extend(&encoded, vec![VERSION]).map_err(|_| NotEncodable)
}

/// The expressions that `bytes` encode.
///
/// # Errors
///
/// [`NotDecodable`].
pub fn decode(bytes: &[u8]) -> Result<Expressions, NotDecodable> {
    let Some((&VERSION, encoded)) = bytes.split_first() else { return Err(NotDecodable) };
    let (encoded, rest) = postcard::take_from_bytes(encoded).map_err(|_| NotDecodable)?;
    if !rest.is_empty() {
        return Err(NotDecodable);
    }
    let Encoded { scope: [principal, action, resource], condition } = encoded;
    Ok(Expressions {
        scope: [expr(principal)?, expr(action)?, expr(resource)?],
        condition: condition.map(expr).transpose()?,
    })
}

/// The name of an entity type or a function, without a namespace.
#[expect(clippy::expect_used, reason = "a constant identifier, which is one or fails every test")]
pub(crate) fn name(text: &'static str) -> Name {
    named(&[text]).expect("an identifier")
}

fn form(expr: &Expr) -> Result<Form<'_>, NotEncodable> {
    let boxed = |expr| form(expr).map(Box::new);
    let pair = |left, right| Ok(Box::new([form(left)?, form(right)?]));
    Ok(match expr.expr_kind() {
        ExprKind::Lit(Literal::Bool(value)) => Form::Bool(*value),
        ExprKind::Lit(Literal::Long(value)) => Form::Long(*value),
        ExprKind::Lit(Literal::String(value)) => Form::String(value),
        ExprKind::Lit(Literal::EntityUID(uid)) => {
            Form::Entity(path(uid.entity_type().name()), uid.eid().as_ref())
        }
        ExprKind::Var(variable) => Form::Variable(position(&VARIABLES, variable)?),
        ExprKind::If { test_expr, then_expr, else_expr } => {
            Form::If(Box::new([form(test_expr)?, form(then_expr)?, form(else_expr)?]))
        }
        ExprKind::And { left, right } => Form::And(pair(left, right)?),
        ExprKind::Or { left, right } => Form::Or(pair(left, right)?),
        ExprKind::UnaryApp { op, arg } => Form::Unary(position(&UNARY, op)?, boxed(arg)?),
        ExprKind::BinaryApp { op, arg1, arg2 } => {
            Form::Binary(position(&BINARY, op)?, pair(arg1, arg2)?)
        }
        ExprKind::ExtensionFunctionApp { fn_name, args } => Form::Call(path(fn_name), forms(args)?),
        ExprKind::GetAttr { expr, attr } => Form::Attribute(boxed(expr)?, attr),
        ExprKind::HasAttr { expr, attr } => Form::Has(boxed(expr)?, attr),
        ExprKind::ExtHasAttr { expr, attrs } => {
            Form::HasPath(boxed(expr)?, attrs.iter().map(|attr| attr.as_str()).collect())
        }
        ExprKind::Like { expr, pattern } => {
            let element = |element: &PatternElem| match element {
                PatternElem::Char(char) => Some(*char),
                PatternElem::Wildcard => None,
            };
            Form::Like(boxed(expr)?, pattern.iter().map(element).collect())
        }
        ExprKind::Is { expr, entity_type } => Form::Is(boxed(expr)?, path(entity_type.name())),
        ExprKind::Set(items) => Form::Set(forms(items)?),
        ExprKind::Record(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.as_str(), form(value)?)));
            Form::Record(fields.collect::<Result<_, _>>()?)
        }
        _ => return Err(NotEncodable),
    })
}

fn forms(exprs: &[Expr]) -> Result<Vec<Form<'_>>, NotEncodable> {
    exprs.iter().map(form).collect()
}

fn path(name: &Name) -> Path<'_> {
    let name = name.as_ref();
    name.namespace_components().chain([name.basename()]).map(AsRef::as_ref).collect()
}

fn position<T: PartialEq>(all: &[T], one: &T) -> Result<u8, NotEncodable> {
    let at = all.iter().position(|other| other == one);
    at.and_then(|at| u8::try_from(at).ok()).ok_or(NotEncodable)
}

fn expr(form: Form<'_>) -> Result<Expr, NotDecodable> {
    let shared = |form: Form<'_>| expr(form).map(Arc::new);
    let all = |forms: Vec<Form<'_>>| forms.into_iter().map(expr).collect::<Result<Vec<_>, _>>();
    let kind = match form {
        Form::Bool(value) => ExprKind::Lit(Literal::Bool(value)),
        Form::Long(value) => ExprKind::Lit(Literal::Long(value)),
        Form::String(value) => ExprKind::Lit(Literal::String(value.into())),
        Form::Entity(path, id) => {
            let uid = EntityUID::from_components(named(&path)?.into(), Eid::new(id), None);
            ExprKind::Lit(Literal::EntityUID(Arc::new(uid)))
        }
        Form::Variable(at) => ExprKind::Var(at_position(&VARIABLES, at)?),
        Form::If(parts) => {
            let [test_expr, then_expr, else_expr] = *parts;
            let (test_expr, then_expr) = (shared(test_expr)?, shared(then_expr)?);
            ExprKind::If { test_expr, then_expr, else_expr: shared(else_expr)? }
        }
        Form::And(parts) => {
            let [left, right] = *parts;
            ExprKind::And { left: shared(left)?, right: shared(right)? }
        }
        Form::Or(parts) => {
            let [left, right] = *parts;
            ExprKind::Or { left: shared(left)?, right: shared(right)? }
        }
        Form::Unary(op, arg) => {
            ExprKind::UnaryApp { op: at_position(&UNARY, op)?, arg: shared(*arg)? }
        }
        Form::Binary(op, parts) => {
            let (op, [arg1, arg2]) = (at_position(&BINARY, op)?, *parts);
            ExprKind::BinaryApp { op, arg1: shared(arg1)?, arg2: shared(arg2)? }
        }
        Form::Call(path, args) => {
            let (fn_name, args) = (named(&path)?, Arc::new(all(args)?));
            ExprKind::ExtensionFunctionApp { fn_name, args }
        }
        Form::Attribute(expr, attr) => {
            ExprKind::GetAttr { expr: shared(*expr)?, attr: attr.into() }
        }
        Form::Has(expr, attr) => ExprKind::HasAttr { expr: shared(*expr)?, attr: attr.into() },
        Form::HasPath(expr, attrs) => {
            let (first, others) = attrs.split_first().ok_or(NotDecodable)?;
            let others = others.iter().map(|attr| (*attr).into()).collect();
            ExprKind::ExtHasAttr { expr: shared(*expr)?, attrs: ((*first).into(), others).into() }
        }
        Form::Like(expr, pattern) => {
            let element =
                |element: Option<char>| element.map_or(PatternElem::Wildcard, PatternElem::Char);
            let pattern = pattern.into_iter().map(element).collect();
            ExprKind::Like { expr: shared(*expr)?, pattern }
        }
        Form::Is(expr, path) => {
            ExprKind::Is { expr: shared(*expr)?, entity_type: named(&path)?.into() }
        }
        Form::Set(items) => ExprKind::Set(Arc::new(all(items)?)),
        Form::Record(fields) => {
            let field = |(name, value): (&str, _)| Ok((name.into(), expr(value)?));
            let fields: Result<_, _> = fields.into_iter().map(field).collect();
            ExprKind::Record(Arc::new(fields?))
        }
    };
    Ok(ExprBuilder::new().with_expr_kind(kind))
}

fn at_position<T: Copy>(all: &[T], at: u8) -> Result<T, NotDecodable> {
    all.get(usize::from(at)).copied().ok_or(NotDecodable)
}

fn named(path: &[&str]) -> Result<Name, NotDecodable> {
    let (base, namespaces) = path.split_last().ok_or(NotDecodable)?;
    let namespaces: Result<Vec<Id>, _> = namespaces.iter().map(|part| identifier(part)).collect();
    InternalName::new(identifier(base)?, namespaces?, None).try_into().map_err(|_| NotDecodable)
}

/// An identifier of Cedar, as its parser would make it of a word. Only `Id`'s other constructors parse.
fn identifier(text: &str) -> Result<Id, NotDecodable> {
    Node::new(Some(cst::Ident::Ident(text.into()))).to_valid_ident().map_err(|_| NotDecodable)
}

#[cfg(test)]
mod tests {
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
            ("permit (principal, action, resource);", "0100010001000100"),
            (
                r#"permit (principal == A::"i", action in [Action::"r"], resource is S in T::"t");"#,
                "0109000400030101410169090604011001030106416374696f6e0172060f04020101530906040203010154017400",
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
            ("if true then 1 else 2", "05000101020104"),
            ("principal && action", "0604000401"),
            ("principal || action", "0704000401"),
            ("!context", "08000403"),
            ("-context", "08010403"),
            ("context.isEmpty()", "08020403"),
            ("1 == 2", "090001020104"),
            ("1 < 2", "090101020104"),
            ("1 <= 2", "090201020104"),
            ("1 + 2", "090301020104"),
            ("1 - 2", "090401020104"),
            ("1 * 2", "090501020104"),
            ("1 in 2", "090601020104"),
            ("context.contains(1)", "090704030102"),
            ("context.containsAll(1)", "090804030102"),
            ("context.containsAny(1)", "090904030102"),
            ("context.getTag(1)", "090a04030102"),
            ("context.hasTag(1)", "090b04030102"),
            (r#"decimal("1.0")"#, "0a0107646563696d616c010203312e30"),
            ("context.a", "0b04030161"),
            ("context has a", "0c04030161"),
            ("context has a.b", "0d04030201610162"),
            (r#"context like "a*""#, "0e04030201016100"),
            ("context is N::A", "0f040302014e0141"),
            ("[1, 2]", "100201020104"),
            ("{b: 1, a: 2}", "11020161010401620102"),
        ] {
            let text = format!("permit (principal, action, resource) when {{ {condition} }};");
            let encoded = hex::encode(encode(&parsed(&text)).unwrap());
            // After the scope, and that there is a condition.
            assert_eq!(encoded.strip_prefix("0100010001000101"), Some(expected), "{condition}");
        }
    }

    #[test]
    fn a_template_is_not_encoded() {
        let slot = ExprBuilder::new().slot(cedar_policy_core::ast::SlotId::principal());
        assert!(matches!(form(&slot), Err(NotEncodable)));
    }

    #[test]
    fn bytes_that_are_cut_short_or_of_another_version_are_refused() {
        let condition =
            r#"context has a.b && N::A::"i" in [principal] || decimal("1.0") == {c: 1}"#;
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
                (one.clone(), text.clone())
                    .prop_map(|(expr, attr)| ExprKind::GetAttr { expr, attr }),
                (one.clone(), text.clone())
                    .prop_map(|(expr, attr)| ExprKind::HasAttr { expr, attr }),
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
}
