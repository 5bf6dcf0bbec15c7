//! Every bound on what comes in, each with its reason. Bounds on what is kept stand beside the
//! state that they bound.

/// Bytes of a request's body. Tool arguments are texts and records, not files; 256 KiB holds a
/// large issue or patch, and a lane parses and hashes it in about a millisecond.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// Nesting of JSON. Cedar on wasm32 has no guard against stack overflow, and evaluating a value
/// takes a few hundred bytes of stack per level: 32 levels stay far below the 1 MiB stack.
pub const MAX_JSON_DEPTH: usize = 32;

/// Values in one JSON document, keys not counted. Bounds the time that one call can take from
/// the others of its lane.
pub const MAX_JSON_NODES: usize = 10_000;

/// Fields of one object, or items of one list, that is read piece by piece and passed on: as many as a
/// document may have values. Each takes some 100 bytes, however short it is.
pub const MAX_RAW_PARTS: usize = MAX_JSON_NODES;

/// `Mcp-Param-*` headers of a request: each is compared with every argument,
/// and nobody routes by more.
pub const MAX_PARAMETER_HEADERS: usize = 32;

/// Bytes of a request id, approval id or nonce: a UUID with a prefix fits several times.
pub const MAX_REQUEST_ID_BYTES: usize = 128;

/// Bytes of a caller's own text that is written down: user, role, run and trace ids.
pub const MAX_LABEL_BYTES: usize = 256;

/// Bytes of a resource, which is often a URL.
pub const MAX_RESOURCE_BYTES: usize = 2_048;

/// Bytes of a name: `[a-z0-9][a-z0-9_-]{0,62}`.
pub const MAX_NAME_BYTES: usize = 63;

/// Bytes of a tool's name, as MCP has it.
pub const MAX_TOOL_BYTES: usize = 128;

/// Bytes of a glob: the longest `server/tool` that there can be.
pub const MAX_GLOB_BYTES: usize = MAX_NAME_BYTES + 1 + MAX_TOOL_BYTES;

/// `*` in a glob: a beginning, a part in the middle and an end. Each more would be a search more, and a
/// listing compares a thousand names.
pub const MAX_GLOB_STARS: usize = 2;

/// Bytes of a credential: three names, a lane, a secret and a MAC.
pub const MAX_TOKEN_BYTES: usize = 3 + 3 * (MAX_NAME_BYTES + 1) + 5 + 44 + 11;

/// A caller's timestamp, and the time at which it signed a request, may be this far from the gate's
/// clock, either way.
pub const MAX_CLOCK_SKEW_MS: u64 = 300_000;

/// Bytes of a header that describes or holds a signature, or a digest. Twenty covered headers and all
/// parameters take less than half of it.
pub const MAX_SIGNATURE_FIELD_BYTES: usize = 2_048;

/// Lane numbers: the 12 bits that a decision id has for them.
pub const MAX_LANES: u16 = 4_096;

/// Lanes that a tenant can be given. Each change of its registry tells every one of them, out of
/// what one request may ask of other objects: 1,000 on Cloudflare's ordinary plans.
pub const MAX_TENANT_LANES: u16 = 512;

/// Bans of a tenant that have not expired. A lane holds them all, some 200 bytes each, and compares
/// each banned network with each call's address: 1,000 take a few microseconds.
pub const MAX_BANS: usize = 1_000;

/// Tools of a tenant.
pub const MAX_TOOLS: u64 = 100_000;

/// Tools of one server that a listing is filtered by: several times what a model can choose among.
pub const MAX_SERVER_TOOLS: usize = 5_000;

const _: () =
    assert!(MAX_JSON_DEPTH < 128, "serde_json stops at 128 levels; ours must answer first");

/// Entries of a list of globs or networks: each is tried for every call.
pub const MAX_LIST_ENTRIES: usize = 64;
