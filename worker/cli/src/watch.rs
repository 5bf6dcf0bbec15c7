//! `approvals watch`: finds the pending approvals that are new or changed. Pure; `run` polls and
//! prints.
//!
//! A change does not move an approval in the list. So every poll reads all pending approvals,
//! newest first, up to the poll's limit.
//!
//! INVARIANT (once): an approval is printed if its revision is above the remembered one. Then the
//! new revision is remembered.

use std::collections::BTreeMap;

use gateward_core::approval::ApprovalStatus;
use serde_json::value::RawValue;
use serde_json::{Value, from_str};

use crate::failure::Failure;

/// How many approvals are remembered: several times what a poll reads. Older ones appear again only
/// after newer ones were decided.
const KNOWN_MAX: usize = 10_000;

/// The position of an approval in the list: the time of the request, then its id.
type Position = (String, String);

#[derive(Debug, Default)]
pub struct Watch {
    /// The remembered revision of each approval.
    known: BTreeMap<Position, u64>,
}

#[derive(Debug)]
pub struct Waiting {
    pub value: Value,
    pub raw: Box<RawValue>,
}

impl Watch {
    /// The new and changed approvals, oldest first. `rows` are all pending approvals, newest first.
    /// If not `complete`, the oldest ones are missing.
    pub fn poll(
        &mut self,
        rows: Vec<Box<RawValue>>,
        complete: bool,
    ) -> Result<Vec<Waiting>, Failure> {
        let mut seen = BTreeMap::new();
        let mut news = Vec::new();
        for raw in rows {
            let value: Value = from_str(raw.get()).map_err(|_| unreadable())?;
            let (position, revision) = place(&value).ok_or_else(unreadable)?;
            // An expired approval stays in the list until its lane has recorded the expiry.
            if value.get("status").and_then(Value::as_str) != Some(ApprovalStatus::Pending.as_str())
            {
                continue;
            }
            let known = self.known.get(&position).copied();
            if known.is_none_or(|known| known < revision) {
                news.push((position.clone(), Waiting { value, raw }));
            }
            seen.insert(position, known.unwrap_or_default().max(revision));
        }
        if !complete && let Some((oldest, _)) = seen.first_key_value() {
            let unseen = self.known.range(..oldest.clone());
            let unseen: Vec<_> = unseen.map(|(at, revision)| (at.clone(), *revision)).collect();
            seen.extend(unseen);
        }
        while seen.len() > KNOWN_MAX {
            seen.pop_first();
        }
        self.known = seen;
        news.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(news.into_iter().map(|(_, waiting)| waiting).collect())
    }
}

fn place(approval: &Value) -> Option<(Position, u64)> {
    let text = |name| approval.get(name).and_then(Value::as_str).map(str::to_owned);
    let revision = approval.get("revision").and_then(Value::as_u64)?;
    Some(((text("created_at")?, text("approval_id")?), revision))
}

fn unreadable() -> Failure {
    Failure::other("the answer is not a list of approvals")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    /// An approval: `(number, revision, status)`; higher numbers are newer.
    type Asked = (u32, u64, &'static str);

    /// Polls; the numbers and revisions that are printed.
    fn poll(watch: &mut Watch, rows: &[Asked], complete: bool) -> Vec<(String, u64)> {
        let row = |(number, revision, status): &Asked| {
            let (at, id) = (format!("{number:06}"), format!("appr_0_{number}"));
            let value = json!({"approval_id": id, "created_at": at, "revision": revision,
                "status": status});
            to_raw_value(&value).unwrap()
        };
        let news = watch.poll(rows.iter().map(row).collect(), complete).unwrap();
        let shown = |waiting: &Waiting| place(&waiting.value).unwrap();
        news.iter().map(shown).map(|((_, id), revision)| (id, revision)).collect()
    }

    fn printed(expected: &[(u32, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|(at, revision)| (format!("appr_0_{at}"), *revision)).collect()
    }

    #[test]
    fn each_is_printed_once_and_again_when_it_changed() {
        let pending = "pending";
        let mut watch = Watch::default();
        for (what, rows, expected) in [
            (
                "pending from the start",
                vec![(2, 1, pending), (1, 1, pending)],
                vec![(1, 1), (2, 1)],
            ),
            ("unchanged", vec![(2, 1, pending), (1, 1, pending)], vec![]),
            ("changed", vec![(2, 1, pending), (1, 2, pending)], vec![(1, 2)]),
            ("an older copy", vec![(2, 1, pending), (1, 1, pending)], vec![]),
            ("one decided, one new", vec![(3, 1, pending), (1, 2, pending)], vec![(3, 1)]),
            ("expired", vec![(4, 1, "expired"), (3, 1, pending)], vec![]),
            ("none", vec![], vec![]),
        ] {
            assert_eq!(poll(&mut watch, &rows, true), printed(&expected), "{what}");
        }
        assert!(watch.known.is_empty());
    }

    #[test]
    fn what_comes_back_into_a_bounded_view_is_not_printed_again() {
        let mut watch = Watch::default();
        let row = |number| (number, 1, "pending");
        assert_eq!(poll(&mut watch, &[row(2), row(1)], false), printed(&[(1, 1), (2, 1)]));
        assert_eq!(poll(&mut watch, &[row(4), row(3)], false), printed(&[(3, 1), (4, 1)]));
        assert_eq!(poll(&mut watch, &[row(4), row(2)], false), printed(&[]));
        assert_eq!(poll(&mut watch, &[row(2), row(1)], true), printed(&[]));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut watch = Watch::default();
        let pages = u32::try_from(KNOWN_MAX).unwrap() / 100 + 2;
        for page in 0..pages {
            let rows: Vec<_> = (0..100).rev().map(|at| (page * 100 + at, 1, "pending")).collect();
            poll(&mut watch, &rows, false);
        }
        assert_eq!(watch.known.len(), KNOWN_MAX);
    }

    #[test]
    fn what_is_no_approval_is_a_failure() {
        let rows = vec![to_raw_value(&json!({"approval_id": "appr_0_1"})).unwrap()];
        assert!(Watch::default().poll(rows, true).is_err());
    }
}
