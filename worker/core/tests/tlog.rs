//! The transparency log beside another implementation of the same formats: the crates `tlog_tiles` and `signed_note`.
//!
//! Each implementation reads what the other one writes. For any input, both read the same, or both refuse it. Where
//! they differ on purpose, the test says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use std::collections::HashMap;

use gateward_core::tlog::tree::{self, Edge, Hash, MAX_SIZE, leaf_hash};
use gateward_core::tlog::{Checkpoint, Layer, Note, NoteError, Signer, TilePath, VerifierKey};
use gateward_core::tlog::{note, proof, tile, witness};
use proptest::prelude::*;
use signed_note::{Signer as _, StandardSigner, StandardVerifier, VerifierList};
use tlog_tiles::{HashReader, Tile, TileHashReader, TileReader};

/// Leaves of the largest tree that is built.
const LEAVES: u64 = 1_100;

/// A tree as both implementations keep it.
struct Trees {
    /// Ours: by height and index.
    nodes: HashMap<(u8, u64), Hash>,
    edges: Vec<Edge>,
    /// The hashes of the other implementation, in its own order.
    stored: Vec<tlog_tiles::Hash>,
}

impl Trees {
    fn new() -> Self {
        let mut trees =
            Self { nodes: HashMap::new(), edges: vec![Edge::default()], stored: Vec::new() };
        let mut edge = Edge::default();
        for index in 0..LEAVES {
            let entry = index.to_string().repeat(1 + usize::try_from(index % 7).unwrap());
            let leaf = leaf_hash(entry.as_bytes());
            trees.nodes.insert((0, index), leaf);
            edge.append(leaf, &mut |height, index, hash| {
                trees.nodes.insert((height, index), hash);
            });
            trees.edges.push(edge.clone());
            let new = tlog_tiles::stored_hashes(index, entry.as_bytes(), &trees).unwrap();
            trees.stored.extend(new);
        }
        trees
    }

    fn node(&self) -> impl FnMut(u8, u64) -> Option<Hash> {
        |height, index| self.nodes.get(&(height, index)).copied()
    }

    fn root(&self, size: u64) -> Hash {
        self.edges[usize::try_from(size).unwrap()].root()
    }
}

impl HashReader for Trees {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::Error> {
        Ok(indexes.iter().map(|index| self.stored[usize::try_from(*index).unwrap()]).collect())
    }
}

/// Serves our tiles of a tree.
struct Served<'a>(&'a Trees, u64);

impl TileReader for Served<'_> {
    fn height(&self) -> u8 {
        tile::TILE_HEIGHT
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let data = tiles.iter().map(|it| {
            let path = it.path().strip_prefix("tile/8/").unwrap().to_owned();
            let ours = TilePath::parse(&path).unwrap();
            assert_eq!(TilePath::in_tree(ours.layer, ours.number, self.1), Some(ours), "{path}");
            self.hashes(ours).concat()
        });
        Ok(data.collect())
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

impl Served<'_> {
    fn hashes(&self, path: TilePath) -> Vec<Hash> {
        let Layer::Hashes(level) = path.layer else { panic!("{path} has no hashes") };
        let first = path.number * tile::TILE_WIDTH;
        let indexes = first..first + u64::from(path.width);
        indexes.map(|index| self.0.nodes[&(level * tile::TILE_HEIGHT, index)]).collect()
    }
}

fn theirs(hash: &Hash) -> tlog_tiles::Hash {
    tlog_tiles::Hash(*hash)
}

fn bytes(proof: &[tlog_tiles::Hash]) -> Vec<Hash> {
    proof.iter().map(|hash| hash.0).collect()
}

fn their_proof(proof: &[Hash]) -> Vec<tlog_tiles::Hash> {
    proof.iter().map(theirs).collect()
}

#[test]
fn trees_and_their_nodes_are_equal_at_all_sizes() {
    let trees = Trees::new();
    for ((height, index), hash) in &trees.nodes {
        let at = tlog_tiles::stored_hash_index(*height, *index);
        assert_eq!(trees.stored[usize::try_from(at).unwrap()].0, *hash, "{height} {index}");
    }
    assert_eq!(trees.stored.len(), trees.nodes.len());
    for size in 0..=LEAVES {
        let root = trees.root(size);
        assert_eq!(tlog_tiles::tree_hash(size, &trees).unwrap().0, root, "{size}");
        assert_eq!(proof::root(size, &mut trees.node()), Some(root), "{size}");
        let edge = &trees.edges[usize::try_from(size).unwrap()];
        assert_eq!(Edge::from_parts(edge.size(), edge.hashes().to_vec()).as_ref(), Some(edge));
    }
}

