//! The keys of the exports. Their seeds are public: nothing else is signed with them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateward_core::tlog::{COSIGNATURE, Checkpoint, Hash, Note, Signer, VerifierKey};
use sha2::{Digest as _, Sha256};

pub const TENANT: &str = "acme";
pub const ORIGIN: &str = "gateward.example/v1/log";
/// The deployment's key.
pub const KEY: u8 = 1;
/// The key that it had before.
pub const OLD_KEY: u8 = 2;
/// The key of somebody who can write to the database.
pub const ATTACKER: u8 = 3;
/// The witnesses' keys.
pub const WITNESSES: [u8; 2] = [4, 5];

pub fn signer(key: u8) -> Signer {
    Signer::from_seed([key; 32])
}

pub fn origin(log: &str) -> String {
    format!("{ORIGIN}/{log}")
}

/// The verifier key of a log.
pub fn vkey(log: &str, key: u8) -> String {
    VerifierKey::ed25519(&origin(log), &signer(key).public()).unwrap().to_string()
}

/// The key ids and the verifier key of a witness.
pub fn witness(key: u8) -> (String, u32, String) {
    let name = format!("witness.example/w{key}");
    let public = signer(key).public();
    let kind = [COSIGNATURE];
    let hash = Sha256::digest([name.as_bytes(), b"\n", &kind, &public].concat());
    let id = u32::from_be_bytes(*hash.first_chunk().unwrap());
    let encoded = STANDARD.encode([&kind[..], &public].concat());
    (name.clone(), id, format!("{name}+{id:08x}+{encoded}"))
}

/// A signed checkpoint of a log.
pub fn checkpoint(log: &str, size: u64, root: Hash, keys: &[u8]) -> String {
    let origin = origin(log);
    let text = Checkpoint { origin: origin.as_str().into(), size, root }.text();
    let lines: String = keys.iter().map(|key| signer(*key).sign(&origin, &text)).collect();
    format!("{text}\n{lines}")
}

/// The note with a cosignature of a witness.
pub fn cosigned(note: &str, key: u8, time_s: u64) -> String {
    let (name, id, _) = witness(key);
    let text = Note::parse(note).unwrap().text;
    let line = signer(key).sign("x", &format!("cosignature/v1\ntime {time_s}\n{text}"));
    let signature = STANDARD.decode(line.trim_end().rsplit(' ').next().unwrap()).unwrap();
    let signature = [&id.to_be_bytes()[..], &time_s.to_be_bytes(), &signature[4..]].concat();
    format!("{note}\u{2014} {name} {}\n", STANDARD.encode(signature))
}

/// The note with another id in its only signature: that of the log's key `key`.
pub fn with_id_of(note: &str, log: &str, key: u8) -> String {
    let (text, line) = note.trim_end().rsplit_once(' ').unwrap();
    let id = VerifierKey::parse(&vkey(log, key)).unwrap().id();
    let signature = STANDARD.decode(line).unwrap();
    format!("{text} {}\n", STANDARD.encode([&id.to_be_bytes()[..], &signature[4..]].concat()))
}
