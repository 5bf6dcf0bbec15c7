//! One operation that is measured.

use std::hint::black_box;

/// Gateward's own operations, as opposed to a peer's.
pub const GATEWARD: &str = "gateward";

/// Runs the operation once.
pub type Run = Box<dyn Fn()>;

/// Something to measure.
pub struct Operation {
    pub name: String,
    /// Whose implementation it is: [`GATEWARD`] or a peer that does the same work.
    pub of: &'static str,
    prepare: Box<dyn Fn() -> Run>,
}

impl Operation {
    /// `prepare` builds what the operation needs, asserts its outcome, and returns what is run.
    pub(crate) fn new<F, T>(
        name: impl Into<String>,
        of: &'static str,
        prepare: impl Fn() -> F + 'static,
    ) -> Self
    where
        F: Fn() -> T + 'static,
    {
        let prepare = move || -> Run {
            let run = prepare();
            Box::new(move || drop(black_box(run())))
        };
        Self { name: name.into(), of, prepare: Box::new(prepare) }
    }

    /// # Panics
    ///
    /// If the operation's result is not the one that its name says.
    #[must_use]
    pub fn prepare(&self) -> Run {
        (self.prepare)()
    }
}
