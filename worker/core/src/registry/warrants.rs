//! The keys that root a tenant's warrants, and the warrants that are revoked. How a warrant is decoded and verified is in
//! [`crate::warrant`].

use std::collections::HashSet;

use serde::Deserialize;

use crate::bounds::{MAX_WARRANT_REVOCATIONS, MAX_WARRANT_ROOTS};
use crate::glob::Glob;
use crate::warrant::key::PublicKey;

/// A key whose warrants are accepted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WarrantRoot {
    /// Its name in the registry.
    pub id: String,
    pub public_key: PublicKey,
    /// Compared with a server's name. `None` allows every server, an empty list none. A root without the member is
    /// unreadable: absent is not `None`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_servers: Option<Vec<Glob>>,
}

/// The roots that are active, and the revocations that had not expired when they were read.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "Read")]
pub struct Warrants {
    roots: Vec<WarrantRoot>,
    /// With the key of the root whose list revoked it. Such a revocation holds only for chains of this root, so that the
    /// holder of one root's key cannot revoke warrants of another root. `None` holds for all.
    revoked: HashSet<([u8; 16], Option<PublicKey>)>,
}

/// The lists, as they are read.
#[derive(Deserialize)]
struct Read {
    roots: Vec<WarrantRoot>,
    /// Ids, each of 32 hex digits, with the keys of roots.
    revoked: Vec<(String, Option<PublicKey>)>,
}

impl Warrants {
    /// The root with this key.
    #[must_use]
    pub fn root(&self, key: &PublicKey) -> Option<&WarrantRoot> {
        self.roots.iter().find(|root| root.public_key == *key)
    }

    /// The first warrant that is revoked, of a chain that begins with this root's key.
    #[must_use]
    pub fn first_revoked(&self, root: &PublicKey, ids: &[[u8; 16]]) -> Option<[u8; 16]> {
        let by = [None, Some(*root)];
        ids.iter().find(|id| by.iter().any(|by| self.revoked.contains(&(**id, *by)))).copied()
    }
}

impl TryFrom<Read> for Warrants {
    type Error = String;

    fn try_from(Read { roots, revoked }: Read) -> Result<Self, String> {
        if roots.len() > MAX_WARRANT_ROOTS {
            return Err(format!("the tenant has more than {MAX_WARRANT_ROOTS} roots of warrants"));
        }
        if revoked.len() > MAX_WARRANT_REVOCATIONS {
            return Err(format!("the tenant revoked more than {MAX_WARRANT_REVOCATIONS} warrants"));
        }
        let read = |(text, by): (String, _)| {
            let mut id = [0; 16];
            hex::decode_to_slice(text, &mut id)
                .map_err(|error| format!("a revocation: {error}"))?;
            Ok((id, by))
        };
        Ok(Self { roots, revoked: revoked.into_iter().map(read).collect::<Result<_, String>>()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = "29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7";
    const OTHER: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

    fn root(allowed_servers: &Value) -> Value {
        json!({"id": "ci", "public_key": KEY, "allowed_servers": allowed_servers})
    }

    fn read(lists: Value) -> serde_json::Result<Warrants> {
        serde_json::from_value(lists)
    }

    #[test]
    fn a_root_is_found_by_its_key() {
        let warrants = read(json!({"roots": [root(&json!(["git*"]))], "revoked": []})).unwrap();
        let found = warrants.root(&KEY.parse().unwrap()).unwrap();
        assert_eq!(found.id, "ci");
        let globs = found.allowed_servers.as_ref().unwrap();
        assert!(globs[0].matches("github") && !globs[0].matches("crm"));
        assert_eq!(warrants.root(&OTHER.parse().unwrap()), None);
        assert_eq!(Warrants::default().root(&KEY.parse().unwrap()), None);
    }

    #[test]
    fn of_a_chain_the_first_revoked_warrant_is_found() {
        let text = |byte: u8| hex::encode([byte; 16]);
        let revoked = json!([
            [text(3), null],
            [text(2), null],
            [text(5), KEY],
            [text(6), OTHER],
            [text(7), KEY],
            [text(7), OTHER]
        ]);
        let warrants = read(json!({"roots": [], "revoked": revoked})).unwrap();
        for (chain, of_key, of_other) in [
            (vec![], None, None),
            (vec![1, 4], None, None),
            (vec![1, 2], Some(2), Some(2)),
            (vec![2, 3], Some(2), Some(2)),
            (vec![3, 2], Some(3), Some(3)),
            (vec![1, 5], Some(5), None),
            (vec![6, 1], None, Some(6)),
            (vec![5, 6, 3], Some(5), Some(6)),
            (vec![7], Some(7), Some(7)),
        ] {
            let ids: Vec<[u8; 16]> = chain.iter().map(|byte| [*byte; 16]).collect();
            for (root, expected) in [(KEY, of_key), (OTHER, of_other)] {
                let found = warrants.first_revoked(&root.parse().unwrap(), &ids);
                assert_eq!(found, expected.map(|byte| [byte; 16]), "{root} {chain:?}");
            }
        }
    }

    #[test]
    fn lists_that_are_too_long_or_malformed_are_unreadable() {
        let id = |number: usize| json!([format!("{number:032x}"), null]);
        let ids = |count: usize| (0..count).map(id).collect::<Vec<_>>();
        let roots = |count: usize| vec![root(&Value::Null); count];
        assert!(read(json!({"roots": roots(64), "revoked": ids(4_000)})).is_ok());
        for (what, lists) in [
            ("65 roots", json!({"roots": roots(65), "revoked": []})),
            ("4001 revocations", json!({"roots": [], "revoked": ids(4_001)})),
            ("no roots", json!({"revoked": []})),
            ("no revocations", json!({"roots": []})),
            ("a short id", json!({"roots": [], "revoked": [["00", null]]})),
            ("no hex", json!({"roots": [], "revoked": [["g".repeat(32), null]]})),
            ("no root or null", json!({"roots": [], "revoked": [["00".repeat(16)]]})),
            ("no key of a root", json!({"roots": [], "revoked": [["00".repeat(16), "00"]]})),
            ("no glob", json!({"roots": [root(&json!(["*a*b*"]))], "revoked": []})),
            (
                "no key",
                json!({"roots": [{"id": "ci", "public_key": "00", "allowed_servers": null}], "revoked": []}),
            ),
            ("no servers", json!({"roots": [{"id": "ci", "public_key": KEY}], "revoked": []})),
        ] {
            assert!(read(lists).is_err(), "{what}");
        }
    }
}
