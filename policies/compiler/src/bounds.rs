//! Bounds on the sources, each with its reason. The bounds on annotations and arguments also bound the
//! size of a decision.

use gateward_core::bounds::MAX_JSON_DEPTH;

/// Policies in a bundle: twice the largest bundle that the benches measure. They are validated in
/// seconds, and their number is far below the limit of the index's `u32`.
pub const MAX_POLICIES: usize = 20_000;

/// Bytes of one policy, including comments inside it. An ordinary policy has a few hundred. The worker
/// decodes a policy during the first call that uses it, and this must not take milliseconds.
pub const MAX_POLICY_BYTES: usize = 16 * 1024;

/// Bytes of all policies. They are embedded in the worker. The platform limits a worker to 10 MB
/// gzipped and 64 MB plain, and gzip reduces policies to a quarter or less.
pub const MAX_BUNDLE_BYTES: usize = 16 * 1024 * 1024;

/// Nesting of brackets and `if`s in one policy. Cedar parses by recursion without a guard: 24 levels
/// took less than 384 KiB of stack in an unoptimised native build.
pub const MAX_POLICY_NESTING: usize = 24;

/// Depth of a policy in Cedar's JSON form, two levels for an operator: about 60 conditions
/// joined by `&&`. Cedar evaluates by recursion, on wasm32 without a guard; 48 conditions took
/// less than 384 KiB of stack in an unoptimised native build. The worker's stack has 1 MiB. Decoding
/// does not recurse (`core/tests/expressions.rs`).
pub const MAX_EXPRESSION_DEPTH: usize = 128;

/// Described tools. A policy on `Action::"read"` is validated against the type of every one.
pub const MAX_TOOLS: usize = 1_000;

/// Nesting of argument types. Arguments arrive in JSON with at most [`MAX_JSON_DEPTH`] levels. Real
/// tools need far fewer.
pub const MAX_TYPE_DEPTH: usize = 16;

/// Properties of one tool, on all levels. The largest tools in use have some dozens.
pub const MAX_PROPERTIES: usize = 256;

/// Bytes of an argument's name, and of a field in `@redact_fields`.
pub const MAX_FIELD_BYTES: usize = 128;

/// Fields of one `@redact_fields`. The answer contains all of them.
pub const MAX_REDACT_FIELDS: usize = 64;

/// Bytes of `@reason`: one or two sentences, which the answer contains.
pub const MAX_REASON_BYTES: usize = 512;

/// The largest quorum. More people than this would not decide in time.
pub const MAX_QUORUM: u8 = 16;

const _: () = assert!(
    MAX_TYPE_DEPTH < MAX_JSON_DEPTH,
    "no call's JSON could match a type that is deeper than the JSON may be"
);
const _: () = assert!(MAX_POLICIES <= u32::MAX as usize, "postings are positions in u32");
