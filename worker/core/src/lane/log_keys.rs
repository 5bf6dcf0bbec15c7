//! How a deployment signs its logs: the vars and secrets for it, the names of logs, and their origins.

use crate::bounds::HEAD_LANE;
use crate::name::is_name;
use crate::tlog::{Checkpoint, Note, Signer, VerifierKey};

use super::tree::TreeHead;

/// Bytes of a host's name and a port.
const MAX_HOST_BYTES: usize = 260;

/// The log of a lane, or the head log of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogName {
    pub tenant: String,
    /// [`HEAD_LANE`] for the head log.
    pub lane: u16,
}

impl LogName {
    /// Reads `<tenant>.lane-<number>` or `<tenant>.head`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (tenant, log) = text.split_once('.')?;
        let lane = match log.strip_prefix("lane-") {
            None if log == "head" => HEAD_LANE,
            None => return None,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|lane: &u16| *lane != HEAD_LANE && lane.to_string() == digits)?,
        };
        is_name(tenant).then(|| Self { tenant: tenant.to_owned(), lane })
    }
}

impl std::fmt::Display for LogName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lane {
            HEAD_LANE => write!(f, "{}.head", self.tenant),
            lane => write!(f, "{}.lane-{lane}", self.tenant),
        }
    }
}

/// The keys that sign checkpoints, and the host that is part of each origin.
#[derive(Debug)]
pub struct LogKeys {
    host: String,
    /// The newest first. During a rotation there are two, and both sign.
    signers: Vec<Signer>,
}

