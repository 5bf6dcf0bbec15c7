//! What was recorded: decisions, receipts, logs and audit events.

use gateward_core::decision::Decision;
use gateward_core::field::Name;
use gateward_core::problem::ProblemCode::{LaneUnavailable, NotFound};
use gateward_core::receipt::{ConsistencyProof, InclusionProof, RegistryEvents};
use serde_json::json;
use utoipa::openapi::{Object, RefOr, Required, Schema, Type};

use super::super::component::{limit, reference, required};
use super::super::entry::Entry;
use crate::api::decisions::{DecisionDetail, DecisionPage};
use crate::api::receipts::{
    DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE, ReceiptEnds, ReceiptPage, ReceiptView, Verification,
    VerifyRequest,
};
use crate::audit::EventRow;

/// The type of keys and checkpoints.
const TEXT: &str = "text/plain; charset=utf-8";

/// A number from 0 on.
fn number() -> RefOr<Schema> {
    Object::builder().schema_type(Type::Integer).minimum(Some(0)).into()
}

pub(super) fn list_decisions() -> Entry {
    Entry::new(
        "decisions",
        "list_decisions",
        "Lists decisions, newest first; an agent sees its own.",
    )
    .filtered("agent", reference::<Name>(), "Only this agent's.")
    .filtered("decision", reference::<Decision>(), "Only with this decision.")
    .within_times()
    .in_pages()
    .answers::<DecisionPage>()
}

pub(super) fn read_decision() -> Entry {
    Entry::new("decisions", "read_decision", "Returns a decision, as soon as it was answered.")
        .answers::<DecisionDetail>()
        .refuses(&[LaneUnavailable])
}

pub(super) fn read_receipt_ends() -> Entry {
    Entry::new(
        "receipts",
        "read_receipt_ends",
        "Returns the first and last link of a lane's chain, from the lane.",
    )
    .with(required("lane", "The lane."))
    .answers::<ReceiptEnds>()
    .refuses(&[NotFound, LaneUnavailable])
}

pub(super) fn list_receipts() -> Entry {
    let from =
        Object::builder().schema_type(Type::Integer).minimum(Some(1)).default(Some(json!(1)));
    Entry::new("receipts", "list_receipts", "Lists the receipts of a lane in order.")
        .with(required("lane", "The lane."))
        .filtered("from", from.into(), "The first one's sequence number.")
        .with(limit(DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE))
        .answers::<ReceiptPage>()
        .refuses(&[NotFound, LaneUnavailable])
}

pub(super) fn verify_receipts() -> Entry {
    Entry::new("receipts", "verify_receipts", "Verifies stored receipts.")
        .takes_with::<VerifyRequest>(Required::True)
        .answers::<Verification>()
        .refuses(&[NotFound, LaneUnavailable])
}

pub(super) fn read_log_keys() -> Entry {
    Entry::new(
        "logs",
        "read_log_keys",
        "Returns the keys that verify the log's checkpoints, one on a line, the newest first.",
    )
    .answers_text(TEXT)
}

pub(super) fn read_checkpoint() -> Entry {
    Entry::new(
        "logs",
        "read_checkpoint",
        "Returns the log's newest checkpoint, with the cosignatures of witnesses.",
    )
    .answers_text(TEXT)
}

pub(super) fn read_tile() -> Entry {
    Entry::new(
        "logs",
        "read_tile",
        "Returns a tile of hashes, or a bundle of entries, as in c2sp.org/tlog-tiles.",
    )
    .answers_bytes()
}

pub(super) fn read_inclusion_proof() -> Entry {
    Entry::new(
        "logs",
        "read_inclusion_proof",
        "Returns the proof that an entry is in the tree of a checkpoint.",
    )
    .with(required("index", "The entry's index, from 0."))
    .filtered("size", number(), "The size of the tree. Default: that of the newest checkpoint.")
    .answers::<InclusionProof>()
}

pub(super) fn read_consistency_proof() -> Entry {
    Entry::new(
        "logs",
        "read_consistency_proof",
        "Returns the proof that a tree extends a smaller one.",
    )
    .with(required("from", "The size of the smaller tree."))
    .filtered("to", number(), "The size of the other tree. Default: that of the newest checkpoint.")
    .answers::<ConsistencyProof>()
}

pub(super) fn list_registry_events() -> Entry {
    Entry::new(
        "logs",
        "list_registry_events",
        "Lists the audit events of the registry as the tenant's head log hashes them, in order.",
    )
    .filtered("after", number(), "Only from epochs after this one. Default: 0.")
    .answers::<RegistryEvents>()
}

pub(super) fn read_receipt() -> Entry {
    Entry::new(
        "receipts",
        "read_receipt",
        "Returns a receipt, as soon as its decision was answered.",
    )
    .answers::<ReceiptView>()
    .refuses(&[LaneUnavailable])
}

pub(super) fn list_audit_events() -> Entry {
    let text = || Object::with_type(Type::String).into();
    Entry::new("audit events", "list_audit_events", "Lists audit events, newest first.")
        .filtered("kind", text(), "Only those of this kind.")
        .within_times()
        .page::<EventRow>()
}
