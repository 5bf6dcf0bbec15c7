//! How a lane publishes its tree: as signed checkpoints, each of which extends the one that D1 has.
//!
//! INVARIANT (one history): a checkpoint is published only if the one in D1 is of this tree, at an earlier size. If it is
//! not, either D1 or the lane's storage is not what it was. The lane then writes nothing more until a person has repaired
//! what is wrong, because nobody could tell which of two histories is the true one.
//!
//! D1 can lack rows that it took, or have an earlier checkpoint of the tree: it was restored. Then the lane writes again what
//! it still has ([`Lane::kept_rows`]), before it confirms another batch. A lane that has nothing to flush asks D1 once a day
//! ([`Lane::ask_d1`]).

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer, set_meta, unreadable, unsigned};
use super::tree::{
    MAX_PUBLISHED_LEAVES, PUBLISHED, Published, STOPPED, TileCursor, TreeHead, encode_hashes,
};
use crate::gate::config::MAX_STORAGE_BYTES;
use crate::gate::split_metrics;
use crate::sql::lane as sql;
use crate::tlog::TILE_WIDTH;

/// How long rows are kept at least after they were flushed. They are deleted by [`super::clock`]'s time, so they are kept for
/// up to three hours.
const KEPT_MS: u64 = 60 * MINUTE_MS;
const MINUTE_MS: u64 = 60 * 1_000;

/// Rows that are kept at most: 2.2 GB of the storage ([`crate::gate::config::JOURNAL_ROW_BYTES`]). With an hour's journal
/// they leave 1 GB.
const MAX_KEPT_ROWS: u64 = 500_000;

/// Bytes of the storage above which flushed rows are deleted, however new they are: a full storage stops the lane. An hour's
/// journal and [`MAX_KEPT_ROWS`] ordinary rows are just below it, but rows with many limits or approvals are larger.
const MAX_KEPT_STORAGE_BYTES: u64 = MAX_STORAGE_BYTES - 1_000_000_000;

/// Every flush may delete this many kept rows, if they are old enough. A flush that adds more than half of this may
/// delete twice as many as it adds. So the number of kept rows soon falls to its bound, and a flush reads few rows that
/// stay.
const MIN_FORGOTTEN_ROWS: usize = 100;

/// Bytes, and rows, that are written to D1 again with one statement.
const MAX_REWRITTEN_BYTES: usize = super::flush::MAX_FLUSH_BYTES;
const MAX_REWRITTEN_ROWS: i64 = 500;

/// How the checkpoint in D1 compares with the lane's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the one that the lane published last.
    Same,
    /// It is of an earlier tree: D1 was restored, and may lack rows.
    Restored,
    /// The lane never had this tree, or the note belongs to another log. The lane stopped now, or it had stopped before.
    Other { is_new: bool },
}

/// A tree that D1 has no checkpoint of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpublished {
    /// The number of the receipt that is the first leaf.
    pub first: u64,
    pub tree: TreeHead,
    /// The leaves of its last tile, in base64.
    pub leaves: String,
    /// Its last receipt, which D1 must have. `None` if that was deleted because of its age or lost.
    pub last: Option<u64>,
}

/// Kept rows on their way to D1, again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRows {
    /// A JSON array.
    pub rows: String,
    /// The first and the last of them.
    pub range: (u64, u64),
}

impl Lane {
    /// An error if the lane stopped.
    pub(super) fn check_not_stopped(&self) -> Result<(), StorageError> {
        match self.stopped {
            false => Ok(()),
            true => {
                let why = "the lane stopped: D1's checkpoint is not the lane's";
                Err(StorageError(why.to_owned()))
            }
        }
    }

