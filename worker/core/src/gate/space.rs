//! Whether the journal has space for one more row.

use super::config::Config;
use crate::id::MAX_SEQ;
use crate::problem::{Problem, ProblemCode};
use crate::receipt::ChainHead;

/// How full the journal is.
#[derive(Clone, Copy)]
pub struct JournalSpace<'a> {
    pub config: &'a Config,
    /// Rows that wait to be flushed.
    pub journal_rows: u64,
    /// Whether the lane's storage is almost full.
    pub storage_full: bool,
}

impl JournalSpace<'_> {
    /// Whether it has space for one more row. Rows of calls that write end at the soft bound, all rows at
    /// the hard bound.
    pub fn has_space_for_row(&self, head: &ChainHead, writes: bool) -> bool {
        let config = self.config;
        let most = if writes { config.journal_soft_rows } else { config.journal_hard_rows };
        !self.storage_full && head.seq < MAX_SEQ && self.journal_rows < most
    }

    /// Whether it takes a row that closes an approval. Such a row frees storage, so it is taken even if
    /// the storage is full.
    pub fn has_space_for_closing_row(&self, head: &ChainHead) -> bool {
        head.seq < MAX_SEQ && self.journal_rows < self.config.journal_hard_rows
    }
}

/// The problem if there is no space.
pub fn full() -> Problem {
    Problem::new(
        ProblemCode::JournalFull,
        "too many decisions wait to be written to D1; try again after they are written",
    )
}
