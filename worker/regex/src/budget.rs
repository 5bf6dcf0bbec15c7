//! The bound on the work of matching.

use std::cell::Cell;

thread_local! {
    /// Visits of states that are left. Without a bound, as many as a computer never makes.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs `work`. All searches in it together may visit this many states; one visit takes some 3 ns natively. `None` if
/// they needed more. Then a search ended early, and the result of `work` may be wrong.
pub fn within<T>(visits: u64, work: impl FnOnce() -> T) -> Option<T> {
    let _outer = Outer(LEFT.replace(visits));
    let result = work();
    (LEFT.get() > 0).then_some(result)
}

/// The bound outside of [`within`]. It is restored even if `work` panics.
struct Outer(u64);

impl Drop for Outer {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Subtracts visits. `false` if none is left.
pub fn take(visits: usize) -> bool {
    let left = LEFT.get().saturating_sub(visits as u64);
    LEFT.set(left);
    left > 0
}
