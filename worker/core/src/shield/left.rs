//! What of a call or an answer may still be read, and the work that may still be done.
//!
//! Every text is read for literals. Everything else that costs much takes units of work from a budget before it is done.
//! The budget is a constant and some units for each byte of the texts. So no text costs more than a multiple of what ordinary
//! text of its length costs. One unit is about what a byte of ordinary text costs, but links cost more than they take: agents
//! send many.
//!
//! INVARIANT (bound on work): work for which the budget has too few units left is not done, and then the text counts as not
//! read to its end.

use std::cell::Cell;

/// Bytes of a call's arguments that are read: more than a request may have.
const MAX_ARGUMENT_BYTES: usize = 512 * 1024;

/// Bytes that compressed data of one call may have when it is read. Arguments seldom hold files.
const MAX_INFLATED_BYTES: usize = 128 * 1024;

/// What each decoded form of a text takes, besides its bytes. To decode a short text and to read it again costs many times what
/// its bytes cost otherwise.
pub(super) const FORM: usize = 48;

/// What a text that is JSON takes, and what each text in it takes besides its bytes.
pub(super) const NESTED: usize = 8;

/// What a detector takes when it begins.
pub(super) const BEGIN: usize = 10;

/// What each sign takes at which a detector reads on.
pub(super) const SIGN: usize = 2;

/// What each command or event takes that is read after a sign.
pub(super) const CANDIDATE: usize = 10;

/// What each expression of a template takes.
pub(super) const EXPRESSION: usize = 30;

/// What each byte of a form takes that is not ASCII: it is read for more literals, and its letters are folded.
pub(super) const OTHER: usize = 2;

/// What a token of SQL takes, and what a character that may be a step of a path takes.
pub(super) const TOKEN: usize = 1;

/// What a host takes that is no plain name, so that it must be parsed.
pub(super) const HOST: usize = 50;

/// What each byte of a text adds to the budget. The texts of `tests/shield/` need two thirds of the budget at most. A file of
/// JSON with escapes in each row needs 97 % of it.
pub(super) const OF_BYTE: usize = 10;

/// What the texts of a call's arguments may take beyond what their bytes add: with that, some two thousand short texts that are encoded are read.
const OF_ARGUMENTS: usize = 128 * 1024;

/// What may still be read.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub bytes: usize,
    /// Bytes of compressed data.
    pub inflated: usize,
    pub work: Work,
}

impl Left {
    pub const fn of(bytes: usize) -> Self {
        Self { bytes, inflated: MAX_INFLATED_BYTES, work: Work::of(bytes) }
    }

    /// For the arguments of a call.
    pub const fn of_arguments() -> Self {
        Self { work: Work::of(OF_ARGUMENTS), ..Self::of(MAX_ARGUMENT_BYTES) }
    }
}

/// A budget of work: the units that are left, and whether some work was refused.
#[derive(Debug, Clone)]
pub struct Work {
    left: Cell<usize>,
    refused: Cell<bool>,
}

impl Work {
    pub const fn of(units: usize) -> Self {
        Self { left: Cell::new(units), refused: Cell::new(false) }
    }

    /// Takes units for some work. Returns whether it may be done. If not, nothing is left.
    #[inline]
    pub fn take(&self, units: usize) -> bool {
        let left = self.left.get().checked_sub(units);
        self.left.set(left.unwrap_or_default());
        if left.is_none() {
            self.refused.set(true);
        }
        left.is_some()
    }

    pub fn add(&self, units: usize) {
        self.left.set(self.left.get() + units);
    }

    pub const fn left(&self) -> usize {
        self.left.get()
    }

    /// Whether some work was refused since this was asked last.
    pub const fn was_refused(&self) -> bool {
        self.refused.replace(false)
    }
}
