//! Every SQL statement, in one place, so that a test can prepare each of them against the real schema
//! (`tests/sql.rs`).

pub mod administration;
pub mod d1;
pub mod lane;
