//! The members of an answer that nobody reviewed, apart from those that are judged on their own: the items of lists, and
//! instructions that were pinned.

use serde_json::value::RawValue;

use super::method::Listed;
use super::parts;
use super::review::is_pinned;
use crate::json::raw::RawObject;
use crate::provenance::part::Part;
use crate::shield::Redaction;

/// Members that the client sends back unchanged. A marker in them would make them unusable.
const HANDLES: [&str; 2] = ["nextCursor", "requestState"];

/// An answer, split into two parts.
pub struct Unreviewed {
    answer: RawObject,
    aside: Vec<(&'static str, Box<RawValue>)>,
}

impl Unreviewed {
    /// Splits an answer. `listed` is the list that was asked for; `pinned` is the hash of the server's pinned
    /// instructions.
    #[must_use]
    pub fn of(
        mut answer: RawObject,
        method: &str,
        listed: Option<Listed>,
        pinned: Option<&str>,
    ) -> Self {
        let mut aside = Vec::new();
        let mut set_aside = |answer: &mut RawObject, name| {
            aside.extend(answer.take(name).map(|value| (name, value)));
        };
        for one in Listed::ALL {
            // The request of a resumed stream is not known, so every list is judged.
            if listed == Some(one) || method.is_empty() {
                set_aside(&mut answer, one.field());
            }
        }
        let instructions = answer.get("instructions");
        if instructions.is_some_and(|text| is_pinned(text, pinned)) {
            set_aside(&mut answer, "instructions");
        }
        Self { answer, aside }
    }

    #[must_use]
    pub fn parts(&self) -> Vec<Part<'_>> {
        parts::of(&self.answer)
    }

    /// The whole answer, with markers in place of what the shield redacts. `None` if it cannot be read.
    #[must_use]
    pub fn redacted(mut self, redaction: Redaction<'_>) -> Option<RawObject> {
        for name in HANDLES {
            self.aside.extend(self.answer.take(name).map(|value| (name, value)));
        }
        let mut answer = RawObject::parse(&redaction.answer(&self.answer.write())?)?;
        for (name, value) in self.aside {
            answer.set_raw(name, value);
        }
        Some(answer)
    }
}
