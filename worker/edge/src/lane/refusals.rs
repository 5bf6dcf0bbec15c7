//! Credentials that are revoked or have expired, as a lane or D1 said. This isolate remembers them and
//! refuses their requests before it reads the body, so they wake no lane and cause no read of D1.

use std::cell::RefCell;

use gateward_core::credential::token::{self, Token};
use gateward_core::isolate::refusals::TerminalRefusals;
use gateward_core::problem::Problem;

/// About 150 bytes each, so less than a megabyte. Only credentials that Gateward issued can be
/// remembered.
const MAX_REMEMBERED: usize = 4_096;

thread_local! {
    static REFUSED: RefCell<TerminalRefusals> = RefCell::new(TerminalRefusals::new(MAX_REMEMBERED));
}

pub fn remember(secret_hash: [u8; 32], problem: Problem) {
    REFUSED.with_borrow_mut(|refused| refused.remember(secret_hash, problem));
}

/// Why the credential is refused, if this isolate remembers it.
pub fn find(token: &Token<'_>) -> Option<Problem> {
    REFUSED.with_borrow(|refused| {
        // Most isolates remember none, so they need not hash the secret.
        if refused.is_empty() {
            None
        } else {
            refused.get(&token::secret_hash(token.secret)).cloned()
        }
    })
}
