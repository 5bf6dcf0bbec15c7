//! What happens to an answer of a server after the shield has inspected it.

use super::outcome::FoundInResult;
use crate::provenance::ValueKey;
use crate::provenance::part::Part;
use crate::shield::{Category, Modes, Shield, Verdict};

/// Why an answer is withheld if it needs a redaction that cannot be done.
pub const UNREDACTABLE: &str =
    "Something in it must be replaced, and it cannot be read as a whole.";

/// What happens to an answer.
#[derive(Debug, Default, PartialEq)]
pub struct Inspected {
    /// What its outcome's receipt says.
    pub found: Option<FoundInResult>,
    /// Whether it taints its reader.
    pub taints: bool,
    /// The reason in sentences if it is withheld; `None` if it is passed on.
    pub withheld: Option<String>,
    /// The categories whose findings are replaced in it.
    pub redacts: Vec<Category>,
}

impl Inspected {
    /// Withholds the answer for another reason.
    pub fn withhold(&mut self, why: &str) {
        self.withheld = Some(why.to_owned());
        self.found.iter_mut().for_each(|found| found.blocked = true);
    }
}

/// Inspects the parts of an answer, or of another message of a server.
#[must_use]
pub fn inspect(
    (shield, key): (&Shield, &ValueKey),
    tenant: &str,
    modes: Modes,
    parts: &[Part<'_>],
) -> Inspected {
    let found = shield.inspect_answer(tenant, key, parts);
    let verdict = Verdict::new(modes, found);
    let withheld = match verdict.blocked() {
        Some(finding) => {
            let (category, rule) = (finding.category.as_str(), &finding.rule);
            let sentence = shield.sentence(rule);
            // The place of the finding is left out, because the server chose the names in it.
            Some(format!(
                "`{category}` does not pass here, and the rule `{rule}` matches: {sentence}"
            ))
        }
        None if verdict.hides() => {
            Some("It could not be read to its end, and a category is to be blocked.".to_owned())
        }
        None => None,
    };
    let (taints, redacts) = (verdict.taints(), verdict.redacts());
    let blocked = withheld.is_some();
    let found = verdict.noted().map(|noted| FoundInResult { noted, blocked });
    Inspected { found, taints, withheld, redacts }
}
