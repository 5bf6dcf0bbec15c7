//! Credentials that were refused for good, by a lane or by what D1 says of them, remembered in this
//! isolate: their requests are refused before the body is read, wake no lane and cause no read.

use std::cell::RefCell;

use gateward_core::credential::token::{self, Token};
use gateward_core::isolate::refusals::TerminalRefusals;
use gateward_core::problem::Problem;

/// Some 150 bytes each, so less than a megabyte. More than these can only be credentials that Gateward
/// issued and that ended, still in use.
const MAX_REMEMBERED: usize = 4_096;

thread_local! {
    static REFUSED: RefCell<TerminalRefusals> = RefCell::new(TerminalRefusals::new(MAX_REMEMBERED));
}

pub fn remember(secret_hash: [u8; 32], problem: Problem) {
    REFUSED.with_borrow_mut(|refused| refused.remember(secret_hash, problem));
}

/// Why the credential is refused for good, if this isolate knows that it is.
pub fn find(token: &Token<'_>) -> Option<Problem> {
    REFUSED.with_borrow(|refused| {
        // Most isolates know of none, and then nothing is hashed.
        if refused.is_empty() {
            None
        } else {
            refused.get(&token::secret_hash(token.secret)).cloned()
        }
    })
}
