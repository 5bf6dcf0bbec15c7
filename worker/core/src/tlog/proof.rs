//! Proofs: that an entry is in a tree, and that a tree only grew (RFC 9162, sections 2.1.3 and 2.1.4).
//!
//! The functions that make a proof ask `node(height, index)` for the hashes of perfect subtrees; height 0 is a leaf.
//! `None` means that the hash is not known, and then there is no proof.
//!
//! INVARIANT (asked alike): which hashes are asked for depends only on the sizes and the index, never on the answers.
//! So a caller that loads hashes from a database makes the proof twice: first with a function that records what it is
//! asked for and answers with any hash, then with what it loaded. At most 125 hashes are asked for.

use super::tree::{EMPTY_ROOT, Hash, MAX_SIZE, joined, node_hash};

/// The root of a tree of `size` leaves. `None` if a hash is not known, or if `size` is above [`MAX_SIZE`].
pub fn root(size: u64, node: &mut dyn FnMut(u8, u64) -> Option<Hash>) -> Option<Hash> {
    match size {
        0 => Some(EMPTY_ROOT),
        1..=MAX_SIZE => Range { start: 0, end: size }.hash(node),
        _ => None,
    }
}

/// Proves that the leaf `index` is in the tree of `size` leaves: RFC 9162, section 2.1.3.1. The proof has at most 62
/// hashes, beginning beside the leaf. `None` if the tree has no such leaf, if a hash is not known, or if `size` is
/// above [`MAX_SIZE`].
pub fn inclusion(
    index: u64,
    size: u64,
    node: &mut dyn FnMut(u8, u64) -> Option<Hash>,
) -> Option<Vec<Hash>> {
    if index >= size || size > MAX_SIZE {
        return None;
    }
    let (mut proof, mut range) = (Vec::new(), Range { start: 0, end: size });
    while let Some((left, right)) = range.split() {
        let (with_leaf, beside) = if index < right.start { (left, right) } else { (right, left) };
        proof.push(beside.hash(node)?);
        range = with_leaf;
    }
    proof.reverse();
    Some(proof)
}

/// Proves that the tree of `to` leaves begins with the tree of `from` leaves: RFC 9162, section 2.1.4.1. The proof has
/// at most 63 hashes. It is empty if the sizes are equal, or if `from` is 0: every tree begins with the empty one.
/// `None` if `from` is above `to`, if a hash is not known, or if `to` is above [`MAX_SIZE`].
pub fn consistency(
    from: u64,
    to: u64,
    node: &mut dyn FnMut(u8, u64) -> Option<Hash>,
) -> Option<Vec<Hash>> {
    if from > to || to > MAX_SIZE {
        return None;
    }
    if from == 0 {
        return Some(Vec::new());
    }
    let (mut proof, mut range) = (Vec::new(), Range { start: 0, end: to });
    // Until both trees agree on the range: it ends where the old tree ended.
    while range.end != from
        && let Some((left, right)) = range.split()
    {
        let (with_end, beside) = if from <= right.start { (left, right) } else { (right, left) };
        proof.push(beside.hash(node)?);
        range = with_end;
    }
    // A reader knows the old root, so a range that is the whole old tree is left out.
    if range.start > 0 {
        proof.push(range.hash(node)?);
    }
    proof.reverse();
    Some(proof)
}

/// Whether a proof shows that the leaf `index` of the tree of `size` leaves has the hash `leaf`: RFC 9162, section
/// 2.1.3.2.
#[must_use]
pub fn verify_inclusion(index: u64, size: u64, leaf: &Hash, proof: &[Hash], root: &Hash) -> bool {
    if index >= size || size > MAX_SIZE {
        return false;
    }
    let (mut path, mut hash) = (Path { index, last: size - 1 }, *leaf);
    for beside in proof {
        match path.climb() {
            Some(Side::Left) => hash = node_hash(beside, &hash),
            Some(Side::Right) => hash = node_hash(&hash, beside),
            None => return false,
        }
    }
    path.last == 0 && hash == *root
}

/// Whether a proof shows that the tree of `to` leaves and the root `new` begins with the tree of `from` leaves and the
/// root `old`: RFC 9162, section 2.1.4.2. For `from` 0, `old` must be the root of the empty tree. For equal sizes, the
/// roots must be equal. In both cases the proof must be empty.
#[must_use]
pub fn verify_consistency(from: u64, to: u64, proof: &[Hash], old: &Hash, new: &Hash) -> bool {
    if from > to || to > MAX_SIZE {
        return false;
    }
    if from == 0 {
        return proof.is_empty() && *old == EMPTY_ROOT && (to > 0 || *new == EMPTY_ROOT);
    }
    if from == to {
        return proof.is_empty() && old == new;
    }
    // The subtree at the old tree's end. If it is the whole old tree, the proof leaves it out.
    let height = from.trailing_zeros();
    let mut path = Path { index: (from - 1) >> height, last: (to - 1) >> height };
    let (end, proof) = match proof.split_first() {
        _ if from.is_power_of_two() => (old, proof),
        Some((end, proof)) => (end, proof),
        None => return false,
    };
    let (mut old_hash, mut new_hash) = (*end, *end);
    for beside in proof {
        match path.climb() {
            Some(Side::Left) => {
                old_hash = node_hash(beside, &old_hash);
                new_hash = node_hash(beside, &new_hash);
            }
            // The old tree ended before this subtree.
            Some(Side::Right) => new_hash = node_hash(&new_hash, beside),
            None => return false,
        }
    }
    path.last == 0 && old_hash == *old && new_hash == *new
}

