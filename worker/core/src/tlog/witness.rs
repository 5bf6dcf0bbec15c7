//! Witnesses: they sign a log's checkpoint only if the log only grew since the last one that they signed
//! (c2sp.org/tlog-witness, c2sp.org/tlog-cosignature).
//!
//! Out of scope: the HTTP request itself, and how often a witness is asked.

use super::cosignature;
use super::form;
use super::key::{COSIGNATURE, VerifierKey};
use super::note::signatures;
use super::tree::{Hash, MAX_SIZE};

/// The body of a request to `add-checkpoint`. `old` is the size of the checkpoint that the witness signed last, `proof`
/// is the consistency proof from it, and `note` is the signed checkpoint.
#[must_use]
pub fn add_checkpoint(old: u64, proof: &[Hash], note: &str) -> String {
    let mut body = format!("old {old}\n");
    for hash in proof {
        body.push_str(&form::base64(hash));
        body.push('\n');
    }
    body.push('\n');
    body.push_str(note);
    body
}

/// The size of the checkpoint that the witness signed last, from the body of an answer with the status 409. `None` if
/// the body is something else.
#[must_use]
pub fn conflict(response: &str) -> Option<u64> {
    form::decimal(response.strip_suffix('\n')?, MAX_SIZE)
}

/// A witness's signature of a checkpoint, verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosignature {
    /// The index of the witness's key.
    pub witness: usize,
    /// When the witness signed, by its own clock, in seconds since 1970.
    pub time_s: u64,
    /// The signature's line, with its newline. It can be appended to the note.
    pub line: String,
}

