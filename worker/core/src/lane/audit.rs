//! Counters for events that come in floods: one audit row per source, kind and window, with a
//! count.
//!
//! A count is written when it reaches a power of two, and when its window has closed. So a million
//! rejections cost about twenty writes. Between writes the count is in memory only. An eviction can
//! lose that part: the row then shows fewer events than there were, never more.

use std::collections::HashMap;

/// The length of a window.
pub const WINDOW_MS: u64 = 60_000;

/// The source under which all further sources are counted.
const OTHER_SOURCES: &str = "*";

/// A count that must be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCount {
    /// The same for every write of one count: it is made of kind, source, window and scope.
    pub event_id: String,
    pub kind: &'static str,
    pub source: String,
    /// When the window began.
    pub at_ms: u64,
    /// The count so far.
    pub count: u64,
    /// The part of it that no earlier write had.
    pub added: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counter {
    count: u64,
    written: u64,
}

/// The counts of the open windows.
#[derive(Debug)]
pub struct AuditCounts {
    counters: HashMap<(u64, &'static str, String), Counter>,
    /// Sources with a count of their own. Further sources share one.
    max_sources: usize,
    /// The end of every event id. Two counters that write to one table need different scopes.
    scope: String,
}

impl AuditCounts {
    /// Counters that start at zero. Counters that run at the same time, or one after the other,
    /// need different scopes, unless their writes are added up.
    #[must_use]
    pub fn new(max_sources: usize, scope: String) -> Self {
        Self { counters: HashMap::new(), max_sources, scope }
    }

    /// Counts one event. Returns the count if it must be written now.
    pub fn record(&mut self, kind: &'static str, source: &str, now_ms: u64) -> Option<AuditCount> {
        let window = now_ms / WINDOW_MS;
        let mut key = (window, kind, source.to_owned());
        if self.counters.len() >= self.max_sources && !self.counters.contains_key(&key) {
            key.2 = OTHER_SOURCES.to_owned();
        }
        let counter = self.counters.entry(key.clone()).or_default();
        counter.count += 1;
        counter.count.is_power_of_two().then(|| take(&key, counter, &self.scope))
    }

    /// Removes the counts of closed windows, and returns those that must still be written. A window
    /// is closed when its minute has passed. A window in the future is closed too: the clock was
    /// ahead.
    pub fn close(&mut self, now_ms: u64) -> Vec<AuditCount> {
        let window = now_ms / WINDOW_MS;
        let mut closed = Vec::new();
        self.counters.retain(|key, counter| {
            // The next window counts as open too: a clock that goes back by a second may have left
            // it behind.
            let open = (window..=window + 1).contains(&key.0);
            if !open && counter.count > counter.written {
                closed.push(take(key, counter, &self.scope));
            }
            open
        });
        closed
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }
}

fn take(
    (window, kind, source): &(u64, &'static str, String),
    counter: &mut Counter,
    scope: &str,
) -> AuditCount {
    let added = counter.count - counter.written;
    counter.written = counter.count;
    AuditCount {
        event_id: format!("{kind}:{source}:{window}{scope}"),
        kind,
        source: source.clone(),
        at_ms: window * WINDOW_MS,
        count: counter.count,
        added,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_one_row_with_its_whole_count() {
        let mut counts = AuditCounts::new(1_000, ".a".to_owned());
        let written: Vec<u64> = (0..1_000)
            .filter_map(|_| counts.record("rate_limited", "bot", 5))
            .map(|c| c.count)
            .collect();
        assert_eq!(written, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(counts.close(WINDOW_MS - 1), []);
        let closed = counts.close(WINDOW_MS);
        assert_eq!(closed.len(), 1);
        assert_eq!((closed[0].count, closed[0].added), (1_000, 488));
        assert_eq!(closed[0].event_id, "rate_limited:bot:0.a");
        assert!(counts.is_empty());
    }

    #[test]
    fn a_window_in_the_future_is_closed() {
        let mut counts = AuditCounts::new(1_000, String::new());
        (0..3).for_each(|_| drop(counts.record("rate_limited", "bot", 5 * WINDOW_MS)));
        assert_eq!(counts.close(4 * WINDOW_MS), []);
        assert_eq!(counts.close(3 * WINDOW_MS)[0].count, 3);
        assert!(counts.is_empty());
    }

    #[test]
    fn sources_beyond_the_bound_are_counted_together() {
        let mut counts = AuditCounts::new(1_000, ".a".to_owned());
        for source in 0..1_003 {
            counts.record("rate_limited", &source.to_string(), 5);
        }
        let closed = counts.close(WINDOW_MS);
        assert_eq!(
            closed.iter().map(|c| (c.source.as_str(), c.count, c.added)).collect::<Vec<_>>(),
            [("*", 3, 1)]
        );
    }
}
