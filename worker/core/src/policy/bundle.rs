//! The compiled policies. The build embeds them and the worker only reads them.
//!
//! Everything is borrowed for `'static`, so loading a bundle costs nothing, however many policies
//! it has. The build writes these values as constants, and a policy is decoded when a call first
//! needs it. The compiler that makes bundles is `policies/compiler`; the code that evaluates them
//! is [`crate::policy`].

use crate::shield::Rules;
use crate::text_enum::text_enum;
use crate::velocity::Window;

/// Policies, the index to find them by, and the tools whose argument types they know.
#[derive(Debug)]
pub struct Bundle {
    /// Lower-case hex of SHA-256 over the schema, the tools, the windows, the rules of the shield, and every policy with its
    /// expressions.
    pub digest: &'static str,
    /// Every entity and entity type that a policy scope or an overlay names, sorted bytewise,
    /// in the spelling of [`entity_symbol`] and [`type_symbol`]. A symbol's number is its
    /// position plus one; zero is [`ANY`].
    pub symbols: &'static [&'static str],
    /// Sorted by `(tenant, principal, action, resource)`, each at most once.
    pub index: &'static [IndexEntry],
    /// Positions in `policies`; each [`IndexEntry`] owns a range, ascending.
    pub postings: &'static [u32],
    /// Sorted by id.
    pub policies: &'static [PolicyRecord],
    /// Sorted by id.
    pub tools: &'static [ToolRecord],
    /// Sorted by name.
    pub velocity: &'static [Window],
    /// The rules of the shield.
    pub shield: Rules,
}

impl Bundle {
    /// The number of a symbol in the bundle.
    #[must_use]
    pub fn symbol(&self, text: &str) -> Option<u32> {
        let at = self.symbols.binary_search(&text).ok()?;
        u32::try_from(at + 1).ok()
    }
}

/// The symbol number of a scope without a constraint.
pub const ANY: u32 = 0;

/// The policies whose scopes have the same four keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The overlay's tenant, as the symbol of `Tenant::"<tenant>"`; [`ANY`] for base policies.
    pub tenant: u32,
    pub principal: u32,
    pub action: u32,
    pub resource: u32,
    pub start: u32,
    pub end: u32,
}

/// The symbol of an entity that a scope names with `==` or `in`: `Type`, a NUL, the raw id.
/// `is Type in entity` is indexed by its entity alone.
#[must_use]
pub fn entity_symbol(entity_type: &str, id: &str) -> String {
    let mut symbol = String::with_capacity(entity_type.len() + id.len() + 1);
    symbol.push_str(entity_type);
    symbol.push('\0');
    symbol.push_str(id);
    symbol
}

/// The symbol of a scope of the form `is Type`.
#[must_use]
pub fn type_symbol(entity_type: &str) -> String {
    format!("is {entity_type}")
}

#[derive(Debug)]
pub struct PolicyRecord {
    /// `<file without its ending, relative to policies/>#<@id>`, such as
    /// `base/provenance#reads-pass`. Unique, and the id that Cedar sees.
    pub id: &'static str,
    /// The policy's own source text, for people; nothing parses it.
    pub text: &'static str,
    /// What the policy is evaluated by, as [`crate::policy::expression`] encodes it.
    pub expressions: &'static [u8],
    /// The tenant to which the policy belongs. `None` for base.
    pub tenant: Option<&'static str>,
    pub forbid: bool,
    pub annotations: Annotations,
}

/// What a policy's annotations add to permit or forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotations {
    pub decision: AnnotatedDecision,
    pub reason: Option<&'static str>,
    /// Present exactly if `decision` is [`AnnotatedDecision::RequireApproval`].
    pub approver_group: Option<&'static str>,
    /// How many different people must approve: 1, or what `@quorum` says.
    pub quorum: u8,
    /// Sorted, without duplicates. Not empty exactly if `decision` is [`AnnotatedDecision::Redact`].
    pub redact_fields: &'static [&'static str],
}

/// `@decision("…")`. A policy without one permits or forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotatedDecision {
    /// No annotation: a permit allows, a forbid denies.
    Plain,
    /// On a forbid: the call is denied, and the agent is stopped.
    Quarantine,
    /// On a permit: the call passes only after people approved it.
    RequireApproval,
    /// On a permit: the call passes only without the named arguments.
    Redact,
}

/// A tool whose argument types are described in `policies/tools/<server>.json`.
#[derive(Debug)]
pub struct ToolRecord {
    /// `<server>/<tool>`.
    pub id: &'static str,
    pub mutates: bool,
    /// Whether its calls send text out, or fetch an address that the caller gives. Such a call is a
    /// write.
    pub egress: bool,
    pub risk: Risk,
    pub canary: bool,
    pub input: RecordType,
}

text_enum! {
    /// A tool's risk, lowest first.
    #[derive(PartialOrd, Ord)]
    Risk {
        Low = "low",
        Medium = "medium",
        High = "high",
        Critical = "critical",
    }
}

/// How an argument's JSON becomes a Cedar value.
#[derive(Debug)]
pub enum ArgumentType {
    Bool,
    /// A JSON number that is an integer within ±2^53.
    Long,
    /// Any JSON number with at most four decimals.
    Decimal,
    String,
    Set(&'static ArgumentType),
    Record(RecordType),
}

/// A JSON object's fields.
#[derive(Debug)]
pub struct RecordType {
    /// Sorted by name.
    pub fields: &'static [Field],
    /// Whether other fields may be present. They convert as those of a tool without a description.
    pub open: bool,
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    pub kind: ArgumentType,
}
