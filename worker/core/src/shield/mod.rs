//! Shield: inspection of texts for attacks, secrets and personal data.
//!
//! Every text of a call's arguments is read, and every key; if a server's registration asks for it, also what the
//! server returns. A finding in arguments is a fact for policies (`context.shield`), one in an answer can taint the
//! run. The mode of its category decides whether the finding also redacts or denies. A tenant, a server and a tool can
//! each set this mode ([`Verdict`]).
//!
//! A text is read as it is, and in its decoded forms, each in one pass ([`scan`]). The rules are data of the bundle
//! ([`rule`]). Code finds what literals cannot describe ([`detect`]).
//!
//! INVARIANT (no silent end): a text that is not read to its end, in each of its forms, sets `truncated`.
//!
//! Out of scope: what a text means. Patterns find known forms of attacks. Provenance and taint are the defence against
//! injected instructions.

mod automaton;
pub mod detect;
mod findings;
mod inspect;
mod left;
pub mod matcher;
mod mode;
mod path;
mod redact;
pub mod rule;
pub mod scan;
mod signs;
mod verdict;

pub use findings::{Decoding, Finding, Findings, MAX_FINDINGS, MAX_POINTER_BYTES, Noted};
pub use inspect::{BESIDE, Shield};
pub use mode::{Category, Mode, Modes, Severity};
pub use redact::Redaction;
pub use rule::{Rule, Rules};
pub use verdict::Verdict;
