//! What may be forwarded of the messages that a client sends: the lane decides each of them, or lets it pass.

use std::rc::Rc;

use gateward_core::call::claims::Claims;
use gateward_core::call::command::{GateCommand, INPUT_RESPONSES, Purpose};
use gateward_core::gate::proxy::AnswerRules;
use gateward_core::json::{self, Json};
use gateward_core::mcp::error::{
    DENIED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError,
};
use gateward_core::mcp::message::{Kind, MAX_MESSAGE_BYTES, Message};
use gateward_core::mcp::method::{self, ClientRule};
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::{Era, action, denial, forward, response};
use gateward_core::registry::upstream::Upstream;

use super::ask::{PassedMessage, ask_lane, denied};
use super::client::McpClient;
use super::refusal::Refusal;
use super::response_filter::Pending;
use crate::http::RateFields;
use crate::lane::client::LaneAnswer;
use crate::upstream::passed::{self, Passed};
use crate::upstream::relay;
use crate::warrants;

/// A message that is forwarded.
pub struct Forwardable {
    pub text: String,
    pub pending: Option<Pending>,
    pub upstream: Upstream,
    pub rules: AnswerRules,
    pub decided: Option<Rc<Passed>>,
    pub removed: Removed,
    pub rate: RateFields,
}

/// Judges messages in order. Returns those to forward, and the answers to the refused requests of a batch. An
/// error when nothing is left to forward.
pub async fn judge_all(
    client: &McpClient,
    messages: Vec<Message>,
    claims: &[Rc<Claims>],
    batch: bool,
) -> Result<(Vec<Forwardable>, Vec<String>), Refusal> {
    let (mut forwarded, mut answers, mut refused) = (Vec::new(), Vec::new(), None);
    for (message, claims) in messages.into_iter().zip(claims) {
        let kind = message.kind;
        match judge(client, claims, message).await {
            Ok(go) => forwarded.push(go),
            Err(refusal) if !batch => {
                // Clients of the session revisions end their session when a notification gets an error. So
                // notifications over the agent's rate are dropped; the audit counts them.
                let dropped = kind == Kind::Notification && client.era == Era::Session;
                if dropped && refusal.status == 429 {
                    let body = String::new();
                    return Err(Refusal { status: 202, body, retry_after_s: None, ..refusal });
                }
                return Err(refusal);
            }
            Err(refusal) => {
                // A notification in a batch has no response.
                if kind == Kind::Request {
                    answers.push(refusal.body.clone());
                }
                refused = Some(refusal);
            }
        }
    }
    match refused {
        Some(refusal) if forwarded.is_empty() && answers.is_empty() => Err(refusal),
        Some(refusal) if forwarded.is_empty() => {
            Err(Refusal { status: 200, body: response::join(answers, true), ..refusal })
        }
        _ => Ok((forwarded, answers)),
    }
}

/// Decides a message that calls a tool. Asks the lane whether any other message may pass.
async fn judge(
    client: &McpClient,
    claims: &Rc<Claims>,
    message: Message,
) -> Result<Forwardable, Refusal> {
    let message = &message;
    let id = message.id_if_request();
    let refuse = |error| client.refuse(id, error);
    let rule = rule_of(client, message).map_err(refuse)?;
    if let ClientRule::Call | ClientRule::Action = rule {
        return decide(client, claims, message, rule).await;
    }
    if message.text.len() > MAX_MESSAGE_BYTES {
        let detail =
            format!("a message that calls no tool must have at most {MAX_MESSAGE_BYTES} bytes");
        return Err(refuse(RpcError::new(413, INVALID_REQUEST, &detail)));
    }
    let what = if message.method.is_empty() { "response" } else { &message.method };
    let candidates = match rule {
        ClientRule::Named => action::named(message).map_err(refuse)?,
        _ => Vec::new(),
    };
    // A subscription to many resources costs as much as many subscriptions.
    let cost = u32::try_from(candidates.len().max(1)).unwrap_or(u32::MAX);
    let PassedMessage { upstream, rules, rate } =
        ask_lane(client, claims, (what, message.beside(false)), cost, id).await?;
    if !candidates.is_empty() {
        let visible = client.visible(claims, candidates, action::said(message)).await;
        let visible = visible.map_err(|refused| client.refused(id, refused))?;
        if visible.iter().any(|seen| !seen.is_usable()) {
            let detail = "the agent must not use an item that this names";
            return Err(refuse(RpcError::in_band(DENIED, detail)));
        }
    }
    let mut removed = Removed::default();
    let redaction = client.redaction(&[]);
    let text = forward::rewrite(message, &[], redaction, &client.seal(None), &mut removed);
    let text = text.map_err(refuse)?;
    let (listed, observe) = match rule {
        ClientRule::List(listed) => (Some(listed), rules.observe.clone()),
        ClientRule::Named => (None, rules.observe.clone()),
        _ => (None, None),
    };
    let pending = id.map(|id| Pending::new(id, &message.method, claims, listed, observe, None));
    Ok(Forwardable { text, pending, upstream, rules, decided: None, removed, rate })
}

