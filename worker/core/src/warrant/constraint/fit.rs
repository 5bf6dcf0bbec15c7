//! Whether arguments fit the constraints on them.
//!
//! INVARIANT (only what certainly fits passes): a constraint gives one of three answers about a value: yes, no, or
//! inapplicable, which means that it says nothing about values of this kind. Only yes passes. `not` of inapplicable is
//! inapplicable, so it does not pass either. If one constraint cannot be evaluated, no constraint that contains it can.

use std::net::IpAddr;

pub use super::verdict::Fit;
use super::work::TooMuch;
use super::{Arguments, Constraint, Work};
use crate::json::Json;

/// Why no answer is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecidable {
    /// The constraint has a type or a form that is not evaluated here, or the value has.
    Unsupported,
    TooMuch,
}

impl From<TooMuch> for Undecidable {
    fn from(_: TooMuch) -> Self {
        Self::TooMuch
    }
}

/// Why the arguments of a call do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit<'a> {
    /// An argument that has no constraint, where others have one.
    Unlisted(&'a str),
    /// An argument that has a constraint is missing.
    Missing(&'a str),
    /// The value does not fit.
    Refused(&'a str),
    /// The constraint cannot be evaluated.
    Unsupported(&'a str),
    TooMuch,
}

/// Checks the arguments of a call.
///
/// # Errors
///
/// The first argument that does not fit.
pub fn arguments<'a>(
    allowed: &'a Arguments,
    input: &'a Json,
    work: &mut Work,
) -> Result<(), Misfit<'a>> {
    let Json::Object(fields) = input else { return Err(Misfit::TooMuch) };
    if !allowed.constraints.is_empty() && !allowed.allow_unknown {
        let unlisted = fields.iter().find(|(name, _)| allowed.get(name).is_none());
        if let Some((name, _)) = unlisted {
            return Err(Misfit::Unlisted(name));
        }
    }
    for (name, constraint) in &allowed.constraints {
        let Some(value) = input.get(name) else { return Err(Misfit::Missing(name)) };
        match value_fits(constraint, value, work) {
            Ok(Fit::Yes) => {}
            Ok(Fit::No | Fit::Inapplicable) => return Err(Misfit::Refused(name)),
            Err(Undecidable::Unsupported) => return Err(Misfit::Unsupported(name)),
            Err(Undecidable::TooMuch) => return Err(Misfit::TooMuch),
        }
    }
    Ok(())
}

/// Steps of reading the text of an IP address.
const ADDRESS_STEPS: usize = 16;

/// Whether one value fits one constraint.
///
/// # Errors
///
/// There is no answer.
pub fn value_fits(
    constraint: &Constraint,
    value: &Json,
    work: &mut Work,
) -> Result<Fit, Undecidable> {
    work.spend(1)?;
    let of_text = |decided: Option<Fit>| decided.ok_or(Undecidable::Unsupported);
    Ok(match constraint {
        Constraint::Wildcard => Fit::Yes,
        Constraint::Exact(exact) => {
            work.spend(size(exact))?;
            among(std::slice::from_ref(exact), value)
        }
        Constraint::OneOf(values) => {
            work.spend(sizes(values))?;
            among(values, value)
        }
        Constraint::NotOneOf(values) => {
            work.spend(sizes(values))?;
            match among(values, value) {
                Fit::Yes => Fit::No,
                Fit::No => Fit::Yes,
                Fit::Inapplicable => Fit::Inapplicable,
            }
        }
        Constraint::Range(range) => match value {
            Json::Integer(number) => range.contains(*number as f64).into(),
            Json::Number(number) => range.contains(*number).into(),
            _ => Fit::Inapplicable,
        },
        Constraint::Pattern(pattern) => match value {
            Json::String(text) => of_text(pattern.matches(text, work)?.map(Fit::from))?,
            _ => Fit::Inapplicable,
        },
        Constraint::Cidr(_, network) => match value {
            Json::String(text) => {
                work.spend(ADDRESS_STEPS)?;
                let address = text.parse::<IpAddr>().map_err(|_| Undecidable::Unsupported)?;
                // An IPv4 address in the form of an IPv6 address is both inside and outside.
                match address == address.to_canonical() {
                    true => network.contains(&address).into(),
                    false => Fit::Inapplicable,
                }
            }
            _ => Fit::Inapplicable,
        },
        Constraint::UrlPattern(pattern) => match value {
            Json::String(text) => of_text(pattern.matches(text, work)?)?,
            _ => Fit::Inapplicable,
        },
        Constraint::UrlSafe(safe) => match value {
            Json::String(text) => of_text(safe.matches(text, work)?)?,
            _ => Fit::Inapplicable,
        },
        Constraint::Contains(required) => match value {
            Json::Array(items) => {
                work.spend(pairs(required, items))?;
                required.iter().all(|value| items.contains(value)).into()
            }
            _ => Fit::Inapplicable,
        },
        Constraint::Subset(allowed) => match value {
            Json::Array(items) => {
                work.spend(pairs(allowed, items))?;
                items.iter().all(|item| allowed.contains(item)).into()
            }
            _ => Fit::Inapplicable,
        },
        Constraint::Subpath(subpath) => match value {
            Json::String(path) => {
                subpath.contains(path, work)?.map_or(Fit::Inapplicable, Fit::from)
            }
            Json::Array(paths) => {
                let mut fits = Fit::Yes;
                for path in paths {
                    let is_below = match path.as_str() {
                        Some(path) => subpath.contains(path, work)?,
                        None => None,
                    };
                    match is_below {
                        Some(true) => {}
                        Some(false) => fits = Fit::No,
                        None => {
                            fits = Fit::Inapplicable;
                            break;
                        }
                    }
                }
                fits
            }
            _ => Fit::Inapplicable,
        },
        Constraint::All(all) => each(all, value, work, (Fit::No, Fit::Yes))?,
        Constraint::Any(any) => each(any, value, work, (Fit::Yes, Fit::No))?,
        Constraint::Not(inner) => match value_fits(inner, value, work)? {
            Fit::Yes => Fit::No,
            Fit::No => Fit::Yes,
            Fit::Inapplicable => Fit::Inapplicable,
        },
        Constraint::Unsupported(..) => return Err(Undecidable::Unsupported),
    })
}

/// Whether a value is one of these. A value of another kind than one of them is not clearly another value: some
/// tools take `["x"]` for `"x"`, `"1"` for `1`, and `1.0` for `1`.
fn among(values: &[Json], value: &Json) -> Fit {
    let is_clearly_other = |other: &Json| match (other, value) {
        (Json::String(_), Json::String(_))
        | (Json::Integer(_), Json::Integer(_))
        | (Json::Number(_), Json::Number(_))
        | (Json::Bool(_), Json::Bool(_)) => true,
        (Json::Integer(integer), Json::Number(number))
        | (Json::Number(number), Json::Integer(integer)) => *integer as f64 != *number,
        _ => false,
    };
    if values.contains(value) {
        Fit::Yes
    } else if values.iter().all(is_clearly_other) {
        Fit::No
    } else {
        Fit::Inapplicable
    }
}

/// The answer of a list of constraints: `decisive` if one of them has this answer. If none has it and one is
/// [`Fit::Inapplicable`], that. Else `otherwise`.
///
/// All constraints are evaluated, even after a decisive one. So a constraint that cannot be evaluated is always
/// noticed.
#[inline(never)]
fn each(
    all: &[Constraint],
    value: &Json,
    work: &mut Work,
    (decisive, otherwise): (Fit, Fit),
) -> Result<Fit, Undecidable> {
    let mut answer = otherwise;
    for constraint in all {
        let fit = value_fits(constraint, value, work)?;
        if fit == decisive || (fit == Fit::Inapplicable && answer == otherwise) {
            answer = fit;
        }
    }
    Ok(answer)
}

/// Comparisons of each value with each, which end at the end of the shorter one.
pub(super) fn pairs(some: &[Json], others: &[Json]) -> usize {
    sizes(some).saturating_mul(others.len().max(1))
}

/// Bytes of a text that are compared in the time of one step.
const BYTES_A_STEP: usize = 16;

/// Steps of a comparison with each of these values, at most.
#[inline(never)]
pub(super) fn sizes(values: &[Json]) -> usize {
    values.iter().map(size).sum()
}

/// Steps of a comparison with a value, at most.
fn size(value: &Json) -> usize {
    1 + match value {
        Json::String(text) | Json::Verbatim(text) => text.len() / BYTES_A_STEP,
        Json::Array(items) => sizes(items),
        Json::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() / BYTES_A_STEP + size(value)).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warrant::constraint::{Subpath, UrlPattern, UrlSafe};

    /// The two implementations disagree about these, in some cases with and in others without `not`.
    #[test]
    fn what_only_one_implementation_takes_fits_neither_a_constraint_nor_not_of_it() {
        let port = |text: &str| Constraint::UrlPattern(Box::new(UrlPattern::new(text).unwrap()));
        let safe =
            || Constraint::UrlSafe(Box::new(UrlSafe { blocks: [false; 4], ..UrlSafe::default() }));
        let without_internal = || {
            let safe = UrlSafe { block_internal_tlds: true, ..UrlSafe::default() };
            Constraint::UrlSafe(Box::new(safe))
        };
        let below = || {
            Constraint::Subpath(Subpath {
                root: "/".to_owned(),
                case_sensitive: true,
                allow_equal: false,
            })
        };
        for (constraint, value) in [
            (port("https://a.example:443"), "https://a.example:444/"),
            (port("*://a.example:80"), "ws://a.example/"),
            (port("ftp://a.example:21"), "ftp://a.example/"),
            (without_internal(), "http://x.localdomain/"),
            (safe(), "http://metadata.goog/"),
            (safe(), "http://localhost.localdomain/"),
            (safe(), "http://127.0.0.1/"),
            (safe(), "http://10.0.0.1/"),
            (safe(), "http://192.0.2.1/"),
            (below(), "/"),
        ] {
            let value = Json::String(value.to_owned());
            let fits = |it: &Constraint| value_fits(it, &value, &mut Work::default());
            assert_eq!(fits(&constraint), Ok(Fit::Inapplicable), "{constraint:?} {value:?}");
            let not = Constraint::Not(Box::new(constraint));
            assert_eq!(fits(&not), Ok(Fit::Inapplicable), "{not:?} {value:?}");
        }
    }

    /// An argument of the greatest length is read once, and not again and again.
    #[test]
    fn a_path_costs_by_its_bytes_also_in_a_list() {
        let below = || {
            Constraint::Subpath(Subpath {
                root: "/data".to_owned(),
                case_sensitive: true,
                allow_equal: true,
            })
        };
        let long = Json::String(["/data", &"/a".repeat(124_000)].concat());
        let short = Json::String(["/data/", &"x".repeat(44)].concat());
        for value in [long.clone(), Json::Array(vec![long]), Json::Array(vec![short; 4_800])] {
            let fits = |it: &Constraint| value_fits(it, &value, &mut Work::default());
            assert_eq!(fits(&below()), Ok(Fit::Yes));
            let five_times = Constraint::All(vec![below(); 5]);
            assert_eq!(fits(&five_times), Err(Undecidable::TooMuch));
        }
    }
}
