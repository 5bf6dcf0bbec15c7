//! Reads the logs of a tenant from the worker.

use gateward_core::lane::{LogName, TreeHead};
use gateward_core::receipt::{HashedEvent, RegistryEvents};
use gateward_core::tlog::tile::nodes_of;
use gateward_core::tlog::{Hash, Layer, Note, TILE_HEIGHT, TILE_WIDTH, TilePath};
use serde_json::from_str;

use super::form::broken;
use crate::failure::Failure;
use crate::request::Request;
use crate::runner::Runner;

impl Runner {
    pub(super) fn checkpoint(&self, log: &LogName) -> Result<(String, u64), Failure> {
        let answer = self.client.send(&Request::get(&["log", &log.to_string(), "checkpoint"]));
        let note = answer.map_err(|failure| match failure.is("not_found") {
            true => {
                Failure::Other(format!("the log `{log}` is not found: D1 has no checkpoint of it"))
            }
            false => failure,
        });
        let note = note?.text;
        let size = Note::parse(&note).ok().and(TreeHead::of_note(&note)).map(|tree| tree.size);
        Ok((note, size.ok_or_else(|| broken("a checkpoint"))?))
    }

    pub(super) fn tile(
        &self,
        log: &LogName,
        level: u8,
        number: u64,
        size: u64,
    ) -> Result<Vec<Hash>, Failure> {
        let path = TilePath::in_tree(Layer::Hashes(level), number, size);
        let path = path.ok_or_else(|| broken("a tile"))?.to_string();
        let request = Request::get(&["log", &log.to_string(), "tile", &path]);
        let bytes = self.client.send(&request)?.bytes;
        let (hashes, rest) = bytes.as_chunks();
        rest.is_empty().then(|| hashes.to_vec()).ok_or_else(|| broken("a tile"))
    }

    /// The perfect subtrees of the tree of the first `size` entries, largest first.
    pub(super) fn edge(&self, log: &LogName, size: u64, of: u64) -> Result<Vec<Hash>, Failure> {
        let mut edge = Vec::new();
        let mut begin = 0_u64;
        for height in (0..64_u8).rev().filter(|height| size >> height & 1 == 1) {
            let index = begin >> height;
            let (level, inside) = (height / TILE_HEIGHT, height % TILE_HEIGHT);
            let first = index << inside;
            let tile = self.tile(log, level, first / TILE_WIDTH, of)?;
            let node = nodes_of(&tile, inside, (first % TILE_WIDTH) >> inside);
            edge.push(node.ok_or_else(|| broken("a tile"))?);
            begin += 1 << height;
        }
        Ok(edge)
    }
}

/// The audit events of the registry, read in the order of their epochs as the head log has them.
#[derive(Default)]
pub(super) struct Events {
    read: Vec<HashedEvent>,
    /// `read` has the events of the epochs above `after`, up to `through`.
    after: u64,
    through: u64,
}

impl Events {
    /// The event with an id; `None` if it is gone.
    pub(super) fn find(
        &mut self,
        runner: &Runner,
        event_id: &str,
    ) -> Result<Option<String>, Failure> {
        let epoch = event_id.strip_prefix("registry.").and_then(|epoch| epoch.parse::<u64>().ok());
        let epoch = epoch.ok_or_else(|| broken("an event's id"))?;
        if epoch <= self.after {
            // The head log can have an event twice, after a fault.
            *self = Self::default();
        }
        while self.through < epoch {
            let after = self.through.max(epoch - 1);
            let request = Request::get(&["registry-events"]);
            let request = request.parameter("after", Some(&after.to_string()));
            let page: RegistryEvents = from_str(&runner.client.send(&request)?.text)
                .map_err(|_| broken("a list of events"))?;
            if page.through <= after {
                return Ok(None);
            }
            *self = Self { read: page.events, after, through: page.through };
        }
        let found = self.read.iter().find(|event| event.event_id == event_id);
        Ok(found.map(|event| event.event.clone()))
    }
}
