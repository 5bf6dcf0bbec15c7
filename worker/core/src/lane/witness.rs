//! Witnesses of a tenant's head log (<https://c2sp.org/tlog-witness>): who they are, and what each has cosigned.

use super::state::Lane;
use super::storage::{LaneSql, StorageError, meta, set_meta, unreadable};
use super::tree::TreeHead;
use crate::tlog::{COSIGNATURE, Hash, VerifierKey};

/// Witnesses of a deployment. Each checkpoint of a head log is sent to all of them.
pub const MAX_WITNESSES: usize = 8;

/// The prefix of the names in `meta` for the size of the tree that each witness cosigned last.
const COSIGNED: &str = "cosigned ";

/// A witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Its submission prefix, without a slash at the end.
    pub url: String,
    pub key: VerifierKey,
}

impl Witness {
    /// Reads `WITNESSES` through `var`: for each witness its submission prefix and its verifier key, separated by spaces.
    ///
    /// # Errors
    ///
    /// A sentence that names the var.
    pub fn read(var: impl Fn(&str) -> Option<String>) -> Result<Vec<Self>, String> {
        let text = var("WITNESSES").unwrap_or_default();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (pairs, rest) = words.as_chunks();
        let witnesses = pairs.iter().map(|[url, key]| {
            let key = VerifierKey::parse(key).ok().filter(|key| key.kind() == COSIGNATURE)?;
            Some(Self { url: url.trim_end_matches('/').to_owned(), key })
        });
        match witnesses.collect::<Option<Vec<_>>>() {
            Some(witnesses) if rest.is_empty() && witnesses.len() <= MAX_WITNESSES => Ok(witnesses),
            _ => Err(format!(
                "var `WITNESSES` is not at most {MAX_WITNESSES} pairs of a URL and a verifier key of a cosigner"
            )),
        }
    }

    fn name(&self) -> String {
        [COSIGNED, self.key.name()].concat()
    }

    /// The size of the newest tree that the witness cosigned, as far as the lane knows.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn cosigned(&self, storage: &impl LaneSql) -> Result<u64, StorageError> {
        let stored = meta(storage, &self.name())?;
        let stored = stored.map(|text| text.parse().map_err(|_| unreadable("what was cosigned")));
        Ok(stored.transpose()?.unwrap_or(0))
    }

    /// # Errors
    ///
    /// [`StorageError`].
    pub fn note_cosigned(&self, storage: &impl LaneSql, size: u64) -> Result<(), StorageError> {
        set_meta(storage, &self.name(), size.to_string())
    }
}

impl Lane {
    /// The proof that the published tree extends the one of `from` leaves; `None` if there is none, or if the leaves that
    /// it needs are no longer kept.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn consistency(
        &self,
        storage: &impl LaneSql,
        from: u64,
        to: TreeHead,
    ) -> Result<Option<Vec<Hash>>, StorageError> {
        if from == 0 || from == to.size {
            return Ok(Some(Vec::new()));
        }
        self.tree.consistency(storage, from, to.size)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::tlog::Signer;

    #[test]
    fn witnesses_are_pairs_of_an_address_and_a_key() {
        let public = Signer::from_seed([7; 32]).public();
        let log = VerifierKey::ed25519("witness.example", &public).unwrap().to_string();
        // The id and the form are those of https://c2sp.org/signed-note, with the type of cosignatures.
        let key = [&[COSIGNATURE], &public[..]].concat();
        let id = Sha256::digest([b"witness.example\n", &key[..]].concat());
        let key = format!("witness.example+{}+{}", hex::encode(&id[..4]), STANDARD.encode(&key));
        for (text, expected) in [
            (String::new(), Some(0)),
            (format!("https://witness.example/ {key}"), Some(1)),
            (format!("https://a.example {key}\n https://b.example {key}"), Some(2)),
            (format!("https://a.example {key} https://b.example"), None),
            (format!("https://a.example {log}"), None),
            (format!("https://a.example {key} ").repeat(9), None),
        ] {
            let read = Witness::read(|_| Some(text.clone()));
            assert_eq!(read.as_ref().map(Vec::len).ok(), expected, "{text}");
        }
    }
}
