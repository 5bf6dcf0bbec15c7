//! Tiles and entry bundles: how a log serves its tree and its entries (c2sp.org/tlog-tiles).
//!
//! A tile of level `l` and number `n` holds up to 256 hashes of subtrees of height `8 * l`, beginning with the subtree
//! `256 * n`. A bundle holds the entries below the tile of level 0 with the same number.
//!
//! Out of scope: whether a log has the tile. That depends on its size: see [`TilePath::in_tree`].

use std::fmt;

use super::form::decimal;
use super::tree::{Hash, MAX_SIZE, node_hash};

/// Hashes in a full tile, and entries in a full bundle.
pub const TILE_WIDTH: u64 = 256;

/// Levels of the tree in one tile.
pub const TILE_HEIGHT: u8 = 8;

const _: () = assert!(1 << TILE_HEIGHT == TILE_WIDTH);

/// [`TILE_WIDTH`], as tiles count it.
const FULL: u16 = 256;

const _: () = assert!(FULL as u64 == TILE_WIDTH);

/// The largest level in a path; the format allows no larger one.
pub const MAX_LEVEL: u8 = 63;

/// The largest number in a path: the largest tree has no later tile.
pub const MAX_NUMBER: u64 = MAX_SIZE / TILE_WIDTH;

/// Bytes of the longest path: `entries/`, six parts of the number with an `x` and a slash each, and `.p/255`.
const MAX_PATH_BYTES: usize = "entries/".len() + 6 * "x000/".len() + ".p/255".len();

const _: () = assert!(MAX_NUMBER < 1_000_u64.pow(6));

/// Bytes of the largest entry: its length is written in two bytes.
pub const MAX_ENTRY_BYTES: usize = 65_535;

/// What a tile holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Hashes of this level.
    Hashes(u8),
    /// Entries: the tile is an entry bundle.
    Entries,
}

/// Names a tile: the part of its address after `tile/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TilePath {
    pub layer: Layer,
    /// Tiles of the same layer before this one.
    pub number: u64,
    /// Hashes or entries in the tile: 1 to 256. Below 256 it is a partial tile.
    pub width: u16,
}

impl TilePath {
    /// Reads `<L>/<N>[.p/<W>]` or `entries/<N>[.p/<W>]`. Each tile has one path only: leading zeros are not allowed.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        if path.len() > MAX_PATH_BYTES {
            return None;
        }
        let (layer, rest) = path.split_once('/')?;
        let layer = match layer {
            "entries" => Layer::Entries,
            level => Layer::Hashes(decimal(level, MAX_LEVEL.into())?.try_into().ok()?),
        };
        let (number, width) = match rest.split_once(".p/") {
            Some((number, width)) => {
                (number, decimal(width, TILE_WIDTH - 1).filter(|width| *width > 0)?)
            }
            None => (rest, TILE_WIDTH),
        };
        Some(Self { layer, number: number_of(number)?, width: width.try_into().ok()? })
    }

    /// The tile as it is in a tree of `size` leaves: full, or partial with as many hashes as that tree has for it.
    /// `None` if the tree has no such tile.
    #[must_use]
    pub fn in_tree(layer: Layer, number: u64, size: u64) -> Option<Self> {
        let level = match layer {
            Layer::Hashes(level) => level,
            Layer::Entries => 0,
        };
        let hashes = size.checked_shr(u32::from(level) * u32::from(TILE_HEIGHT)).unwrap_or(0);
        let width = hashes.saturating_sub(number.checked_mul(TILE_WIDTH)?).min(TILE_WIDTH);
        (width > 0).then_some(Self { layer, number, width: width.try_into().ok()? })
    }
}

impl fmt::Display for TilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layer {
            Layer::Hashes(level) => write!(f, "{level}/")?,
            Layer::Entries => f.write_str("entries/")?,
        }
        let mut divisor = 1;
        while self.number / divisor >= 1_000 {
            divisor *= 1_000;
        }
        while divisor > 1 {
            write!(f, "x{:03}/", self.number / divisor % 1_000)?;
            divisor /= 1_000;
        }
        write!(f, "{:03}", self.number % 1_000)?;
        if self.width < FULL { write!(f, ".p/{}", self.width) } else { Ok(()) }
    }
}

