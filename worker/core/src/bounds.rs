//! The bounds on requests, each with its reason. A bound on stored state is next to that state.

/// Bytes of a request's body. Tool arguments are texts and records, not files; 256 KiB holds a
/// large issue or patch, and a lane parses and hashes it in about a millisecond.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// Levels of nested JSON. Cedar has no guard against stack overflow on wasm32, and needs a few hundred bytes
/// of stack per level: 32 levels stay far below the stack of 1 MiB.
pub const MAX_JSON_DEPTH: usize = 32;

/// Values in one JSON document, without keys. Bounds the time for which one call can delay the others of
/// its lane.
pub const MAX_JSON_NODES: usize = 10_000;

/// Fields of an object, or items of an array, that is forwarded field by field: as many as a document may
/// have values. Each needs some 100 bytes of memory, even if it is short.
pub const MAX_RAW_PARTS: usize = MAX_JSON_NODES;

/// `Mcp-Param-*` headers of a request. Each is compared with every argument. Routing needs no more.
pub const MAX_PARAMETER_HEADERS: usize = 32;

/// Bytes of a request id, approval id or nonce: several times a UUID with a prefix.
pub const MAX_REQUEST_ID_BYTES: usize = 128;

/// Bytes of a caller's own text that is stored: user, role, run and trace ids.
pub const MAX_LABEL_BYTES: usize = 256;

/// Bytes of a resource, which is often a URL.
pub const MAX_RESOURCE_BYTES: usize = 2_048;

/// Bytes of a name: `[a-z0-9][a-z0-9_-]{0,62}`.
pub const MAX_NAME_BYTES: usize = 63;

/// Bytes of a tool's name, as in MCP.
pub const MAX_TOOL_BYTES: usize = 128;

/// Bytes of a glob: the longest possible `server/tool`.
pub const MAX_GLOB_BYTES: usize = MAX_NAME_BYTES + 1 + MAX_TOOL_BYTES;

/// `*` in a glob: it can fix a prefix, a middle part and a suffix. Each further `*` would cost another search
/// per name, and a list has up to a thousand names.
pub const MAX_GLOB_STARS: usize = 2;

/// Bytes of a token: three names, a lane, a secret and a MAC.
pub const MAX_TOKEN_BYTES: usize = 3 + 3 * (MAX_NAME_BYTES + 1) + 5 + 44 + 11;

/// Bytes of a run credential: three names, a lane, a hash, a run id in base64url, a time and a seal.
pub const MAX_RUN_TOKEN_BYTES: usize =
    4 + 3 * (MAX_NAME_BYTES + 1) + 5 + 44 + (MAX_LABEL_BYTES * 4).div_ceil(3) + 1 + 21 + 32;

/// Bytes of a locator: two names, a lane, a key in base64url, and a seal.
pub const MAX_LOCATOR_BYTES: usize = 4 + 2 * (MAX_NAME_BYTES + 1) + 5 + 44 + 32;

/// How far a caller's timestamp, and the time of a signature, may be from Gateward's clock, in either
/// direction.
pub const MAX_CLOCK_SKEW_MS: u64 = 300_000;

/// Bytes of a `Signature`, `Signature-Input` or `Content-Digest` header. Twenty covered headers with all
/// parameters need less than half of it.
pub const MAX_SIGNATURE_FIELD_BYTES: usize = 2_048;

/// The number of lane numbers: a decision id has 12 bits for the lane.
pub const MAX_LANES: u16 = 4_096;

/// The number of the lane that keeps a tenant's head log. No agent has it.
pub const HEAD_LANE: u16 = u16::MAX;

/// Lanes of a tenant. A change of the registry is pushed to each of them in one request, which may call
/// 1,000 other objects on Cloudflare's ordinary plans.
pub const MAX_TENANT_LANES: u16 = 512;

/// Bans of a tenant that have not expired. A lane keeps all of them in memory, some 200 bytes each, and
/// compares every banned network with the address of every call: 1,000 take a few microseconds.
pub const MAX_BANS: usize = 1_000;

/// Keys of a tenant that root warrants. A lane keeps all of them in memory and looks a key up for each call with a
/// warrant. With lists of servers of the greatest length, they are 800 KB of JSON; a value in a lane's storage can have
/// 2 MB.
pub const MAX_WARRANT_ROOTS: usize = 64;

/// Deleted roots of a tenant whose revocation list is remembered by its version. A tenant that replaces a root each day
/// reaches this after ten years. D1 has some 150 bytes for each.
pub const MAX_REMEMBERED_LISTS: usize = 4_000;

/// Revocations of warrants of a tenant that have not expired: one every half hour. A lane keeps all of them in memory,
/// some 20 bytes each; as JSON they are 140 KB.
pub const MAX_WARRANT_REVOCATIONS: usize = 4_000;

/// How long a revocation is kept: as long as a warrant can be valid, plus a day for clocks that differ. After that,
/// the revoked warrant has expired.
pub const WARRANT_REVOCATION_MS: u64 = 91 * 24 * 60 * 60 * 1_000;

/// Limits of a tenant: a few for each of thousands of agents.
pub const MAX_LIMITS: usize = 10_000;

/// Tools of a tenant.
pub const MAX_TOOLS: u64 = 100_000;

/// Tools of one server that are loaded to filter a list: several times as many as a model can choose from.
pub const MAX_SERVER_TOOLS: usize = 5_000;

const _: () =
    assert!(MAX_JSON_DEPTH < 128, "serde_json stops at 128 levels, and our error must come first");

/// Entries of a list of globs or networks. Each is compared with every call.
pub const MAX_LIST_ENTRIES: usize = 64;

/// Seconds until a retry when a part of Gateward is unavailable: long enough for a lane to restart, short
/// enough that an agent does not give up.
pub const RETRY_AFTER_UNAVAILABLE_S: u32 = 2;

/// Seconds until a retry when the isolate's memory is in use. Most calls end within a fraction of a second.
pub const RETRY_AFTER_OVERLOADED_S: u32 = 1;
