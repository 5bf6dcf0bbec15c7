//! Signed notes: a text and the signatures of it (c2sp.org/signed-note).
//!
//! Anybody can write a note. So do not trust its text before [`Note::verified_by`] has returned a key that you trust.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use super::key::{KeyError, Signer, VerifierKey, is_name};

/// Bytes of a note. A checkpoint with a hundred cosignatures of Ed25519 has about a quarter.
pub const MAX_NOTE_BYTES: usize = 64 * 1024;

/// Signatures of a note. The format asks for at least 16.
pub const MAX_SIGNATURES: usize = 100;

/// Bytes of a key's id in a signature.
const ID_BYTES: usize = 4;

/// A note, not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// What is signed. It ends in a newline.
    pub text: &'a str,
    /// At least one.
    pub signatures: Vec<NoteSignature<'a>>,
}

/// A signature of a note, not yet verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature<'a> {
    /// The name of the key.
    pub name: &'a str,
    /// The id of the key.
    pub id: u32,
    /// What follows the id; its form depends on the kind of the key. At least one byte.
    pub bytes: Vec<u8>,
    /// The line that was read, with its newline.
    pub line: &'a str,
}

impl NoteSignature<'_> {
    /// Whether it says that it is of this key. It is not verified.
    #[must_use]
    pub fn is_of(&self, key: &VerifierKey) -> bool {
        self.id == key.id() && self.name == key.name()
    }
}

impl<'a> Note<'a> {
    /// Reads a note. The text ends before the last empty line.
    ///
    /// # Errors
    ///
    /// The note is not of the published form, or above [`MAX_NOTE_BYTES`] or [`MAX_SIGNATURES`].
    pub fn parse(note: &'a str) -> Result<Self, NoteError> {
        check_bytes(note)?;
        let (text_end, lines_start) =
            note.rfind("\n\n").map(|at| (at + 1, at + 2)).ok_or(NoteError::NoSignature)?;
        let (Some(text), Some(lines)) = (note.get(..text_end), note.get(lines_start..)) else {
            return Err(NoteError::NoSignature);
        };
        Ok(Self { text, signatures: signatures(lines)? })
    }

    /// Verifies the note. Returns the indexes of the keys that signed it, in ascending order. Signatures of other keys
    /// are ignored.
    ///
    /// # Errors
    ///
    /// [`NoteError::Invalid`] if a signature has the name and the id of one of the keys but is not valid;
    /// [`NoteError::Unknown`] if none of the keys signed.
    pub fn verified_by(&self, keys: &[VerifierKey]) -> Result<Vec<usize>, NoteError> {
        let mut signers = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let own = self.signatures.iter().filter(|it| it.is_of(key));
            let holds: Vec<bool> = own.map(|it| key.verifies(self.text, &it.bytes)).collect();
            if holds.contains(&false) {
                return Err(NoteError::Invalid(key.name().to_owned()));
            }
            if !holds.is_empty() {
                signers.push(index);
            }
        }
        if signers.is_empty() { Err(NoteError::Unknown) } else { Ok(signers) }
    }
}

/// Reads the lines of signatures, which follow the empty line of a note.
///
/// # Errors
///
/// As [`Note::parse`].
pub(super) fn signatures(lines: &str) -> Result<Vec<NoteSignature<'_>>, NoteError> {
    check_bytes(lines)?;
    if lines.is_empty() {
        return Err(NoteError::NoSignature);
    }
    let mut signatures = Vec::new();
    for line in lines.split_inclusive('\n') {
        if signatures.len() >= MAX_SIGNATURES {
            return Err(NoteError::TooMany);
        }
        signatures.push(signature(line).ok_or(NoteError::Line)?);
    }
    Ok(signatures)
}

/// Reads a signature's line: em dash, space, name, space, base64, newline.
fn signature(line: &str) -> Option<NoteSignature<'_>> {
    let (name, base64) = line.strip_suffix('\n')?.strip_prefix("\u{2014} ")?.split_once(' ')?;
    let decoded = STANDARD.decode(base64).ok()?;
    let (id, bytes) = decoded.split_first_chunk::<ID_BYTES>()?;
    let id = u32::from_be_bytes(*id);
    (is_name(name) && !bytes.is_empty()).then(|| NoteSignature {
        name,
        id,
        bytes: bytes.to_vec(),
        line,
    })
}

