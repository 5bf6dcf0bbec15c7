//! New and changed tools in the lists that pass through: they are registered, and wait for approval.

use std::cell::RefCell;
use std::rc::Rc;

use gateward_admin::ManifestSeen;
use gateward_admin::manifest::{Discovered, ToolManifest};
use gateward_core::field::Name;
use gateward_core::isolate::recent::Recent;
use gateward_core::log::{Event, Line};
use sha2::{Digest as _, Sha256};

use super::client::McpClient;
use crate::handlers::administration::change::change_as_gateward;
use crate::io;
use crate::log;

/// About 100 bytes each.
const MAX_REMEMBERED: usize = 1_024;

/// The same tools are tried again after this time. Some stay new or changed, because they cannot be registered. Each
/// attempt reads D1, and an agent can ask for lists as often as its rate allows.
const RETRY_MS: u64 = 5_000;

thread_local! {
    static TRIED: RefCell<Recent<u64>> = RefCell::new(Recent::new(MAX_REMEMBERED));
}

/// Registers tools in the background, unless this isolate tried the same ones a short while ago.
pub fn register(client: &Rc<McpClient>, definitions: &[&str]) {
    if definitions.is_empty() || is_tried(client, definitions) {
        return;
    }
    let tools = definitions.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    let client = Rc::clone(client);
    Rc::clone(&client.app.context).wait_until(async move {
        let listing = ToolManifest::of_server(&Discovered {
            tools,
            resources: false,
            prompts: false,
            instructions: None,
        });
        let Ok(server) = Name::parse(client.server()) else { return };
        let seen = ManifestSeen { server, manifest: &listing };
        let tenant = &client.template.tenant;
        if let Err(problem) = change_as_gateward(&client.app, tenant, &seen).await {
            let detail = format!("server `{}`: {}", client.server(), problem.detail);
            let line = client.app.line(Event::ToolsNotRegistered, detail);
            log::write(&Line { tenant: Some(tenant), ..line });
        }
    });
}

/// Whether these tools were tried a short while ago. If not, they count as tried now.
fn is_tried(client: &McpClient, definitions: &[&str]) -> bool {
    // In any order: a server may list its tools in another one each time.
    let mut definitions = definitions.to_vec();
    definitions.sort_unstable();
    let mut hash = Sha256::new();
    // JSON has no zero byte, and neither have names.
    for part in [client.template.tenant.as_str(), client.server()].iter().chain(&definitions) {
        hash.update(part);
        hash.update([0]);
    }
    let key: [u8; 32] = hash.finalize().into();
    let now_ms = io::now_ms();
    TRIED.with_borrow_mut(|tried| {
        let is_recent = |at_ms: &u64| now_ms.saturating_sub(*at_ms) < RETRY_MS;
        let is_tried = tried.get(&key).is_some_and(is_recent);
        if !is_tried {
            tried.remember(key, now_ms);
        }
        is_tried
    })
}
