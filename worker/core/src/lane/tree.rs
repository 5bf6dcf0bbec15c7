//! The lane's Merkle tree over its receipts ([`crate::tlog`]). It grows when D1 has confirmed rows, not when they are
//! decided.
//!
//! Stored are: `meta` has the tree's right edge and the leaves of the tile that is not full yet, `tiles` the full ones.
//! Tiles of the level 0 keep their leaves for [`KEPT_TILES`] tiles, so that the lane can compute each tree that it had,
//! and can write what a restored D1 is missing.
//!
//! INVARIANT (any statement may be the last): tiles are written before the edge that counts them, and the edge before
//! it is noted that D1 has the rows. What is appended again after a failure gives the same tiles.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::storage::{
    LaneSql, StorageError, Value, integer, meta, missing_rows, set_meta, unreadable,
};
use crate::json;
use crate::sql::lane as sql;
use crate::tlog::proof::{consistency, root};
use crate::tlog::tile::nodes_of;
use crate::tlog::{Checkpoint, EMPTY_ROOT, Edge, Hash, Note, TILE_HEIGHT, TILE_WIDTH};

/// The name in `meta` under which the tree is kept.
const TREE: &str = "tree";

/// Full tiles that keep their leaves: those of the newest million receipts. In base64 they take 45 MB.
const KEPT_TILES: u64 = 4_096;

/// Tiles that are published with one statement, or of which one read gets the roots. Each has up to 11 KB.
const MAX_TILES: u64 = 64;

/// Leaves that one checkpoint adds at most. A lane that publishes an old tree for the first time does it in parts, and
/// each takes some 50 statements of the 1,000 that one run may send to D1.
pub const MAX_PUBLISHED_LEAVES: u64 = 50 * MAX_TILES * TILE_WIDTH;

/// The name in `meta` under which the published checkpoint is kept.
pub(super) const PUBLISHED: &str = "published";

/// The name in `meta` of why the lane stopped; empty if it did not.
pub(super) const STOPPED: &str = "stopped";

/// A tree, by its size and its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    pub size: u64,
    pub root: Hash,
}

impl TreeHead {
    fn parse(text: &str) -> Option<Self> {
        let (size, root) = text.split_once(':')?;
        Some(Self { size: size.parse().ok()?, root: *decode_hashes(root)?.first()? })
    }

    fn encode(self) -> String {
        format!("{}:{}", self.size, encode_hashes(&[self.root]))
    }

    /// The tree of a signed note; `None` if it is not one.
    #[must_use]
    pub fn of_note(note: &str) -> Option<Self> {
        Published::of_note(Some(note)).map(|published| published.tree)
    }
}

/// The checkpoint that D1 has of the lane's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Published {
    pub tree: TreeHead,
    /// Empty if it is not known: D1 has no checkpoint, or an earlier version noted it.
    pub origin: String,
}

impl Published {
    fn parse(text: &str) -> Option<Self> {
        let (tree, origin) = text.split_once(' ').unwrap_or((text, ""));
        Some(Self { tree: TreeHead::parse(tree)?, origin: origin.to_owned() })
    }

    pub fn encode(&self) -> String {
        format!("{} {}", self.tree.encode(), self.origin)
    }

    /// The checkpoint in a signed note. Without a note, an empty tree. `None` if the note is not a
    /// checkpoint.
    pub fn of_note(note: Option<&str>) -> Option<Self> {
        let Some(note) = note else {
            let tree = TreeHead { size: 0, root: EMPTY_ROOT };
            return Some(Self { tree, origin: String::new() });
        };
        let note = Note::parse(note).ok()?;
        let Checkpoint { origin, size, root } = Checkpoint::parse(note.text).ok()?;
        Some(Self { tree: TreeHead { size, root }, origin: origin.into_owned() })
    }
}

/// The checkpoint that D1 has, and whether the lane stopped because that is of another tree.
pub(super) fn read_publication(
    storage: &impl LaneSql,
) -> Result<(Option<Published>, bool), StorageError> {
    let published = meta(storage, PUBLISHED)?.filter(|text| !text.is_empty());
    let published = published
        .map(|text| Published::parse(&text).ok_or_else(|| unreadable("the published tree")));
    let stopped = meta(storage, STOPPED)?.is_some_and(|why| !why.is_empty());
    Ok((published.transpose()?, stopped))
}

/// The tree of a lane in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The number of the receipt that is the first leaf. Not 1 if the lane is older than its tree.
    pub first: u64,
    pub edge: Edge,
    /// The leaves of the last tile, unless it is full.
    pub leaves: Vec<Hash>,
}

