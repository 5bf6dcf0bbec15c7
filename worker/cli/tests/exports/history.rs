//! A long random history of a tenant, exported without a fault.

use gateward_core::bounds::MAX_LANES;
use gateward_core::receipt::{GENESIS, hash};
use gateward_core::tlog::{Edge, leaf_hash};
use serde_json::{Value, json};

use super::body::{Place, Random, canonical, receipt, time};
use super::keys::{KEY, OLD_KEY, ORIGIN, TENANT, WITNESSES, checkpoint, cosigned};
use super::line::Line;

/// The lane number of the head's receipts.
const HEAD_LANE: u16 = u16::MAX;

/// When the first witness cosigned, in seconds since 1970: 2026-11-23.
const COSIGNED_S: u64 = 1_795_392_000;

/// What happened. The same history always makes the same export.
#[derive(Debug, Clone, Copy)]
pub struct History {
    pub seed: u64,
    /// About this many receipts in lanes.
    pub receipts: u64,
    /// Lanes that are in use all the time.
    pub lanes: u16,
    /// Receipts between two checkpoints of a lane, on average.
    pub between: u64,
    /// Whether everything happens that can: retention deletes receipts, a lane is older than its log, another is
    /// deleted as a whole, a third is new, an audit event is gone, and the key is rotated.
    pub eventful: bool,
}

/// A log as it is written.
struct Log {
    name: String,
    lane: u16,
    first: u64,
    /// Entries below this index are not in the export.
    begin: u64,
    edge: Edge,
    prev_hash: String,
    begun: bool,
}

impl Log {
    fn new(lane: u16, first: u64, begin: u64) -> Self {
        let name = match lane {
            HEAD_LANE => format!("{TENANT}.head"),
            lane => format!("{TENANT}.lane-{lane}"),
        };
        let prev_hash = if first == 1 { GENESIS.to_owned() } else { hash("before the log") };
        Self { name, lane, first, begin, edge: Edge::default(), prev_hash, begun: false }
    }

    fn size(&self) -> u64 {
        self.edge.size()
    }

    /// The number of the last receipt that is not in the export.
    fn deleted(&self) -> u64 {
        if self.begin > 0 { self.first + self.begin - 1 } else { 0 }
    }

    fn begin(&mut self, sink: &mut dyn FnMut(Line)) {
        if !self.begun && self.size() >= self.begin {
            self.begun = true;
            sink(Line::Log {
                log: self.name.clone(),
                first: self.first,
                begin: self.begin,
                edge: self.edge.hashes().to_vec(),
                prev_hash: self.prev_hash.clone(),
            });
        }
    }

    /// Appends the body that `make` makes for its place. Returns its index, if it is in the export.
    fn append(
        &mut self,
        sink: &mut dyn FnMut(Line),
        make: impl FnOnce(&Place<'_>) -> String,
    ) -> Option<u64> {
        self.begin(sink);
        let (index, seq) = (self.size(), self.first + self.size());
        let body = make(&Place { lane: self.lane, seq, prev_hash: &self.prev_hash });
        self.edge.append(leaf_hash(body.as_bytes()), &mut |_, _, _| {});
        self.prev_hash = hash(&body);
        if !self.begun {
            return None;
        }
        sink(Line::Entry { log: self.name.clone(), index, body });
        Some(index)
    }

    fn checkpoint(&self, keys: &[u8]) -> String {
        checkpoint(&self.name, self.size(), self.edge.root(), keys)
    }
}

/// A history as it happens.
struct Writer<'s> {
    random: Random,
    tick: u64,
    epoch: u64,
    head: Log,
    sink: &'s mut dyn FnMut(Line),
    entries: u64,
}