/// Bounds the length, and refuses control characters other than newline.
fn check_bytes(text: &str) -> Result<(), NoteError> {
    if text.len() > MAX_NOTE_BYTES {
        Err(NoteError::TooLong)
    } else if text.bytes().any(|byte| byte < b' ' && byte != b'\n') {
        Err(NoteError::Control)
    } else {
        Ok(())
    }
}

/// Why a note cannot be read, or is not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteError {
    TooLong,
    Control,
    NoSignature,
    TooMany,
    Line,
    /// With the name of the key.
    Invalid(String),
    Unknown,
}

impl fmt::Display for NoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the note is longer than {MAX_NOTE_BYTES} bytes"),
            Self::Control => f.write_str("the note has a control character other than newline"),
            Self::NoSignature => {
                f.write_str("the note has no signature: an empty line and signature lines must follow the text")
            }
            Self::TooMany => write!(f, "the note has more than {MAX_SIGNATURES} signatures"),
            Self::Line => f.write_str(
                "a signature line of the note is not an em dash, a key name and base64 of at least 5 bytes",
            ),
            Self::Invalid(name) => write!(f, "the signature of the key `{name}` does not hold"),
            Self::Unknown => f.write_str("the note has no signature of a given key"),
        }
    }
}

impl std::error::Error for NoteError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of c2sp.org/signed-note.
    const VKEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    const NOTE: &str = "This is an example message.

