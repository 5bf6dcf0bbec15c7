//! Constraints: what a warrant says about one argument of a tool.
//!
//! [`fit`] says whether a value fits, and [`narrow`] whether a constraint is at most as wide as another. Only
//! what certainly fits passes. What this version cannot evaluate is kept as [`Constraint::Unsupported`], and
//! denies each call that has the argument.

pub mod fit;
pub mod narrow;
mod path;
mod pattern;
mod url;
mod verdict;
mod work;

use ipnet::IpNet;

pub use path::Subpath;
pub use pattern::Pattern;
pub use url::{UrlPattern, UrlSafe};
pub use work::{TooMuch, Work};

use super::bounds::{MAX_CONSTRAINTS, MAX_NESTING};
use super::cbor::{Malformed, Reader, Writer};
use crate::json::Json;
use crate::network::parse_cidr;

/// The numbers of the types on the wire.
mod id {
    pub const EXACT: u8 = 1;
    pub const PATTERN: u8 = 2;
    pub const RANGE: u8 = 3;
    pub const ONE_OF: u8 = 4;
    pub const NOT_ONE_OF: u8 = 7;
    pub const CIDR: u8 = 8;
    pub const URL_PATTERN: u8 = 9;
    pub const REGEX: u8 = 5;
    pub const CEL: u8 = 15;
    pub const SHLEX: u8 = 128;
    pub const CONTAINS: u8 = 10;
    pub const SUBSET: u8 = 11;
    pub const ALL: u8 = 12;
    pub const ANY: u8 = 13;
    pub const NOT: u8 = 14;
    pub const WILDCARD: u8 = 16;
    pub const SUBPATH: u8 = 17;
    pub const URL_SAFE: u8 = 18;
}

/// The types that have a name but are never evaluated here: regular expressions, CEL, and shell words.
const NAMED: [(u8, &str); 3] = [(id::REGEX, "regex"), (id::CEL, "cel"), (id::SHLEX, "shlex")];

/// What a warrant says about one argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Constraint {
    /// Anything.
    Wildcard,
    Exact(Json),
    /// A text that matches a glob.
    Pattern(Pattern),
    /// A number.
    Range(Range),
    OneOf(Vec<Json>),
    NotOneOf(Vec<Json>),
    /// The text of an IP address in a network, with the network as it was written.
    Cidr(String, IpNet),
    UrlPattern(Box<UrlPattern>),
    /// A list that has all of these.
    Contains(Vec<Json>),
    /// A list that has only these.
    Subset(Vec<Json>),
    All(Vec<Constraint>),
    Any(Vec<Constraint>),
    Not(Box<Constraint>),
    /// An absolute path, or a list of them, below a folder.
    Subpath(Subpath),
    /// A URL that cannot reach a private network.
    UrlSafe(Box<UrlSafe>),
    /// Type and body.
    Unsupported(u8, Vec<u8>),
}

/// Numbers between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub min_inclusive: bool,
    pub max_inclusive: bool,
}

impl Range {
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        let above = self.min.is_none_or(|min| value > min || (self.min_inclusive && value == min));
        let below = self.max.is_none_or(|max| value < max || (self.max_inclusive && value == max));
        above && below && !value.is_nan()
    }
}

impl Constraint {
    /// The type's name, for people.
    #[must_use]
    pub fn name(&self) -> String {
        let name = match self {
            Self::Wildcard => "wildcard",
            Self::Exact(_) => "exact",
            Self::Pattern(_) => "pattern",
            Self::Range(_) => "range",
            Self::OneOf(_) => "one_of",
            Self::NotOneOf(_) => "not_one_of",
            Self::Cidr(..) => "cidr",
            Self::UrlPattern(_) => "url_pattern",
            Self::Contains(_) => "contains",
            Self::Subset(_) => "subset",
            Self::All(_) => "all",
            Self::Any(_) => "any",
            Self::Not(_) => "not",
            Self::Subpath(_) => "subpath",
            Self::UrlSafe(_) => "url_safe",
            Self::Unsupported(id, _) => {
                return match NAMED.iter().find(|(named, _)| named == id) {
                    Some((_, name)) => (*name).to_owned(),
                    None => format!("type {id}"),
                };
            }
        };
        name.to_owned()
    }

