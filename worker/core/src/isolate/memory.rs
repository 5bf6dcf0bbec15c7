//! Bounds the bytes that the requests of an isolate may hold at the same time.
//!
//! An isolate has 128 MB, and Wasm's linear memory never shrinks. So a request's bytes are counted
//! before they are read, and given back when they are dropped.

use std::cell::Cell;
use std::rc::Rc;

/// A bound on the bytes that are held at a time.
#[derive(Debug)]
pub struct Memory {
    max: usize,
    /// A part that only bodies up to `small` may use, so that large bodies do not block ordinary
    /// calls.
    reserved: usize,
    small: usize,
    held: Cell<usize>,
}

impl Memory {
    #[must_use]
    pub const fn new(max: usize, reserved: usize, small: usize) -> Self {
        Self { max, reserved, small, held: Cell::new(0) }
    }

    /// Counts `bytes` until the result is dropped; `None` if they do not fit.
    #[must_use]
    pub fn hold(self: &Rc<Self>, bytes: usize) -> Option<Held> {
        let mut held = Held { memory: Some(Rc::clone(self)), bytes: 0 };
        held.resize(bytes).then_some(held)
    }
}

/// Counted bytes. Dropping it gives them back. The default counts nothing.
#[derive(Debug, Default)]
pub struct Held {
    memory: Option<Rc<Memory>>,
    bytes: usize,
}

impl Held {
    /// Changes the count. Returns `false`, and changes nothing, if the new count is higher and does
    /// not fit.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let Some(memory) = &self.memory else { return true };
        let others = memory.held.get() - self.bytes;
        let max = if bytes <= memory.small { memory.max } else { memory.max - memory.reserved };
        let fits = bytes <= self.bytes || others.saturating_add(bytes) <= max;
        if fits {
            memory.held.set(others + bytes);
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_or_made_smaller_is_given_back() {
        let memory = Rc::new(Memory::new(100, 0, 0));
        let mut first = memory.hold(60).unwrap();
        assert!(memory.hold(41).is_none());
        let second = memory.hold(40).unwrap();
        assert!(!first.resize(61), "it does not fit, and 60 are still counted");
        assert!(memory.hold(1).is_none());
        assert!(first.resize(20));
        assert!(memory.hold(41).is_none());
        drop(second);
        assert!(first.resize(100));
        drop(first);
        assert!(memory.hold(100).is_some());
    }

    #[test]
    fn large_bodies_leave_room_for_small_ones() {
        let memory = Rc::new(Memory::new(100, 30, 10));
        let _large = memory.hold(70).unwrap();
        assert!(memory.hold(11).is_none());
        let small: Vec<Held> = (0..3).filter_map(|_| memory.hold(10)).collect();
        assert_eq!(small.len(), 3);
        assert!(memory.hold(1).is_none());
    }
}