/// Both make the same proofs, and each takes them.
fn compare_proofs(trees: &Trees, from: u64, to: u64) {
    let (old, new) = (trees.root(from), trees.root(to));
    if from < to {
        let ours = proof::inclusion(from, to, &mut trees.node()).unwrap();
        let leaf = trees.nodes[&(0, from)];
        assert_eq!(ours, bytes(&tlog_tiles::prove_record(to, from, trees).unwrap()), "{from} {to}");
        assert!(proof::verify_inclusion(from, to, &leaf, &ours, &new), "{from} {to}");
        let proof = their_proof(&ours);
        tlog_tiles::check_record(&proof, to, theirs(&new), from, theirs(&leaf)).unwrap();
    }
    let ours = proof::consistency(from, to, &mut trees.node()).unwrap();
    assert!(proof::verify_consistency(from, to, &ours, &old, &new), "{from} {to}");
    // The other one has no proofs from the empty tree.
    if from > 0 {
        assert_eq!(ours, bytes(&tlog_tiles::prove_tree(to, from, trees).unwrap()), "{from} {to}");
        tlog_tiles::check_tree(&their_proof(&ours), to, theirs(&new), from, theirs(&old)).unwrap();
    }
}

#[test]
fn all_proofs_of_small_trees_are_equal() {
    let trees = Trees::new();
    for to in 0..=66 {
        for from in 0..=to {
            compare_proofs(&trees, from, to);
        }
    }
}

#[test]
fn random_proofs_are_equal_and_a_wrong_one_is_refused_by_both() {
    let trees = Trees::new();
    let case = (0..=LEAVES, 0..=LEAVES, any::<prop::sample::Index>(), 0_u8..4, 0..LEAVES);
    proptest!(|((a, b, at, change, other) in case)| {
        let (from, to) = (a.min(b), a.max(b));
        compare_proofs(&trees, from, to);
        prop_assume!(0 < from && from < to);
        let (old, new) = (trees.root(from), trees.root(to));
        let changed = |proof: &[Hash]| {
            let (mut proof, at) = (proof.to_vec(), at.index(proof.len()));
            match change {
                0 => proof[at][usize::from(other.to_le_bytes()[0] % 32)] ^= 1,
                1 => drop(proof.remove(at)),
                2 => proof.insert(at, trees.root(other)),
                _ => proof.swap(0, at),
            }
            proof
        };
        let proof = proof::consistency(from, to, &mut trees.node()).unwrap();
        let wrong = changed(&proof);
        let held = proof::verify_consistency(from, to, &wrong, &old, &new);
        prop_assert_eq!(held, wrong == proof);
        let by_them = tlog_tiles::check_tree(&their_proof(&wrong), to, theirs(&new), from, theirs(&old));
        prop_assert_eq!(by_them.is_ok(), held);
        let proof = proof::inclusion(from, to, &mut trees.node()).unwrap();
        let (wrong, leaf) = (changed(&proof), trees.nodes[&(0, from)]);
        let held = proof::verify_inclusion(from, to, &leaf, &wrong, &new);
        prop_assert_eq!(held, wrong == proof);
        let by_them =
            tlog_tiles::check_record(&their_proof(&wrong), to, theirs(&new), from, theirs(&leaf));
        prop_assert_eq!(by_them.is_ok(), held);
        // Another index or size, with the proof for these.
        prop_assert!(other == from || !proof::verify_inclusion(other, to, &leaf, &proof, &new));
    });
}

/// A tree of any size whose perfect subtrees have made-up hashes.
struct MadeUp;

fn made_up(height: u8, index: u64) -> Hash {
    leaf_hash(format!("{height} {index}").as_bytes())
}

impl HashReader for MadeUp {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::Error> {
        let split = |at: &u64| tlog_tiles::split_stored_hash_index(*at);
        Ok(indexes
            .iter()
            .map(split)
            .map(|(height, index)| theirs(&made_up(height, index)))
            .collect())
    }
}