    /// Compares the note of D1's checkpoint with the lane's tree. The lane stops in two cases: the checkpoint is of no
    /// tree that the lane had, or its origin is not the one that the lane published with. The lane resumes when a later
    /// comparison finds neither. `origin`: the origin that the lane would publish with, or empty. It is compared only
    /// if the lane does not know the origin that it published with.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn compare_published(
        &mut self,
        storage: &impl LaneSql,
        note: Option<&str>,
        origin: &str,
    ) -> Result<Standing, StorageError> {
        let in_d1 = Published::of_note(note);
        let known = self.published_size();
        let noted = self.published.as_ref().map_or("", |known| known.origin.as_str());
        let own_origin = if noted.is_empty() { origin } else { noted };
        let is_of_log = |in_d1: &Published| {
            own_origin.is_empty() || in_d1.origin.is_empty() || in_d1.origin == own_origin
        };
        let is_noted = !noted.is_empty();
        let standing = match in_d1.filter(is_of_log) {
            Some(in_d1) if self.published.as_ref() == Some(&in_d1) => Standing::Same,
            Some(Published { tree, .. })
                if self.tree.root_at(storage, tree.size)? == Some(tree.root) =>
            {
                if tree.size < known {
                    Standing::Restored
                } else {
                    // It can be newer than the lane knows, if the lane died after it was published.
                    if note.is_some() || is_noted {
                        self.note_published(storage, note)?;
                    }
                    Standing::Same
                }
            }
            _ => Standing::Other { is_new: !self.stopped },
        };
        let stops = matches!(standing, Standing::Other { .. });
        if stops != self.stopped {
            let why = if stops { "other tree" } else { "" };
            set_meta(storage, STOPPED, why.to_owned())?;
            self.stopped = stops;
        }
        Ok(standing)
    }

    /// The next full tiles, as a JSON array of arrays: level, number, root, leaves or null, with hashes in base64. A
    /// bounded number of them; `None` if there are no more.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn next_tiles(
        &self,
        storage: &impl LaneSql,
        cursor: &mut TileCursor,
    ) -> Result<Option<String>, StorageError> {
        let deleted = (Self::anchor(storage)?.seq + 1).saturating_sub(self.tree.first);
        cursor.next_tiles(storage, deleted / TILE_WIDTH)
    }

    /// What is to be published next; `None` if D1 has it.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn unpublished(&self, storage: &impl LaneSql) -> Result<Option<Unpublished>, StorageError> {
        let known = self.published_size();
        let (first, size) = (self.tree.first, self.tree.edge.size());
        if size <= known {
            return Ok(None);
        }
        let (tree, leaves) = match size - known <= MAX_PUBLISHED_LEAVES {
            true => {
                let tree = TreeHead { size, root: self.tree.edge.root() };
                (tree, encode_hashes(&self.tree.leaves))
            }
            // One checkpoint cannot add all leaves. So it covers a part of the tree that ends with a full
            // tile.
            false => {
                let size = (known / TILE_WIDTH * TILE_WIDTH) + MAX_PUBLISHED_LEAVES;
                let root = self.tree.root_at(storage, size)?.ok_or_else(|| unreadable("a tile"))?;
                (TreeHead { size, root }, String::new())
            }
        };
        let last = Self::expected_in_d1(storage, first - 1 + tree.size)?;
        Ok(Some(Unpublished { first, tree, leaves, last }))
    }

    /// Whether D1 does not have a checkpoint of the whole tree.
    #[must_use]
    pub fn has_unpublished(&self) -> bool {
        self.tree.edge.size() > self.published_size()
    }

    fn published_size(&self) -> u64 {
        self.published.as_ref().map_or(0, |published| published.tree.size)
    }

    /// Whether the lane stopped, because D1's checkpoint is of another tree.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The number of the receipt that is the first leaf of the lane's tree.
    #[must_use]
    pub fn first_leaf(&self) -> u64 {
        self.tree.first
    }

    /// The tree that D1 has a checkpoint of.
    #[must_use]
    pub fn published(&self) -> Option<TreeHead> {
        self.published.as_ref().map(|published| published.tree)
    }

    /// The number of the newest receipt that a published checkpoint covers; 0 if there is none.
    #[must_use]
    pub fn published_through(&self) -> u64 {
        self.published.as_ref().map_or(0, |published| self.tree.first - 1 + published.tree.size)
    }

    /// Notes the checkpoint that D1 has, or that it has none.
    ///
    /// # Errors
    ///
    /// [`StorageError`], also if it is not a checkpoint.
    pub fn note_published(
        &mut self,
        storage: &impl LaneSql,
        note: Option<&str>,
    ) -> Result<(), StorageError> {
        let published = Published::of_note(note).ok_or_else(|| unreadable("a checkpoint"))?;
        set_meta(storage, PUBLISHED, published.encode())?;
        self.published = Some(published);
        Ok(())
    }

    /// Notes that D1 has the rows up to `through`.
    pub(super) fn note_flushed(
        storage: &impl LaneSql,
        through: u64,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let values = [integer(now_ms / MINUTE_MS)?, integer(through)?];
        storage.exec(sql::FLUSHED, &values).map(drop)
    }

    /// Deletes kept rows that are older than [`KEPT_MS`] or beyond [`MAX_KEPT_ROWS`] or [`MAX_KEPT_STORAGE_BYTES`], a bounded
    /// number of them. `added` is the number of rows that the flush has just added to the kept rows. The bound depends on it.
    pub(super) fn forget_flushed(
        &self,
        storage: &impl LaneSql,
        added: usize,
    ) -> Result<(), StorageError> {
        let before_ms = self.clock.expired_ms(KEPT_MS);
        let most = integer((2 * added).max(MIN_FORGOTTEN_ROWS) as u64)?;
        let has_room = storage.size_bytes() <= MAX_KEPT_STORAGE_BYTES;
        let kept = if has_room { MAX_KEPT_ROWS } else { 0 };
        let through = integer(self.flushed_through().saturating_sub(kept))?;
        let minute = integer(before_ms / MINUTE_MS)?;
        storage.exec(sql::FORGET_ROWS, &[minute.clone(), most.clone(), through.clone()])?;
        storage.exec(sql::FORGET_FLUSHES, &[minute])?;
        storage.exec(sql::FORGET_FLUSHED, &[integer(before_ms)?, most, through]).map(drop)
    }

    /// The first row from `from` on that the lane still has, whether D1 has it or not.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn first_kept(&self, storage: &impl LaneSql, from: u64) -> Result<u64, StorageError> {
        match storage.exec(sql::FIRST_KEPT, &[integer(from)?])?.first().map(Vec::as_slice) {
            None => Ok((self.head.seq + 1).max(from)),
            Some([Value::Integer(seq)]) => unsigned(*seq),
            Some(_) => Err(unreadable("the kept rows")),
        }
    }

    /// Rows from `from` on that were flushed before, a bounded number of them; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn kept_rows(
        &self,
        storage: &impl LaneSql,
        from: u64,
    ) -> Result<Option<KeptRows>, StorageError> {
        let through = integer(self.flushed_through())?;
        let values = [integer(from)?, through, Value::Integer(MAX_REWRITTEN_ROWS)];
        let mut rows = String::from("[");
        let mut range = None;
        for row in storage.exec(sql::KEPT_ROWS, &values)? {
            let [Value::Integer(seq), Value::Text(text)] = row.as_slice() else {
                return Err(unreadable("a kept row"));
            };
            if range.is_some() {
                if rows.len() + text.len() > MAX_REWRITTEN_BYTES {
                    break;
                }
                rows.push(',');
            }
            let (row, _) = split_metrics(text);
            rows.extend([row, "}"]);
            let seq = unsigned(*seq)?;
            range = Some((range.map_or(seq, |(first, _)| first), seq));
        }
        rows.push(']');
        Ok(range.map(|range| KeptRows { rows, range }))
    }
}
