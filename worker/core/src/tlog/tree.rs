//! The Merkle tree of a log: RFC 6962, section 2.1 (RFC 9162, section 2.1.1, says the same), with SHA-256.
//!
//! A tree is split at the largest power of two below its size, and so are its parts. So its left part is always
//! *perfect*: it has a power of two of leaves. A perfect subtree is named by its height and its index among the
//! subtrees of that height: it holds the leaves from `index << height`, `1 << height` of them. Its hash never changes
//! while the tree grows.
//!
//! INVARIANT (one hash for each bit): a tree of size `n` consists of one perfect subtree for each 1 in the binary form
//! of `n`, largest first. An [`Edge`] holds exactly their hashes.

use sha2::{Digest as _, Sha256};

/// Bytes of a hash.
pub const HASH_BYTES: usize = 32;

/// A SHA-256 hash of a leaf, a node or a tree.
pub type Hash = [u8; HASH_BYTES];

/// The largest size of a tree. A consistency proof has at most one hash more than the tree is high, so it has at most
/// 63: a witness takes no more. All sizes are also integers of SQLite and of Go, which have a sign.
pub const MAX_SIZE: u64 = 1 << 62;

/// The root of a tree without leaves: SHA-256 of nothing.
pub const EMPTY_ROOT: Hash = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The hash of an entry as a leaf.
#[must_use]
pub fn leaf_hash(entry: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// The hash of a node above two subtrees.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// The hash above subtrees that follow each other, largest first, as in an edge: the two smallest are joined first.
/// `None` if there are none.
pub(super) fn joined(subtrees: impl DoubleEndedIterator<Item = Hash>) -> Option<Hash> {
    subtrees.rev().reduce(|right, left| node_hash(&left, &right))
}

/// The perfect subtrees of a tree, largest first: its right edge. That is all one needs to append leaves and to know
/// the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edge {
    size: u64,
    hashes: Vec<Hash>,
}

impl Edge {
    /// The edge of a tree of `size` leaves. `None` if there is not one hash for each perfect subtree, or if `size` is
    /// above [`MAX_SIZE`].
    #[must_use]
    pub fn from_parts(size: u64, hashes: Vec<Hash>) -> Option<Self> {
        let fits = size <= MAX_SIZE && usize::try_from(size.count_ones()) == Ok(hashes.len());
        fits.then_some(Self { size, hashes })
    }

    /// Leaves in the tree.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The hashes of the perfect subtrees, largest first.
    #[must_use]
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    /// The root of the tree. It takes at most 62 hashes to compute.
    #[must_use]
    pub fn root(&self) -> Hash {
        joined(self.hashes.iter().copied()).unwrap_or(EMPTY_ROOT)
    }

    /// Appends a leaf. `completed` is called for each perfect subtree that the leaf completes, lowest first, with its
    /// height (at least 1), its index at that height, and its hash.
    ///
    /// The size does not overflow: [`MAX_SIZE`] leaves far more room than anybody can append.
    pub fn append(&mut self, leaf: Hash, completed: &mut impl FnMut(u8, u64, Hash)) {
        let (mut height, mut index, mut hash) = (0_u8, self.size, leaf);
        while index & 1 == 1
            && let Some(left) = self.hashes.pop()
        {
            (height, index, hash) = (height + 1, index >> 1, node_hash(&left, &hash));
            completed(height, index, hash);
        }
        self.hashes.push(hash);
        self.size += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The eight leaves of the tests of Certificate Transparency.
    fn standard_leaves() -> Vec<Vec<u8>> {
        [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ]
        .map(|text| hex::decode(text).unwrap())
        .to_vec()
    }

    #[test]
    fn roots_are_those_of_certificate_transparency() {
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let mut edge = Edge::default();
        assert_eq!(hex::encode(edge.root()), roots[0]);
        for (leaf, root) in standard_leaves().iter().zip(&roots[1..]) {
            edge.append(leaf_hash(leaf), &mut |_, _, _| {});
            assert_eq!(hex::encode(edge.root()), *root, "size {}", edge.size());
        }
    }

    #[test]
    fn each_perfect_subtree_is_completed_once_and_lowest_first() {
        let (mut edge, mut completed) = (Edge::default(), Vec::new());
        for number in 0..8_u8 {
            edge.append([number; 32], &mut |height, index, hash| {
                completed.push((height, index, hash));
            });
        }
        let names: Vec<_> = completed.iter().map(|(height, index, _)| (*height, *index)).collect();
        assert_eq!(names, [(1, 0), (1, 1), (2, 0), (1, 2), (1, 3), (2, 1), (3, 0)]);
        assert_eq!(completed[0].2, node_hash(&[0; 32], &[1; 32]));
        assert_eq!(edge.hashes(), [completed[6].2]);
    }

    #[test]
    fn an_edge_has_one_hash_for_each_perfect_subtree() {
        for (size, hashes, expected) in [
            (0, 0, true),
            (0, 1, false),
            (6, 2, true),
            (6, 1, false),
            (6, 3, false),
            (MAX_SIZE, 1, true),
        ] {
            let edge = Edge::from_parts(size, vec![[1; 32]; hashes]);
            assert_eq!(edge.is_some(), expected, "{size} {hashes}");
        }
        assert_eq!(Edge::from_parts(MAX_SIZE + 1, vec![[1; 32]; 2]), None);
    }
}
