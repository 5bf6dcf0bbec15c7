//! A policy's expressions as the build ships them: bytes that become Cedar's own expressions without
//! parsing text.
//!
//! [`encode`] runs in the build and [`decode`] in the worker. The bytes are [`VERSION`], then a list of
//! [`Step`]s in postcard, which build the expressions on a stack: a step takes its operands from the
//! stack and puts its result there. At the end the stack has the scope's three constraints and, if
//! there is one, the condition. So decoding does not recurse. The bundle's digest covers the bytes, and
//! tests pin them and show that each expression comes back as it was.
//!
//! This module also owns how names of entity types and functions are made. Cedar's own ways parse
//! them, and its parser is not in the Wasm (docs/decisions/0034-policy-parser.md).

use std::sync::Arc;

use cedar_policy_core::ast::{
    BinaryOp, Eid, EntityType, EntityUID, Expr, ExprBuilder, ExprKind, Id, InternalName, Literal,
    Name, PatternElem, Policy, UnaryOp, Var,
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
    /// The condition. `None` if there is none.
    pub condition: Option<Expr>,
}

/// An expression that no static policy has, such as a template's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotEncodable;

/// The bytes are not what [`encode`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDecodable;

/// Makes one expression. Postcard numbers the variants in this order: add new ones at the end.
#[derive(Serialize, Deserialize)]
enum Step<'a> {
    Bool(bool),
    Long(i64),
    String(&'a str),
    /// The type and the id.
    Entity(#[serde(borrow)] Path<'a>, &'a str),
    /// A position in [`VARIABLES`].
    Variable(u8),
    /// Of a test and two branches.
    If,
    /// Of two operands, as `Or` is.
    And,
    Or,
    /// A position in [`UNARY`]; of one operand.
    Unary(u8),
    /// A position in [`BINARY`]; of two operands.
    Binary(u8),
    /// The function; of so many arguments.
    Call(#[serde(borrow)] Path<'a>, usize),
    /// Of one operand, as those up to `Is` are.
    Attribute(&'a str),
    Has(&'a str),
    /// Each attribute in the one before it; there is at least one.
    HasPath(#[serde(borrow)] Vec<&'a str>),
    /// `None` is the wildcard.
    Like(Vec<Option<char>>),
    Is(#[serde(borrow)] Path<'a>),
    /// Of so many elements.
    Set(usize),
    /// Of one value for each name.
    Record(#[serde(borrow)] Vec<&'a str>),
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
    let mut steps = Vec::new();
    for expr in scope.iter().chain(condition) {
        add_steps(expr, &mut steps)?;
    }
    postcard::to_extend(&steps, vec![VERSION]).map_err(|_| NotEncodable)
}

/// The expressions that `bytes` encode.
///
/// # Errors
///
/// [`NotDecodable`].
pub fn decode(bytes: &[u8]) -> Result<Expressions, NotDecodable> {
    let Some((&VERSION, encoded)) = bytes.split_first() else { return Err(NotDecodable) };
    let (steps, rest) =
        postcard::take_from_bytes::<Vec<Step<'_>>>(encoded).map_err(|_| NotDecodable)?;
    if !rest.is_empty() {
        return Err(NotDecodable);
    }
    let mut stack = Stack(Vec::new());
    for step in steps {
        let kind = stack.apply(step)?;
        stack.0.push(ExprBuilder::new().with_expr_kind(kind));
    }
    let condition = if stack.0.len() > 3 { stack.0.pop() } else { None };
    let scope = stack.0.try_into().map_err(|_| NotDecodable)?;
    Ok(Expressions { scope, condition })
}

/// The name of an entity type or a function, without a namespace.
#[expect(clippy::expect_used, reason = "a constant identifier, which is one or fails every test")]
pub(crate) fn name(text: &'static str) -> Name {
    named(&[text]).expect("an identifier")
}

/// Adds the steps that make `expr`: those of its operands in order, then its own. This recurses, in the
/// build.
fn add_steps<'a>(expr: &'a Expr, steps: &mut Vec<Step<'a>>) -> Result<(), NotEncodable> {
    let mut operands =
        |operands: &[&'a Expr]| operands.iter().try_for_each(|operand| add_steps(operand, steps));
    let step = match expr.expr_kind() {
        ExprKind::Lit(Literal::Bool(value)) => Step::Bool(*value),
        ExprKind::Lit(Literal::Long(value)) => Step::Long(*value),
        ExprKind::Lit(Literal::String(value)) => Step::String(value),
        ExprKind::Lit(Literal::EntityUID(uid)) => {
            Step::Entity(path(uid.entity_type().name()), uid.eid().as_ref())
        }
        ExprKind::Var(variable) => Step::Variable(position(&VARIABLES, variable)?),
        ExprKind::If { test_expr, then_expr, else_expr } => {
            operands(&[test_expr, then_expr, else_expr])?;
            Step::If
        }
        ExprKind::And { left, right } => {
            operands(&[left, right])?;
            Step::And
        }
        ExprKind::Or { left, right } => {
            operands(&[left, right])?;
            Step::Or
        }
        ExprKind::UnaryApp { op, arg } => {
            operands(&[arg])?;
            Step::Unary(position(&UNARY, op)?)
        }
        ExprKind::BinaryApp { op, arg1, arg2 } => {
            operands(&[arg1, arg2])?;
            Step::Binary(position(&BINARY, op)?)
        }
        ExprKind::ExtensionFunctionApp { fn_name, args } => {
            operands(&args.iter().collect::<Vec<_>>())?;
            Step::Call(path(fn_name), args.len())
        }
        ExprKind::GetAttr { expr, attr } => {
            operands(&[expr])?;
            Step::Attribute(attr)
        }
        ExprKind::HasAttr { expr, attr } => {
            operands(&[expr])?;
            Step::Has(attr)
        }
        ExprKind::ExtHasAttr { expr, attrs } => {
            operands(&[expr])?;
            Step::HasPath(attrs.iter().map(|attr| attr.as_str()).collect())
        }
        ExprKind::Like { expr, pattern } => {
            operands(&[expr])?;
            let element = |element: &PatternElem| match element {
                PatternElem::Char(char) => Some(*char),
                PatternElem::Wildcard => None,
            };
            Step::Like(pattern.iter().map(element).collect())
        }
        ExprKind::Is { expr, entity_type } => {
            operands(&[expr])?;
            Step::Is(path(entity_type.name()))
        }
        ExprKind::Set(elements) => {
            operands(&elements.iter().collect::<Vec<_>>())?;
            Step::Set(elements.len())
        }
        ExprKind::Record(fields) => {
            operands(&fields.values().collect::<Vec<_>>())?;
            Step::Record(fields.keys().map(|name| name.as_str()).collect())
        }
        _ => return Err(NotEncodable),
    };
    steps.push(step);
    Ok(())
}

fn path(name: &Name) -> Path<'_> {
    let name = name.as_ref();
    name.namespace_components().chain([name.basename()]).map(AsRef::as_ref).collect()
}

fn position<T: PartialEq>(all: &[T], one: &T) -> Result<u8, NotEncodable> {
    let at = all.iter().position(|other| other == one);
    at.and_then(|at| u8::try_from(at).ok()).ok_or(NotEncodable)
}

/// The expressions that were made and not yet used.
struct Stack(Vec<Expr>);

impl Stack {
    fn apply(&mut self, step: Step<'_>) -> Result<ExprKind, NotDecodable> {
        Ok(match step {
            Step::Bool(value) => ExprKind::Lit(Literal::Bool(value)),
            Step::Long(value) => ExprKind::Lit(Literal::Long(value)),
            Step::String(value) => ExprKind::Lit(Literal::String(value.into())),
            Step::Entity(path, id) => {
                let uid = EntityUID::from_components(named(&path)?.into(), Eid::new(id), None);
                ExprKind::Lit(Literal::EntityUID(Arc::new(uid)))
            }
            Step::Variable(at) => ExprKind::Var(at_position(&VARIABLES, at)?),
            Step::If => {
                let [test_expr, then_expr, else_expr] = self.operands()?;
                ExprKind::If { test_expr, then_expr, else_expr }
            }
            Step::And => {
                let [left, right] = self.operands()?;
                ExprKind::And { left, right }
            }
            Step::Or => {
                let [left, right] = self.operands()?;
                ExprKind::Or { left, right }
            }
            Step::Unary(op) => {
                let [arg] = self.operands()?;
                ExprKind::UnaryApp { op: at_position(&UNARY, op)?, arg }
            }
            Step::Binary(op) => {
                let [arg1, arg2] = self.operands()?;
                ExprKind::BinaryApp { op: at_position(&BINARY, op)?, arg1, arg2 }
            }
            Step::Call(path, arguments) => {
                let args = Arc::new(self.take(arguments)?);
                ExprKind::ExtensionFunctionApp { fn_name: named(&path)?, args }
            }
            Step::Attribute(attr) => {
                let [expr] = self.operands()?;
                ExprKind::GetAttr { expr, attr: attr.into() }
            }
            Step::Has(attr) => {
                let [expr] = self.operands()?;
                ExprKind::HasAttr { expr, attr: attr.into() }
            }
            Step::HasPath(attrs) => {
                let [expr] = self.operands()?;
                let (first, others) = attrs.split_first().ok_or(NotDecodable)?;
                let others = others.iter().map(|attr| (*attr).into()).collect();
                ExprKind::ExtHasAttr { expr, attrs: ((*first).into(), others).into() }
            }
            Step::Like(pattern) => {
                let [expr] = self.operands()?;
                let element = |element: Option<char>| {
                    element.map_or(PatternElem::Wildcard, PatternElem::Char)
                };
                ExprKind::Like { expr, pattern: pattern.into_iter().map(element).collect() }
            }
            Step::Is(path) => {
                let [expr] = self.operands()?;
                ExprKind::Is { expr, entity_type: named(&path)?.into() }
            }
            Step::Set(elements) => ExprKind::Set(Arc::new(self.take(elements)?)),
            Step::Record(names) => {
                let values = self.take(names.len())?;
                let fields = names.into_iter().map(Into::into).zip(values).collect();
                ExprKind::Record(Arc::new(fields))
            }
        })
    }

    /// The last `N` expressions, in the order in which they were made.
    fn operands<const N: usize>(&mut self) -> Result<[Arc<Expr>; N], NotDecodable> {
        let shared: Vec<_> = self.take(N)?.into_iter().map(Arc::new).collect();
        shared.try_into().map_err(|_| NotDecodable)
    }

    fn take(&mut self, count: usize) -> Result<Vec<Expr>, NotDecodable> {
        let rest = self.0.len().checked_sub(count).ok_or(NotDecodable)?;
        Ok(self.0.split_off(rest))
    }
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

/// The entity type of this name, without a namespace.
pub(crate) fn entity_type(text: &'static str) -> EntityType {
    name(text).into()
}

/// The entity of this type with this id.
pub(crate) fn uid(entity_type: &EntityType, id: &str) -> EntityUID {
    EntityUID::from_components(entity_type.clone(), Eid::new(id), None)
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
            assert_eq!(
                encoded.get(4..),
                Some(&*["000100010001", expected].concat()),
                "{condition}"
            );
        }
    }

    #[test]
    fn a_template_is_not_encoded() {
        let slot = ExprBuilder::new().slot(cedar_policy_core::ast::SlotId::principal());
        assert_eq!(add_steps(&slot, &mut Vec::new()), Err(NotEncodable));
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
