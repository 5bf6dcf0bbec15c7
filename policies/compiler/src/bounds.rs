//! Bounds on what is compiled, each with its reason. Those on annotations and arguments also
//! bound what a decision can carry.

use gateward_core::bounds::MAX_JSON_DEPTH;

/// Policies in a bundle. Twice the largest bundle that is measured; they are validated in
/// seconds, and their number fits the index's `u32` with room to spare.
pub const MAX_POLICIES: usize = 20_000;

/// Bytes of one policy, comments inside it included. A policy of ordinary size has a few
/// hundred; one is parsed within a call on its first use, which must not take milliseconds.
pub const MAX_POLICY_BYTES: usize = 16 * 1024;

/// Bytes of all policies. They are embedded in the worker, which the platform bounds to 10 MB
/// gzipped and 64 MB plain; policies shrink at least to a quarter.
pub const MAX_BUNDLE_BYTES: usize = 16 * 1024 * 1024;

/// Nesting of brackets and `if`s in one policy. Cedar parses by recursion without a guard:
/// 24 levels took less than 384 KiB of stack in an unoptimised native build, and the worker's
/// stack has 1 MiB.
pub const MAX_POLICY_NESTING: usize = 24;

/// Depth of a policy in Cedar's JSON form, two levels for an operator: about 60 conditions
/// joined by `&&`. Cedar evaluates by recursion, on wasm32 without a guard; 48 conditions took
/// less than 384 KiB of stack in an unoptimised native build, as above.
pub const MAX_EXPRESSION_DEPTH: usize = 128;

/// Described tools. A policy on `Action::"read"` is validated against the type of every one.
pub const MAX_TOOLS: usize = 1_000;

/// Nesting of argument types. Arguments arrive in JSON of at most [`MAX_JSON_DEPTH`] levels, and
/// no tool that a person can write policies about comes near.
pub const MAX_TYPE_DEPTH: usize = 16;

/// Properties of one tool, at all levels; the largest tools in use have some dozens.
pub const MAX_PROPERTIES: usize = 256;

/// Bytes of an argument's name, and of a field in `@redact_fields`.
pub const MAX_FIELD_BYTES: usize = 128;

/// Fields of one `@redact_fields`; all of them travel in the answer.
pub const MAX_REDACT_FIELDS: usize = 64;

/// Bytes of `@reason`: a sentence or two, which travel in the answer.
pub const MAX_REASON_BYTES: usize = 512;

/// Approvals that one permit can ask for; more people than that decide nothing in time.
pub const MAX_QUORUM: u8 = 16;

const _: () = assert!(
    MAX_TYPE_DEPTH < MAX_JSON_DEPTH,
    "a type deeper than any call's JSON could never be filled"
);
const _: () = assert!(MAX_POLICIES <= u32::MAX as usize, "postings are positions in u32");
