//! The classes of a pattern: sets of characters.

use std::ops::Range;
use std::{array, iter};

use regex_syntax::ast::{
    Ast, ClassAsciiKind, ClassPerlKind, ClassSet, ClassSetBinaryOpKind, ClassSetItem, ClassUnicode,
    ClassUnicodeKind, ClassUnicodeOpKind,
};

use crate::Error;
use crate::category;

/// A set of characters.
#[derive(Clone)]
pub struct Class {
    /// Whether each ASCII character is in the class.
    ascii: [bool; 128],
    /// All characters.
    ranges: Box<[(u32, u32)]>,
}

impl Class {
    /// The class of a syntax tree's node. A node that is not a class gives the empty class.
    pub fn new(ast: &Ast) -> Result<Self, Error> {
        let set = match ast {
            Ast::Dot(_) => not(&[('\n'.into(), '\n'.into())]),
            Ast::ClassPerl(class) => negated(perl(&class.kind), class.negated),
            Ast::ClassUnicode(class) => unicode(class)?,
            Ast::ClassBracketed(class) => negated(of(&class.kind)?, class.negated),
            _ => Set::new(),
        };
        let mut class = Self { ascii: [false; 128], ranges: set.into() };
        class.ascii = array::from_fn(|code| class.search(code as u32));
        Ok(class)
    }

    /// Whether the character is in the class.
    pub fn contains(&self, char: char) -> bool {
        let code = u32::from(char);
        self.ascii.get(code as usize).copied().unwrap_or_else(|| self.search(code))
    }

    fn search(&self, code: u32) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < code);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= code)
    }

    /// The visits of states that take as long as [`Class::contains`].
    pub fn visits(&self, char: char) -> usize {
        if char.is_ascii() { 0 } else { self.ranges.len().max(1).ilog2() as usize }
    }
}

/// Ranges of code points, in ascending order, with a gap between neighbours.
type Set = Vec<(u32, u32)>;

/// The set of all code points of these ranges.
fn union(mut ranges: Vec<(u32, u32)>) -> Set {
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let touches = next.0 <= range.1.saturating_add(1);
        if touches {
            range.1 = range.1.max(next.1);
        }
        touches
    });
    ranges
}

fn not(set: &[(u32, u32)]) -> Set {
    let starts = iter::once(0).chain(set.iter().map(|(_, last)| last + 1));
    let ends = set.iter().map(|(first, _)| *first).chain([u32::from(char::MAX) + 1]);
    let gaps = starts.zip(ends).filter(|(start, end)| start < end);
    gaps.map(|(start, end)| (start, end - 1)).collect()
}

fn and(one: &[(u32, u32)], other: &[(u32, u32)]) -> Set {
    not(&union([not(one), not(other)].concat()))
}

fn negated(set: Set, negated: bool) -> Set {
    if negated { not(&set) } else { set }
}

fn of(class: &ClassSet) -> Result<Set, Error> {
    match class {
        ClassSet::Item(item) => {
            let mut ranges = Vec::new();
            add(item, &mut ranges)?;
            Ok(union(ranges))
        }
        ClassSet::BinaryOp(both) => {
            let (left, right) = (of(&both.lhs)?, of(&both.rhs)?);
            Ok(match both.kind {
                ClassSetBinaryOpKind::Intersection => and(&left, &right),
                ClassSetBinaryOpKind::Difference => and(&left, &not(&right)),
                ClassSetBinaryOpKind::SymmetricDifference => {
                    union([and(&left, &not(&right)), and(&right, &not(&left))].concat())
                }
            })
        }
    }
}

/// Adds the ranges of an item, in any order.
fn add(item: &ClassSetItem, ranges: &mut Set) -> Result<(), Error> {
    let set = match item {
        ClassSetItem::Empty(_) => return Ok(()),
        ClassSetItem::Literal(one) => vec![(one.c.into(), one.c.into())],
        ClassSetItem::Range(range) => vec![(range.start.c.into(), range.end.c.into())],
        ClassSetItem::Ascii(class) => negated(ascii(&class.kind), class.negated),
        ClassSetItem::Unicode(class) => unicode(class)?,
        ClassSetItem::Perl(class) => negated(perl(&class.kind), class.negated),
        ClassSetItem::Bracketed(class) => negated(of(&class.kind)?, class.negated),
        ClassSetItem::Union(union) => {
            return union.items.iter().try_for_each(|item| add(item, ranges));
        }
    };
    ranges.extend(set);
    Ok(())
}

fn perl(kind: &ClassPerlKind) -> Set {
    ascii(match kind {
        ClassPerlKind::Digit => &ClassAsciiKind::Digit,
        ClassPerlKind::Space => &ClassAsciiKind::Space,
        ClassPerlKind::Word => &ClassAsciiKind::Word,
    })
}

fn ascii(kind: &ClassAsciiKind) -> Set {
    let ranges: &[(char, char)] = match kind {
        ClassAsciiKind::Alnum => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        ClassAsciiKind::Alpha => &[('A', 'Z'), ('a', 'z')],
        ClassAsciiKind::Ascii => &[('\0', '\x7F')],
        ClassAsciiKind::Blank => &[('\t', '\t'), (' ', ' ')],
        ClassAsciiKind::Cntrl => &[('\0', '\x1F'), ('\x7F', '\x7F')],
        ClassAsciiKind::Digit => &[('0', '9')],
        ClassAsciiKind::Graph => &[('!', '~')],
        ClassAsciiKind::Lower => &[('a', 'z')],
        ClassAsciiKind::Print => &[(' ', '~')],
        ClassAsciiKind::Punct => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        ClassAsciiKind::Space => &[('\t', '\r'), (' ', ' ')],
        ClassAsciiKind::Upper => &[('A', 'Z')],
        ClassAsciiKind::Word => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        ClassAsciiKind::Xdigit => &[('0', '9'), ('A', 'F'), ('a', 'f')],
    };
    ranges.iter().map(|(first, last)| (u32::from(*first), u32::from(*last))).collect()
}

/// Whether a class of Unicode consists of general categories.
#[must_use]
pub fn is_supported(class: &ClassUnicode) -> bool {
    categories(class).is_some()
}

/// The categories of a class, and whether it is their complement.
fn categories(class: &ClassUnicode) -> Option<(Range<u8>, bool)> {
    let (found, differs) = match &class.kind {
        ClassUnicodeKind::OneLetter(name) => (category::find(&name.to_string()), false),
        ClassUnicodeKind::Named(name) => (category::find(name), false),
        ClassUnicodeKind::NamedValue { op, name, value } => (
            category::find(value).filter(|_| category::is_property(name)),
            *op == ClassUnicodeOpKind::NotEqual,
        ),
    };
    Some((found?, differs != class.negated))
}

fn unicode(class: &ClassUnicode) -> Result<Set, Error> {
    let (categories, complement) = categories(class).ok_or(Error::Property)?;
    Ok(negated(union(category::ranges(&categories)), complement))
}