impl Writer<'_> {
    fn append(&mut self, lane: &mut Log, count: u64) {
        for _ in 0..count {
            let random = &mut self.random;
            let index = lane.append(self.sink, |place| receipt(random, place));
            self.entries += u64::from(index.is_some());
        }
        self.tick += count;
    }

    /// Appends a body with these members to the head.
    fn head(&mut self, mut body: Value) -> Option<u64> {
        self.tick += 1;
        let at = time(self.tick);
        let index = self.head.append(self.sink, |place| {
            body["tenant"] = json!(TENANT);
            body["lane"] = json!(place.lane);
            body["seq"] = json!(place.seq);
            body["prev_hash"] = json!(place.prev_hash);
            body["time"] = json!(at);
            body["version"] = json!(2);
            canonical(&body)
        });
        self.entries += u64::from(index.is_some());
        index
    }

    fn lane_checkpoint(&mut self, lane: &Log, keys: &[u8], pruned_through: u64) {
        self.head(json!({
            "kind": "lane_checkpoint", "checkpoint": lane.checkpoint(keys), "first": lane.first,
            "of_lane": lane.lane, "pruned_through": pruned_through,
        }));
    }

    fn registry_event(&mut self, gone: bool) {
        self.epoch += 1;
        let event_id = format!("registry.{}", self.epoch);
        let event = canonical(&json!({
            "at_ms": 1_767_225_600_000_u64 + self.tick, "event_id": event_id, "kind": "agent_updated",
            "source": "registry", "detail": {"agent": "größe \"7\"", "limit": 0.25, "tags": [null, true]},
        }));
        let index = self.head(json!({
            "kind": "registry_event", "event_id": event_id, "event_hash": hash(&event),
        }));
        if let Some(index) = index {
            let event = (!gone).then_some(event);
            (self.sink)(Line::Event { log: self.head.name.clone(), index, event });
        }
    }
}

impl History {
    /// The lines of the export.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.write(&mut |line| lines.push(line));
        lines
    }

    /// Gives each line of the export to `sink`, and keeps none.
    pub fn write(&self, sink: &mut dyn FnMut(Line)) {
        sink(Line::Export { tenant: TENANT.to_owned(), origin: ORIGIN.to_owned() });
        let each = self.receipts / u64::from(self.lanes);
        let mut lanes: Vec<Log> = (0..self.lanes).map(|lane| self.lane(lane, each)).collect();
        let head = Log::new(HEAD_LANE, 1, if self.eventful { 3 } else { 0 });
        let random = Random(self.seed);
        let mut writer = Writer { random, tick: 0, epoch: 0, head, sink, entries: 0 };
        let mut deleted = Log::new(MAX_LANES - 1, 1, 5);
        if self.eventful {
            writer.append(&mut deleted, 3);
            writer.lane_checkpoint(&deleted, &[OLD_KEY], 0);
            writer.append(&mut deleted, 2);
            writer.lane_checkpoint(&deleted, &[OLD_KEY], 0);
        }
        let mut done = 0;
        while done < self.receipts {
            let count = 1 + writer.random.below(2 * self.between - 1);
            let at = writer.random.below(lanes.len() as u64) as usize;
            let lane = &mut lanes[at];
            writer.append(lane, count);
            done += count;
            if !writer.random.once_in(5) {
                writer.lane_checkpoint(lane, self.keys(done), 0);
            }
            if writer.random.once_in(8) {
                let gone = self.eventful && done > self.receipts / 2 && writer.random.once_in(3);
                writer.registry_event(gone);
            }
        }
        let keys = self.keys(done);
        for lane in &mut lanes {
            // A checkpoint must be of everything that retention deleted.
            let count = lane.begin.saturating_sub(lane.size()) + 1;
            writer.append(lane, count);
            writer.lane_checkpoint(lane, keys, lane.deleted());
        }
        if self.eventful {
            deleted.begin(writer.sink);
            writer.lane_checkpoint(&deleted, keys, deleted.deleted());
            writer.registry_event(true);
            let mut new = Log::new(self.lanes, 1, 0);
            writer.append(&mut new, 2);
            writer.append(&mut lanes[0], 3);
            lanes.extend([new, deleted]);
        }
        for lane in lanes {
            let note = lane.checkpoint(keys);
            (writer.sink)(Line::Checkpoint { log: lane.name, note });
        }
        writer.head.begin(writer.sink);
        let mut note = writer.head.checkpoint(keys);
        for (days, witness) in WITNESSES.into_iter().enumerate() {
            note = cosigned(&note, witness, COSIGNED_S + 86_400 * days as u64);
        }
        (writer.sink)(Line::Checkpoint { log: writer.head.name, note });
        (writer.sink)(Line::End { entries: writer.entries });
    }

    /// Lane 1 lost its oldest receipts, and lane 2 is older than its log.
    fn lane(&self, lane: u16, each: u64) -> Log {
        match lane {
            1 if self.eventful => Log::new(lane, 1, each / 3 + 1),
            2 if self.eventful => Log::new(lane, 18, each / 4 + 1),
            _ => Log::new(lane, 1, 0),
        }
    }

    /// The keys that sign after this many receipts.
    fn keys(&self, done: u64) -> &'static [u8] {
        match 3 * done / self.receipts.max(1) {
            0 if self.eventful => &[OLD_KEY],
            1 if self.eventful => &[KEY, OLD_KEY],
            _ => &[KEY],
        }
    }
}