    /// # Errors
    ///
    /// The body does not have the form of its type, or is nested too deeply.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::nested(reader, 0)
    }

    fn nested(reader: &mut Reader<'_>, depth: usize) -> Result<Self, Malformed> {
        if depth > MAX_NESTING {
            return Err(Malformed("constraints are nested too deeply"));
        }
        reader.tuple(2)?;
        let id: u8 = reader.small()?;
        Ok(match id {
            id::WILDCARD => match reader.null() {
                true => Self::Wildcard,
                false => return Err(Malformed("a wildcard has no body")),
            },
            id::EXACT => Self::Exact(only(reader, "value", Reader::value)?),
            id::PATTERN => {
                Self::Pattern(Pattern::new(only(reader, "pattern", Reader::owned_text)?))
            }
            id::RANGE => Self::Range(range(reader)?),
            id::ONE_OF => Self::OneOf(only(reader, "values", values)?),
            id::NOT_ONE_OF => Self::NotOneOf(only(reader, "excluded", values)?),
            id::CIDR => {
                Self::cidr(reader.text()?).ok_or(Malformed("a network is not in CIDR notation"))?
            }
            id::URL_PATTERN => {
                let pattern = UrlPattern::new(reader.text()?);
                Self::UrlPattern(Box::new(
                    pattern.ok_or(Malformed("a URL pattern has an unsupported form"))?,
                ))
            }
            id::CONTAINS => Self::Contains(only(reader, "required", values)?),
            id::SUBSET => Self::Subset(only(reader, "allowed", values)?),
            id::ALL => Self::All(only(reader, "constraints", |it| constraints(it, depth))?),
            id::ANY => Self::Any(only(reader, "constraints", |it| constraints(it, depth))?),
            id::NOT => {
                let inner = |it: &mut Reader<'_>| Self::nested(it, depth + 1).map(Box::new);
                Self::Not(only(reader, "constraint", inner)?)
            }
            id::SUBPATH => Self::Subpath(Subpath::read(reader)?),
            id::URL_SAFE => Self::UrlSafe(Box::new(UrlSafe::read(reader)?)),
            id => {
                let ((), body) = reader.consumed(|reader| skip_body(id, reader))?;
                Self::Unsupported(id, body.to_vec())
            }
        })
    }

    /// A network in CIDR notation, or an address; `None` if it is neither.
    #[must_use]
    pub fn cidr(text: &str) -> Option<Self> {
        parse_cidr(text).map(|network| Self::Cidr(text.to_owned(), network))
    }

    pub fn write(&self, writer: &mut Writer) {
        writer.array(2);
        writer.unsigned(u64::from(self.id()));
        match self {
            Self::Wildcard => writer.null(),
            Self::Exact(value) => {
                field(writer, "value");
                writer.value(value);
            }
            Self::Pattern(pattern) => {
                field(writer, "pattern");
                writer.text(pattern.as_str());
            }
            Self::Range(range) => write_range(range, writer),
            Self::OneOf(values) => write_values("values", values, writer),
            Self::NotOneOf(values) => write_values("excluded", values, writer),
            Self::Cidr(text, _) => writer.text(text),
            Self::UrlPattern(pattern) => writer.text(pattern.as_str()),
            Self::Contains(values) => write_values("required", values, writer),
            Self::Subset(values) => write_values("allowed", values, writer),
            Self::All(all) | Self::Any(all) => {
                field(writer, "constraints");
                writer.array(all.len());
                for constraint in all {
                    constraint.write(writer);
                }
            }
            Self::Not(inner) => {
                field(writer, "constraint");
                inner.write(writer);
            }
            Self::Subpath(subpath) => subpath.write(writer),
            Self::UrlSafe(url) => url.write(writer),
            Self::Unsupported(_, body) => writer.bytes.extend_from_slice(body),
        }
    }

    const fn id(&self) -> u8 {
        match self {
            Self::Wildcard => id::WILDCARD,
            Self::Exact(_) => id::EXACT,
            Self::Pattern(_) => id::PATTERN,
            Self::Range(_) => id::RANGE,
            Self::OneOf(_) => id::ONE_OF,
            Self::NotOneOf(_) => id::NOT_ONE_OF,
            Self::Cidr(..) => id::CIDR,
            Self::UrlPattern(_) => id::URL_PATTERN,
            Self::Contains(_) => id::CONTAINS,
            Self::Subset(_) => id::SUBSET,
            Self::All(_) => id::ALL,
            Self::Any(_) => id::ANY,
            Self::Not(_) => id::NOT,
            Self::Subpath(_) => id::SUBPATH,
            Self::UrlSafe(_) => id::URL_SAFE,
            Self::Unsupported(id, _) => *id,
        }
    }
}

/// Skips the body of a constraint that is not evaluated. One of a type that has a name must have that type's form.
fn skip_body(id: u8, reader: &mut Reader<'_>) -> Result<(), Malformed> {
    let text = |reader: &mut Reader<'_>| reader.text().map(drop);
    match id {
        id::REGEX => only(reader, "pattern", text),
        id::SHLEX => only(reader, "allow", |reader| reader.list(usize::MAX, text)).map(drop),
        id::CEL => {
            let members = reader.members(&mut |reader, name| match name {
                "expression" => text(reader),
                "parent_expression" if reader.null() => Ok(()),
                "parent_expression" => text(reader),
                _ => Err(Malformed("a constraint has an unknown member")),
            })?;
            match members.contains("expression") {
                true => Ok(()),
                false => Err(Malformed("a constraint lacks a member")),
            }
        }
        _ => reader.skip(),
    }
}

