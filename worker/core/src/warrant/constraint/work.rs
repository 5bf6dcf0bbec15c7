//! A bound on the work of one verification.

/// Steps of one verification: comparisons of values, and bytes of arguments that are looked at. Warrants that
/// people write take a few hundred.
///
/// By estimate, most steps take 1 to 5 ns natively. The costliest take 7 ns, and 14 ns in Wasm: those of paths. So all
/// steps take at most 1.8 ms natively, and 3.5 ms in Wasm. The bench `worst_case_warrant_384_kib` takes almost all of the
/// costliest.
const MAX_STEPS: u64 = 250_000;

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