\u{2014} example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
";

    #[test]
    fn the_published_example_verifies() {
        let key = VerifierKey::parse(VKEY).unwrap();
        assert_eq!((key.name(), key.id(), key.kind()), ("example.com/foo", 0x530d_903a, 1));
        assert_eq!(key.to_string(), VKEY);
        let note = Note::parse(NOTE).unwrap();
        assert_eq!(note.text, "This is an example message.\n");
        assert_eq!(note.verified_by(&[key.with_name("other"), key]), Ok(vec![1]));
    }

    /// A signature's line with these bytes after the em dash.
    fn line(rest: &str) -> String {
        format!("\u{2014} {rest}\n")
    }

    #[test]
    fn a_note_has_the_published_form() {
        use NoteError::{Control, Line, NoSignature, TooLong, TooMany};
        let good = line("n AAAAAAA=");
        let padding = |bytes: usize| format!("{}\n\n{good}", "t".repeat(bytes - good.len() - 2));
        for (note, expected) in [
            (format!("t\n\n{good}"), Ok("t\n")),
            (format!("\n\n{good}"), Ok("\n")),
            (format!("a\n\nb\n\n{good}"), Ok("a\n\nb\n")),
            (format!("a\n\n\n{good}"), Ok("a\n\n")),
            (format!("a\n\n{good}\n{good}"), Ok("a\n\n\u{2014} n AAAAAAA=\n")),
            (format!("t\u{7f}\u{85}\u{2028}\n\n{good}"), Ok("t\u{7f}\u{85}\u{2028}\n")),
            (format!("t\n\n{}", good.repeat(100)), Ok("t\n")),
            (format!("t\n\n{}", line("\u{e9}\u{7f}/? AAAAAAA=")), Ok("t\n")),
            (format!("t\n\n{}", line(&format!("{} AAAAAAA=", "n".repeat(1_000)))), Ok("t\n")),
            (format!("t\n\n{}", good.repeat(101)), Err(TooMany)),
            (String::new(), Err(NoSignature)),
            ("t\n".to_owned(), Err(NoSignature)),
            (good.clone(), Err(NoSignature)),
            (format!("t\n{good}"), Err(NoSignature)),
            (format!("\n{good}"), Err(NoSignature)),
            ("t\n\n".to_owned(), Err(NoSignature)),
            (format!("t\n\n{good}\n"), Err(NoSignature)),
            (format!("t\r\n\r\n{good}"), Err(Control)),
            (format!("t\0\n\n{good}"), Err(Control)),
            (format!("t\t\n\n{good}"), Err(Control)),
            (format!("t\n\n{}\r\n", good.trim_end()), Err(Control)),
            (format!("t\n\n{}", good.trim_end()), Err(Line)),
            (format!("t\n\n{good}text\n"), Err(Line)),
            (format!("t\n\ntext\n{good}"), Err(Line)),
            (format!("t\n\n {good}"), Err(Line)),
            (format!("t\n\n{}", good.replace('\u{2014}', "-")), Err(Line)),
            (format!("t\n\n{}", good.replace('\u{2014}', "\u{2013}")), Err(Line)),
            (format!("t\n\n{}", good.replace("\u{2014} ", "\u{2014}")), Err(Line)),
            (format!("t\n\n{}", line("n")), Err(Line)),
            (format!("t\n\n{}", line("n ")), Err(Line)),
            (format!("t\n\n{}", line(" AAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line(" n AAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line("n  AAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line("n AAAAAAA= ")), Err(Line)),
            (format!("t\n\n{}", line("n+m AAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line("n\u{a0}m AAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line("n\u{3000} AAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line("n\u{85} AAAAAAA=")), Err(Line)),
            // Base64: four bytes, no padding, too much of it, bits after the end, another alphabet.
            (format!("t\n\n{}", line("n AAAAAA==")), Err(Line)),
            (format!("t\n\n{}", line("n AAAAAAA")), Err(Line)),
            (format!("t\n\n{}", line("n AAAAAAAA=")), Err(Line)),
            (format!("t\n\n{}", line("n AAAAAAB=")), Err(Line)),
            (format!("t\n\n{}", line("n AAAA-AA=")), Err(Line)),
        ] {
            let read = Note::parse(&note);
            assert_eq!(
                read.map(|it| it.text),
                expected,
                "{}",
                note.chars().take(80).collect::<String>()
            );
        }
        assert!(Note::parse(&padding(MAX_NOTE_BYTES)).is_ok());
        assert_eq!(Note::parse(&padding(MAX_NOTE_BYTES + 1)), Err(TooLong));
    }

    #[test]
    fn a_note_is_verified_by_the_given_keys_only() {
        let text = "text\n";
        let [new, old, other] = [1, 2, 3].map(|seed| Signer::from_seed([seed; 32]));
        let key = |signer: &Signer| VerifierKey::ed25519("log", &signer.public()).unwrap();
        let keys = [key(&new), key(&old)];
        let [by_new, by_old, by_other] = [&new, &old, &other].map(|it| it.sign("log", text));
        let elsewhere = new.sign("elsewhere", text);
        // The id of a key, and what it did not sign.
        let forged = new.sign("log", "another text\n");
        let short = super::super::key::line("log", keys[0].id(), &[0; 63]);
        let invalid = || Err(NoteError::Invalid("log".to_owned()));
        for (name, lines, expected) in [
            ("one key", vec![&by_new], Ok(vec![0])),
            ("a rotation", vec![&by_new, &by_old], Ok(vec![0, 1])),
            ("another order", vec![&by_old, &by_new], Ok(vec![0, 1])),
            ("twice", vec![&by_old, &by_old], Ok(vec![1])),
            ("another key first", vec![&by_other, &elsewhere, &by_old], Ok(vec![1])),
            ("another key only", vec![&by_other], Err(NoteError::Unknown)),
            ("another name only", vec![&elsewhere], Err(NoteError::Unknown)),
            ("another text", vec![&forged], invalid()),
            ("another text beside a good one", vec![&by_old, &forged], invalid()),
            ("another text after a good one of the same key", vec![&by_new, &forged], invalid()),
            ("too short", vec![&short], invalid()),
        ] {
            let lines: String = lines.into_iter().map(String::as_str).collect();
            let note = format!("{text}\n{lines}");
            let note = Note::parse(&note).unwrap();
            assert_eq!(note.verified_by(&keys), expected, "{name}");
            assert_eq!(note.verified_by(&[]), Err(NoteError::Unknown), "{name}");
        }
    }

    #[test]
    fn a_key_whose_name_no_note_can_have_verifies_nothing() {
        let signer = Signer::from_seed([1; 32]);
        let key = VerifierKey::ed25519("a", &signer.public()).unwrap();
        for name in ["", "a b", "a+b", "a\nb", "a\u{2003}"] {
            let note = format!("text\n\n{}", signer.sign(name, "text\n"));
            let verified = Note::parse(&note).and_then(|it| it.verified_by(&[key.with_name(name)]));
            assert!(verified.is_err(), "{name}");
        }
    }
}
