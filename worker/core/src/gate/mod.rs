//! The lane's synchronous step: one call in, an answer and at most two journal rows out.
//!
//! [`decide`] is pure. The lane passes it the contents of storage and writes its result. The lane's
//! memory takes the new state only after that write succeeded.
//!
//! Out of scope: reading the registry, storing rows and flushing them (`lane/`).

mod agent_state;
mod approval;
mod caller;
mod conclude;
pub mod config;
mod containment;
pub mod daily_rows;
mod dead_letter;
mod decide;
mod draft;
mod event;
mod facts;
pub mod head_log;
mod identity;
pub mod inspection;
pub mod limits;
mod listing;
mod meter;
mod metrics;
mod outcome;
mod outcome_report;
mod provenance;
pub mod proxy;
mod replay;
mod resolve;
mod respond;
mod risk_state;
mod row;
mod ruling;
mod run;
pub mod shared_limits;
mod shield;
mod space;
mod step;
mod taint_set;
mod taint_state;
mod trust;
pub mod velocity;
pub mod warrant;
pub mod windows;

pub use agent_state::{AgentState, QuarantinedBy, StatusDenial};
pub use approval::{
    RegistryChange, ask_change, decide as decide_approval, expire as expire_approval, use_change,
};
pub use containment::Containment;
pub use dead_letter::{DeadLetter, dead_letter};
pub use decide::{decide, evaluate_policies, needs_tool};
pub use draft::observed_run;
pub use event::{AgentCommand, LaneAction, TaintCommand, carry_out, taint};
pub use facts::{Books, EventFacts, Facts, ReservationSpace, StoredAnswer};
pub use outcome::{
    Effect, FoundInResult, ListCommand, ObservedResult, OutcomeCommand, record as record_outcome,
};
pub use replay::{NONCE_MS, REPLAY_MS};
pub use respond::{
    AuthorizeResponse, DEGRADED, DecidedBy, REGISTRY_UNCONFIRMED, ReplyReceipt,
    response as encode_response,
};
pub use risk_state::{
    DEFAULT_RISK_DENIALS, DEFAULT_RISK_QUIET_S, DEFAULT_RISK_WINDOW_S, RiskLimits, RiskState,
};
pub use row::{
    ContainmentDetail, ContainmentRow, DecisionDetail, JournalEntry, JournalRow, LaneEvent,
    scoped_key, split_metrics,
};
pub use ruling::{MAX_APPROVER_GROUPS, MAX_MATCHED_POLICIES, MAX_REDACT_BYTES, Ruling, Tool};
pub use space::JournalSpace;
pub use step::{CountedEvent, Refused, Reply, Step};
pub use taint_state::{MAX_TAINTED_RUNS, Taint, Tainted};
pub use trust::{CallTrust, LoweredBy};