/// A tree as it is stored. Hashes are in base64.
#[derive(Serialize, Deserialize)]
struct StoredTree {
    first: u64,
    size: u64,
    edge: String,
    leaves: String,
}

/// Hashes one after the other, in base64.
#[must_use]
pub fn encode_hashes(hashes: &[Hash]) -> String {
    STANDARD.encode(hashes.as_flattened())
}

/// `None` if the text is not what [`encode_hashes`] writes.
#[must_use]
pub fn decode_hashes(text: &str) -> Option<Vec<Hash>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (hashes, rest) = bytes.as_chunks();
    rest.is_empty().then(|| hashes.to_vec())
}

impl Tree {
    /// A tree that begins with this receipt.
    pub(super) fn new(first: u64) -> Self {
        Self { first, edge: Edge::default(), leaves: Vec::new() }
    }

    /// Replaces a tree that lacks receipts before `first` with an empty one that begins at `first`. Forgets what was
    /// published of the old tree. D1's checkpoint is then of a tree that the lane does not have.
    pub(super) fn begin_again(storage: &impl LaneSql, first: u64) -> Result<Self, StorageError> {
        storage.exec(sql::FORGET_TILES, &[])?;
        set_meta(storage, PUBLISHED, String::new())?;
        Ok(Self::new(first))
    }

    /// The tree that storage holds; a new one if it holds none.
    pub(super) fn start(storage: &impl LaneSql, first: u64) -> Result<Self, StorageError> {
        let Some(stored) = meta(storage, TREE)? else { return Ok(Self::new(first)) };
        let read = || -> Option<Self> {
            let stored: StoredTree = serde_json::from_str(&stored).ok()?;
            let edge = Edge::from_parts(stored.size, decode_hashes(&stored.edge)?)?;
            let leaves = decode_hashes(&stored.leaves)?;
            let partial = leaves.len() as u64 == stored.size % TILE_WIDTH;
            partial.then_some(Self { first: stored.first, edge, leaves })
        };
        read().ok_or_else(|| unreadable("the tree"))
    }

    /// The number of the newest receipt in it; `first - 1` if it is empty.
    #[must_use]
    pub fn through(&self) -> u64 {
        self.first - 1 + self.edge.size()
    }

    fn save(&self, storage: &impl LaneSql) -> Result<(), StorageError> {
        let stored = StoredTree {
            first: self.first,
            size: self.edge.size(),
            edge: encode_hashes(self.edge.hashes()),
            leaves: encode_hashes(&self.leaves),
        };
        // Plain data always serializes. An empty text would fail the next start.
        set_meta(storage, TREE, json::to_string(&stored))
    }

    /// Appends the leaves of receipts, which follow each other. Those that the tree has already are left out.
    pub(super) fn append(
        &mut self,
        storage: &impl LaneSql,
        leaves: &[(u64, Hash)],
    ) -> Result<(), StorageError> {
        let mut grown = self.clone();
        let known = grown.through();
        for (seq, leaf) in leaves.iter().filter(|(seq, _)| *seq > known) {
            if *seq != grown.through() + 1 {
                return Err(missing_rows());
            }
            let mut full = Vec::new();
            grown.leaves.push(*leaf);
            grown.edge.append(*leaf, &mut |height, index, hash| {
                if height % TILE_HEIGHT == 0 {
                    full.push((height / TILE_HEIGHT - 1, index, hash));
                }
            });
            for (level, number, root) in full {
                let leaves = match level {
                    0 => Value::Text(encode_hashes(&std::mem::take(&mut grown.leaves))),
                    _ => Value::Null,
                };
                let key = [Value::Integer(level.into()), integer(number)?];
                let [level_value, number_value] = key;
                let root = Value::Text(encode_hashes(&[root]));
                storage.exec(sql::KEEP_TILE, &[level_value, number_value, root, leaves])?;
                if level == 0 && number >= KEPT_TILES {
                    storage.exec(sql::DROP_LEAVES, &[integer(number - KEPT_TILES)?])?;
                }
            }
        }
        grown.save(storage)?;
        *self = grown;
        Ok(())
    }

    /// The root of the tree when it had `size` leaves; `None` if it never had so many, or if the leaves that this needs
    /// are no longer kept.
    pub(super) fn root_at(
        &self,
        storage: &impl LaneSql,
        size: u64,
    ) -> Result<Option<Hash>, StorageError> {
        if size == self.edge.size() {
            return Ok(Some(self.edge.root()));
        }
        if size > self.edge.size() {
            return Ok(None);
        }
        self.with_nodes(storage, |node| root(size, node))
    }

