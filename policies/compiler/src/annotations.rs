//! The annotations of a policy.
//!
//! | annotation | value | allowed on |
//! |---|---|---|
//! | `@id` | a name, unique in its file | every policy |
//! | `@decision` | `quarantine` | a forbid |
//! | | `require_approval`, `redact` | a permit |
//! | `@reason` | a sentence for the caller | any policy |
//! | `@approver_group` | a group's name | `require_approval`, always |
//! | `@quorum` | `1` to `16` | `require_approval` |
//! | `@redact_fields` | argument fields, separated by commas | `redact`, always |

use std::collections::BTreeMap;

use cedar_policy::Effect;
use gateward_core::name::is_name;
use gateward_core::policy::bundle::AnnotatedDecision;

use crate::bounds::{MAX_FIELD_BYTES, MAX_QUORUM, MAX_REASON_BYTES, MAX_REDACT_FIELDS};

/// As [`gateward_core::policy::bundle::Annotations`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Annotations {
    pub decision: AnnotatedDecision,
    pub reason: Option<String>,
    pub approver_group: Option<String>,
    pub quorum: u8,
    pub redact_fields: Vec<String>,
}

/// A mistake, and the annotation that has it. `None` if an annotation is missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub annotation: Option<String>,
    pub message: String,
}

const KNOWN: [&str; 6] = ["approver_group", "decision", "id", "quorum", "reason", "redact_fields"];

/// Returns the policy's `@id` (empty if it has none) and its other annotations. Adds every mistake to
/// `mistakes`.
pub(crate) fn read<'a>(
    effect: Effect,
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
    mistakes: &mut Vec<Mistake>,
) -> (String, Annotations) {
    let given: BTreeMap<&str, &str> = annotations.collect();
    let mut reader = Reader { given: &given, mistakes };
    for name in given.keys().filter(|name| !KNOWN.contains(name)) {
        reader.wrong(name, "unknown annotation");
    }

    let id = reader.required("id", true).unwrap_or_default();
    if !id.is_empty() && !is_name(id) {
        reader.wrong("id", "`@id` must match `[a-z0-9][a-z0-9_-]{0,62}`, not");
    }
    let decision = reader.decision(effect);
    let reason = given.get("reason").copied();
    if reason.is_some_and(|text| text.trim().is_empty() || text.len() > MAX_REASON_BYTES) {
        let message =
            format!("`@reason` must be a sentence of at most {MAX_REASON_BYTES} bytes, not");
        reader.wrong("reason", &message);
    }

    // If the decision itself is wrong, it is not known which annotations belong to it.
    let asks = |wanted| decision.map(|decision| decision == wanted);
    let approval = asks(AnnotatedDecision::RequireApproval);
    let approver_group = reader.belongs("approver_group", "require_approval", approval, true);
    if approver_group.is_some_and(|group| !is_name(group)) {
        reader.wrong("approver_group", "`@approver_group` must be a group's name, not");
    }
    let quorum = reader.belongs("quorum", "require_approval", approval, false);
    let quorum = quorum.map_or(Some(1), parse_quorum);
    if quorum.is_none() {
        let message = format!("`@quorum` must be a number from 1 to {MAX_QUORUM}, not");
        reader.wrong("quorum", &message);
    }
    let redact = asks(AnnotatedDecision::Redact);
    let fields = reader.belongs("redact_fields", "redact", redact, true);
    let redact_fields = fields.map_or(Some(Vec::new()), parse_fields);
    if redact_fields.is_none() {
        let message = format!(
            "`@redact_fields` must be 1 to {MAX_REDACT_FIELDS} different fields, \
             separated by commas, not"
        );
        reader.wrong("redact_fields", &message);
    }

    let annotations = Annotations {
        decision: decision.unwrap_or(AnnotatedDecision::Plain),
        reason: reason.map(str::to_owned),
        approver_group: approver_group.map(str::to_owned),
        quorum: quorum.unwrap_or(1),
        redact_fields: redact_fields.unwrap_or_default(),
    };
    (id.to_owned(), annotations)
}

struct Reader<'r, 'a> {
    given: &'r BTreeMap<&'a str, &'a str>,
    mistakes: &'r mut Vec<Mistake>,
}

impl<'a> Reader<'_, 'a> {
    fn wrong(&mut self, name: &str, message: &str) {
        let annotation = Some(name.to_owned());
        self.mistakes.push(Mistake { annotation, message: message.to_owned() });
    }

    fn required(&mut self, name: &str, required: bool) -> Option<&'a str> {
        let value = self.given.get(name).copied();
        if required && value.is_none_or(str::is_empty) {
            let message = format!("missing `@{name}` on");
            let annotation = value.map(|_| name.to_owned());
            self.mistakes.push(Mistake { annotation, message });
        }
        value
    }

    /// An annotation that only one decision can have.
    fn belongs(
        &mut self,
        name: &str,
        decision: &str,
        decides: Option<bool>,
        required: bool,
    ) -> Option<&'a str> {
        let value = self.required(name, required && decides == Some(true));
        if value.is_some() && decides == Some(false) {
            let message = format!("only `@decision(\"{decision}\")` can have");
            self.wrong(name, &message);
        }
        value.filter(|value| !value.is_empty())
    }

    /// `None` if it is wrong.
    fn decision(&mut self, effect: Effect) -> Option<AnnotatedDecision> {
        let (decision, allowed_on) = match self.given.get("decision").copied() {
            None => return Some(AnnotatedDecision::Plain),
            Some("quarantine") => (AnnotatedDecision::Quarantine, Effect::Forbid),
            Some("require_approval") => (AnnotatedDecision::RequireApproval, Effect::Permit),
            Some("redact") => (AnnotatedDecision::Redact, Effect::Permit),
            Some(_) => {
                let message =
                    "`@decision` must be `quarantine`, `require_approval` or `redact`, not";
                self.wrong("decision", message);
                return None;
            }
        };
        if effect != allowed_on {
            let message = format!("a {effect} cannot have");
            self.wrong("decision", &message);
        }
        Some(decision)
    }
}

fn parse_quorum(text: &str) -> Option<u8> {
    (1..=MAX_QUORUM).find(|number| number.to_string() == text)
}

/// Sorted.
fn parse_fields(text: &str) -> Option<Vec<String>> {
    let mut fields: Vec<String> = text.split(',').map(|field| field.trim().to_owned()).collect();
    fields.sort();
    let sizes = fields.iter().all(|field| (1..=MAX_FIELD_BYTES).contains(&field.len()));
    let different = fields.windows(2).all(|pair| pair.first() != pair.last());
    (sizes && different && fields.len() <= MAX_REDACT_FIELDS).then_some(fields)
}
