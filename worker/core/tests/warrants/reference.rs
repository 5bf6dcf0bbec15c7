//! The reference implementation, asked the same questions.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateward_core::json::Json;
use gateward_core::warrant::Presented;
use tenuo::approval::{ApprovalPayload, SignedApproval};
use tenuo::constraints::ConstraintValue;
use tenuo::{Authorizer, SigningKey, Warrant};

/// A value as the reference has it.
pub fn value(json: &Json) -> ConstraintValue {
    match json {
        Json::Null => ConstraintValue::Null,
        Json::Bool(value) => ConstraintValue::Boolean(*value),
        Json::Integer(value) => ConstraintValue::Integer(*value),
        Json::Number(value) => ConstraintValue::Float(*value),
        Json::String(text) | Json::Verbatim(text) => ConstraintValue::String(text.clone()),
        Json::Array(items) => ConstraintValue::List(items.iter().map(value).collect()),
        Json::Object(fields) => ConstraintValue::Object(
            fields.iter().map(|(key, field)| (key.clone(), value(field))).collect(),
        ),
    }
}

fn arguments(input: &Json) -> HashMap<String, ConstraintValue> {
    let Json::Object(fields) = input else { return HashMap::new() };
    fields.iter().map(|(key, field)| (key.clone(), value(field))).collect()
}

/// The warrants that were presented, from the root to the leaf.
fn stack(presented: &Presented) -> Result<Vec<Warrant>, String> {
    match tenuo::wire::decode_stack(&presented.stack) {
        Ok(stack) => Ok(stack.0),
        Err(_) => {
            let warrant = tenuo::wire::decode(&presented.stack);
            warrant.map(|warrant| vec![warrant]).map_err(|error| error.to_string())
        }
    }
}

/// Whether what one link says alone allows the call: its constraints, or the tools and the bounds of what it can issue.
pub fn link_allows(
    presented: &Presented,
    at: usize,
    tool: &str,
    input: &Json,
) -> Result<(), String> {
    let text = |error: tenuo::Error| error.to_string();
    let (stack, arguments) = (stack(presented)?, arguments(input));
    let link = &stack[at];
    let Some(issuable) = link.issuable_tools() else {
        return link.check_constraints(tool, &arguments).map_err(text);
    };
    if !issuable.iter().any(|it| it == tool || it == "*") {
        return Err("it cannot issue the tool".to_owned());
    }
    link.constraint_bounds().map_or(Ok(()), |bounds| bounds.matches(&arguments)).map_err(text)
}

/// Whether the approval gates of one link alone ask for approvals of the call.
pub fn asks(presented: &Presented, at: usize, tool: &str, input: &Json) -> Result<bool, String> {
    let text = |error: tenuo::Error| error.to_string();
    let gates = stack(presented)?[at].approval_gate_map().map_err(text)?;
    tenuo::evaluate_approval_gates(gates.as_ref(), tool, &arguments(input)).map_err(text)
}

/// Whether the reference lets the call pass that has this root.
pub fn allows(
    root: [u8; 32],
    presented: &Presented,
    tool: &str,
    input: &Json,
    now_s: u64,
) -> Result<(), String> {
    let text = |error: tenuo::Error| error.to_string();
    let stack = stack(presented)?;
    let root = tenuo::PublicKey::from_bytes(&root).map_err(text)?;
    let authorizer = Authorizer::builder().trusted_root(root).build().map_err(text)?;
    let proof: Option<[u8; 64]> =
        presented.proof.as_ref().and_then(|proof| proof.as_slice().try_into().ok());
    let proof = proof.map(|proof| tenuo::Signature::from_bytes(&proof).unwrap());
    let approvals: Vec<SignedApproval> = presented
        .approvals
        .iter()
        .filter_map(|bytes| tenuo::meta_envelope::decode_approval(&STANDARD.encode(bytes)).ok())
        .collect();
    let arguments = arguments(input);
    authorizer
        .check_chain_with_pop_args_as_of(
            &stack,
            tool,
            &arguments,
            &arguments,
            proof.as_ref(),
            &approvals,
            i64::try_from(now_s).unwrap(),
        )
        .map(drop)
        .map_err(text)
}

/// An approval that the reference signs.
pub fn approval(by: u8, request_hash: [u8; 32], from_s: u64, to_s: u64) -> Vec<u8> {
    let payload = ApprovalPayload {
        version: 1,
        request_hash,
        nonce: [0; 16],
        external_id: "a@example.com".to_owned(),
        approved_at: from_s,
        expires_at: to_s,
        extensions: None,
    };
    let approval = SignedApproval::create(payload, &SigningKey::from_bytes(&[by; 32]));
    STANDARD.decode(approval.to_cbor_b64().unwrap()).unwrap()
}
