//! What is known of something that does not answer: when it is asked again, and what is logged.
//!
//! While D1 is away, one call a second asks it, and all others are told at once that it is away: each
//! would wait for as long as the first.

/// How often it is asked while it is away.
pub const RETRY_MS: u64 = 1_000;

/// Whether something answers.
#[derive(Debug, Default)]
pub struct Outage {
    /// When it is asked again; `None` while it answers.
    ask_at_ms: Option<u64>,
}

impl Outage {
    /// Whether to ask. Whoever is told so while it is away is the only one for [`RETRY_MS`].
    pub fn may_ask(&mut self, now_ms: u64) -> bool {
        match self.ask_at_ms {
            None => true,
            // A time further away than it can be is from before the clock was set back.
            Some(at_ms) if now_ms < at_ms && at_ms - now_ms <= RETRY_MS => false,
            Some(_) => {
                self.ask_at_ms = Some(now_ms + RETRY_MS);
                true
            }
        }
    }

    /// Whether it did not answer when it was last asked.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.ask_at_ms.is_some()
    }

    /// It did not answer.
    pub fn failed(&mut self, now_ms: u64) {
        self.ask_at_ms = Some(now_ms + RETRY_MS);
    }

    /// It answered; returns whether it was away.
    pub fn answered(&mut self) -> bool {
        self.ask_at_ms.take().is_some()
    }
}

/// How often one kind of line is logged: what fails, fails for every call.
pub const LOG_INTERVAL_MS: u64 = 1_000;

/// Lines of one kind in the log.
#[derive(Debug, Default)]
pub struct LogThrottle {
    logged_at_ms: Option<u64>,
    left_out: u64,
}

impl LogThrottle {
    /// Whether to log a line now; if so, how many like it were left out since the last.
    pub fn admit(&mut self, now_ms: u64) -> Option<u64> {
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
        assert!(outage.may_ask(2_020), "whoever asked never came back");
        assert!(outage.may_ask(500), "the clock was set back");
        assert!(outage.answered());
        assert!(!outage.answered() && outage.may_ask(500));
    }

    #[test]
    fn a_line_is_logged_once_a_second_with_the_number_of_those_left_out() {
        let mut log = LogThrottle::default();
        assert_eq!(log.admit(5), Some(0));
        assert_eq!(log.admit(6), None);
        assert_eq!(log.admit(1_004), None);
        assert_eq!(log.admit(1_005), Some(2));
        assert_eq!(log.admit(900), Some(0), "the clock was set back");
    }
}