impl LogKeys {
    /// Reads `LOG_KEY`, `LOG_KEY_PREVIOUS` and `LOG_ORIGIN` through `var`; `None` if there is no `LOG_KEY`. Each key is
    /// the seed of an Ed25519 key: 64 hex digits.
    ///
    /// # Errors
    ///
    /// A sentence that names the var.
    pub fn read(var: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let set = |name: &str| var(name).filter(|text| !text.is_empty());
        let Some(key) = set("LOG_KEY") else { return Ok(None) };
        let seed = |name: &str, text: &str| {
            let mut seed = [0; 32];
            hex::decode_to_slice(text, &mut seed)
                .map_err(|_| format!("secret `{name}` is not 64 hex digits"))?;
            Ok::<_, String>(Signer::from_seed(seed))
        };
        let mut signers = vec![seed("LOG_KEY", &key)?];
        if let Some(previous) = set("LOG_KEY_PREVIOUS") {
            signers.push(seed("LOG_KEY_PREVIOUS", &previous)?);
        }
        let host = set("LOG_ORIGIN").ok_or("var `LOG_ORIGIN` is not set")?;
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':')
        };
        match host.len() <= MAX_HOST_BYTES && host.bytes().all(plain) {
            true => Ok(Some(Self { host, signers })),
            false => Err("var `LOG_ORIGIN` is not the name of a host".to_owned()),
        }
    }

    /// The origin of a log: its URL without the scheme.
    #[must_use]
    pub fn origin(&self, log: &LogName) -> String {
        format!("{}/v1/log/{log}", self.host)
    }

    /// The checkpoint of a tree, signed with each key.
    #[must_use]
    pub fn sign(&self, log: &LogName, tree: TreeHead) -> String {
        let origin = self.origin(log);
        let checkpoint =
            Checkpoint { origin: origin.as_str().into(), size: tree.size, root: tree.root };
        let mut note = checkpoint.text();
        let lines: Vec<String> =
            self.signers.iter().map(|signer| signer.sign(&origin, &note)).collect();
        note.push('\n');
        note.extend(lines);
        note
    }

    /// The tree of a checkpoint of this log that one of the keys signed; `None` if the note is anything else. One key
    /// signs all logs, so a signature says nothing without the origin in the text.
    #[must_use]
    pub fn open(&self, log: &LogName, note: &str) -> Option<TreeHead> {
        let note = Note::parse(note).ok()?;
        note.verified_by(&self.verifier_keys(log)).ok()?;
        let checkpoint = Checkpoint::parse(note.text).ok()?;
        let is_of_log = checkpoint.origin == self.origin(log);
        is_of_log.then_some(TreeHead { size: checkpoint.size, root: checkpoint.root })
    }

    /// The keys that verify the log's checkpoints, the newest first.
    #[must_use]
    pub fn verifier_keys(&self, log: &LogName) -> Vec<VerifierKey> {
        let origin = self.origin(log);
        // An origin is always a name.
        self.signers
            .iter()
            .filter_map(|signer| VerifierKey::ed25519(&origin, &signer.public()).ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;
    use crate::tlog::Edge;

    #[test]
    fn a_log_has_one_name() {
        for (text, expected) in [
            ("acme.head", Some(("acme", HEAD_LANE))),
            ("acme.lane-0", Some(("acme", 0))),
            ("acme.lane-12", Some(("acme", 12))),
            ("acme.lane-012", None),
            ("acme.lane-65535", None),
            ("acme.lane-", None),
            ("acme.lane-+1", None),
            ("acme", None),
            ("Acme.head", None),
            ("acme.head.head", None),
            (".head", None),
        ] {
            let name = LogName::parse(text);
            let found = name.as_ref().map(|name| (name.tenant.as_str(), name.lane));
            assert_eq!(found, expected, "{text}");
            if let Some(name) = name {
                assert_eq!(name.to_string(), text);
            }
        }
    }

    #[test]
    fn a_setting_that_is_wrong_is_named() {
        let (key, other) = ("01".repeat(32), "02".repeat(32));
        for (vars, expected) in [
            (["", "", ""], Ok(0)),
            (["", "", "gateward.example"], Ok(0)),
            ([&*key, "", "gateward.example"], Ok(1)),
            ([&*key, &*other, "localhost:8787"], Ok(2)),
            ([&*key, "", ""], Err("`LOG_ORIGIN`")),
            ([&*key, "", "https://gateward.example"], Err("`LOG_ORIGIN`")),
            (["01", "", "gateward.example"], Err("`LOG_KEY`")),
            ([&*key, "x", "gateward.example"], Err("`LOG_KEY_PREVIOUS`")),
        ] {
            let names = ["LOG_KEY", "LOG_KEY_PREVIOUS", "LOG_ORIGIN"];
            let var = |name: &str| {
                names
                    .iter()
                    .zip(vars)
                    .find(|(known, _)| **known == name)
                    .map(|(_, it)| it.to_owned())
            };
            match (LogKeys::read(var), expected) {
                (Ok(keys), Ok(count)) => {
                    assert_eq!(keys.map_or(0, |keys| keys.signers.len()), count, "{vars:?}");
                }
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (found, _) => panic!("{vars:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_checkpoint_is_signed_with_each_key() {
        let var = |name: &str| match name {
            "LOG_KEY" => Some("01".repeat(32)),
            "LOG_KEY_PREVIOUS" => Some("02".repeat(32)),
            _ => Some("gateward.example".to_owned()),
        };
        let keys = LogKeys::read(var).unwrap().unwrap();
        let log = LogName::parse("acme.lane-3").unwrap();
        let tree = TreeHead { size: 0, root: Edge::default().root() };
        let text = keys.sign(&log, tree);
        assert!(text.starts_with("gateward.example/v1/log/acme.lane-3\n0\n"), "{text}");
        assert_eq!(TreeHead::of_note(&text), Some(tree));
        let note = Note::parse(&text).unwrap();
        for key in keys.verifier_keys(&log) {
            assert_eq!(note.verified_by(&[key]).unwrap(), [0]);
        }
    }
    #[test]
    fn a_note_is_opened_only_by_the_log_that_it_is_of() {
        let var = |name: &str| match name {
            "LOG_KEY" => Some("01".repeat(32)),
            "LOG_ORIGIN" => Some("gateward.example".to_owned()),
            _ => None,
        };
        let keys = LogKeys::read(var).unwrap().unwrap();
        let [own, other] = ["acme.lane-3", "evil.lane-0"].map(|name| LogName::parse(name).unwrap());
        let tree = TreeHead { size: 0, root: Edge::default().root() };
        assert_eq!(keys.open(&own, &keys.sign(&own, tree)), Some(tree));
        // The signature holds for any log, once its line has the log's name and key id.
        let foreign = keys.sign(&other, tree);
        let (text, line) = foreign.split_once("\n\n").unwrap();
        let line = line.rsplit(' ').next().unwrap().trim_end();
        let signature = &base64::engine::general_purpose::STANDARD.decode(line).unwrap()[4..];
        let key = keys.verifier_keys(&own)[0].to_string();
        let id = hex::decode(key.split('+').nth(1).unwrap()).unwrap();
        let line = base64::engine::general_purpose::STANDARD.encode([&id, signature].concat());
        let relabelled = format!("{text}\n\n\u{2014} {} {line}\n", keys.origin(&own));
        let note = Note::parse(&relabelled).unwrap();
        assert!(
            note.verified_by(&keys.verifier_keys(&own)).is_ok(),
            "the forgery is as good as it gets"
        );
        for note in [relabelled, foreign, "garbage".to_owned()] {
            assert_eq!(keys.open(&own, &note), None, "{note}");
        }
    }
}