/// Sizes of all magnitudes, and sizes around powers of two.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..62_u32, any::<u64>()).prop_map(|(bits, number)| number % (1 << bits) + 1),
        (1..62_u32, -2..=2_i64)
            .prop_map(|(bits, by)| (1_u64 << bits).saturating_add_signed(by).max(1)),
    ]
}

proptest! {
    /// A caller that loads from a database first finds out which hashes it must load.
    #[test]
    fn proofs_of_large_trees_are_equal_and_ask_alike(a in size(), b in size()) {
        let (from, to) = (a.min(b), a.max(b));
        let mut node = |height, index| Some(made_up(height, index));
        prop_assert_eq!(proof::root(to, &mut node), Some(tlog_tiles::tree_hash(to, &MadeUp).unwrap().0));
        let inclusion = proof::inclusion(from - 1, to, &mut node).unwrap();
        prop_assert_eq!(&inclusion, &bytes(&tlog_tiles::prove_record(to, from - 1, &MadeUp).unwrap()));
        let consistency = proof::consistency(from, to, &mut node).unwrap();
        prop_assert_eq!(&consistency, &bytes(&tlog_tiles::prove_tree(to, from, &MadeUp).unwrap()));

        let mut asked = Vec::new();
        let mut record = |height: u8, index: u64| {
            asked.push((height, index));
            Some([0; 32])
        };
        proof::inclusion(from - 1, to, &mut record);
        proof::consistency(from, to, &mut record);
        prop_assert!(asked.len() <= 2 * 125);
        prop_assert!(asked.iter().all(|(height, index)| (index + 1) << height <= to), "within the tree");
        let mut loaded = |height, index| asked.contains(&(height, index)).then(|| made_up(height, index));
        prop_assert_eq!(proof::inclusion(from - 1, to, &mut loaded), Some(inclusion));
        prop_assert_eq!(proof::consistency(from, to, &mut loaded), Some(consistency));
    }
}