/// The number of a tile: parts of three digits, each but the last with an `x` before it.
fn number_of(text: &str) -> Option<u64> {
    let (mut number, mut parts) = (0_u64, text.split('/').peekable());
    let several = parts.clone().nth(1).is_some();
    if several && text.starts_with("x000") {
        return None;
    }
    while let Some(part) = parts.next() {
        let digits = if parts.peek().is_some() { part.strip_prefix('x')? } else { part };
        if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        number = number.checked_mul(1_000)?.checked_add(digits.parse().ok()?)?;
    }
    (number <= MAX_NUMBER).then_some(number)
}

/// Writes an entry bundle. `None` if there are more than 256 entries, or if one is above [`MAX_ENTRY_BYTES`].
#[must_use]
pub fn bundle<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut bundle = Vec::new();
    for (count, entry) in (1..).zip(entries) {
        if count > TILE_WIDTH {
            return None;
        }
        bundle.extend(u16::try_from(entry.len()).ok()?.to_be_bytes());
        bundle.extend(entry);
    }
    Some(bundle)
}

/// The entries of a bundle. `None` if the last one is cut off, or if there are more than 256.
#[must_use]
pub fn entries(bundle: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut entries, mut rest) = (Vec::new(), bundle);
    while !rest.is_empty() {
        let (length, tail) = rest.split_first_chunk()?;
        let (entry, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(entry);
        rest = tail;
        if entries.len() > usize::from(FULL) {
            return None;
        }
    }
    Some(entries)
}

