//! The agent that sends messages to a server, and what its lane decides about them.

use std::cell::Cell;
use std::rc::Rc;

use gateward_core::call;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::{Candidate, GateCommand, Purpose};
use gateward_core::call::run::RunStart;
use gateward_core::credential::signature::SignatureNonce;
use gateward_core::decision::Decision;
use gateward_core::gate::inspection::{self, Inspected};
use gateward_core::gate::proxy::Visibility;
use gateward_core::json::Json;
use gateward_core::log::{Event, Line};
use gateward_core::mcp::action::INSTRUCTION;
use gateward_core::mcp::error::RpcError;
use gateward_core::mcp::message::Message;
use gateward_core::mcp::seal::{Handle, Seal};
use gateward_core::mcp::{Era, META_PREFIX};
use gateward_core::name::OWN_PREFIX;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::provenance::part::Part;
use gateward_core::shield::{Category, Modes, Redaction};
use gateward_core::trace::{TRACEPARENT, TRACESTATE, TraceContext};
use gateward_core::warrant::{Carried, carried};

use super::refusal::Refusal;
use crate::app::App;
use crate::authentication;
use crate::http::Request;
use crate::io;
use crate::lane;
use crate::lane::client::{LaneAnswer, Refused};
use crate::lane::instructions;
use crate::log;
use crate::warrants;

/// Requests that a server may send to the client in one exchange. Each costs a hop to the lane and, if it is
/// refused, a request to the server. One HTTP request may make only a few dozen of both.
const MAX_ASKED: u32 = 32;

/// Items of a listing in one command. The lane compares them with the grants of the agent and the credential. This takes
/// at most 30 ms, during which the lane does nothing else.
const MAX_FILTERED: usize = 500;

/// An agent that talks to a server through one HTTP request.
pub struct McpClient {
    pub app: App,
    pub request: Rc<Request>,
    /// The members that all commands of this agent have in common.
    pub template: GateCommand,
    pub era: Era,
    /// Whether its messages are in a batch.
    pub in_batch: bool,
    /// The session id that the server issued.
    pub session: Option<String>,
    /// Requests that the server has sent so far.
    asked: Cell<u32>,
    /// The nonce of the request's signature, until the lane has used it up.
    nonce: Cell<Option<SignatureNonce>>,
}

impl McpClient {
    pub fn new(app: &App, request: &Rc<Request>, mut template: GateCommand, era: Era) -> Self {
        let (app, request, asked) = (app.clone(), Rc::clone(request), Cell::new(0));
        let nonce = Cell::new(template.signature_nonce.take());
        Self { app, request, template, era, in_batch: false, session: None, asked, nonce }
    }

    /// Takes the trace that messages name in their `_meta` (SEP-414), unless a header named one. Of a batch, the
    /// first that is valid counts. The messages stay as they are: a server that reads `_meta` sees the caller's own
    /// span, in the same trace.
    pub fn continue_trace(&mut self, messages: &[Message]) {
        if self.app.trace.is_some() {
            return;
        }
        let text = |message: &Message, name| match message.params.get("_meta")?.get(name)? {
            Json::String(text) => Some(text.clone()),
            _ => None,
        };
        let named = messages.iter().find_map(|message| {
            TraceContext::read(&text(message, TRACEPARENT)?, || text(message, TRACESTATE))
        });
        self.template.trace_id = named.as_ref().map(|trace| trace.trace_id);
        self.app.trace = named.map(Rc::new);
    }

    /// Whether the server has sent more requests than it may. Then the exchange ends.
    pub fn server_asked_too_much(&self) -> bool {
        self.asked.get() > MAX_ASKED
    }

    /// Counts a request of the server.
    pub fn count_server_request(&self) {
        self.asked.set(self.asked.get().saturating_add(1));
    }

    pub fn server(&self) -> &str {
        &self.template.call.server
    }

    /// The redaction for a message: which of these categories to replace.
    pub fn redaction<'a>(&'a self, categories: &'a [Category]) -> Redaction<'a> {
        let shield = self.app.settings.engine.shield();
        Redaction { shield, tenant: &self.template.tenant, categories }
    }