#[test]
fn our_tiles_are_the_tiles_that_others_read() {
    let trees = Trees::new();
    for size in [1, 2, 255, 256, 257, 511, 512, 513, 1_000, LEAVES] {
        let served = Served(&trees, size);
        let reader = TileHashReader::new(size, theirs(&trees.root(size)), &served);
        for index in [0, size / 3, size / 2, size - 1] {
            let proof = tlog_tiles::prove_record(size, index, &reader).unwrap();
            let ours = proof::inclusion(index, size, &mut trees.node()).unwrap();
            assert_eq!(bytes(&proof), ours, "{index} {size}");
        }
        for tile in Tile::new_tiles(tile::TILE_HEIGHT, 0, size) {
            let path = TilePath::parse(tile.path().strip_prefix("tile/8/").unwrap()).unwrap();
            let hashes = served.hashes(path);
            assert_eq!(hashes.concat(), tile.read_data(&trees).unwrap());
            for ((height, index), hash) in &trees.nodes {
                let within = height.checked_sub(tile.level() * 8).filter(|height| *height <= 8);
                let Some(height) = within else { continue };
                let in_tile = tile::TILE_WIDTH >> height;
                if *index / in_tile == tile.level_index() {
                    let node = tile::nodes_of(&hashes, height, index % in_tile);
                    let whole = (index % in_tile + 1) << height <= u64::from(path.width);
                    assert_eq!(node, whole.then_some(*hash));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn trees_have_equal_tiles(a in 0..1_u64 << 20, more in 0..1_000_u64) {
        for tile in Tile::new_tiles(tile::TILE_HEIGHT, a, a + more) {
            let ours = TilePath::in_tree(Layer::Hashes(tile.level()), tile.level_index(), a + more).unwrap();
            prop_assert_eq!(format!("tile/8/{ours}"), tile.path());
            prop_assert_eq!(TilePath::parse(&ours.to_string()), Some(ours));
        }
    }

    #[test]
    fn bundles_give_back_their_entries(given in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
        let bundle = tile::bundle(given.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(tile::entries(&bundle).unwrap(), given);
    }
}

/// A text of the grammar, then cut, repeated, and changed with characters that are hard for parsers.
fn mutated(texts: Vec<String>) -> impl Strategy<Value = String> {
    let edit = (
        any::<prop::sample::Index>(),
        0_usize..12,
        prop::sample::select(vec![
            "",
            "\n",
            "\n\n",
            " ",
            "+",
            "=",
            "\u{2014} ",
            "/",
            "x",
            "0",
            ".p/",
            ".p/1",
            "A",
            "\r",
            "\0",
            "\t",
            "\u{7f}",
            "\u{85}",
            "\u{a0}",
            "\u{feff}",
            "-",
            "\u{660}",
            "\u{2013}",
        ]),
        0_usize..3,
    );
    (prop::sample::select(texts), prop::collection::vec(edit, 0..4)).prop_map(|(text, edits)| {
        edits.into_iter().fold(text, |text, (at, cut, insert, again)| {
            let chars: Vec<char> = text.chars().collect();
            let at = at.index(chars.len() + 1);
            let end = (at + cut).min(chars.len());
            let rest = if again == 0 { &chars[end..] } else { &chars[at..] };
            let again = if again == 2 { &chars[at..end] } else { &[] };
            let parts = [&chars[..at], &insert.chars().collect::<Vec<_>>(), again, rest];
            parts.concat().into_iter().collect()
        })
    })
}

const TEXT: &str = "example.com/log\n7\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";

fn signed(seeds: &[u8]) -> String {
    let lines: String = seeds
        .iter()
        .map(|seed| Signer::from_seed([*seed; 32]).sign("example.com/log", TEXT))
        .collect();
    format!("{TEXT}\n{lines}")
}

fn log_key(seed: u8) -> VerifierKey {
    VerifierKey::ed25519("example.com/log", &Signer::from_seed([seed; 32]).public()).unwrap()
}

#[test]
fn a_note_of_each_verifies_with_the_other() {
    for seed in 0..20 {
        let key = log_key(seed);
        let verifiers =
            VerifierList::new(vec![Box::new(StandardVerifier::new(&key.to_string()).unwrap())]);
        let ours = signed(&[seed, seed + 1]);
        let read = signed_note::Note::from_bytes(ours.as_bytes()).unwrap();
        let (verified, unverified) = read.verify(&verifiers).unwrap();
        assert_eq!((verified.len(), unverified.len()), (1, 1));
        assert_eq!(read.to_bytes(), ours.as_bytes());

        let secret = gateward_core::warrant::mint::Secret::new([seed; 32]);
        assert_eq!(secret.public().0, key.public());
        let bytes = [&[1], &[seed; 32][..]].concat();
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
        let skey = format!("PRIVATE+KEY+{}+{:08x}+{encoded}", key.name(), key.id());
        let signer = StandardSigner::new(&skey).unwrap();
        let mut theirs = signed_note::Note::new(TEXT.as_bytes(), &[]).unwrap();
        theirs.add_sigs(&[&signer as &dyn signed_note::Signer]).unwrap();
        assert_eq!(signer.name(), key.name());
        assert_eq!(theirs.to_bytes(), signed(&[seed]).as_bytes(), "signatures are deterministic");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn notes_are_read_alike(text in mutated(vec![signed(&[1]), signed(&[1, 2, 3])])) {
        let ours = Note::parse(&text);
        let theirs = signed_note::Note::from_bytes(text.as_bytes());
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}", ours);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.text.as_bytes(), theirs.text());
            let lines: String = ours.signatures.iter().map(|it| it.line).collect();
            prop_assert_eq!(format!("{}\n{lines}", ours.text), &*text);
            let keys = [log_key(1), log_key(2)];
            let verifiers = keys.iter().map(|key| -> Box<dyn signed_note::Verifier> {
                Box::new(StandardVerifier::new(&key.to_string()).unwrap())
            });
            let verified = theirs.verify(&VerifierList::new(verifiers.collect()));
            match ours.verified_by(&keys) {
                Ok(signers) => prop_assert_eq!(signers.len(), verified.unwrap().0.len()),
                Err(NoteError::Unknown) => prop_assert!(verified.is_err()),
                // The other one looks only at a key's first signature.
                Err(error) => prop_assert!(verified.is_err() || ours.signatures.len() > 1, "{error}"),
            }
        }
    }

    #[test]
    fn verifier_keys_are_read_alike(text in mutated(vec![log_key(1).to_string(), log_key(2).to_string()])) {
        let ours = VerifierKey::parse(&text);
        let theirs = StandardVerifier::new(&text);
        // The other one also reads ids in upper case, and names with control characters.
        let lax = text.contains(|c: char| c.is_ascii_uppercase() || c < ' ');
        prop_assert!(ours.is_ok() == theirs.is_ok() || (lax && theirs.is_ok()), "{:?}", ours);
        if let Ok(key) = ours {
            prop_assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn checkpoints_are_read_alike(text in mutated(vec![TEXT.to_owned(), TEXT.replace('7', "20852163")])) {
        let ours = Checkpoint::parse(&text);
        match (&ours, tlog_tiles::Checkpoint::from_bytes(text.as_bytes())) {
            (Ok(ours), theirs) => {
                prop_assert_eq!(ours.text(), &*text);
                // The other one wants an empty line at the end when it reads strictly.
                let theirs = theirs.or_else(|_| tlog_tiles::Checkpoint::from_bytes(format!("{text}\n").as_bytes()));
                let theirs = theirs.unwrap();
                prop_assert_eq!((theirs.origin(), theirs.size()), (&*ours.origin, ours.size));
                prop_assert_eq!(theirs.hash().0, ours.root);
            }
            // Extension lines, sizes and origins that are refused here.
            (Err(_), Ok(theirs)) => prop_assert!(
                !theirs.extension().is_empty()
                    || theirs.size() > MAX_SIZE
                    || theirs.size() == 0
                    || text.ends_with("\n\n")
                    || theirs.origin().contains(char::is_control),
                "{text:?}"
            ),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn tile_paths_are_read_alike(text in mutated(
        ["0/000", "1/x001/000.p/17", "63/999.p/255", "0/x001/x234/067", "0/x018/x014/x398/x509/x481/984"]
            .map(str::to_owned).to_vec()
    )) {
        let ours = TilePath::parse(&text);
        if let Some(path) = ours {
            prop_assert_eq!(path.to_string(), &*text);
        }
        // The other one panics at a width of 0 and at a level above 63.
        let (level, width) = (text.split('/').next().unwrap(), text.rsplit('/').next().unwrap());
        if width.parse() == Ok(0_u32) || level.parse::<u8>().is_ok_and(|level| level > tile::MAX_LEVEL) {
            let full = ours.is_some_and(|path| u64::from(path.width) == tile::TILE_WIDTH);
            prop_assert!(ours.is_none() || full, "{:?}", ours);
            return Ok(());
        }
        let theirs = Tile::from_path(&format!("tile/8/{text}")).ok();
        let theirs = theirs.filter(|it| it.level_index() <= tile::MAX_NUMBER);
        prop_assert_eq!(
            ours.map(|it| (it.layer, it.number, u32::from(it.width))),
            theirs.map(|it| (Layer::Hashes(it.level()), it.level_index(), it.width()))
        );
    }

    /// No input causes a panic, and everything that is read can be written again.
    #[test]
    fn no_text_makes_anything_panic(
        text in prop_oneof![any::<String>(), "[\u{2014} \n+/=A0.px]{0,300}", mutated(vec![signed(&[1])])],
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        sizes in any::<[u64; 2]>(),
        height in any::<u8>(),
        hashes in prop::collection::vec(any::<Hash>(), 0..70),
    ) {
        let key = log_key(1);
        let _ = Note::parse(&text).map(|it| it.verified_by(std::slice::from_ref(&key)));
        let _ = (VerifierKey::parse(&text), TilePath::parse(&text), witness::conflict(&text));
        let _ = (note::is_name(&text), Checkpoint::parse(&text));
        prop_assert_eq!(witness::cosignatures(&text, TEXT, &[key]), []);
        if let Some(entries) = tile::entries(&bytes) {
            prop_assert_eq!(tile::bundle(entries.into_iter()), Some(bytes));
        }
        let [a, b] = sizes;
        let _ = (tile::nodes_of(&hashes, height, a), TilePath::in_tree(Layer::Hashes(height), a, b));
        let _ = Edge::from_parts(a, hashes.clone());
        let zero = tree::EMPTY_ROOT;
        prop_assert!(!proof::verify_inclusion(a, b, &zero, &hashes, &zero));
        prop_assert!(!proof::verify_consistency(a, b, &hashes, &zero, &zero) || a == b);
        let mut any = |_, _| Some(zero);
        prop_assert_eq!(proof::root(a, &mut any).is_some(), a <= MAX_SIZE);
        let _ = (proof::inclusion(a, b, &mut any), proof::consistency(a, b, &mut any));
    }
}
