//! The newest entries by a SHA-256: a bounded cache whose oldest entry makes room.

use std::collections::{HashMap, VecDeque};

/// See the module.
#[derive(Debug)]
pub struct Recent<T> {
    entries: HashMap<[u8; 32], T>,
    oldest: VecDeque<[u8; 32]>,
    max: usize,
}

impl<T> Recent<T> {
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { entries: HashMap::new(), oldest: VecDeque::new(), max }
    }

    #[must_use]
    pub fn get(&self, hash: &[u8; 32]) -> Option<&T> {
        self.entries.get(hash)
    }

    pub fn remember(&mut self, hash: [u8; 32], entry: T) {
        if self.entries.insert(hash, entry).is_some() {
            return;
        }
        self.oldest.push_back(hash);
        if self.oldest.len() > self.max
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_makes_room() {
        let mut recent = Recent::new(2);
        for hash in [1, 2, 1, 3] {
            recent.remember([hash; 32], hash);
        }
        let known = |hash: u8| recent.get(&[hash; 32]) == Some(&hash);
        assert_eq!([1, 2, 3].map(known), [false, true, true]);
    }
}
