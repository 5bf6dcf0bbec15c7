//! A pattern as a nondeterministic automaton that reads characters.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    AssertionKind, Ast, GroupKind, Repetition, RepetitionKind, RepetitionRange,
};

use crate::Error;
use crate::class::Class;

/// The largest [`size`] of a pattern.
pub const MAX_SIZE: usize = 10_000;

/// Nested groups and classes, because they are compiled recursively.
const MAX_NESTING: u32 = 64;

/// The number of a state.
pub type Id = u16;

const _: () = assert!(MAX_SIZE < Id::MAX as usize);

#[derive(Clone, Copy, Debug)]
pub enum State {
    /// Reads this character.
    Char(char, Id),
    /// Reads a character of the class with this number.
    Class(u16, Id),
    Look(Look, Id),
    Either(Id, Id),
    Match,
}

/// A condition on the characters before and after a place.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    Start,
    End,
    Boundary,
    NoBoundary,
    WordStart,
    WordEnd,
    NoWordBefore,
    NoWordAfter,
}

impl From<&AssertionKind> for Look {
    fn from(kind: &AssertionKind) -> Self {
        use AssertionKind as Kind;
        match kind {
            Kind::StartLine | Kind::StartText => Self::Start,
            Kind::EndLine | Kind::EndText => Self::End,
            Kind::WordBoundary => Self::Boundary,
            Kind::NotWordBoundary => Self::NoBoundary,
            Kind::WordBoundaryStart | Kind::WordBoundaryStartAngle => Self::WordStart,
            Kind::WordBoundaryEnd | Kind::WordBoundaryEndAngle => Self::WordEnd,
            Kind::WordBoundaryStartHalf => Self::NoWordBefore,
            Kind::WordBoundaryEndHalf => Self::NoWordAfter,
        }
    }
}

/// The number of states of a syntax tree. Empty parts have no states but count as one, because compiling each
/// repetition of them takes time.
#[must_use]
pub fn size(ast: &Ast) -> usize {
    let sum = |parts: &[Ast]| parts.iter().map(size).fold(0, usize::saturating_add);
    match ast {
        Ast::Repetition(repetition) => {
            let (min, max) = bounds(&repetition.op.kind);
            let once = size(&repetition.ast);
            let optional = match max {
                Some(max) => once.saturating_add(1).saturating_mul(max.saturating_sub(min)),
                None if min == 0 => once.saturating_add(1),
                None => 1,
            };
            once.saturating_mul(min).saturating_add(optional).max(1)
        }
        Ast::Group(group) => size(&group.ast),
        Ast::Alternation(parts) => sum(&parts.asts).saturating_add(parts.asts.len()),
        Ast::Concat(parts) => sum(&parts.asts),
        _ => 1,
    }
}

/// The smallest and the largest number of repetitions.
fn bounds(kind: &RepetitionKind) -> (usize, Option<usize>) {
    let (min, max) = match *kind {
        RepetitionKind::ZeroOrOne => (0, Some(1)),
        RepetitionKind::ZeroOrMore => (0, None),
        RepetitionKind::OneOrMore => (1, None),
        RepetitionKind::Range(RepetitionRange::Exactly(count)) => (count, Some(count)),
        RepetitionKind::Range(RepetitionRange::AtLeast(min)) => (min, None),
        RepetitionKind::Range(RepetitionRange::Bounded(min, max)) => (min, Some(max)),
    };
    (min as usize, max.map(|max| max as usize))
}

#[derive(Clone)]
pub struct Program {
    pub states: Box<[State]>,
    pub classes: Box<[Class]>,
    pub start: Id,
}

impl Program {
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let mut parser = ParserBuilder::new().nest_limit(MAX_NESTING).build();
        let ast = parser.parse(pattern).map_err(|error| Error::Syntax(error.to_string()))?;
        if size(&ast) > MAX_SIZE {
            return Err(Error::TooLarge);
        }
        let mut compiler = Compiler::default();
        let end = compiler.push(State::Match)?;
        let start = compiler.add(&ast, end)?;
        Ok(Self { states: compiler.states.into(), classes: compiler.classes.into(), start })
    }
}

/// Compiles a syntax tree from its end to its beginning. So each part is compiled when the part after it is known.
#[derive(Default)]
struct Compiler {
    states: Vec<State>,
    classes: Vec<Class>,
    /// The number of each class by its offset in the pattern. A class that is repeated is stored once.
    known: Vec<(usize, u16)>,
}

impl Compiler {
    fn push(&mut self, state: State) -> Result<Id, Error> {
        let id = Id::try_from(self.states.len()).map_err(|_| Error::TooLarge)?;
        self.states.push(state);
        Ok(id)
    }

    /// Adds a part that `next` follows. Returns its first state.
    fn add(&mut self, ast: &Ast, next: Id) -> Result<Id, Error> {
        match ast {
            Ast::Empty(_) => Ok(next),
            Ast::Flags(_) => Err(Error::Flags),
            Ast::Literal(literal) => self.push(State::Char(literal.c, next)),
            Ast::Assertion(assertion) => self.push(State::Look((&assertion.kind).into(), next)),
            Ast::Dot(_) | Ast::ClassUnicode(_) | Ast::ClassPerl(_) | Ast::ClassBracketed(_) => {
                let class = self.class(ast)?;
                self.push(State::Class(class, next))
            }
            Ast::Repetition(repetition) => self.repeat(repetition, next),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(flags) if !flags.items.is_empty() => Err(Error::Flags),
                _ => self.add(&group.ast, next),
            },
            Ast::Concat(parts) => {
                parts.asts.iter().rev().try_fold(next, |next, part| self.add(part, next))
            }
            Ast::Alternation(parts) => {
                let mut first = None;
                for part in parts.asts.iter().rev() {
                    let one = self.add(part, next)?;
                    first = Some(match first {
                        None => one,
                        Some(other) => self.push(State::Either(one, other))?,
                    });
                }
                Ok(first.unwrap_or(next))
            }
        }
    }

    fn repeat(&mut self, repetition: &Repetition, next: Id) -> Result<Id, Error> {
        let (min, max) = bounds(&repetition.op.kind);
        let (mut first, mut left) = (next, min);
        match max {
            Some(max) => {
                for _ in min..max {
                    let once = self.add(&repetition.ast, first)?;
                    first = self.push(State::Either(once, next))?;
                }
            }
            None => {
                // The state after each repetition. What it leads to is not known yet.
                let again = self.push(State::Match)?;
                let once = self.add(&repetition.ast, again)?;
                if let Some(state) = self.states.get_mut(usize::from(again)) {
                    *state = State::Either(once, next);
                }
                first = if min == 0 { again } else { once };
                left = min.saturating_sub(1);
            }
        }
        (0..left).try_fold(first, |first, _| self.add(&repetition.ast, first))
    }

    fn class(&mut self, ast: &Ast) -> Result<u16, Error> {
        let offset = ast.span().start.offset;
        if let Some((_, id)) = self.known.iter().find(|(known, _)| *known == offset) {
            return Ok(*id);
        }
        let id = u16::try_from(self.classes.len()).map_err(|_| Error::TooLarge)?;
        self.classes.push(Class::new(ast)?);
        self.known.push((offset, id));
        Ok(id)
    }
}
