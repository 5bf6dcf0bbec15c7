//! Whether what a warrant allows is at most what its parent allows.
//!
//! The rules decide from the form of two constraints, so some that are narrower are refused. The reference
//! implementation has the same rules; where it is wider, docs/warrants.md says so.
//!
//! A mistake here would not let a call pass that the root refuses: the arguments of a call are checked against the
//! constraints or bounds of every link, not only of the last.

use super::fit::{self, Fit, Undecidable};
use super::work::TooMuch;
use super::{Arguments, Constraint, NAMED, Range, Work};
use crate::json::Json;

/// Whether the arguments that `child` allows are among those that `parent` allows.
///
/// # Errors
///
/// It takes too much work.
pub fn arguments(parent: &Arguments, child: &Arguments, work: &mut Work) -> Result<bool, TooMuch> {
    if child.allow_unknown && !parent.allow_unknown {
        return Ok(false);
    }
    if parent.constraints.is_empty() {
        return Ok(true);
    }
    // With the same names: a name that the parent lacks would be an argument that it refuses.
    if parent.constraints.len() != child.constraints.len() {
        return Ok(false);
    }
    for ((name, wide), (same, narrow)) in parent.constraints.iter().zip(&child.constraints) {
        if name != same || !is_narrower(wide, narrow, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether `child` is at most as wide as `parent`.
///
/// # Errors
///
/// It takes too much work.
pub fn is_narrower(
    parent: &Constraint,
    child: &Constraint,
    work: &mut Work,
) -> Result<bool, TooMuch> {
    use Constraint::{
        All, Any, Cidr, Contains, Exact, Not, NotOneOf, OneOf, Pattern, Subpath, Subset,
        Unsupported, UrlPattern, UrlSafe, Wildcard,
    };
    work.spend(1)?;
    Ok(match (parent, child) {
        (Wildcard, _) => true,
        (_, Wildcard) => false,
        (
            Exact(_)
            | OneOf(_)
            | Pattern(_)
            | Constraint::Range(_)
            | Cidr(..)
            | UrlPattern(_)
            | UrlSafe(_)
            | Subpath(_)
            | All(_),
            Exact(value),
        ) => match fit::value_fits(parent, value, work) {
            Ok(fits) => fits == Fit::Yes,
            Err(Undecidable::Unsupported) => false,
            Err(Undecidable::TooMuch) => return Err(TooMuch),
        },
        (OneOf(wide), OneOf(narrow)) | (Subset(wide), Subset(narrow)) => among(narrow, wide, work)?,
        (NotOneOf(wide), NotOneOf(narrow)) | (Contains(wide), Contains(narrow)) => {
            among(wide, narrow, work)?
        }
        (Pattern(wide), Pattern(narrow)) => {
            work.spend(wide.as_str().len() + narrow.as_str().len())?;
            wide.covers(narrow)
        }
        (Constraint::Range(wide), Constraint::Range(narrow)) => within(wide, narrow),
        (Cidr(_, wide), Cidr(_, narrow)) => wide.contains(narrow),
        (UrlPattern(wide), UrlPattern(narrow)) => {
            work.spend(wide.as_str().len() + narrow.as_str().len())?;
            wide.covers(narrow)
        }
        (UrlSafe(wide), UrlSafe(narrow)) => wide.covers(narrow, work)?,
        (Subpath(wide), Subpath(narrow)) => wide.covers(narrow, work)?,
        (Subpath(wide), Subset(paths)) => {
            for path in paths {
                let Some(path) = path.as_str() else { return Ok(false) };
                if wide.contains(path, work)? != Some(true) {
                    return Ok(false);
                }
            }
            true
        }
        (All(wide), All(narrow)) => {
            // Each part of the parent has a part of the child that is narrower.
            let mut covered = true;
            for part in wide {
                covered = covered && some(narrow, |other| is_narrower(part, other, work))?;
            }
            covered
        }
        (Any(wide), Any(narrow)) => {
            let mut covered = true;
            for part in narrow {
                covered = covered && some(wide, |other| is_narrower(other, part, work))?;
            }
            covered
        }
        (Not(wide), Not(narrow)) => is_narrower(narrow, wide, work)?,
        (Unsupported(id, wide), Unsupported(same, narrow)) => {
            work.spend(wide.len())?;
            // To the reference implementation, a type that it does not know is not even narrower than itself.
            id == same && wide == narrow && NAMED.iter().any(|(named, _)| named == id)
        }
        _ => false,
    })
}

fn some(
    all: &[Constraint],
    mut holds: impl FnMut(&Constraint) -> Result<bool, TooMuch>,
) -> Result<bool, TooMuch> {
    for constraint in all {
        if holds(constraint)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether each of `some` is among `all`.
#[inline(never)]
fn among(some: &[Json], all: &[Json], work: &mut Work) -> Result<bool, TooMuch> {
    // A link often repeats a list of the link before, and lists can be long.
    work.spend(fit::sizes(some))?;
    if some == all {
        return Ok(true);
    }
    work.spend(fit::pairs(some, all))?;
    Ok(some.iter().all(|value| all.contains(value)))
}

fn within(wide: &Range, narrow: &Range) -> bool {
    let bound = |mine: Option<f64>, theirs: Option<f64>, inclusive: (bool, bool), sign: f64| match (
        mine, theirs,
    ) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(mine), Some(theirs)) => {
            sign * theirs > sign * mine || (theirs == mine && (inclusive.0 || !inclusive.1))
        }
    };
    bound(wide.min, narrow.min, (wide.min_inclusive, narrow.min_inclusive), 1.0)
        && bound(wide.max, narrow.max, (wide.max_inclusive, narrow.max_inclusive), -1.0)
}
