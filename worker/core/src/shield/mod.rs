//! Shield: inspection of texts for attacks, secrets and personal data.
//!
//! Every text of a call's arguments is read, and every key. A finding is a fact for policies
//! (`context.shield`). Whether it also redacts or denies is the mode of its category, which a tenant, a server
//! and a tool each may set.

pub mod mode;

pub use mode::{Category, Mode, Modes, Severity};
