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

/// The first byte of the encoding. Change it when the format changes.
const VERSION: u8 = 1;

/// The parsed expressions of one policy, which decide whether it applies.
#[derive(Debug, PartialEq, Eq)]
pub struct Expressions {
    /// The constraints on principal, action and resource, in this order.
    pub scope: [Expr; 3],
    /// `None` if the policy has no condition.
    pub condition: Option<Expr>,
}

/// The expression cannot occur in a static policy, for example the slot of a template.
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
mod tests;
