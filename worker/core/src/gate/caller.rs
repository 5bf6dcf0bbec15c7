//! Steps 5 and 6: who calls, and whether it may call at all. Every request that is decided passes
//! here.

use super::draft::{Draft, Stop};
use super::identity::{self, Identity};
use super::ruling::Ruling;
use super::{meter, replay};
use crate::call::command::Purpose;

/// Returns who calls, and a denial if the agent is stopped or its tenant has reached its daily
/// bound.
pub fn check<'a>(draft: &mut Draft<'a>) -> Result<(Identity<'a>, Option<Ruling>), Stop> {
    let identity = identity::verify(draft.command, draft.facts)?;
    // A list's request was charged before it was forwarded, and it has one answer. A server can ask
    // many times in one answer, so each request of a server is charged.
    if !matches!(draft.command.purpose, Purpose::Filter(_)) {
        meter::charge(draft)?;
    }
    let mut denial = identity::status(draft, &identity)?;
    if denial.is_none() {
        replay::check(draft)?;
        denial = meter::deny_at_daily_bound(draft.facts);
    }
    Ok((identity, denial))
}
