//! Who sends a message, and what its lane says to it.

use std::cell::Cell;
use std::rc::Rc;

use gateward_core::call;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::{Candidate, GateCommand, Purpose};
use gateward_core::credential::signature::SignatureNonce;
use gateward_core::decision::Decision;
use gateward_core::gate::proxy::Visibility;
use gateward_core::json::Json;
use gateward_core::mcp::message::Message;
use gateward_core::mcp::seal::{Handle, Seal};
use gateward_core::mcp::{Era, META_PREFIX};
use gateward_core::name::OWN_PREFIX;
use gateward_core::problem::{Problem, ProblemCode};

use super::Refusal;
use crate::http::Request;
use crate::lanes::{self, Judged, Refused};
use crate::router::App;

/// What a server may ask in one exchange. Each costs a hop to the lane, and where it is refused a
/// request to the server; one HTTP request has a few dozen of both.
const MAX_ASKED: u32 = 32;

/// Items of a listing that a lane is asked about at once: comparing them with the grants of agent and
/// credential takes at most some 30 ms, in which the lane does nothing else.
const MAX_FILTERED: usize = 500;

/// An agent before a server.
pub struct Asker {
    pub app: App,
    pub request: Rc<Request>,
    /// What every command to the lane says of the agent.
    pub template: GateCommand,
    pub era: Era,
    /// The server's own id of the session.
    pub session: Option<String>,
    /// How much the server has asked so far.
    asked: Cell<u32>,
    /// Of the request's signature, until the lane has used it up.
    nonce: Cell<Option<SignatureNonce>>,
}

impl Asker {
    pub fn new(app: &App, request: &Rc<Request>, mut template: GateCommand, era: Era) -> Self {
        let (app, request, asked) = (app.clone(), Rc::clone(request), Cell::new(0));
        let nonce = Cell::new(template.signature_nonce.take());
        Self { app, request, template, era, session: None, asked, nonce }
    }

    /// Whether the server has asked more than it may: nothing more of it is looked at.
    pub fn is_asked_too_much(&self) -> bool {
        self.asked.get() > MAX_ASKED
    }

    /// Counts what the server asks.
    pub fn count_asked(&self) {
        self.asked.set(self.asked.get().saturating_add(1));
    }

    pub fn server(&self) -> &str {
        &self.template.call.server
    }

    pub fn seal(&self) -> Seal<'_> {
        Seal {
            keys: &self.app.settings.mac_keys,
            tenant: &self.template.tenant,
            agent: &self.template.call.agent,
            server: &self.template.call.server,
        }
    }

    /// Takes the session that the client names, if it is this agent's before this server. A refusal
    /// has the request's `id`.
    pub fn open_session(&mut self, header: Option<&str>, id: Option<&str>) -> Result<(), Refusal> {
        if let (Era::Session, Some(sealed)) = (self.era, header) {
            let opened = self.seal().open(Handle::Session, sealed).map(str::to_owned);
            self.session =
                Some(opened.map_err(|error| Refusal::new(self.era, &error.with_id(id)))?);
        }
        Ok(())
    }

    /// What the client states of a message, in its `_meta` or else in headers. Neither raises the trust
    /// that the other claims. A refusal has the `id` of the request, unless it is one of a batch.
    pub fn stated(&self, message: &Message, id: Option<&str>) -> Result<Claims, Refusal> {
        let meta = message.params.get("_meta");
        let in_meta = |name: &str| meta.and_then(|meta| meta.get(&[META_PREFIX, name].concat()));
        let header = |name: &str| self.request.header(name);
        let stated = Claims::read(|name| match in_meta(name) {
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
        let stated = stated.and_then(|stated| Ok(stated.at_most(&Claims::from_headers(header)?)));
        stated.map_err(|problem| Refusal::problem(&self.app, self.era, id, &problem))
    }

    /// What the lane is asked of `tool`.
    pub fn command(
        &self,
        stated: &Claims,
        purpose: Purpose,
        (tool, resource): (&str, &str),
        input: Json,
    ) -> GateCommand {
        let GateCommand { tenant, call, .. } = &self.template;
        let call =
            stated.clone().call((tenant, &call.agent), (&call.server, tool, resource), input);
        // A run of its own beside the one that the client names, or the default one.
        let session = self.session.as_ref().map(|id| [self.server(), "/", id].concat());
        GateCommand { purpose, call, session, ..self.template.clone() }
    }

    /// Asks the lane. The first command of a signed request uses up its nonce; those after it are of
    /// the same request and have none.
    pub async fn judge(&self, command: &GateCommand) -> Result<Judged, Refused> {
        let Some(nonce) = self.nonce.take() else {
            return lanes::judge(&self.app.env, command).await;
        };
        let command = GateCommand { signature_nonce: Some(nonce), ..command.clone() };
        let judged = lanes::judge(&self.app.env, &command).await;
        // The rest of a batch must not pass without the nonce that was refused, or that the lane may
        // not have written.
        if let Err(refused) = &judged
            && !matches!(refused.problem.code, ProblemCode::RateLimited | ProblemCode::JournalFull)
        {
            self.nonce.set(command.signature_nonce);
        }
        judged
    }

    /// Which of these the agent could use.
    pub async fn visible(
        &self,
        stated: &Claims,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Visibility>, Refused> {
        let mut visible = Vec::with_capacity(candidates.len());
        for some in candidates.chunks(MAX_FILTERED) {
            let purpose = Purpose::Filter(some.to_vec());
            let command = self.command(stated, purpose, ("", ""), Json::Object(Vec::new()));
            visible.extend(self.judge(&command).await?.reply.visible);
        }
        Ok(visible)
    }

    /// Whether the server may ask this of the client. Nothing can be taken out of what it asks, and
    /// an approval is for the call that it was asked for.
    pub async fn may_ask(&self, stated: &Claims, method: &str, params: Json) -> bool {
        self.count_asked();
        if self.is_asked_too_much() {
            return false;
        }
        let mut command = self.command(stated, Purpose::Ask, (method, ""), params);
        if command.call.approval_id.take().is_some() {
            call::complete(&mut command.call, &command.tenant);
        }
        let judged = self.judge(&command).await;
        judged.is_ok_and(|judged| {
            judged.reply.decision.is_some_and(|decision| decision.decision == Decision::Allow)
        })
    }
}