/// The cosignatures in the answer of a witness with the status 200: at most one for each of the keys, in their order.
/// Empty if the answer is not of the published form.
///
/// A line that does not hold is left out, and so are lines of other keys. Only the first line of a key counts, so the
/// work does not grow with the answer.
#[must_use]
pub fn cosignatures(
    response: &str,
    checkpoint_text: &str,
    witnesses: &[VerifierKey],
) -> Vec<Cosignature> {
    let signatures = signatures(response).unwrap_or_default();
    let of_witness = |(witness, key): (usize, &VerifierKey)| {
        let id = key.id();
        let own = signatures.iter().find(|it| it.id == id && it.name == key.name())?;
        // The time 0 means that the cosignature is for a part of a tree, not for a checkpoint.
        let (time_s, _) = cosignature::split(&own.bytes).filter(|(time_s, _)| *time_s > 0)?;
        let holds = key.kind() == COSIGNATURE && key.verifies(checkpoint_text, &own.bytes);
        holds.then(|| Cosignature { witness, time_s, line: own.line.to_owned() })
    };
    witnesses.iter().enumerate().filter_map(of_witness).collect()
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer as _, SigningKey};

    use super::*;
    use crate::tlog::key::{ED25519, Signer, line};
    use crate::tlog::note::Note;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    const TEXT: &str = "example.com/log\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";

    fn key(name: &str, seed: u8) -> VerifierKey {
        let public = SigningKey::from_bytes(&[seed; 32]).verifying_key();
        let bytes = [&[COSIGNATURE], &public.as_bytes()[..]].concat();
        let id = {
            use sha2::{Digest as _, Sha256};
            let hash = Sha256::new().chain_update(name).chain_update(b"\n").chain_update(&bytes);
            hex::encode(&hash.finalize()[..4])
        };
        VerifierKey::parse(&format!("{name}+{id}+{}", STANDARD.encode(bytes))).unwrap()
    }

    /// What the witness signs, written out.
    fn cosigned(name: &str, seed: u8, time_s: u64, text: &str) -> String {
        let message = format!("cosignature/v1\ntime {time_s}\n{text}");
        let signature = SigningKey::from_bytes(&[seed; 32]).sign(message.as_bytes()).to_bytes();
        line(name, key(name, seed).id(), &[&time_s.to_be_bytes(), &signature[..]].concat())
    }

    #[test]
    fn a_request_has_the_published_form() {
        let (zeros, ones) = ("A".repeat(43), "/".repeat(42));
        for (old, proof, expected) in [
            (0, &[][..], "old 0\n\nnote\n".to_owned()),
            (3, &[[0; 32], [255; 32]], format!("old 3\n{zeros}=\n{ones}8=\n\nnote\n")),
        ] {
            assert_eq!(add_checkpoint(old, proof, "note\n"), expected);
        }
    }

    #[test]
    fn a_conflict_tells_a_size() {
        for (response, expected) in [
            ("0\n", Some(0)),
            ("20852014\n", Some(20_852_014)),
            ("20852014", None),
            ("020852014\n", None),
            ("-1\n", None),
            ("\n", None),
            ("", None),
            ("1\n\n", None),
            ("4611686018427387905\n", None),
        ] {
            assert_eq!(conflict(response), expected, "{response}");
        }
    }

    #[test]
    fn only_what_a_known_witness_signed_is_taken() {
        let keys = [key("w1", 1), key("w2", 2)];
        let max = i64::MAX as u64;
        let good = cosigned("w1", 1, 1_679_315_147, TEXT);
        let second = cosigned("w2", 2, max, TEXT);
        let changed = |at: usize| {
            let (head, base64) = good.trim_end().rsplit_once(' ').unwrap();
            let mut bytes = STANDARD.decode(base64).unwrap();
            bytes[at] ^= 1;
            format!("{head} {}\n", STANDARD.encode(bytes))
        };
        for (name, response, expected) in [
            ("one", good.clone(), vec![(0, 1_679_315_147)]),
            ("two", second.clone() + &good, vec![(0, 1_679_315_147), (1, max)]),
            ("a line twice", good.repeat(2), vec![(0, 1_679_315_147)]),
            ("another witness", cosigned("w3", 3, 1, TEXT) + &good, vec![(0, 1_679_315_147)]),
            ("another name", cosigned("w3", 1, 1, TEXT), vec![]),
            ("another text", cosigned("w1", 1, 1, "another\n"), vec![]),
            ("no time", cosigned("w1", 1, 0, TEXT), vec![]),
            ("a time beyond the format", cosigned("w1", 1, max + 1, TEXT), vec![]),
            ("another id", changed(0), vec![]),
            ("another time", changed(11), vec![]),
            ("another signature", changed(12), vec![]),
            ("a wrong one beside a good one", changed(12) + &second, vec![(1, max)]),
            ("a good one after a wrong one", changed(12) + &good, vec![]),
            ("nothing", String::new(), vec![]),
            ("a text", "Not Found\n".to_owned(), vec![]),
            ("a good one and a text", format!("{good}text\n"), vec![]),
            ("a whole note", format!("{TEXT}\n{good}"), vec![]),
            ("an empty line first", format!("\n{good}"), vec![]),
            ("without the last newline", good.trim_end().to_owned(), vec![]),
            ("too many lines", good.repeat(101), vec![]),
            ("too long", format!("\u{2014} {} AAAAAAA=\n{good}", "n".repeat(70_000)), vec![]),
            ("a note signature of the key", Signer::from_seed([1; 32]).sign("w1", TEXT), vec![]),
        ] {
            let taken = cosignatures(&response, TEXT, &keys);
            let found: Vec<_> = taken.iter().map(|it| (it.witness, it.time_s)).collect();
            assert_eq!(found, expected, "{name}");
            for it in &taken {
                assert_eq!(it.line, [&good, &second][it.witness][..], "{name}");
            }
        }
    }

    #[test]
    fn a_key_that_signs_notes_is_no_witness() {
        let public = SigningKey::from_bytes(&[1; 32]).verifying_key();
        let log = VerifierKey::ed25519("w1", public.as_bytes()).unwrap();
        assert_eq!(log.kind(), ED25519);
        let signed = Signer::from_seed([1; 32]).sign("w1", TEXT);
        assert_eq!(cosignatures(&signed, TEXT, &[log]), []);
    }

    #[test]
    fn a_note_is_verified_by_its_log_and_its_witnesses() {
        let log = Signer::from_seed([9; 32]);
        let keys = [VerifierKey::ed25519("example.com/log", &log.public()).unwrap(), key("w1", 1)];
        let own = log.sign("example.com/log", TEXT);
        let note = |cosignature: &str| format!("{TEXT}\n{own}{cosignature}");
        let verified = |note: &str| Note::parse(note).unwrap().verified_by(&keys).ok();
        assert_eq!(verified(&note("")), Some(vec![0]));
        assert_eq!(verified(&note(&cosigned("w1", 1, 5, TEXT))), Some(vec![0, 1]));
        assert_eq!(verified(&note(&cosigned("w2", 2, 5, TEXT))), Some(vec![0]));
        assert_eq!(verified(&note(&cosigned("w1", 1, 5, "another\n"))), None);
        assert_eq!(verified(&note(&line("w1", keys[1].id(), &[0; 71]))), None);
    }
}