/// The rule of a message, if the client may send it.
fn rule_of(client: &McpClient, message: &Message) -> Result<ClientRule, RpcError> {
    let kind = message.kind;
    if kind == Kind::Response {
        return match client.session.is_some() {
            true => Ok(ClientRule::Pass),
            false => Err(RpcError::new(400, INVALID_REQUEST, "a response needs a session")),
        };
    }
    let is_notification = message.method.starts_with("notifications/");
    match method::from_client(&message.method, client.era) {
        Some(ClientRule::Refuse(why)) => Err(not_found(client, kind, why)),
        None => Err(not_found(client, kind, "Method not found")),
        Some(_) if is_notification != (kind == Kind::Notification) => {
            let detail = "the method does not fit this kind of message";
            Err(RpcError::new(400, INVALID_REQUEST, detail))
        }
        Some(rule) => Ok(rule),
    }
}

fn not_found(client: &McpClient, kind: Kind, why: &str) -> RpcError {
    let status = match (client.era, kind) {
        (Era::Stateless, _) => 404,
        (Era::Session, Kind::Request) => 200,
        (Era::Session, _) => 400,
    };
    RpcError::new(status, METHOD_NOT_FOUND, why)
}

/// The command about a call of a tool, or about a message that is authorized like one.
fn prepare(
    client: &McpClient,
    claims: &Claims,
    message: &Message,
) -> Result<GateCommand, RpcError> {
    let asked = action::of(message)?;
    let mut command =
        client.command(claims, Purpose::Forward, (&asked.tool, &asked.resource), asked.input);
    forward::check_state(message, &client.seal(Some(&command)))?;
    command.forwarded = true;
    let answers = message.params.get(INPUT_RESPONSES).is_some();
    if answers && command.call.approval_id.is_some() {
        // The approvers have not seen these responses.
        let detail = "an approval cannot be used together with `inputResponses`";
        return Err(RpcError::in_band(INVALID_PARAMS, detail));
    }
    let mut carried = client.warrant(message);
    if answers || message.params.get(forward::REQUEST_STATE).is_some() {
        let reason = "A call with a warrant must not have `inputResponses` or `requestState`: no proof covers them.";
        carried = carried.map(|carried| carried.refused(reason));
    }
    warrants::judge(&client.app, &mut command, carried);
    command.parameters = message.parameters.clone();
    command.call.rounded = json::rounded(message.text.as_bytes());
    command.beside = message.beside(true);
    Ok(command)
}

/// Decides a call of a tool, or a message that is authorized like one.
async fn decide(
    client: &McpClient,
    claims: &Rc<Claims>,
    message: &Message,
    rule: ClientRule,
) -> Result<Forwardable, Refusal> {
    let id = message.id_if_request();
    let refuse = |error| client.refuse(id, error);
    let refused = |refused| client.refused(id, refused);
    let mut command = prepare(client, claims, message).map_err(refuse)?;
    let what = command.call.tool_id();
    if let Some(instruction) = action::instruction(message).map_err(refuse)? {
        client.send_instruction(claims, instruction).await.map_err(refused)?;
    }
    let LaneAnswer { reply, rate } = client.judge(&command).await.map_err(refused)?;
    let Some(decision) = reply.decision else { return Err(client.undecided(id)) };
    if !decision.decision.passes() {
        if rule == ClientRule::Action {
            return Err(denied(client, &decision, &what, id, rate));
        }
        let id = id.unwrap_or("null");
        let (status, body) = denial::answer(&decision, &what, reply.denial, client.era, id);
        return Err(Refusal { status, body, rate, retry_after_s: None });
    }
    let redacted = &decision.redacted_fields;
    // The name of a resource cannot be redacted: with a marker in it, it would name another resource.
    let changes =
        !decision.shield.redacts.is_empty() || action::identifies(&command.call.input, redacted);
    if rule == ClientRule::Action && changes {
        let passed = Passed::new(command, decision, AnswerRules::default(), Some(client.era));
        let _ = passed::record_outcome(&client.app, &passed, relay::not_sent());
        let mut decision = passed.decision;
        decision.reason = "The resource that it is about would have to be redacted.".to_owned();
        return Err(denied(client, &decision, &what, id, rate));
    }
    let Some(upstream) = reply.upstream else { return Err(client.undecided(id)) };
    let mut removed = Removed::default();
    let redaction = client.redaction(&decision.shield.redacts);
    let seal = client.seal(Some(&command));
    let text = forward::rewrite(message, redacted, redaction, &seal, &mut removed);
    let text = text.map_err(refuse)?;
    let rules = reply.answer;
    // The outcome is recorded without the arguments.
    command.call.input = Json::Object(Vec::new());
    command.call.rounded = Vec::new();
    command.beside = Json::Null;
    command.warrant = None;
    let decided = Rc::new(Passed::new(command, decision, rules.clone(), Some(client.era)));
    let let_through = Some(Rc::clone(&decided));
    let pending = id.map(|id| Pending::new(id, &message.method, claims, None, None, let_through));
    Ok(Forwardable { text, pending, upstream, rules, decided: Some(decided), removed, rate })
}