    /// Inspects a message of the server.
    pub fn inspect(&self, modes: Modes, parts: &[Part<'_>]) -> Inspected {
        let settings = &self.app.settings;
        let with = (settings.engine.shield(), &settings.config.value_key);
        inspection::inspect(with, &self.template.tenant, modes, parts)
    }

    /// Logs that a text was withheld that belongs to no call. The log is the only record, because there is no receipt.
    pub fn tell_withheld(&self, what: &str) {
        let detail = format!("server `{}`: {what}", self.server());
        let line = self.app.line(Event::AnswerWithheld, detail);
        log::write(&Line { tenant: Some(&self.template.tenant), ..line });
    }

    /// `call`: the call that a `requestState` belongs to.
    pub fn seal<'a>(&'a self, call: Option<&'a GateCommand>) -> Seal<'a> {
        Seal {
            keys: &self.app.settings.mac_keys,
            tenant: &self.template.tenant,
            agent: &self.template.call.agent,
            server: &self.template.call.server,
            action: call.map_or(&[], |command| command.call.action_hash.as_slice()),
        }
    }

    /// Opens the sealed session id that the client sent. It must belong to this agent and this server. A
    /// refusal has the request's `id`.
    pub fn open_session(&mut self, header: Option<&str>, id: Option<&str>) -> Result<(), Refusal> {
        if let (Era::Session, Some(sealed)) = (self.era, header) {
            let opened = self.seal(None).open(Handle::Session, sealed).map(str::to_owned);
            self.session = Some(opened.map_err(|error| self.refuse(id, error))?);
        }
        Ok(())
    }

    /// The caller's claims about a message, from its `_meta` or from headers. The lower trust of both counts. A
    /// refusal has the `id` of the request, unless it is one of a batch.
    pub fn claims(&self, message: &Message, id: Option<&str>) -> Result<Claims, Refusal> {
        let meta = message.params.get("_meta");
        let in_meta = |name: &str| meta.and_then(|meta| meta.get(&[META_PREFIX, name].concat()));
        let header = |name: &str| self.request.header(name).map(str::to_owned);
        let claims = Claims::read(|name| match in_meta(name) {
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(Json::Bool(true)) => Ok(Some("true".to_owned())),
            Some(Json::Bool(false)) => Ok(Some("false".to_owned())),
            Some(_) => {
                let detail = format!("`{META_PREFIX}{name}` must be a string");
                Err(Problem::new(ProblemCode::MalformedRequest, detail))
            }
            None => {
                let name = name.replace('_', "-");
                Ok(header(&[OWN_PREFIX, &name].concat()))
            }
        });
        let claims = claims.and_then(|claims| Ok(claims.at_most(&Claims::from_headers(header)?)));
        let claims = claims.and_then(|claims| self.in_assigned_run(claims));
        claims.map_err(|problem| Refusal::problem(&self.app, self.era, id, &problem))
    }

    /// The warrant of a message, from its `_meta` or from headers. In a batch, each call has a warrant of its own, and could
    /// take all the time that one call may take.
    pub fn warrant(&self, message: &Message) -> Option<Carried> {
        let meta = message.params.get("_meta");
        let in_meta = Carried::in_member(meta.and_then(|meta| meta.get(carried::META)));
        let carried = Carried::only(warrants::in_headers(&self.request), in_meta)?;
        Some(match self.in_batch {
            true => carried.refused("A call with a warrant must not be in a batch."),
            false => carried,
        })
    }

    /// The claims of a caller, whose run a run credential fixes.
    pub fn in_assigned_run(&self, claims: Claims) -> Result<Claims, Problem> {
        match self.template.run_credential {
            true => claims.in_run(&self.template.call.run_id),
            false => Ok(claims),
        }
    }

    /// Sends the instruction of the message's run to the lane, unless this isolate did so a short while ago.
    pub async fn send_instruction(
        &self,
        claims: &Claims,
        instruction: &str,
    ) -> Result<(), Refused> {
        let start = RunStart {
            instruction: instruction.to_owned(),
            plan: Vec::new(),
            issues_credential: false,
        };
        let mut command =
            self.command(claims, Purpose::StartRun(start), ("", ""), Json::Object(Vec::new()));
        command.call.server.clear();
        if command.call.run_id.is_empty() {
            let detail = format!("`{INSTRUCTION}` needs a `{META_PREFIX}run_id`");
            return Err(Problem::new(ProblemCode::MalformedRequest, detail).into());
        }
        let (key, now_ms) = (instructions::key(&command, instruction), io::now_ms());
        if !instructions::is_stated(&key, now_ms) {
            self.judge(&command).await?;
            instructions::remember(key, now_ms);
        }
        Ok(())
    }

    /// A command about `tool` for the lane.
    pub fn command(
        &self,
        claims: &Claims,
        purpose: Purpose,
        (tool, resource): (&str, &str),
        input: Json,
    ) -> GateCommand {
        let GateCommand { tenant, call, .. } = &self.template;
        let call =
            claims.clone().call((tenant, &call.agent), (&call.server, tool, resource), input);
        // Approvers see the session. Its id is only unique within the server.
        let session = self.session.as_ref().map(|id| [self.server(), "/", id].concat());
        GateCommand { purpose, call, session, ..self.template.clone() }
    }

    /// Sends a command to the lane. The first command of a signed request uses up its nonce; later ones have
    /// none.
    pub async fn judge(&self, command: &GateCommand) -> Result<LaneAnswer, Refused> {
        authentication::identify(&self.request, &self.app, command)?;
        let Some(nonce) = self.nonce.take() else {
            return lane::client::judge(&self.app.env, command).await;
        };
        let command = GateCommand { signature_nonce: Some(nonce), ..command.clone() };
        let judged = lane::client::judge(&self.app.env, &command).await;
        // The lane refused the nonce, or may not have written it. The rest of a batch needs it, too.
        if let Err(refused) = &judged
            && !matches!(refused.problem.code, ProblemCode::RateLimited | ProblemCode::JournalFull)
        {
            self.nonce.set(command.signature_nonce);
        }
        judged
    }

    /// The refusal of a message with an error.
    pub fn refuse(&self, id: Option<&str>, error: RpcError) -> Refusal {
        Refusal::new(self.era, &error.with_id(id))
    }

    /// The refusal of a message that the lane refused to decide.
    pub fn refused(&self, id: Option<&str>, refused: Refused) -> Refusal {
        Refusal::refused(&self.app, self.era, id, refused)
    }

    /// The refusal of a message when the lane's reply does not fit the command.
    pub fn undecided(&self, id: Option<&str>) -> Refusal {
        let detail = "the lane's reply does not fit the request; try again";
        let problem = Problem::new(ProblemCode::LaneUnavailable, detail);
        Refusal::problem(&self.app, self.era, id, &problem)
    }

    /// Whether the agent could use each of these items. `said`: what a message that names them says to the server, or an
    /// empty object for the items of a list.
    pub async fn visible(
        &self,
        claims: &Claims,
        candidates: Vec<Candidate>,
        said: Json,
    ) -> Result<Vec<Visibility>, Refused> {
        let mut visible = Vec::with_capacity(candidates.len());
        for some in candidates.chunks(MAX_FILTERED) {
            let purpose = Purpose::Filter(some.to_vec());
            let command = self.command(claims, purpose, ("", ""), said.clone());
            visible.extend(self.judge(&command).await?.reply.visible);
        }
        Ok(visible)
    }

    /// Whether the server may send this request to the client. Only `allow` counts: fields of it cannot be
    /// redacted, and an approval is for another call.
    pub async fn may_ask(&self, claims: &Claims, method: &str, params: Json) -> bool {
        self.count_server_request();
        // A caller without a credential is identified by the warrant of each call. This request has no warrant.
        if self.server_asked_too_much() || self.template.located {
            return false;
        }
        let mut command = self.command(claims, Purpose::Ask, (method, ""), params);
        if command.call.approval_id.take().is_some() {
            call::complete(&mut command.call, &command.tenant);
        }
        let judged = self.judge(&command).await;
        judged.is_ok_and(|judged| {
            judged.reply.decision.is_some_and(|decision| decision.decision == Decision::Allow)
        })
    }
}
