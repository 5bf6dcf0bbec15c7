//! One log of an export: a chain of receipts, and the tree over them.

use std::ops::RangeInclusive;

use gateward_core::json::Json;
use gateward_core::receipt::{self, GENESIS};
use gateward_core::tlog::tile::MAX_ENTRY_BYTES;
use gateward_core::tlog::{Edge, Hash, leaf_hash};

use super::fault::{Fault, Kind};
use super::head::HEAD_LANE;
use super::identity::Tree;
use super::line::LogLine;
use super::members::is_hex_hash;

/// A log as far as it was read. It holds one edge of the tree, and nothing of the receipts.
#[derive(Debug)]
pub struct Log {
    name: String,
    tenant: String,
    /// The lane number of its bodies.
    lane: u16,
    /// The number of the receipt with index 0.
    pub first: u64,
    /// The index of the first entry in the export. Those before were deleted.
    pub begin: u64,
    /// The export's line that began it.
    pub line: u64,
    edge: Edge,
    /// The hash of the last body; `None` if that is lost.
    previous: Option<String>,
    /// The size of the last tree that a signed checkpoint confirmed.
    confirmed: u64,
    /// How many entries are lost.
    pub missing: u64,
}

impl Log {
    pub fn begin(
        tenant: &str,
        name: &str,
        lane: u16,
        begin: LogLine,
        line: u64,
    ) -> Result<Self, Fault> {
        let LogLine { first, begin, edge, prev_hash, .. } = begin;
        let malformed = |detail| Err(Fault::new(Kind::MalformedLine, line, detail).of(name));
        if first == 0 {
            return malformed("the number of its first receipt must be at least 1");
        }
        let Some(edge) = Edge::from_parts(begin, edge) else {
            return malformed("`edge` must have one hash for each perfect subtree of `begin`");
        };
        if first == 1 && begin == 0 && prev_hash != GENESIS {
            return malformed("`prev_hash` must be zeros before receipt 1");
        }
        Ok(Self {
            name: name.to_owned(),
            tenant: tenant.to_owned(),
            lane,
            first,
            begin,
            line,
            edge,
            previous: Some(prev_hash),
            confirmed: 0,
            missing: 0,
        })
    }

    /// Takes the next entry. Returns its body, which has the right place in the chain.
    pub fn entry(&mut self, index: u64, text: &str, line: u64) -> Result<Json, Fault> {
        let seq = self.next(index, line)?;
        let fault =
            |kind, detail: &str| Err(Fault::new(kind, line, detail).of(&self.name).receipt(seq));
        if text.len() > MAX_ENTRY_BYTES {
            return fault(Kind::MalformedBody, "the body is larger than an entry can be");
        }
        let body = match receipt::read(text) {
            Ok(body) => body,
            Err(problem) => return fault(Kind::MalformedBody, &problem),
        };
        let text_of = |name| body.get(name).and_then(Json::as_str);
        let is_number = |name, number: u64| {
            body.get(name) == i64::try_from(number).ok().map(Json::Integer).as_ref()
        };
        if text_of("tenant") != Some(&*self.tenant) {
            return fault(Kind::WrongTenant, "the body belongs to another tenant");
        }
        if !is_number("seq", seq) {
            return fault(Kind::WrongNumber, "the body has another sequence number");
        }
        if !is_number("lane", self.lane.into()) {
            return fault(Kind::WrongLane, "the body belongs to another lane");
        }
        if text_of("kind").is_none() {
            return fault(Kind::MalformedBody, "the body has no `kind`");
        }
        match (text_of("prev_hash"), &self.previous) {
            (Some(hash), Some(previous)) if hash == previous => {}
            (Some(hash), None) if is_hex_hash(hash) => {}
            _ => {
                let detail = "the body does not have the hash of the receipt before";
                return fault(Kind::BrokenLink, detail);
            }
        }
        self.edge.append(leaf_hash(text.as_bytes()), &mut |_, _, _| {});
        self.previous = Some(receipt::hash(text));
        Ok(body)
    }

    /// Takes the leaf of an entry whose row is lost. That it is lost is a fault, but what follows can still be
    /// verified.
    pub fn missing(&mut self, index: u64, leaf: Hash, line: u64) -> Result<Fault, Fault> {
        let seq = self.next(index, line)?;
        self.edge.append(leaf, &mut |_, _, _| {});
        self.previous = None;
        self.missing += 1;
        let detail = "its row is lost; the tree has its hash";
        Ok(Fault::new(Kind::MissingReceipt, line, detail).of(&self.name).receipt(seq))
    }

    /// The number of the receipt that `index` must be of.
    fn next(&self, index: u64, line: u64) -> Result<u64, Fault> {
        let (seq, expected) = (self.first + self.edge.size(), self.edge.size());
        if index == expected {
            return Ok(seq);
        }
        let detail = format!("the entry has the index {index} instead of {expected}");
        Err(Fault::new(Kind::WrongOrder, line, detail).of(&self.name).receipt(seq))
    }

    /// Compares the tree with a signed checkpoint, which must be of all entries so far.
    pub fn confirm(&mut self, signed: Tree, line: u64) -> Result<(), Fault> {
        let fault = |kind, receipts, detail: String| {
            Err(Fault::new(kind, line, detail).of(&self.name).receipts(receipts))
        };
        let (size, seen) = (signed.size, self.edge.size());
        if size > seen {
            let detail = format!("the signed checkpoint has {size} entries, and the export {seen}");
            return fault(Kind::WrongSize, self.numbers(seen, size), detail);
        }
        if size < seen {
            let detail =
                format!("the signed checkpoint has only {size} entries, and the export {seen}");
            return fault(Kind::WrongSize, self.numbers(size, seen), detail);
        }
        if signed.root != self.edge.root() {
            let detail = "the signed checkpoint is of a tree with other receipts: at least one of \
                          these was changed, added, removed or moved";
            let receipts = self.numbers(self.confirmed.min(size.saturating_sub(1)), size);
            return fault(Kind::WrongRoot, receipts, detail.to_owned());
        }
        self.confirmed = size;
        Ok(())
    }

    /// The numbers of the receipts with the indexes from `from` up to, but without, `to`.
    pub fn numbers(&self, from: u64, to: u64) -> RangeInclusive<u64> {
        self.first + from..=(self.first + to).saturating_sub(1)
    }

    pub fn is_head(&self) -> bool {
        self.lane == HEAD_LANE
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn size(&self) -> u64 {
        self.edge.size()
    }
}
