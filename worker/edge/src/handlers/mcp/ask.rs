//! Asking the lane about a message that calls no tool.

use gateward_core::call::claims::Claims;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::gate::proxy::{AnswerRules, ProxyDecision};
use gateward_core::json::Json;
use gateward_core::mcp::denial;
use gateward_core::registry::upstream::Upstream;

use super::client::McpClient;
use super::refusal::Refusal;
use crate::http::RateFields;
use crate::lane::client::LaneAnswer;

/// A message that calls no tool, and that the lane lets pass.
pub struct PassedMessage {
    pub upstream: Upstream,
    pub rules: AnswerRules,
    pub rate: RateFields,
}

/// Asks the lane whether a message that calls no tool may pass. `beside` is what the message says
/// ([`Message::beside`]). The message counts as `cost` requests of the agent's rate.
pub async fn ask_lane(
    client: &McpClient,
    claims: &Claims,
    (what, beside): (&str, Json),
    cost: u32,
    id: Option<&str>,
) -> Result<PassedMessage, Refusal> {
    let purpose = Purpose::Message { cost };
    let command = client.command(claims, purpose, (what, ""), Json::Object(Vec::new()));
    let command = GateCommand { beside, ..command };
    let judged = client.judge(&command).await;
    let LaneAnswer { reply, rate } = judged.map_err(|refused| client.refused(id, refused))?;
    match (reply.decision, reply.upstream) {
        (None, Some(upstream)) => Ok(PassedMessage { upstream, rules: reply.answer, rate }),
        (Some(decision), _) => Err(denied(client, &decision, &command.call.tool_id(), id, rate)),
        (None, None) => Err(client.undecided(id)),
    }
}

/// The refusal of a denied message that does not call a tool by its name.
pub fn denied(
    client: &McpClient,
    decision: &ProxyDecision,
    what: &str,
    id: Option<&str>,
    rate: RateFields,
) -> Refusal {
    let error = denial::error(decision, what).with_id(id);
    // A message without an id has no response body, so its status says that it was denied.
    let status = if id.is_some() { error.status } else { 403 };
    Refusal { status, rate, ..Refusal::new(client.era, &error) }
}
