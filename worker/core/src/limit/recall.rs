//! When a counter object asks lanes to give back what they do not use.

use std::collections::HashMap;

/// The pauses between two times that a counter asks lanes to give back, for one subject: a second, and 50 ms for each
/// lane if that is longer. So it asks at most twenty lanes a second, and refused calls cost little.
const PAUSE_MS: u64 = 1_000;
const PAUSE_OF_LANE_MS: u64 = 50;

/// Subjects for which a counter remembers when it last asked. With more, it forgets all.
const MAX_SUBJECTS: usize = 1_000;

/// When a counter last asked lanes to give back, by subject. It is only in memory.
#[derive(Debug, Default)]
pub struct Recalls {
    by_subject: HashMap<String, Recalled>,
}

#[derive(Debug)]
struct Recalled {
    at_ms: u64,
    /// The lanes that were refused since then, or earlier and had no turn yet. The first has the next turn, for as long
    /// as the pause took.
    waiting: Vec<u16>,
}

impl Recalls {
    /// Whether the counter may ask these many lanes now, because `lane` got too little. Lanes that were refused during
    /// a pause have the next turns, in their order, so a flood of one lane's calls takes no other lane's turn.
    pub fn may_ask(&mut self, subject: &str, lane: u16, lanes: usize, now_ms: u64) -> bool {
        let pause_ms = PAUSE_MS.max(PAUSE_OF_LANE_MS * lanes as u64);
        if let Some(last) = self.by_subject.get_mut(subject) {
            let passed_ms = now_ms.abs_diff(last.at_ms);
            let next = last.waiting.first();
            let is_turn_of_another = passed_ms < 2 * pause_ms && next.is_some_and(|it| *it != lane);
            if passed_ms < pause_ms || is_turn_of_another {
                if !last.waiting.contains(&lane) {
                    last.waiting.push(lane);
                }
                return false;
            }
        }
        let mut waiting =
            self.by_subject.remove(subject).map_or_else(Vec::new, |last| last.waiting);
        // The lane that has its turn now, or that did not come in time.
        waiting.drain(..waiting.len().min(1));
        waiting.retain(|it| *it != lane);
        if self.by_subject.len() >= MAX_SUBJECTS {
            self.by_subject.clear();
        }
        self.by_subject.insert(subject.to_owned(), Recalled { at_ms: now_ms, waiting });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the lanes may, at these times.
    fn asked<const N: usize>(lanes: usize, by: [(u64, u16); N]) -> [bool; N] {
        let mut recalls = Recalls::default();
        by.map(|(now_ms, lane)| recalls.may_ask("*", lane, lanes, now_ms))
    }

    #[test]
    fn a_counter_asks_once_in_a_pause_that_grows_with_the_lanes() {
        let times = [(5_000, 1), (5_999, 1), (6_000, 1), (6_999, 1), (7_000, 1)];
        assert_eq!(asked(20, times), [true, false, true, false, true]);
        let times = [(5_000, 1), (7_000, 1), (30_599, 1), (30_600, 1)];
        assert_eq!(asked(512, times), [true, false, false, true]);
        // The clock went back.
        assert_eq!(asked(1, [(5_000, 1), (4_001, 1), (4_000, 1)]), [true, false, true]);
    }

    #[test]
    fn lanes_that_were_refused_have_the_next_turns_in_order() {
        let found = asked(
            2,
            [
                (0, 1),
                (100, 2),
                (200, 1),
                (300, 3),
                // It is the turn of 2, and then of 1, whoever comes first.
                (1_000, 1),
                (1_001, 3),
                (1_002, 2),
                (2_002, 3),
                (2_003, 1),
                (3_003, 1),
                (3_004, 3),
            ],
        );
        let passes: Vec<_> = (0..found.len()).filter(|at| found.get(*at) == Some(&true)).collect();
        assert_eq!(passes, [0, 6, 8, 10]);
    }

    #[test]
    fn a_lane_that_does_not_come_loses_its_turn() {
        // The turn of 2 is over when twice the pause has passed. Then 3 is before it.
        let times = [(0, 1), (100, 2), (200, 3), (1_999, 1), (2_000, 1), (3_000, 2), (3_001, 3)];
        assert_eq!(asked(1, times), [true, false, false, false, true, false, true]);
    }

    #[test]
    fn subjects_have_turns_of_their_own_and_a_bounded_number_is_remembered() {
        let mut recalls = Recalls::default();
        for subject in 0..MAX_SUBJECTS {
            assert!(recalls.may_ask(&subject.to_string(), 1, 1, 0), "{subject}");
        }
        assert!(!recalls.may_ask("0", 1, 1, 0));
        assert!(recalls.may_ask("one more", 1, 1, 0));
        assert_eq!(recalls.by_subject.len(), 1);
    }
}