/// The value of a map that has only this key.
fn only<'a, T>(
    reader: &mut Reader<'a>,
    name: &str,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    only_key(reader, name)?;
    read(reader)
}

#[inline(never)]
fn only_key(reader: &mut Reader<'_>, name: &str) -> Result<(), Malformed> {
    match reader.map()? == 1 && reader.text()? == name {
        true => Ok(()),
        false => Err(Malformed("a constraint has other members than its type")),
    }
}

#[inline(never)]
fn values(reader: &mut Reader<'_>) -> Result<Vec<Json>, Malformed> {
    reader.list(usize::MAX, Reader::value)
}

#[inline(never)]
fn constraints(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<Constraint>, Malformed> {
    let all = reader.list(usize::MAX, |reader| Constraint::nested(reader, depth + 1))?;
    // The reference implementation refuses an empty `all` when it evaluates it; an empty `any` never fits.
    if all.is_empty() { Err(Malformed("a list of constraints is empty")) } else { Ok(all) }
}

fn range(reader: &mut Reader<'_>) -> Result<Range, Malformed> {
    let mut range = Range { min: None, max: None, min_inclusive: false, max_inclusive: false };
    let members = reader.members(&mut |reader, name| {
        match name {
            "min" => range.min = bound(reader)?,
            "max" => range.max = bound(reader)?,
            "min_inclusive" => range.min_inclusive = reader.flag()?,
            "max_inclusive" => range.max_inclusive = reader.flag()?,
            _ => return Err(Malformed("a range has an unknown member")),
        }
        Ok(())
    })?;
    match members.contains("min_inclusive") && members.contains("max_inclusive") {
        true => Ok(range),
        false => Err(Malformed("a range must say whether its bounds are inclusive")),
    }
}

#[inline(never)]
fn bound(reader: &mut Reader<'_>) -> Result<Option<f64>, Malformed> {
    match reader.null() {
        true => Ok(None),
        false => reader.finite().map(Some),
    }
}

/// A map with one entry begins.
fn field(writer: &mut Writer, name: &str) {
    writer.map(1);
    writer.text(name);
}

fn write_values(name: &str, values: &[Json], writer: &mut Writer) {
    field(writer, name);
    writer.array(values.len());
    for value in values {
        writer.value(value);
    }
}

fn write_range(range: &Range, writer: &mut Writer) {
    writer.map(4);
    for (name, bound) in [("min", range.min), ("max", range.max)] {
        writer.text(name);
        match bound {
            Some(bound) => writer.float(bound),
            None => writer.null(),
        }
    }
    for (name, flag) in
        [("min_inclusive", range.min_inclusive), ("max_inclusive", range.max_inclusive)]
    {
        writer.text(name);
        writer.flag(flag);
    }
}

/// What a warrant says about the arguments of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments {
    /// Sorted by name. If it is empty, every argument is allowed.
    pub constraints: Vec<(String, Constraint)>,
    /// Whether arguments that have no constraint are allowed.
    pub allow_unknown: bool,
}

impl Arguments {
    /// # Errors
    ///
    /// It does not have the form, or has too many constraints.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (mut constraints, mut allow_unknown) = (None, false);
        reader.members(&mut |reader, name| {
            match name {
                "constraints" => {
                    let read =
                        reader.entries(MAX_CONSTRAINTS, |reader, _| Constraint::read(reader))?;
                    constraints = Some(read);
                }
                "allow_unknown" => allow_unknown = reader.flag()?,
                _ => return Err(Malformed("a tool has an unknown member")),
            }
            Ok(())
        })?;
        let constraints = constraints.ok_or(Malformed("a tool has no `constraints`"))?;
        Ok(Self { constraints, allow_unknown })
    }

    pub fn write(&self, writer: &mut Writer) {
        writer.map(if self.allow_unknown { 2 } else { 1 });
        writer.text("constraints");
        writer.map(self.constraints.len());
        for (name, constraint) in &self.constraints {
            writer.text(name);
            constraint.write(writer);
        }
        if self.allow_unknown {
            writer.text("allow_unknown");
            writer.flag(true);
        }
    }

    /// The constraint on an argument.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Constraint> {
        let at = self.constraints.binary_search_by(|(key, _)| key.as_str().cmp(name)).ok()?;
        self.constraints.get(at).map(|(_, constraint)| constraint)
    }
}
