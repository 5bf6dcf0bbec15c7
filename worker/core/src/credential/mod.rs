//! Credentials: the token that a caller sends, and the signature of its request.

pub mod signature;
pub mod token;
