//! What a constraint says about a value.

/// Whether a value fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Yes,
    No,
    /// The constraint says nothing about values of this kind, or the reference implementation says something else. It
    /// fits neither the constraint nor `not` of it.
    Inapplicable,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}