    /// The proof that the tree of `to` leaves extends the one of `from` leaves; `None` as with [`Self::root_at`].
    pub(super) fn consistency(
        &self,
        storage: &impl LaneSql,
        from: u64,
        to: u64,
    ) -> Result<Option<Vec<Hash>>, StorageError> {
        self.with_nodes(storage, |node| consistency(from, to, node))
    }

    fn with_nodes<T>(
        &self,
        storage: &impl LaneSql,
        compute: impl FnOnce(&mut dyn FnMut(u8, u64) -> Option<Hash>) -> Option<T>,
    ) -> Result<Option<T>, StorageError> {
        let mut failed = None;
        let computed = compute(&mut |height, index| {
            self.node(storage, height, index).unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        failed.map_or(Ok(computed), Err)
    }

    /// The hash of a perfect subtree: of leaves of a tile, or of roots of tiles.
    pub(super) fn node(
        &self,
        storage: &impl LaneSql,
        height: u8,
        index: u64,
    ) -> Result<Option<Hash>, StorageError> {
        let (level, inside) = (height / TILE_HEIGHT, height % TILE_HEIGHT);
        let first = index << inside;
        if level > 0 {
            let roots = tile_roots(storage, level - 1, first, 1 << inside)?;
            return Ok(nodes_of(&roots, inside, 0).filter(|_| roots.len() == 1 << inside));
        }
        let (number, begin) = (first / TILE_WIDTH, first % TILE_WIDTH);
        if number == self.edge.size() / TILE_WIDTH {
            return Ok(nodes_of(&self.leaves, inside, begin >> inside));
        }
        let rows = storage.exec(sql::LEAVES, &[integer(number)?])?;
        match rows.first().map(Vec::as_slice) {
            Some([Value::Text(leaves)]) => {
                let leaves = decode_hashes(leaves).ok_or_else(|| unreadable("a tile"))?;
                Ok(nodes_of(&leaves, inside, begin >> inside))
            }
            _ => Ok(None),
        }
    }
}

/// The roots of up to `count` tiles that follow each other.
fn tile_roots(
    storage: &impl LaneSql,
    level: u8,
    first: u64,
    count: u64,
) -> Result<Vec<Hash>, StorageError> {
    let values = [Value::Integer(level.into()), integer(first)?, integer(count)?];
    let rows = storage.exec(sql::TILE_ROOTS, &values)?;
    let roots = rows.iter().map(|row| match row.as_slice() {
        [Value::Text(root)] => decode_hashes(root).and_then(|hashes| hashes.first().copied()),
        _ => None,
    });
    roots.collect::<Option<Vec<Hash>>>().ok_or_else(|| unreadable("a tile"))
}

/// Where a lane is in writing its full tiles to D1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileCursor {
    /// The leaves of the tree that D1 has.
    size: u64,
    /// The leaves of the tree that is written.
    to: u64,
    level: u8,
    number: u64,
}

/// Tiles of a level that a tree of `size` leaves has.
const fn full_tiles(size: u64, level: u8) -> u64 {
    match TILE_HEIGHT.saturating_mul(level + 1) {
        shift @ 0..64 => size >> shift,
        _ => 0,
    }
}

impl TileCursor {
    /// A cursor before the first full tile that a tree of `to` leaves has and a tree of `size` leaves lacks.
    #[must_use]
    pub const fn between(size: u64, to: u64) -> Self {
        Self { size, to, level: 0, number: full_tiles(size, 0) }
    }

    /// The next full tiles, as a JSON array of arrays: level, number, root, leaves or null, with hashes in base64. A
    /// bounded number of them; `None` if there are no more. Tiles below `deleted` come without the leaves.
    pub(super) fn next_tiles(
        &mut self,
        storage: &impl LaneSql,
        deleted: u64,
    ) -> Result<Option<String>, StorageError> {
        while full_tiles(self.to, self.level) > 0 {
            let end = full_tiles(self.to, self.level);
            if self.number < end {
                let values = [
                    Value::Integer(self.level.into()),
                    integer(self.number)?,
                    integer(end.min(self.number + MAX_TILES))?,
                    integer(deleted)?,
                ];
                let rows = storage.exec(sql::TILES, &values)?;
                let texts = rows.iter().map(|row| match row.as_slice() {
                    [Value::Text(text)] => Some(text.as_str()),
                    _ => None,
                });
                let texts: Option<Vec<&str>> = texts.collect();
                let texts = texts.filter(|texts| !texts.is_empty());
                let texts = texts.ok_or_else(|| unreadable("a tile"))?;
                self.number += texts.len() as u64;
                return Ok(Some(format!("[{}]", texts.join(","))));
            }
            self.level += 1;
            self.number = full_tiles(self.size, self.level);
        }
        Ok(None)
    }
}
