//! Keyed hashes of values. Only hashes are stored: neither instructions nor results.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use siphasher::sip::SipHasher13;

/// The key of the hashes. It is derived from the worker's MAC key, so it is stored nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKey([u8; 16]);

impl ValueKey {
    #[must_use]
    pub const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// Identifies the key. Hashes of two keys cannot be compared, which matters when the MAC key is
    /// replaced during a run.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        self.hash(b"gateward value key") as u32
    }

    /// SipHash-1-3 of a value in normal form (Aumasson and Bernstein, 2012). It is a fast keyed hash: without the key,
    /// nobody can find two values with the same hash.
    #[must_use]
    pub fn hash(&self, normal: &[u8]) -> u64 {
        SipHasher13::new_with_key(&self.0).hash(normal)
    }

    /// The hash of a text whose normal form is another value. No normal form begins with the byte 0xff.
    #[must_use]
    pub fn verbatim(&self, text: &str) -> u64 {
        self.of_kind(b"\xff\"", text.trim().as_bytes())
    }

    /// The hash of something else than a value. The kind begins with the byte 0xff.
    // Inlined into each caller, it takes much more code.
    #[inline(never)]
    #[must_use]
    pub fn of_kind(&self, kind: &[u8], text: &[u8]) -> u64 {
        self.hash(&[kind, text].concat())
    }
}

/// Whether a set has a hash.
#[inline(never)]
#[must_use]
pub fn has(hashes: &Hashes, hash: u64) -> bool {
    hashes.contains(&hash)
}

/// A set of hashes. They are uniform already, so they are not hashed again.
pub type Hashes = HashSet<u64, BuildHasherDefault<AlreadyHashed>>;

/// See [`Hashes`].
#[derive(Debug, Clone, Copy, Default)]
pub struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not used: all keys are `u64`, and `write_u64` takes those.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
