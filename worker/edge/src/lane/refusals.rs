//! Credentials that a lane or D1 has refused as revoked or expired. This isolate remembers them, and
//! refuses their requests before it reads the body. So they wake no lane and cause no read of D1.
//!
//! A revoked credential never becomes active again, and an expiry never moves to a later time
//! (`admin/credential/end.rs`). So the refusal can be repeated without asking a lane. Refusals that can be
//! lifted, such as a freeze, a quarantine or a ban, are not stored here.

use std::cell::RefCell;

use gateward_core::credential::token::Token;
use gateward_core::isolate::recent::Recent;
use gateward_core::problem::Problem;

/// About 150 bytes each, so less than a megabyte. Only credentials that Gateward issued can be
/// remembered.
const MAX_REMEMBERED: usize = 4_096;

thread_local! {
    static REFUSED: RefCell<Recent<Problem>> = RefCell::new(Recent::new(MAX_REMEMBERED));
}

pub fn remember(secret_hash: [u8; 32], problem: Problem) {
    REFUSED.with_borrow_mut(|refused| refused.remember(secret_hash, problem));
}

/// Why the credential is refused, if this isolate remembers it. A run credential is refused like the
/// credential that it was issued with.
pub fn find(token: &Token<'_>) -> Option<Problem> {
    REFUSED.with_borrow(|refused| refused.get(&token.secret_hash).cloned())
}
