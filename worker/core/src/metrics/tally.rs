//! What a lane counts without a journal row: a total for each series since the lane began.
//!
//! Totals are stored before each flush, and D1 adds the difference to the total that it knows. What was counted since
//! the last flush is in memory only, and an eviction can lose it. So a count can be too low, but never too high.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bounds::OTHER;
use super::rows::named;
use super::series::Series;

use crate::json;

/// Series of a lane's tallies. Without names there are about 30. The rest are limits that stopped calls at once
/// without a decision; those beyond the bound are counted under [`OTHER`].
const MAX_TALLIES: usize = 200;

/// The totals of a lane, by series in its JSON form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Tallies {
    totals: BTreeMap<String, u64>,
    #[serde(skip)]
    changed: bool,
}

impl Tallies {
    /// Reads what [`Tallies::store`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self { totals: serde_json::from_str(text).ok()?, changed: false })
    }

    /// Counts `more` events.
    pub fn add(&mut self, series: Series<'_>, more: u64) {
        let mut key = series.encode();
        if self.totals.len() >= MAX_TALLIES
            && !self.totals.contains_key(&key)
            && let Series::LimitHit { kind, .. } = series
        {
            key = Series::LimitHit { kind, limit: OTHER }.encode();
        }
        let total = self.totals.entry(key).or_default();
        *total = total.saturating_add(more);
        self.changed = true;
    }

    /// Whether something was counted since the last [`Tallies::store`].
    #[must_use]
    pub const fn changed(&self) -> bool {
        self.changed
    }

    /// The totals as a JSON object, to be stored before they are sent; `None` if nothing changed.
    pub fn store(&mut self) -> Option<String> {
        std::mem::take(&mut self.changed).then(|| self.encode())
    }

    /// The series that have names, each as [`named`] makes it.
    pub fn named(&self) -> impl Iterator<Item = String> {
        self.totals.keys().filter_map(|series| named(series))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    /// The totals as a JSON object.
    #[must_use]
    pub fn encode(&self) -> String {
        // Plain data always serializes.
        json::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_go_on_where_they_were_stored() {
        let mut tallies = Tallies::default();
        assert_eq!(tallies.store(), None);
        tallies.add(Series::FlushError, 2);
        tallies.add(Series::FlushError, 1);
        let stored = tallies.store().unwrap();
        assert_eq!(stored, r#"{"[\"flush_errors\",[],[]]":3}"#);
        assert_eq!(tallies.store(), None);
        let mut read = Tallies::parse(&stored).unwrap();
        read.add(Series::FlushError, 1);
        assert_eq!(read.encode(), r#"{"[\"flush_errors\",[],[]]":4}"#);
        assert_eq!(Tallies::parse("[]"), None);
    }

    #[test]
    fn names_beyond_the_bound_are_counted_together() {
        let mut tallies = Tallies::default();
        for number in 0..MAX_TALLIES + 5 {
            tallies.add(Series::LimitHit { kind: "rate", limit: &number.to_string() }, 1);
        }
        tallies.add(Series::LimitHit { kind: "rate", limit: "0" }, 1);
        assert_eq!(tallies.totals.len(), MAX_TALLIES + 1);
        assert_eq!(tallies.totals[r#"["limits_hit",["rate"],["_other"]]"#], 5);
        assert_eq!(tallies.totals[r#"["limits_hit",["rate"],["0"]]"#], 2);
    }
}
