//! Steps 6 and 7 for every request that is decided: who calls, and whether it may call at all.

use super::draft::{Draft, Stop};
use super::identity::{self, Identity};
use super::ruling::Ruling;
use super::{meter, replay};
use crate::call::command::Purpose;

/// Who calls, and the denial if it is stopped or its tenant has used up its daily bound.
pub fn check<'a>(draft: &mut Draft<'a>) -> Result<(Identity<'a>, Option<Ruling>), Stop> {
    let identity = identity::verify(draft.command, draft.facts)?;
    // The request that a listing answers was charged before it was sent on, and it is answered once.
    // A server can ask many times in one answer, so each request of a server is charged.
    if !matches!(draft.command.purpose, Purpose::Filter(_)) {
        meter::charge(draft)?;
    }
    let mut denial = identity::status(draft, &identity)?;
    if denial.is_none() {
        replay::check(draft)?;
        denial = meter::budget(draft.facts);
    }
    Ok((identity, denial))
}
