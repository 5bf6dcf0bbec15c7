//! What an export and its head say about a lane, which must agree; and what is known of the head.

use std::sync::Arc;

use super::fault::{Fault, Kind};
use super::head::LaneCheckpoint;
use super::identity::{Cosigned, Identity, Signed, Tree};
use super::log::Log;
use super::signatures::Check;

/// The head of the tenant.
pub struct Head {
    pub identity: Identity,
    pub log: Log,
    /// Its last checkpoint, with its cosignatures.
    pub last: Option<(Signed, Cosigned)>,
}

/// A lane that the head or the export has named.
#[derive(Debug)]
pub struct Lane {
    pub identity: Arc<Identity>,
    /// The lane's log, once the export has begun it.
    pub log: Option<Log>,
    /// The newest checkpoint in the head.
    pub recorded: Option<Recorded>,
    /// The lane's own last checkpoint.
    pub last: Option<Signed>,
}

/// A checkpoint of a lane, as the head has it.
#[derive(Debug)]
pub struct Recorded {
    /// The head's receipt, and the line that has it.
    receipt: u64,
    line: u64,
    pub tree: Tree,
    first: u64,
    pruned_through: u64,
}

impl Lane {
    pub fn new(identity: Identity) -> Self {
        Self { identity: Arc::new(identity), log: None, recorded: None, last: None }
    }

    /// Begins the lane's log.
    ///
    /// The head can have named the lane before: checkpoints of receipts that were deleted since.
    pub fn begin(&mut self, log: Log) -> Result<(), Fault> {
        let fault = |kind, detail: &str| Err(Fault::new(kind, log.line, detail).of(log.name()));
        if let Some(recorded) = &self.recorded {
            if recorded.first != log.first {
                return fault(Kind::WrongNumber, FIRST_DIFFERS);
            }
            if recorded.tree.size > log.begin {
                let detail = "the head has a checkpoint of entries that follow only now";
                return fault(Kind::WrongOrder, detail);
            }
        }
        let log = self.log.insert(log);
        match &self.recorded {
            Some(recorded) if recorded.tree.size == log.begin => {
                log.confirm(recorded.tree, log.line)
            }
            _ => Ok(()),
        }
    }

    /// Takes a checkpoint of the lane from the head's receipt `receipt`. Returns the check of its signature, which is
    /// still to be done.
    pub fn record(
        &mut self,
        checkpoint: LaneCheckpoint,
        head: String,
        receipt: u64,
        line: u64,
    ) -> Result<Check, Fault> {
        let LaneCheckpoint { note, first, pruned_through, .. } = checkpoint;
        let check = Check { identity: self.identity.clone(), note, head, receipt, line };
        let tree = self.identity.read(&check.note).map_err(|wrong| check.wrong(wrong))?;
        let compared = self.compare(tree, first, &check);
        // If nobody signed it, the rest says nothing.
        compared.map_err(|fault| check.fault().unwrap_or(fault))?;
        self.recorded = Some(Recorded { receipt, line, tree, first, pruned_through });
        Ok(check)
    }

    /// Compares a checkpoint in the head with those before it, and with the lane's entries.
    fn compare(&mut self, tree: Tree, first: u64, check: &Check) -> Result<(), Fault> {
        let wrong = |kind, detail: &str| Err(check.wrong((kind, detail.to_owned())));
        let log_differs = self.log.as_ref().is_some_and(|log| log.first != first);
        if log_differs || self.recorded.as_ref().is_some_and(|before| before.first != first) {
            return wrong(Kind::WrongNumber, FIRST_DIFFERS);
        }
        if let Some(Recorded { tree: before, .. }) = &self.recorded {
            if tree.size < before.size {
                let detail = "it is of a smaller tree than the lane's checkpoint before it";
                return wrong(Kind::WrongSize, detail);
            }
            if tree.size == before.size && tree.root != before.root {
                let detail = "it has another root than the lane's checkpoint of the same size";
                return wrong(Kind::WrongRoot, detail);
            }
        }
        match &mut self.log {
            Some(log) if tree.size >= log.begin => log.confirm(tree, check.line),
            // The entries were deleted. The next checkpoint confirms the tree over them.
            _ => Ok(()),
        }
    }

    /// Takes the lane's own last checkpoint, which is of all its entries.
    pub fn finish(&mut self, note: &str, line: u64) -> Result<(), Fault> {
        let fault = |kind, detail: &str| Fault::new(kind, line, detail).of(&self.identity.name);
        let Some(log) = &mut self.log else {
            return Err(fault(Kind::WrongOrder, "a checkpoint of a log that has not begun"));
        };
        if self.last.is_some() {
            return Err(fault(Kind::WrongOrder, "the log has two last checkpoints"));
        }
        let signed = self.identity.open(note).map_err(|(kind, detail)| fault(kind, &detail))?;
        log.confirm(signed.tree, line)?;
        self.last = Some(signed);
        Ok(())
    }

    /// Compares the export with the head, after all of both was read. `line` is that of the head's checkpoint.
    pub fn settle(&self, line: u64) -> Result<(), Fault> {
        let fault =
            |kind, line, detail: String| Fault::new(kind, line, detail).of(&self.identity.name);
        let Some(log) = &self.log else {
            let (receipt, named) =
                self.recorded.as_ref().map_or((0, line), |it| (it.receipt, it.line));
            let detail =
                format!("the head names it in receipt {receipt}, but it is not in the export");
            return Err(fault(Kind::MissingLane, named, detail));
        };
        if self.last.is_none() {
            let detail = "the log has no last checkpoint".to_owned();
            return Err(fault(Kind::MissingCheckpoint, line, detail));
        }
        if log.begin == 0 {
            return Ok(());
        }
        let deleted = log.numbers(0, log.begin);
        let unrecorded = |detail| {
            Err(fault(Kind::UnrecordedPruning, log.line, detail).receipts(deleted.clone()))
        };
        match &self.recorded {
            None => unrecorded(
                "they are not in the export, and the head has no checkpoint of the lane".to_owned(),
            ),
            Some(it) if *deleted.end() > it.pruned_through || log.begin > it.tree.size => {
                unrecorded(format!(
                    "they are not in the export, but by the head's receipt {} retention deleted only receipts up to {}",
                    it.receipt, it.pruned_through
                ))
            }
            Some(_) => Ok(()),
        }
    }
}

const FIRST_DIFFERS: &str =
    "the head and the export disagree on the number of the log's first receipt";
