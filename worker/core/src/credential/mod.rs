//! Credentials: the token that a caller sends, and the signature of its request.

pub mod locator;
pub mod run_token;
pub mod signature;
pub mod token;
