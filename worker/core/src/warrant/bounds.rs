//! The bounds of the format. Where nothing else is said, they are the reference implementation's.

/// Bytes of the text of a stack, in any form: base64 of the largest stack, with room for line ends and armour.
pub const MAX_TEXT_BYTES: usize = MAX_STACK_BYTES * 3 / 2;

/// Links of a stack, unless the tenant registers more. Each costs one verification of a signature.
pub const DEFAULT_MAX_LINKS: usize = 8;

/// Links of any stack.
pub const MAX_LINKS: usize = 64;

/// Bytes of one warrant.
pub const MAX_WARRANT_BYTES: usize = 64 * 1024;

/// Bytes of a stack.
pub const MAX_STACK_BYTES: usize = 256 * 1024;

/// Tools of a warrant.
pub const MAX_TOOLS: usize = 256;

/// Constraints of one tool.
pub const MAX_CONSTRAINTS: usize = 64;

/// How deep constraints contain each other, and values.
pub const MAX_NESTING: usize = 32;

/// Extensions of a warrant.
pub const MAX_EXTENSIONS: usize = 64;

/// Bytes of an extension's key.
pub const MAX_EXTENSION_KEY_BYTES: usize = 255;

/// Bytes of an extension's value.
pub const MAX_EXTENSION_BYTES: usize = 8 * 1024;

/// Approvers of a warrant. The format has no bound; more people do not form a quorum in practice.
pub const MAX_APPROVERS: usize = 16;

/// Approvals of a call: the reference implementation looks at two for each approver.
pub const MAX_APPROVALS: usize = 2 * MAX_APPROVERS;

/// Bytes of one approval.
pub const MAX_APPROVAL_BYTES: usize = 8 * 1024;

/// The longest life of a warrant, in seconds: 90 days.
pub const MAX_LIFETIME_S: u64 = 90 * 24 * 60 * 60;

/// How far ahead an issuer's clock may be, in seconds.
pub const CLOCK_TOLERANCE_S: u64 = 30;

/// The length of a window in which a proof is made, in seconds.
pub const PROOF_WINDOW_S: u64 = 30;

/// Windows in which a proof is valid, unless the tenant registers another number: the current one, and two on
/// each side.
pub const DEFAULT_PROOF_WINDOWS: u32 = 5;
