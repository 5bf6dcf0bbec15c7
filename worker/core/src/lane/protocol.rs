//! The protocol between the worker and a lane's Durable Object: one enum of requests, one of replies.
//!
//! A message is one version byte and then postcard. Worker and object may run different versions for
//! minutes after a deploy. Each refuses a message of another version, so such a call is answered with
//! 503 `lane_unavailable` and the caller tries again.
//!
//! The worker passes the answers to [`LaneRequest::Call`] and [`LaneRequest::DecideApproval`] on to the
//! caller, so these are HTTP responses with a JSON body. Every other answer is a [`LaneReply`].

mod bytes;

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::bytes::{Unread, Written};
use crate::approval::{ChangeCommand, DecideCommand, HeldApproval};
use crate::call::command::GateCommand;
use crate::gate::head_log::LaneCheckpoint;
use crate::gate::{AgentCommand, Containment, ListCommand, OutcomeCommand, TaintCommand};
use crate::json::as_text;
use crate::limit::Amount;
use crate::limit::lease::{Ask, Granted, Returned, Terms};
use crate::problem::{Problem, ProblemCode};
use crate::receipt::ChainHead;
use crate::registry::{EpochPush, PendingPushes, TenantRecord};
use crate::velocity::Counted;
use crate::velocity::shared::CountRequest;

/// The first byte of every message. Raise it whenever [`LaneRequest`], [`LaneReply`] or anything in
/// them changes its shape, or when the order of an enum's variants changes: postcard encodes a variant's position.
pub const PROTOCOL_VERSION: u8 = 18;

/// Status of a lane's answer [`LaneReply::Done`] (No Content). It has no body, because reading one takes longer than the
/// rest of a hop.
pub const DONE: u16 = 204;

/// Status of a lane's answer to a message that it cannot decode (Misdirected Request). The worker
/// answers the caller with 503 `lane_unavailable`.
pub const OTHER_VERSION: u16 = 421;

/// Status of a lane's answer to an approval decision that was checked at an older epoch than the lane
/// knows (Too Early). The worker checks the administrator again.
pub const OUTDATED: u16 = 425;

/// Status of a lane's answer to a call whose credential is revoked or has expired (Gone). The worker
/// remembers the refusal, and answers the caller with the problem's own status.
pub const TERMINAL: u16 = 410;

/// Status of a lane's answer to a call that it has no memory for (Insufficient Storage). The worker
/// answers the caller with 503 `overloaded`.
pub const NO_MEMORY: u16 = 507;

