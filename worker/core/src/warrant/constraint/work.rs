//! A bound on the work of one verification.

/// Steps of one verification: comparisons of values, and bytes of arguments that are looked at. Warrants that
/// people write take a few hundred. The bench `worst_case_warrant_256_kib` takes almost all.
const MAX_STEPS: u64 = 1_000_000;

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
