//! What the transparency log costs, compared with the hashes and the signature that it must compute.

use std::hint::black_box;

use gateward_core::tlog::{
    Checkpoint, Edge, Hash, Note, Signer, TILE_HEIGHT, VerifierKey, leaf_hash, proof,
};
use gateward_core::warrant::chain::sha256;
use gateward_core::warrant::mint::Secret;

use crate::operation::{GATEWARD, Operation};

/// Leaves of the tree before the operation.
const SIZE: u64 = 1_000_000;

/// Receipts in one flush.
const RECEIPTS: usize = 500;

/// Bytes of a receipt.
const RECEIPT_BYTES: usize = 1_024;

const ORIGIN: &str = "gateward.example/v1/log/acme.lane-3";
const SEED: [u8; 32] = [7; 32];

/// SHA-256 of the same number of bytes, and Ed25519 of the same text, with the same code.
const SHA256: &str = "sha256";
const ED25519: &str = "ed25519";

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::new("tree_append_500", GATEWARD, || {
            let (edge, receipts) = (edge(), receipts());
            let (grown, hashes) = appended(&edge, &receipts);
            assert_eq!((grown.size(), hashes.len()), (SIZE + 500, RECEIPTS + 2));
            move || appended(black_box(&edge), black_box(&receipts))
        }),
        Operation::new("tree_append_500", SHA256, || {
            let receipts = receipts();
            move || black_box(&receipts).iter().map(|it| sha256(it)).collect::<Vec<_>>()
        }),
        Operation::new("checkpoint_sign", GATEWARD, || {
            let signer = Signer::from_seed(SEED);
            let key = VerifierKey::ed25519(ORIGIN, &signer.public()).unwrap();
            let root = edge().root();
            let note = signed(&signer, root);
            assert_eq!(Note::parse(&note).unwrap().verified_by(&[key]), Ok(vec![0]));
            move || signed(black_box(&signer), black_box(root))
        }),
        Operation::new("checkpoint_sign", ED25519, || {
            let (secret, text) = (Secret::new(SEED), checkpoint(edge().root()).text());
            move || secret.sign(black_box(text.as_bytes()))
        }),
        Operation::new("proof_inclusion", GATEWARD, || {
            let nodes = nodes();
            let mut node = |height: u8, index| at(&nodes, height, index);
            let root = proof::root(SIZE, &mut node).unwrap();
            let proof = proof::inclusion(0, SIZE, &mut node).unwrap();
            assert!(proof::verify_inclusion(0, SIZE, &nodes[0][0], &proof, &root));
            assert_eq!(proof.len(), 20);
            move || {
                proof::inclusion(black_box(0), SIZE, &mut |height, index| at(&nodes, height, index))
            }
        }),
        // The first leaf is in the largest perfect subtree. The six others must be joined: five nodes.
        Operation::new("proof_inclusion", SHA256, || {
            let node = [1; 65];
            move || (0..5).map(|_| sha256(black_box(&node))).collect::<Vec<_>>()
        }),
    ]
}

/// The edge of a tree of [`SIZE`] leaves. Its hashes are made up.
fn edge() -> Edge {
    Edge::from_parts(SIZE, (0..7).map(|number| [number; 32]).collect()).unwrap()
}

fn receipts() -> Vec<Vec<u8>> {
    (0..RECEIPTS).map(|number| vec![number.to_le_bytes()[0]; RECEIPT_BYTES]).collect()
}

/// What a flush does: the new edge, and all hashes that tiles get.
fn appended(edge: &Edge, receipts: &[Vec<u8>]) -> (Edge, Vec<(u8, u64, Hash)>) {
    let (mut edge, mut hashes) = (edge.clone(), Vec::new());
    for receipt in receipts {
        let leaf = leaf_hash(receipt);
        hashes.push((0, edge.size(), leaf));
        edge.append(leaf, &mut |height, index, hash| {
            if height % TILE_HEIGHT == 0 {
                hashes.push((height, index, hash));
            }
        });
    }
    (edge, hashes)
}

fn checkpoint(root: Hash) -> Checkpoint<'static> {
    Checkpoint { origin: ORIGIN.into(), size: SIZE, root }
}

fn signed(signer: &Signer, root: Hash) -> String {
    let text = checkpoint(root).text();
    let line = signer.sign(ORIGIN, &text);
    format!("{text}\n{line}")
}

/// All perfect subtrees of a tree of [`SIZE`] leaves, by height and index.
fn nodes() -> Vec<Vec<Hash>> {
    let (mut edge, mut nodes) = (Edge::default(), vec![Vec::new(); 20]);
    for number in 0..SIZE {
        let leaf = leaf_hash(&number.to_le_bytes());
        nodes[0].push(leaf);
        edge.append(leaf, &mut |height, _, hash| nodes[usize::from(height)].push(hash));
    }
    nodes
}

fn at(nodes: &[Vec<Hash>], height: u8, index: u64) -> Option<Hash> {
    nodes.get(usize::from(height))?.get(usize::try_from(index).ok()?).copied()
}