/// What the worker asks of a lane. Payloads that the worker goes on using are borrowed when they are
/// encoded, and owned when they were decoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "a hop decodes one, and nearly all of them are calls"
)]
pub enum LaneRequest<'a> {
    /// Decide a call, or check a message that calls no tool.
    Call(Cow<'a, GateCommand>),
    /// Apply an administrator's decision to an approval.
    DecideApproval(Cow<'a, DecideCommand>),
    /// Record how a forwarded call ended. Reply: [`LaneReply::Done`].
    RecordOutcome(OutcomeCommand),
    /// Mark an agent as tainted. Reply: [`LaneReply::Done`].
    Taint(TaintCommand),
    /// Restore or untaint an agent. Reply: [`LaneReply::Done`].
    CarryOut(AgentCommand),
    /// Open or use the approval of a registry change. Reply: [`LaneReply::ApprovalId`].
    SettleChange(ChangeCommand),
    /// Drop the records that a registry change replaced. Reply: [`LaneReply::Done`].
    TakeEpoch(Cow<'a, EpochPush>),
    /// Push an epoch again to the lanes that did not confirm it. Reply: [`LaneReply::Done`].
    KeepPushes(PendingPushes),
    /// Reply: [`LaneReply::Approval`].
    ReadApproval { approval_id: String },
    /// Read what the lane decided about an agent, under the settings of its tenant. Reply:
    /// [`LaneReply::Containment`].
    ReadContainment {
        agent: String,
        #[serde(with = "as_text")]
        tenant: TenantRecord,
    },
    /// Reply: [`LaneReply::ChainEnds`].
    ReadChainEnds,
    /// Reply: [`LaneReply::Row`].
    ReadRow { seq: u64 },
    /// Reply: [`LaneReply::Rows`].
    ReadRows { from: u64 },
    /// Read what was used of limits, by the names of the books. The name of an agent's requests
    /// ([`crate::gate::limits::request_book`]) reads its bucket. Reply: [`LaneReply::Books`].
    ReadBooks { names: Vec<String> },
    /// Ask a limit's counter object for parts of the limit. Reply: [`LaneReply::Leased`].
    Lease(Cow<'a, LeaseCommand>),
    /// Return the unused part of a lease. `granted` is the counter's total grant in window `number`. Reply:
    /// [`LaneReply::Returned`].
    GiveBack { counter: String, subject: String, number: u64, granted: Amount },
    /// Read what a limit's counter object granted for these subjects; for the first ones if none is named. Reply:
    /// [`LaneReply::Pools`].
    ReadPools { subjects: Vec<String> },
    /// Count the call `entry` in a tenant's window, and return the count of the other calls. If `entry` is empty, only
    /// return the count. Reply: [`LaneReply::Counted`].
    CountCall { entry: String, request: CountRequest },
    /// The call `entry` does not pass, so it does not count. Reply: [`LaneReply::Done`].
    Withdraw { entry: String, request: CountRequest },
    /// Write a lane's checkpoint into the tenant's head log. Reply: [`LaneReply::Done`].
    KeepCheckpoint(LaneCheckpoint),
    /// Write new events of the tenant's registry into its head log, soon. Reply: [`LaneReply::Done`].
    IncludeEvents { tenant: String },
    /// Wait until a checkpoint covers this receipt, or so long. Reply: [`LaneReply::PublishedThrough`].
    AwaitCheckpoint { seq: u64, wait_ms: u32 },
    /// Store the values of a list that belongs to no decision. Reply: [`LaneReply::Done`].
    ObserveList(ListCommand),
}

/// A lane asks a limit's counter object for parts of the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeaseCommand {
    pub tenant: String,
    /// [`crate::limit::Limit::counter`].
    pub counter: String,
    /// Whose count it is.
    pub subject: String,
    pub terms: Terms,
    pub ask: Ask,
}

/// What a lane replies to every request whose answer is not the caller's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a hop decodes one")]
pub enum LaneReply {
    /// The lane did it, and its storage holds it.
    Done,
    /// The lane did not do it; nothing was written. `code` is one of [`ProblemCode`].
    Refused {
        code: String,
        detail: String,
    },
    ApprovalId(String),
    /// `None` when the lane does not hold the approval.
    Approval(#[serde(with = "as_text")] Option<HeldApproval>),
    Containment(#[serde(with = "as_text")] Containment),
    ChainEnds(ChainEnds),
    /// A journal row as JSON; `None` when the journal does not hold it.
    Row(Option<String>),
    /// A JSON array of journal rows.
    Rows(String),
    /// One book for each name, in order, as a book is stored; empty where nothing was used.
    Books(Vec<String>),
    /// `None` if the limit's time zone is unknown.
    Leased(Option<Granted>),
    /// `None` if the lane has no lease of the limit.
    Returned(Option<Returned>),
    /// Subjects, and their counts as they are stored.
    Pools(Vec<(String, String)>),
    /// What others have in a window.
    Counted(Counted),
    /// The newest receipt that a published checkpoint covers; 0 if there is none.
    PublishedThrough(u64),
}

/// The ends of a lane's chain of receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainEnds {
    /// The newest receipt.
    pub head: ChainHead,
    /// The last receipt that was pruned; its number is 0 when none was.
    pub pruned_through: ChainHead,
}

/// Why a message cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    OtherVersion(u8),
    /// It is empty, is cut off, or has trailing bytes.
    Malformed,
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherVersion(version) => {
                write!(f, "protocol version {version} instead of {PROTOCOL_VERSION}")
            }
            Self::Malformed => write!(f, "the message is malformed"),
        }
    }
}

impl LaneRequest<'_> {
    /// The second byte of an encoded [`Self::Call`]. A lane that is short of memory reads it to refuse
    /// a call before it copies and decodes it.
    pub const CALL_TAG: u8 = 0;

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// # Errors
    ///
    /// The bytes are not a request of this version.
    pub fn decode(bytes: &[u8]) -> Result<LaneRequest<'static>, ProtocolError> {
        decode(bytes)
    }
}

impl LaneReply {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// # Errors
    ///
    /// The bytes are not a reply of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        decode(bytes)
    }
}

impl From<Problem> for LaneReply {
    fn from(problem: Problem) -> Self {
        Self::Refused { code: problem.code.code().to_owned(), detail: problem.detail }
    }
}

/// Why a lane refused, as a problem; `None` for a code that this version does not know.
#[must_use]
pub fn refusal(code: &str, detail: String) -> Option<Problem> {
    let code = ProblemCode::ALL.iter().copied().find(|known| known.code() == code)?;
    Some(Problem::new(code, detail))
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    // Serializing plain data into memory cannot fail. Decoding refuses an empty message.
    postcard::serialize_with_flavor(message, Written(vec![PROTOCOL_VERSION])).unwrap_or_default()
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ProtocolError> {
    match bytes.split_first() {
        Some((&PROTOCOL_VERSION, body)) => {
            let mut reader = postcard::Deserializer::from_flavor(Unread(body));
            match (T::deserialize(&mut reader), reader.finalize()) {
                (Ok(message), Ok([])) => Ok(message),
                _ => Err(ProtocolError::Malformed),
            }
        }
        Some((version, _)) => Err(ProtocolError::OtherVersion(*version)),
        None => Err(ProtocolError::Malformed),
    }
}

#[cfg(test)]
mod tests;