/// Consecutive leaves that are a subtree: never empty. It begins at a multiple of each power of two up to its length.
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
}

impl Range {
    /// Its two parts; `None` if it is one leaf.
    fn split(self) -> Option<(Self, Self)> {
        // The largest power of two below the length.
        let height = (self.end - self.start).checked_sub(1)?.checked_ilog2()?;
        let middle = self.start + (1 << height);
        Some((Self { end: middle, ..self }, Self { start: middle, ..self }))
    }

    /// Its hash, from those of its perfect subtrees: one for each 1 in the binary form of its length.
    fn hash(self, node: &mut dyn FnMut(u8, u64) -> Option<Hash>) -> Option<Hash> {
        let (mut start, mut subtrees) = (self.start, Vec::new());
        while let Some(height) = (self.end - start).checked_ilog2() {
            subtrees.push(node(u8::try_from(height).ok()?, start >> height)?);
            start += 1 << height;
        }
        joined(subtrees.into_iter())
    }
}

/// The way from a subtree to the root: its index, and the index of the last subtree, at the same height.
struct Path {
    index: u64,
    last: u64,
}

/// Where the hash of the proof is.
enum Side {
    Left,
    Right,
}

impl Path {
    /// Climbs to the node that joins the subtree with the next hash of the proof. `None` if this is the root.
    fn climb(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        // The last subtree has nothing to its right. It is joined where it is a right child.
        let height = if self.index == self.last { self.index.trailing_zeros() } else { 0 };
        let side = if (self.index >> height) & 1 == 1 { Side::Left } else { Side::Right };
        self.index >>= height + 1;
        self.last >>= height + 1;
        Some(side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::tree::{Edge, leaf_hash};

    /// The tree of the tests of Certificate Transparency, and its nodes.
    fn node(height: u8, index: u64) -> Option<Hash> {
        let leaves = [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ];
        if height == 0 {
            return leaves
                .get(usize::try_from(index).ok()?)
                .map(|it| leaf_hash(&hex::decode(it).unwrap()));
        }
        Some(node_hash(&node(height - 1, 2 * index)?, &node(height - 1, 2 * index + 1)?))
    }

    fn of(size: u64) -> Hash {
        root(size, &mut node).unwrap()
    }

    #[test]
    fn proofs_are_those_of_certificate_transparency() {
        let hexes =
            |proof: Option<Vec<Hash>>| proof.unwrap().iter().map(hex::encode).collect::<Vec<_>>();
        let inclusions: [(u64, u64, &[&str]); 4] = [
            (0, 1, &[]),
            (
                0,
                8,
                &[
                    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
                ],
            ),
            (
                5,
                8,
                &[
                    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                ],
            ),
            (2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        ];
        for (index, size, expected) in inclusions {
            assert_eq!(hexes(inclusion(index, size, &mut node)), expected, "{index} {size}");
        }
        let consistencies: [(u64, u64, &[&str]); 4] = [
            (1, 1, &[]),
            (
                1,
                8,
                &[
                    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
                ],
            ),
            (
                6,
                8,
                &[
                    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
                ],
            ),
            (
                2,
                5,
                &[
                    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                ],
            ),
        ];
        for (from, to, expected) in consistencies {
            assert_eq!(hexes(consistency(from, to, &mut node)), expected, "{from} {to}");
        }
    }

    #[test]
    fn there_is_no_proof_of_what_is_not_so() {
        let mut any = |_, _| Some([0; 32]);
        let mut none = |_, _| None;
        assert_eq!(inclusion(0, 0, &mut any), None);
        assert_eq!(inclusion(8, 8, &mut any), None);
        assert_eq!(inclusion(0, MAX_SIZE + 1, &mut any), None);
        assert_eq!(inclusion(0, 2, &mut none), None);
        assert_eq!(inclusion(0, 1, &mut none), Some(Vec::new()));
        assert_eq!(consistency(3, 2, &mut any), None);
        assert_eq!(consistency(1, MAX_SIZE + 1, &mut any), None);
        assert_eq!(consistency(1, 2, &mut none), None);
        assert_eq!(consistency(0, MAX_SIZE, &mut none), Some(Vec::new()));
        assert_eq!(consistency(MAX_SIZE, MAX_SIZE, &mut none), Some(Vec::new()));
        assert_eq!(root(MAX_SIZE + 1, &mut any), None);
        assert_eq!(root(1, &mut none), None);
        assert_eq!(root(0, &mut none), Some(EMPTY_ROOT));
    }

    #[test]
    fn proofs_from_and_to_the_empty_tree_and_of_equal_trees_are_empty() {
        let (one, two) = (of(1), of(2));
        let hash: &[Hash] = &[[0; 32]];
        for (from, to, proof, old, new, expected) in [
            (0, 0, &[][..], EMPTY_ROOT, EMPTY_ROOT, true),
            (0, 0, &[], EMPTY_ROOT, one, false),
            (0, 2, &[], EMPTY_ROOT, two, true),
            (0, 2, &[], one, two, false),
            (0, 2, hash, EMPTY_ROOT, two, false),
            (2, 2, &[], two, two, true),
            (2, 2, &[], one, two, false),
            (2, 2, hash, two, two, false),
            (3, 2, &[], two, two, false),
            (1, 2, &[], one, two, false),
            (3, 4, &[], of(3), of(4), false),
            (1, MAX_SIZE + 1, &[], one, two, false),
        ] {
            let held = verify_consistency(from, to, proof, &old, &new);
            assert_eq!(held, expected, "{from} {to} {}", proof.len());
        }
        assert!(verify_inclusion(0, 1, &one, &[], &one));
        assert!(!verify_inclusion(0, 1, &one, hash, &one));
        assert!(!verify_inclusion(1, 1, &one, &[], &one));
        assert!(!verify_inclusion(0, 0, &one, &[], &EMPTY_ROOT));
        assert!(!verify_inclusion(0, 2, &two, &[], &two), "a node is not a leaf");
        assert!(!verify_inclusion(u64::MAX, u64::MAX, &one, &[], &one));
    }

    #[test]
    fn a_change_of_any_part_of_a_proof_is_noticed() {
        for size in 1..=8 {
            for index in 0..size {
                let proof = inclusion(index, size, &mut node).unwrap();
                let leaf = node(0, index).unwrap();
                let held = |proof: &[Hash]| verify_inclusion(index, size, &leaf, proof, &of(size));
                assert!(held(&proof), "{index} {size}");
                refused(&proof, held);
                assert!(!verify_inclusion(index, size, &[0; 32], &proof, &of(size)));
            }
            for from in 1..size {
                let proof = consistency(from, size, &mut node).unwrap();
                let held =
                    |proof: &[Hash]| verify_consistency(from, size, proof, &of(from), &of(size));
                assert!(held(&proof), "{from} {size}");
                refused(&proof, held);
                assert!(!verify_consistency(from, size, &proof, &[0; 32], &of(size)));
                assert!(!verify_consistency(from, size, &proof, &of(from), &[0; 32]));
            }
        }
    }

    fn refused(proof: &[Hash], held: impl Fn(&[Hash]) -> bool) {
        assert!(!held(&[proof, &[[0; 32]]].concat()), "one more hash");
        for at in 0..proof.len() {
            let mut changed = proof.to_vec();
            changed[at][0] ^= 1;
            assert!(!held(&changed), "hash {at} changed");
            assert!(!held(&[&proof[..at], &proof[at + 1..]].concat()), "hash {at} left out");
        }
    }

    #[test]
    fn an_edge_has_the_hashes_that_the_root_is_made_of() {
        let mut edge = Edge::default();
        for index in 0..8 {
            edge.append(node(0, index).unwrap(), &mut |height, index, hash| {
                assert_eq!(node(height, index), Some(hash));
            });
            assert_eq!(edge.root(), of(index + 1));
        }
    }

    #[test]
    fn the_highest_trees_need_no_more_hashes_than_promised() {
        let mut asked = 0;
        let mut count = |height: u8, index: u64| {
            assert!((index + 1) << height <= MAX_SIZE);
            asked += 1;
            Some([0; 32])
        };
        for size in [MAX_SIZE, MAX_SIZE - 1] {
            for index in
                [0, 1, MAX_SIZE / 2 - 1, MAX_SIZE / 2, MAX_SIZE / 2 + 1, MAX_SIZE - 3, MAX_SIZE - 2]
            {
                let proof = inclusion(index, size, &mut count).unwrap();
                assert!(proof.len() <= 62, "{index} {size}");
                let proof = consistency(index, size, &mut count).unwrap();
                assert!(proof.len() <= 63, "{index} {size}");
                assert!(!verify_consistency(index.max(1), size, &proof, &[0; 32], &[0; 32]));
            }
        }
        assert!(asked <= 2 * 2 * 7 * 125);
    }
}
