//! Reads the messages of a server for the shield and for provenance.

use std::borrow::Cow;

use gateward_core::gate::inspection::UNREDACTABLE;
use gateward_core::json::Json;
use gateward_core::json::raw::RawObject;
use gateward_core::mcp::error::{DENIED, RpcError};
use gateward_core::mcp::unreviewed::Unreviewed;
use gateward_core::mcp::{answer, denial, response, review};
use gateward_core::problem::Problem;
use gateward_core::provenance::extract;
use gateward_core::provenance::part::{Kind, Part};
use serde_json::value::RawValue;

use super::response_filter::{Pending, ResponseFilter, UNKNOWN_REQUEST};
use crate::upstream::passed::{self, Passed};

/// The request whose response is shown to the model, even if it is withheld.
const CALL: &str = "tools/call";

/// The request without a decision whose result is read.
const COMPLETE: &str = "completion/complete";

impl ResponseFilter {
    /// Reads a response for provenance and the shield, and keeps what the record of the outcome needs. On an error, the
    /// client gets the error in place of the response.
    pub(super) async fn read(
        &self,
        pending: &Pending,
        mut message: RawObject,
    ) -> Result<RawObject, String> {
        let name = if message.get("error").is_some() { "error" } else { "result" };
        let passed = pending.decided.as_deref();
        if let Some(passed) = passed {
            passed.effect.set(Some(answer::effect(&message, self.client.era)));
        }
        let rules = passed.map_or(self.inspect.as_ref(), |passed| passed.rules.inspect.as_ref());
        let observe = passed.and_then(|passed| passed.rules.observe.as_ref());
        // Lists are read item by item. A trusted answer without a decision has no tool whose pointers count, so it raises
        // nothing.
        let is_read = name == "error" || pending.method.is_empty() || pending.method == COMPLETE;
        let marks = pending.observe.as_ref().filter(|observe| is_read && !observe.trusted);
        if rules.is_none() && observe.is_none() && marks.is_none() {
            return Ok(message);
        }
        // A result that is not an object is refused later.
        let Some(answer) = message.object(name) else { return Ok(message) };
        let pinned = rules.and_then(|rules| rules.taints.instructions_sha256.as_deref());
        let unreviewed = Unreviewed::of(answer, &pending.method, pending.listed, pinned);
        let parts = unreviewed.parts();
        let modes = rules.map(|rules| if passed.is_some() { rules.modes } else { rules.server });
        let inspect = |modes| self.client.inspect(modes, &parts);
        let mut inspected = modes.map(inspect).unwrap_or_default();
        if let (Some(passed), Some(observe), None) = (passed, observe, &inspected.withheld) {
            let (key, trust) = (&self.client.app.settings.config.value_key, &observe.result_trust);
            let trusted = observe.trusted && !inspected.taints;
            *passed.observed.borrow_mut() = extract::result(key, &parts, trust.as_ref(), trusted);
        }
        let marks = marks.filter(|_| inspected.withheld.is_none()).map(|observe| {
            let key = &self.client.app.settings.config.value_key;
            (observe, extract::result(key, &parts, None, false))
        });
        drop(parts);
        if !inspected.redacts.is_empty() && inspected.withheld.is_none() {
            match unreviewed.redacted(self.client.redaction(&inspected.redacts)) {
                Some(redacted) => message.set(name, &redacted),
                None => inspected.withhold(UNREDACTABLE),
            }
        }
        if let Some(passed) = passed {
            passed.note(&inspected);
        }
        if let Some(why) = &inspected.withheld {
            return Err(self.withheld(pending, why));
        }
        let refuse = |problem: &Problem| {
            let error = denial::problem(problem, &self.client.app.request_id);
            error.with_id(Some(&pending.id)).body(self.client.era)
        };
        if let Some((observe, values)) = marks.filter(|(_, values)| !values.is_empty()) {
            let (app, template) = (&self.client.app, &self.client.template);
            let method =
                if pending.method.is_empty() { UNKNOWN_REQUEST } else { pending.method.as_str() };
            let stored = passed::observe_list(app, template, observe, method, values).await;
            stored.map_err(|problem| refuse(&problem))?;
        }
        if inspected.taints {
            self.found.mark(&self.client).await.map_err(|problem| refuse(&problem))?;
            if let Some(mut result) = message.object("result") {
                response::forbid_caching(&mut result);
                message.set("result", &result);
            }
        }
        Ok(message)
    }

    /// The response to a request whose answer is withheld.
    fn withheld(&self, pending: &Pending, why: &str) -> String {
        let what = [self.client.server(), "/", pending.tool()].concat();
        match pending.decided.as_deref().filter(|_| pending.method == CALL) {
            Some(Passed { decision, .. }) => {
                denial::withheld(decision, &what, why, self.client.era, &pending.id)
            }
            None => {
                self.client.tell_withheld(&what);
                let text = format!("The answer of {what} is withheld. {why}");
                let error = RpcError::in_band(DENIED, text).with_id(Some(&pending.id));
                error.body(self.client.era)
            }
        }
    }

    /// Whether a message without a decision may be passed on. Replaces the texts that the shield redacts. If the message
    /// has unreviewed text, marks the agent before it returns.
    pub(super) async fn may_pass(&self, params: &Json, message: &mut RawObject) -> bool {
        self.may_pass_member("params", message).await
            && (!review::params_are_unreviewed(params)
                || self.untrusted.mark(&self.client).await.is_ok())
    }

    /// Whether the shield lets a member pass, in a message that belongs to no request.
    pub(super) async fn may_pass_member(&self, name: &str, message: &mut RawObject) -> bool {
        let Some(rules) = &self.inspect else { return true };
        // Clients show ids to their users, so the shield reads the id too.
        let told = ["id", name].into_iter().filter_map(|name| Some((name, message.get(name)?)));
        let parts: Vec<Part<'_>> = told
            .map(|(name, text)| {
                Part::new(Kind::Text, ["/", name].concat(), Cow::Owned(text.to_owned()))
            })
            .collect();
        let inspected = self.client.inspect(rules.server, &parts);
        if inspected.withheld.is_some() {
            self.client.tell_withheld(name);
            return false;
        }
        if inspected.taints && self.found.mark(&self.client).await.is_err() {
            return false;
        }
        if !inspected.redacts.is_empty() {
            let redaction = self.client.redaction(&inspected.redacts);
            let redacted = message.get(name).and_then(|text| redaction.answer(text));
            match redacted.and_then(|text| RawValue::from_string(text).ok()) {
                Some(redacted) => message.set_raw(name, redacted),
                None => return false,
            }
        }
        true
    }
}
