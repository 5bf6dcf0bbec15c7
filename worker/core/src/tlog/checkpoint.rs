//! Checkpoints: the text by which a log commits to its tree (c2sp.org/tlog-checkpoint).
//!
//! The text has three lines: origin, size and root. The format allows more lines, but nobody can audit what they say.
//! So this log writes none, and a checkpoint with more lines is refused.
//!
//! Out of scope: signatures. A checkpoint is the text of a [note](super::note).

use std::borrow::Cow;
use std::fmt;

use super::form::{base64, decimal, hash};
use super::key::MAX_NAME_BYTES;
use super::tree::{EMPTY_ROOT, HASH_BYTES, Hash, MAX_SIZE};

/// The root of a log's tree at a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint<'a> {
    /// Which log it is. It must be one line: with a newline in it, the text would say something else.
    pub origin: Cow<'a, str>,
    /// Leaves of the tree.
    pub size: u64,
    pub root: Hash,
}

impl<'a> Checkpoint<'a> {
    /// The text that is signed: three lines, each with its newline.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, base64(&self.root))
    }

    /// Reads the text of a checkpoint. The origin can be any line of 1 to 255 bytes: compare it with the origin that
    /// you expect.
    ///
    /// # Errors
    ///
    /// The text is not exactly what [`Checkpoint::text`] writes.
    pub fn parse(text: &'a str) -> Result<Self, CheckpointError> {
        let mut lines = text.strip_suffix('\n').ok_or(CheckpointError::Lines)?.splitn(4, '\n');
        let (Some(origin), Some(size), Some(root), None) =
            (lines.next(), lines.next(), lines.next(), lines.next())
        else {
            return Err(CheckpointError::Lines);
        };
        if origin.is_empty() || origin.len() > MAX_NAME_BYTES || origin.contains(char::is_control) {
            return Err(CheckpointError::Origin);
        }
        let size = decimal(size, MAX_SIZE).ok_or(CheckpointError::Size)?;
        let root = hash(root).ok_or(CheckpointError::Root)?;
        if size == 0 && root != EMPTY_ROOT {
            return Err(CheckpointError::Root);
        }
        Ok(Self { origin: Cow::Borrowed(origin), size, root })
    }
}

/// Why a text is not a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointError {
    Lines,
    Origin,
    Size,
    Root,
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines => {
                f.write_str("a checkpoint has three lines, and a newline at the end of each")
            }
            Self::Origin => write!(
                f,
                "the first line of the checkpoint, its origin, must have 1 to {MAX_NAME_BYTES} bytes and no control \
                 characters"
            ),
            Self::Size => write!(
                f,
                "the second line of the checkpoint, the size, must be a number of at most {MAX_SIZE} without leading \
                 zeros"
            ),
            Self::Root => write!(
                f,
                "the third line of the checkpoint, the root, must be base64 of {HASH_BYTES} bytes, and for the size 0 \
                 it must be the hash of nothing",
            ),
        }
    }
}

impl std::error::Error for CheckpointError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::note::Note;

    /// The example of c2sp.org/tlog-cosignature.
    const COSIGNED: &str = "example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
\u{2014} witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
";

    #[test]
    fn the_published_example_is_read_and_written_as_it_is() {
        let note = Note::parse(COSIGNED).unwrap();
        let checkpoint = Checkpoint::parse(note.text).unwrap();
        assert_eq!(
            (&*checkpoint.origin, checkpoint.size),
            ("example.com/behind-the-sofa", 20_852_163)
        );
        assert_eq!(checkpoint.text(), note.text);
        let names: Vec<_> =
            note.signatures.iter().map(|it| (it.name, it.id, it.bytes.len())).collect();
        assert_eq!(
            names,
            [
                ("example.com/behind-the-sofa", 0x033d_e0ae, 64),
                ("witness.example.com/w1", 0x8d66_cf3f, 72),
            ]
        );
    }

    #[test]
    fn a_checkpoint_has_one_form_only() {
        use CheckpointError::{Lines, Origin, Root, Size};
        let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
        let empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        for (text, expected) in [
            (format!("o\n1\n{root}\n"), None),
            (format!("an origin + spaces\n4611686018427387904\n{root}\n"), None),
            (format!("o\n0\n{empty}\n"), None),
            (format!("o\n0\n{root}\n"), Some(Root)),
            (String::new(), Some(Lines)),
            ("\n".to_owned(), Some(Lines)),
            ("o\n1\n".to_owned(), Some(Lines)),
            (format!("o\n1\n{root}"), Some(Lines)),
            (format!("o\n1\n{root}\n\n"), Some(Lines)),
            (format!("o\n1\n{root}\nextension\n"), Some(Lines)),
            (format!("\n1\n{root}\n"), Some(Origin)),
            (format!("a\u{7f}b\n1\n{root}\n"), Some(Origin)),
            (format!("{}\n1\n{root}\n", "o".repeat(256)), Some(Origin)),
            (format!("o\n\n{root}\n"), Some(Size)),
            (format!("o\n01\n{root}\n"), Some(Size)),
            (format!("o\n00\n{root}\n"), Some(Size)),
            (format!("o\n+1\n{root}\n"), Some(Size)),
            (format!("o\n-1\n{root}\n"), Some(Size)),
            (format!("o\n1 \n{root}\n"), Some(Size)),
            (format!("o\n\u{661}\n{root}\n"), Some(Size)),
            (format!("o\n4611686018427387905\n{root}\n"), Some(Size)),
            (format!("o\n18446744073709551616\n{root}\n"), Some(Size)),
            (format!("o\n1\n{root} \n"), Some(Root)),
            (format!("o\n1\n{}\n", &root[..43]), Some(Root)),
            (format!("o\n1\n{}J=\n", &root[..42]), Some(Root)),
            (format!("o\n1\n{root}A===\n"), Some(Root)),
        ] {
            let read = Checkpoint::parse(&text);
            assert_eq!(read.as_ref().err(), expected.as_ref(), "{text}");
            if let Ok(checkpoint) = read {
                assert_eq!(checkpoint.text(), text);
            }
        }
    }
}
