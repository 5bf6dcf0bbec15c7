//! The state of a dependency that may not answer: when to ask it again, and what to log.
//!
//! During an outage of D1, one call a second asks it, and all others are refused at once. Otherwise
//! each of them would wait until its own time limit.

/// How often the dependency is asked during an outage.
pub const RETRY_MS: u64 = 1_000;

/// Whether a dependency answers.
#[derive(Debug, Default)]
pub struct Outage {
    /// When it is asked again; `None` if it answers.
    ask_at_ms: Option<u64>,
}

impl Outage {
    /// Whether to ask. During an outage, the answer is yes once in [`RETRY_MS`].
    pub fn may_ask(&mut self, now_ms: u64) -> bool {
        match self.ask_at_ms {
            None => true,
            // A time further ahead than that was set before the clock went back.
            Some(at_ms) if now_ms < at_ms && at_ms - now_ms <= RETRY_MS => false,
            Some(_) => {
                self.ask_at_ms = Some(now_ms + RETRY_MS);
                true
            }
        }
    }

    /// Whether it failed when it was last asked.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.ask_at_ms.is_some()
    }

    /// Records that it failed.
    pub fn failed(&mut self, now_ms: u64) {
        self.ask_at_ms = Some(now_ms + RETRY_MS);
    }

    /// Records that it answered. Returns whether that ended an outage.
    pub fn answered(&mut self) -> bool {
        self.ask_at_ms.take().is_some()
    }
}

/// How often an event of an outage is logged. If a dependency fails, it fails for every call.
pub const LOG_INTERVAL_MS: u64 = 1_000;

/// The log lines of one event.
#[derive(Debug, Default)]
pub struct LogThrottle {
    logged_at_ms: Option<u64>,
    left_out: u64,
}

impl LogThrottle {
    /// Whether to log a line now. If so, returns how many lines were left out since the last one.
    pub fn line(&mut self, now_ms: u64) -> Option<u64> {
        let age_ms = self.logged_at_ms.map(|at_ms| now_ms.checked_sub(at_ms));
        if let Some(Some(0..LOG_INTERVAL_MS)) = age_ms {
            self.left_out += 1;
            return None;
        }
        self.logged_at_ms = Some(now_ms);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_away_is_asked_by_one_call_a_second() {
        let mut outage = Outage::default();
        assert!(outage.may_ask(10) && outage.may_ask(10), "it answers");
        outage.failed(20);
        assert!(!outage.may_ask(20));
        assert!(!outage.may_ask(1_019));
        assert!(outage.may_ask(1_020));
        assert!(!outage.may_ask(1_020), "another call asks already");
        assert!(outage.may_ask(2_020), "the call that asked never returned");
        assert!(outage.may_ask(500), "the clock was set back");
        assert!(outage.answered());
        assert!(!outage.answered() && outage.may_ask(500));
    }

    #[test]
    fn a_line_is_logged_once_a_second_with_the_number_of_those_left_out() {
        let mut log = LogThrottle::default();
        assert_eq!(log.line(5), Some(0));
        assert_eq!(log.line(6), None);
        assert_eq!(log.line(1_004), None);
        assert_eq!(log.line(1_005), Some(2));
        assert_eq!(log.line(900), Some(0), "the clock was set back");
    }
}
