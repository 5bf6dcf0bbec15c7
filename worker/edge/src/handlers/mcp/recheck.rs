//! Whether the agent may still get what a server sends long after its request passed.

use std::cell::Cell;
use std::rc::Rc;

use gateward_core::call::claims::Claims;
use gateward_core::json::Json;

use super::ask::ask_lane;
use super::client::McpClient;
use super::refusal::Refusal;
use crate::io;

/// How old the lane's last word may be when something of the server is passed on. Somebody who stops an agent in an
/// incident can wait for this long. A server that sends without a pause then causes one hop in this time, and a silent one
/// causes none.
const RECHECK_INTERVAL_MS: u64 = 10_000;

/// When the lane last let the agent pass.
pub struct Recheck(Cell<u64>);

impl Recheck {
    /// The lane has just let the request pass.
    pub fn new() -> Self {
        Self(Cell::new(io::now_ms()))
    }

    /// Asks the lane again if its last word is too old: is the credential valid, may the agent call, is it granted the
    /// server, and is the server active? This takes nothing of the agent's rate.
    ///
    /// # Errors
    ///
    /// The lane refuses the agent, or does not answer within the limits of a hop. Nothing more must be passed on.
    pub async fn pass(
        &self,
        client: &McpClient,
        claims: &[Rc<Claims>],
        id: Option<&str>,
    ) -> Result<(), Refusal> {
        let now_ms = io::now_ms();
        // A caller without a credential is identified by the proof of each call. A proof is valid only once, so the lane
        // could not identify the caller again.
        if client.template.located || now_ms.saturating_sub(self.0.get()) < RECHECK_INTERVAL_MS {
            return Ok(());
        }
        for claims in claims {
            ask_lane(client, claims, (&client.request.method, Json::Null), 0, id).await?;
        }
        self.0.set(now_ms);
        Ok(())
    }
}
