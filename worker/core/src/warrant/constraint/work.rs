//! A bound on the work of one verification.

/// Steps of one verification: signatures, bytes that are hashed for them, comparisons of values, and bytes of arguments
/// that are looked at. Besides signatures, warrants that people write take a few hundred. A chain of 64 links with five
/// windows for its proof takes 760,000 for its signatures.
///
/// In Wasm, the costliest steps take 14 ns: those of paths and signatures. So all steps take at most 14 ms, whatever they are
/// used for. The benches `worst_case_warrant_…` take almost all of them.
const MAX_STEPS: u64 = 1_000_000;

/// Steps of a signature, besides hashing its message: it takes 0.15 ms in Wasm.
const SIGNATURE_STEPS: usize = 11_000;

/// Bytes that SHA-512 hashes in one step, in Wasm. SHA-256 takes a little longer.
const HASHED_BYTES: usize = 4;

/// How many steps are left.
#[derive(Debug, Clone)]
pub struct Work(u64);

/// There are no steps left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

impl Default for Work {
    fn default() -> Self {
        Self(MAX_STEPS)
    }
}

impl Work {
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.0
    }

    /// Takes the steps of so many signatures of messages of this length.
    ///
    /// # Errors
    ///
    /// Fewer are left.
    pub fn spend_signatures(&mut self, count: usize, message_bytes: usize) -> Result<(), TooMuch> {
        self.spend(count.saturating_mul(SIGNATURE_STEPS + message_bytes / HASHED_BYTES))
    }

    /// Takes the steps of hashing so many bytes.
    ///
    /// # Errors
    ///
    /// Fewer are left.
    pub fn spend_hash(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.spend(bytes / HASHED_BYTES)
    }

    /// Takes steps. It must be called before they are done.
    ///
    /// # Errors
    ///
    /// Fewer are left.
    pub fn spend(&mut self, steps: usize) -> Result<(), TooMuch> {
        let left = u64::try_from(steps).ok().and_then(|steps| self.0.checked_sub(steps));
        self.0 = left.unwrap_or(0);
        if left.is_some() { Ok(()) } else { Err(TooMuch) }
    }
}