/// The hash of a perfect subtree within a tile. `hashes` are those of the tile, `height` is counted from them (0 to
/// 8), and `index_in_tile` is the subtree's index among those of its height within the tile. `None` if the tile does
/// not hold the whole subtree.
#[must_use]
pub fn nodes_of(hashes: &[Hash], height: u8, index_in_tile: u64) -> Option<Hash> {
    if height > TILE_HEIGHT || index_in_tile >= TILE_WIDTH >> height {
        return None;
    }
    let from = usize::try_from(index_in_tile << height).ok()?;
    let mut level = hashes.get(from..from + (1 << height))?.to_vec();
    while level.len() > 1 {
        level = level.as_chunks().0.iter().map(|[left, right]| node_hash(left, right)).collect();
    }
    level.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::tree::{Edge, leaf_hash};

    #[test]
    fn a_tile_has_exactly_one_path() {
        let hashes =
            |level, number, width| Some(TilePath { layer: Layer::Hashes(level), number, width });
        let entries = |number, width| Some(TilePath { layer: Layer::Entries, number, width });
        for (path, expected) in [
            ("0/000", hashes(0, 0, 256)),
            ("0/000.p/1", hashes(0, 0, 1)),
            ("63/999.p/255", hashes(63, 999, 255)),
            ("1/x001/000", hashes(1, 1_000, 256)),
            ("0/x001/x234/067", hashes(0, 1_234_067, 256)),
            ("entries/x001/x234/067.p/17", entries(1_234_067, 17)),
            ("0/x018/x014/x398/x509/x481/984", hashes(0, MAX_NUMBER, 256)),
            ("0/x018/x014/x398/x509/x481/985", None),
            ("0/x001/x018/x014/x398/x509/x481/984", None),
            ("", None),
            ("0", None),
            ("0/", None),
            ("/000", None),
            ("00/000", None),
            ("01/000", None),
            ("64/000", None),
            ("-1/000", None),
            ("+1/000", None),
            ("entry/000", None),
            ("0/0", None),
            ("0/0000", None),
            ("0/x000", None),
            ("0/+00", None),
            ("0/x000/000", None),
            ("0/x000/001", None),
            ("0/001/000", None),
            ("0/x001/x000", None),
            ("0/x001/", None),
            ("0/X001/000", None),
            ("0/000.p/0", None),
            ("0/000.p/01", None),
            ("0/000.p/256", None),
            ("0/000.p/", None),
            ("0/000.p/+1", None),
            ("0/000.p/1/", None),
            ("0/000.p/1.p/1", None),
            ("0/000.p", None),
            ("0/0\u{660}0", None),
            ("0/000 ", None),
        ] {
            assert_eq!(TilePath::parse(path), expected, "{path}");
            if let Some(tile) = expected {
                assert_eq!(tile.to_string(), path);
            }
        }
    }

    #[test]
    fn a_tree_of_70_000_has_the_tiles_of_the_specification() {
        let width = |layer, number, size| TilePath::in_tree(layer, number, size).map(|it| it.width);
        for (layer, number, size, expected) in [
            (Layer::Hashes(0), 272, 70_000, Some(256)),
            (Layer::Hashes(0), 273, 70_000, Some(112)),
            (Layer::Entries, 273, 70_000, Some(112)),
            (Layer::Hashes(0), 274, 70_000, None),
            (Layer::Hashes(1), 0, 70_000, Some(256)),
            (Layer::Hashes(1), 1, 70_000, Some(17)),
            (Layer::Hashes(2), 0, 70_000, Some(1)),
            (Layer::Hashes(2), 1, 70_000, None),
            (Layer::Hashes(3), 0, 70_000, None),
            (Layer::Hashes(63), 0, MAX_SIZE, None),
            (Layer::Hashes(0), 0, 256, Some(256)),
            (Layer::Hashes(0), 1, 256, None),
            (Layer::Hashes(1), 0, 256, Some(1)),
            (Layer::Hashes(0), 0, 0, None),
            (Layer::Hashes(0), u64::MAX, MAX_SIZE, None),
        ] {
            assert_eq!(width(layer, number, size), expected, "{layer:?} {number} {size}");
        }
    }

    #[test]
    fn a_bundle_gives_back_its_entries_and_nothing_else() {
        let longest = vec![7; MAX_ENTRY_BYTES];
        let given: [&[u8]; 3] = [b"a", b"", &longest];
        let written = bundle(given.into_iter()).unwrap();
        assert_eq!(written[..4], [0, 1, b'a', 0]);
        assert_eq!(entries(&written).unwrap(), given);
        assert_eq!(entries(&written[..written.len() - 1]), None);
        assert_eq!(entries(&[0]), None);
        assert_eq!(entries(&[]), Some(Vec::new()));
        let too_long = vec![7; MAX_ENTRY_BYTES + 1];
        assert_eq!(bundle([&too_long[..]].into_iter()), None);
        let empty: &[u8] = b"";
        assert_eq!(bundle([empty; 256].into_iter()).map(|it| it.len()), Some(512));
        assert_eq!(bundle([empty; 257].into_iter()), None);
        assert_eq!(entries(&[0; 512]).map(|it| it.len()), Some(256));
        assert_eq!(entries(&[0; 514]), None);
    }

    #[test]
    fn a_subtree_of_a_tile_is_what_the_tree_completed() {
        let leaves: Vec<Hash> = (0..=255_u8).map(|number| leaf_hash(&[number])).collect();
        let mut edge = Edge::default();
        for leaf in &leaves {
            edge.append(*leaf, &mut |height, index, hash| {
                assert_eq!(nodes_of(&leaves, height, index), Some(hash), "{height} {index}");
            });
        }
        assert_eq!(nodes_of(&leaves, 0, 255), Some(leaves[255]));
        let partial = &leaves[..5];
        for (hashes, height, index, expected) in [
            (partial, 0, 4, true),
            (partial, 0, 5, false),
            (partial, 2, 0, true),
            (partial, 2, 1, false),
            (&leaves[..], 8, 0, true),
            (&leaves[..], 8, 1, false),
            (&leaves[..], 9, 0, false),
            (&leaves[..], 255, 0, false),
            (&leaves[..], 8, u64::MAX, false),
        ] {
            assert_eq!(nodes_of(hashes, height, index).is_some(), expected, "{height} {index}");
        }
    }
}
