//! `decisions follow`: finds the decisions that are new. Pure; `run` polls and prints.
//!
//! Each lane numbers its decisions, and they appear in the list in that order. So one number for
//! each lane (its mark) says what was printed. Lanes reach the list independently: a decision can
//! appear after later decisions of other lanes. Comparing times alone would lose it.
//!
//! INVARIANT (once): a decision is printed if its number is above its lane's mark. Then the mark is
//! raised to at least that number.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Value, from_str};

use crate::failure::Failure;
use crate::page::Page;

/// Which decisions are printed. This filter runs here and not in the API, because all decisions of
/// a lane must be seen to know that the poll has reached the lane's mark.
#[derive(Debug, Default, PartialEq)]
pub struct Matching {
    pub agent: Option<String>,
    pub decision: Option<String>,
}

impl Matching {
    pub fn matches(&self, decision: &Value) -> bool {
        let is = |name, wanted: &Option<String>| {
            wanted.is_none() || decision.get(name).and_then(Value::as_str) == wanted.as_deref()
        };
        is("agent", &self.agent) && is("decision", &self.decision)
    }
}

/// A decision and its position.
#[derive(Debug)]
pub struct Row {
    lane: u64,
    seq: u64,
    /// Ids sort by time.
    id: String,
    at: String,
    pub value: Value,
    pub raw: Box<RawValue>,
}

/// The state of a lane.
#[derive(Debug, Default)]
struct Mark {
    seq: u64,
    /// The time of the latest decision that was seen. Later numbers never have an earlier time.
    at: Option<String>,
}

#[derive(Debug, Default)]
pub struct Follow {
    /// At most one entry for each lane of the tenant. `None` before the first poll.
    marks: Option<BTreeMap<u64, Mark>>,
}

/// One poll: reads pages, newest first, until it has reached the mark of every lane with new
/// decisions.
#[derive(Debug)]
pub struct Poll<'a> {
    marks: &'a mut BTreeMap<u64, Mark>,
    /// Lanes with new decisions whose mark was not reached yet: the number to reach, and how many
    /// numbers were seen.
    open: BTreeMap<u64, (u64, u64)>,
    rows: Vec<Row>,
    seen: BTreeSet<String>,
}

impl Follow {
    /// Starts with the first page of a poll. In the very first poll, everything that is flushed
    /// counts as old.
    pub fn poll(&mut self, first: &Page) -> Result<Poll<'_>, Failure> {
        let flushed = flushed(first)?;
        let marks = self.marks.get_or_insert_with(|| {
            flushed.iter().map(|(lane, seq)| (*lane, Mark { seq: *seq, at: None })).collect()
        });
        let mut open = BTreeMap::new();
        for (lane, seq) in flushed {
            if seq > marks.get(&lane).map_or(0, |mark| mark.seq) {
                open.insert(lane, (seq, 0));
            }
        }
        Ok(Poll { marks, open, rows: Vec::new(), seen: BTreeSet::new() })
    }
}

impl Poll<'_> {
    /// The time from which the poll must read: the earliest of its lanes' latest decisions, if all
    /// are known.
    pub fn from(&self) -> Option<String> {
        let at = |lane| self.marks.get(lane).and_then(|mark| mark.at.clone());
        let times: Option<Vec<_>> = self.open.keys().map(at).collect();
        times?.into_iter().min()
    }

    /// Takes a page. Returns whether an older page is needed.
    pub fn take(&mut self, page: &Page) -> Result<bool, Failure> {
        for raw in &page.rows {
            let row = row(raw)?;
            let mark = self.marks.get(&row.lane).map_or(0, |mark| mark.seq);
            if row.seq <= mark {
                self.open.remove(&row.lane);
                let known = self.marks.entry(row.lane).or_default();
                if known.at.is_none() {
                    known.at = Some(row.at);
                }
                continue;
            }
            if !self.seen.insert(row.id.clone()) {
                continue;
            }
            if let Some((to, count)) = self.open.get_mut(&row.lane) {
                *count += u64::from(row.seq <= *to);
                if *count >= *to - mark {
                    self.open.remove(&row.lane);
                }
            }
            self.rows.push(row);
        }
        Ok(!self.open.is_empty() && page.next_cursor.is_some())
    }

    /// The new decisions, oldest first. `first` is the poll's first page.
    pub fn finish(mut self, first: &Page) -> Result<Vec<Row>, Failure> {
        self.rows.sort_by(|a, b| a.id.cmp(&b.id));
        for row in &self.rows {
            let mark = self.marks.entry(row.lane).or_default();
            if row.seq > mark.seq {
                *mark = Mark { seq: row.seq, at: Some(row.at.clone()) };
            }
        }
        // Numbers without a decision: receipts of other kinds.
        for (lane, seq) in flushed(first)? {
            let mark = self.marks.entry(lane).or_default();
            mark.seq = mark.seq.max(seq);
        }
        Ok(self.rows)
    }
}

