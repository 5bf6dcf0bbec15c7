//! Whom a verifier trusts, and what a log of theirs is called.

use gateward_core::id::{lane_number, rfc3339};
use gateward_core::tlog::{
    COSIGNATURE, Checkpoint, ED25519, Hash, Note, NoteError, NoteSignature, VerifierKey,
};
use serde::Serialize;

use super::fault::Kind;

/// What follows the tenant in the name of the head.
const HEAD: &str = ".head";
/// What follows the tenant in the name of a lane's log, before the number.
const LANE: &str = ".lane-";

/// The keys that the caller trusts.
#[derive(Debug, Clone)]
pub struct Trust {
    /// At least one. All have the same name, which is the head's origin.
    keys: Vec<VerifierKey>,
    witnesses: Vec<VerifierKey>,
}

impl Trust {
    /// The error is a sentence.
    pub fn new(keys: Vec<VerifierKey>, witnesses: Vec<VerifierKey>) -> Result<Self, String> {
        let name = keys.first().map(VerifierKey::name).ok_or("there must be a key")?;
        if !name.ends_with(HEAD) {
            return Err(format!(
                "the key must be that of the tenant's head, such as \
                 `gateward.example/v1/log/acme.head+…`, and not of `{name}`"
            ));
        }
        if keys.iter().any(|key| key.name() != name) {
            return Err("all keys must have the same name".to_owned());
        }
        if keys.iter().any(|key| key.kind() != ED25519) {
            return Err("a `--key` is the key of a witness: give it with `--witness`".to_owned());
        }
        if witnesses.iter().any(|key| key.kind() != COSIGNATURE) {
            return Err(
                "a `--witness` must be the key of a witness, which has another kind".to_owned()
            );
        }
        // Of one that is given twice, only the first would be found.
        let mut known: Vec<VerifierKey> = Vec::new();
        for witness in witnesses {
            if !known.contains(&witness) {
                known.push(witness);
            }
        }
        Ok(Self { keys, witnesses: known })
    }

    /// The origin of the head.
    pub fn head_origin(&self) -> &str {
        self.keys.first().map_or("", VerifierKey::name)
    }

    pub fn has_witnesses(&self) -> bool {
        !self.witnesses.is_empty()
    }

    /// The log with a name that is checked.
    pub fn identity(&self, base: &str, name: String) -> Identity {
        let origin = format!("{base}/{name}");
        let keys = self.keys.iter().map(|key| key.with_name(&origin)).collect();
        Identity { name, origin, keys }
    }

    /// The cosignatures of the given witnesses on a note, and how many others there are. Every given witness must
    /// have cosigned.
    pub fn cosignatures(&self, note: &str) -> Result<Cosigned, (Kind, String)> {
        let note = Note::parse(note).map_err(invalid)?;
        let signed = match note.verified_by(&self.witnesses) {
            Err(NoteError::Unknown) => Vec::new(),
            signed => signed.map_err(invalid)?,
        };
        let mut cosigned = Cosigned::default();
        for (at, witness) in self.witnesses.iter().enumerate() {
            let time = |signature: &NoteSignature<'_>| {
                let time = signature.bytes.first_chunk().map(|time| u64::from_be_bytes(*time));
                time.filter(|_| signature.is_of(witness))
            };
            // A witness can have signed twice.
            let latest = note.signatures.iter().filter_map(time).max();
            let Some(time_s) = latest.filter(|_| signed.contains(&at)) else {
                let detail = format!("the witness `{}` has not cosigned it", witness.name());
                return Err((Kind::MissingCosignature, detail));
            };
            cosigned.by.push(Cosignature {
                witness: witness.name().to_owned(),
                cosigned_at: rfc3339(time_s.saturating_mul(1000)),
            });
        }
        let known = |signature: &&NoteSignature<'_>| {
            signature.name == self.head_origin()
                || self.witnesses.iter().any(|witness| signature.is_of(witness))
        };
        cosigned.others = note.signatures.iter().filter(|it| !known(it)).count();
        Ok(cosigned)
    }
}

/// The cosignatures of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cosigned {
    pub by: Vec<Cosignature>,
    /// Cosignatures of witnesses that the caller does not trust. They were not checked.
    pub others: usize,
}

/// A cosignature that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cosignature {
    pub witness: String,
    /// The time that the witness signed.
    pub cosigned_at: String,
}

/// A log: its name, its origin, and the keys under that origin.
#[derive(Debug)]
pub struct Identity {
    pub name: String,
    origin: String,
    keys: Vec<VerifierKey>,
}

/// What a checkpoint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    pub size: u64,
    pub root: Hash,
}

/// A checkpoint whose signatures hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub tree: Tree,
    /// The keys that signed, as verifier keys.
    pub keys: Vec<String>,
}

impl Identity {
    /// The checkpoint of this log in a note, whose signatures are not verified.
    pub fn read(&self, note: &str) -> Result<Tree, (Kind, String)> {
        let note = Note::parse(note).map_err(invalid)?;
        let checkpoint = Checkpoint::parse(note.text)
            .map_err(|error| (Kind::InvalidCheckpoint, error.to_string()))?;
        if checkpoint.origin != self.origin.as_str() {
            let (found, expected) = (&checkpoint.origin, &self.origin);
            let detail = format!("the checkpoint is of `{found}` instead of `{expected}`");
            return Err((Kind::WrongOrigin, detail));
        }
        Ok(Tree { size: checkpoint.size, root: checkpoint.root })
    }

    /// The keys that signed a note, as verifier keys. There is at least one.
    pub fn signers(&self, note: &str) -> Result<Vec<String>, (Kind, String)> {
        let signers = Note::parse(note).and_then(|note| note.verified_by(&self.keys));
        let signers = signers.map_err(invalid)?.into_iter();
        Ok(signers.filter_map(|at| self.keys.get(at)).map(VerifierKey::to_string).collect())
    }

    /// The checkpoint of this log in a note.
    pub fn open(&self, note: &str) -> Result<Signed, (Kind, String)> {
        Ok(Signed { tree: self.read(note)?, keys: self.signers(note)? })
    }
}

fn invalid(error: NoteError) -> (Kind, String) {
    (Kind::InvalidCheckpoint, error.to_string())
}

/// Which log of a tenant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Lane(u16),
    Head,
}

impl Part {
    /// The log with this name. `None` if the tenant has none.
    pub fn of(tenant: &str, name: &str) -> Option<Self> {
        match name.strip_prefix(tenant)? {
            HEAD => Some(Self::Head),
            rest => rest.strip_prefix(LANE).and_then(lane_number).map(Self::Lane),
        }
    }

    /// Its name.
    pub fn name(self, tenant: &str) -> String {
        match self {
            Self::Lane(lane) => format!("{tenant}{LANE}{lane}"),
            Self::Head => format!("{tenant}{HEAD}"),
        }
    }
}
