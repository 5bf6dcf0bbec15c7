//! Marks that taint, before a text of a server reaches the agent.

use std::cell::Cell;

use gateward_core::gate::proxy::Untrusted;
use gateward_core::problem::Problem;

use super::client::McpClient;
use crate::io;
use crate::upstream::passed;

/// The runs that a text of the server marks.
pub struct Marks {
    pub runs: Vec<Untrusted>,
    /// When the lane last marked them.
    pub at_ms: Cell<u64>,
}

impl Marks {
    pub fn new(mut runs: Vec<Untrusted>) -> Self {
        runs.dedup();
        Self { runs, at_ms: Cell::new(0) }
    }

    /// Marks the agent before the text reaches it. All runs are marked, since any of them may read it.
    ///
    /// # Errors
    ///
    /// The lane did not confirm the mark. The text must not be passed on.
    pub async fn mark(&self, client: &McpClient) -> Result<(), Problem> {
        let now_ms = io::now_ms();
        if now_ms.saturating_sub(self.at_ms.get()) < passed::MARK_INTERVAL_MS {
            return Ok(());
        }
        for run in &self.runs {
            passed::mark(&client.app, &client.template, run).await?;
        }
        self.at_ms.set(now_ms);
        Ok(())
    }
}