fn row(raw: &RawValue) -> Result<Row, Failure> {
    let value: Value = from_str(raw.get()).map_err(|_| unreadable())?;
    let number = |name| value.get(name).and_then(Value::as_u64).ok_or_else(unreadable);
    let text =
        |name| value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(unreadable);
    Ok(Row {
        lane: number("lane")?,
        seq: number("seq")?,
        id: text("decision_id")?,
        at: text("at")?,
        raw: raw.to_owned(),
        value,
    })
}

/// For each lane, the number up to which the list was complete before it was read.
fn flushed(page: &Page) -> Result<Vec<(u64, u64)>, Failure> {
    let raw = page.others.get("flushed_through").ok_or_else(unreadable)?;
    let lanes: Vec<Value> = from_str(raw.get()).map_err(|_| unreadable())?;
    let position = |lane: &Value| Some((lane.get("lane")?.as_u64()?, lane.get("seq")?.as_u64()?));
    lanes.iter().map(|lane| position(lane).ok_or_else(unreadable)).collect()
}

fn unreadable() -> Failure {
    Failure::other("the answer is not a list of decisions")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A decision of a lane: `(lane, seq, at)`.
    type Decided = (u64, u64, u32);

    fn page(flushed: &[(u64, u64)], rows: &[Decided], more: bool) -> Page {
        let rows: Vec<_> = rows
            .iter()
            .map(|(lane, seq, at)| {
                let (at, id) = (format!("{at:04}"), format!("{at:04}-{lane}-{seq}"));
                json!({"lane": lane, "seq": seq, "at": at, "decision_id": id})
            })
            .collect();
        let flushed: Vec<_> = flushed
            .iter()
            .map(|(lane, seq)| json!({"lane": lane, "seq": seq, "at": "x"}))
            .collect();
        let cursor = more.then_some("c");
        let text = json!({"decisions": rows, "next_cursor": cursor, "flushed_through": flushed});
        Page::parse(&text.to_string(), "decisions").unwrap()
    }

    /// Polls with these pages; what is printed, and whether a page more was asked for.
    fn poll(follow: &mut Follow, pages: &[Page]) -> (Vec<(u64, u64)>, bool) {
        let mut poll = follow.poll(&pages[0]).unwrap();
        let mut more = false;
        for page in pages {
            more = poll.take(page).unwrap();
        }
        let rows = poll.finish(&pages[0]).unwrap();
        (rows.iter().map(|row| (row.lane, row.seq)).collect(), more)
    }

    #[test]
    fn only_what_matches_is_printed() {
        let decision = json!({"agent": "coder", "decision": "deny"});
        for (agent, outcome, expected) in [
            (None, None, true),
            (Some("coder"), None, true),
            (Some("coder"), Some("deny"), true),
            (Some("coder"), Some("allow"), false),
            (Some("support"), Some("deny"), false),
        ] {
            let (agent, outcome) = (agent.map(str::to_owned), outcome.map(str::to_owned));
            let matching = Matching { agent, decision: outcome };
            assert_eq!(matching.matches(&decision), expected, "{matching:?}");
        }
    }

    #[test]
    fn what_was_there_at_the_start_is_not_printed() {
        let mut follow = Follow::default();
        let first = page(&[(0, 2)], &[(0, 2, 20), (0, 1, 10)], true);
        assert_eq!(poll(&mut follow, &[first]), (vec![], false));
    }

    #[test]
    fn each_is_printed_once_and_oldest_first() {
        let mut follow = Follow::default();
        poll(&mut follow, &[page(&[(0, 2)], &[(0, 2, 20)], true)]);
        let rows = [(0, 4, 40), (1, 1, 35), (0, 3, 30), (0, 2, 20)];
        let next = || page(&[(0, 4), (1, 1)], &rows, true);
        assert_eq!(poll(&mut follow, &[next()]), (vec![(0, 3), (1, 1), (0, 4)], false));
        assert_eq!(poll(&mut follow, &[next()]), (vec![], false));
    }

    #[test]
    fn a_lane_that_is_late_is_not_lost_behind_later_decisions_of_others() {
        let mut follow = Follow::default();
        poll(&mut follow, &[page(&[(0, 1), (1, 1)], &[(0, 1, 10), (1, 1, 10)], false)]);
        let rows = [(0, 2, 90), (0, 1, 10), (1, 1, 10)];
        let (printed, _) = poll(&mut follow, &[page(&[(0, 2), (1, 1)], &rows, false)]);
        assert_eq!(printed, [(0, 2)]);
        let rows = [(0, 2, 90), (1, 2, 15), (0, 1, 10), (1, 1, 10)];
        let (printed, _) = poll(&mut follow, &[page(&[(0, 2), (1, 2)], &rows, false)]);
        assert_eq!(printed, [(1, 2)]);
    }

    #[test]
    fn pages_are_read_until_every_lane_that_moved_is_back_at_its_mark() {
        let mut follow = Follow::default();
        poll(&mut follow, &[page(&[(0, 1), (1, 7)], &[(1, 7, 20), (0, 1, 10)], false)]);
        let flushed = [(0, 3), (1, 9)];
        // Lane 1 is back at its mark with this page, lane 0 is not.
        let newest = page(&flushed, &[(1, 9, 50), (0, 3, 45), (1, 8, 40), (1, 7, 20)], true);
        let start = follow.poll(&newest).unwrap().from();
        assert_eq!(start.as_deref(), Some("0010"));
        let (printed, more) = poll(&mut follow, &[newest]);
        assert_eq!((printed.len(), more), (3, true));

        let mut follow = Follow::default();
        poll(&mut follow, &[page(&[(0, 1), (1, 7)], &[(1, 7, 20), (0, 1, 10)], false)]);
        let newest = page(&flushed, &[(1, 9, 50), (0, 3, 45), (1, 8, 40), (1, 7, 20)], true);
        let older = page(&flushed, &[(0, 2, 15), (0, 1, 10)], true);
        let expected = vec![(0, 2), (1, 8), (0, 3), (1, 9)];
        assert_eq!(poll(&mut follow, &[newest, older]), (expected, false));
    }

    #[test]
    fn a_lane_whose_new_numbers_were_all_seen_needs_no_older_page() {
        let mut follow = Follow::default();
        poll(&mut follow, &[page(&[], &[], false)]);
        let rows = [(3, 2, 40), (3, 1, 30)];
        let expected = vec![(3, 1), (3, 2)];
        assert_eq!(poll(&mut follow, &[page(&[(3, 2)], &rows, true)]), (expected, false));
    }

    #[test]
    fn a_decision_flushed_while_the_poll_reads_is_printed_once() {
        let mut follow = Follow::default();
        poll(&mut follow, &[page(&[(0, 1)], &[(0, 1, 10)], false)]);
        // Beyond what was flushed when the page began.
        let rows = [(0, 3, 30), (0, 2, 20), (0, 1, 10)];
        let (printed, _) = poll(&mut follow, &[page(&[(0, 2)], &rows, false)]);
        assert_eq!(printed, [(0, 2), (0, 3)]);
        let (printed, _) = poll(&mut follow, &[page(&[(0, 3)], &rows, false)]);
        assert_eq!(printed, []);
    }
}
