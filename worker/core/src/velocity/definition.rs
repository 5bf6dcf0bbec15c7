//! What a velocity window counts, as the bundle has it.

use crate::glob;
use crate::text_enum::text_enum;

/// The longest window: a row is kept for that long after its last call.
pub const MAX_WINDOW_S: u64 = 31 * 24 * 60 * 60;

/// Windows of a bundle. The globs of all are matched with each call.
pub const MAX_WINDOWS: usize = 64;

/// Windows whose key is only the agent. Every row of the agent has all of them, so they must be few.
pub const MAX_WINDOWS_OF_AGENTS: usize = 8;

/// Windows of tenants: a call may ask an object for each of them.
pub const MAX_WINDOWS_OF_TENANTS: usize = 8;

/// Parts of a key.
pub const MAX_KEY_PARTS: usize = 4;

text_enum! {
    /// The calls that a window counts.
    Counts {
        /// Those that may run.
        Passed = "passed",
        /// Those that were denied.
        Denied = "denied",
        /// All that were decided.
        Decided = "decided",
    }
}

text_enum! {
    /// Whose calls are counted together.
    Reach {
        /// The window counts the calls of each agent separately.
        Agent = "agent",
        /// The window counts the calls of all agents of the tenant together.
        Tenant = "tenant",
    }
}

/// A part of a window's key. A window counts calls with equal keys together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart {
    Agent,
    /// The user that a harness states.
    User,
    /// The run that a harness assigned.
    Run,
    /// A JSON Pointer (RFC 6901) into the arguments.
    Argument(&'static str),
}

/// A window of the bundle.
#[derive(Debug, PartialEq, Eq)]
pub struct Window {
    /// The name that policies use.
    pub name: &'static str,
    /// The name under which it is stored. It changes with the definition, so a window with a new definition starts
    /// from zero.
    pub id: &'static str,
    /// Globs of `server/tool`.
    pub tools: &'static [&'static str],
    pub counts: Counts,
    /// The JSON Pointer of the number that is summed up; `None` if calls are only counted.
    pub sum: Option<&'static str>,
    /// Empty: all calls within the reach count together.
    pub key: &'static [KeyPart],
    pub width_ms: u64,
    pub reach: Reach,
}

impl Window {
    /// Whether it counts calls of a tool, `server/tool`.
    #[must_use]
    pub fn covers(&self, tool: &str) -> bool {
        self.tools.iter().any(|text| glob::matches(text, tool))
    }

    /// Whether the agent's own state holds it: nothing else is in its key.
    #[must_use]
    pub fn is_of_agent(&self) -> bool {
        self.reach == Reach::Agent && self.key.iter().all(|part| *part == KeyPart::Agent)
    }
}
