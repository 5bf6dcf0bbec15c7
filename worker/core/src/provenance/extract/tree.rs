//! The values of results and arguments: JSON with a trust per pointer, or text.

use super::super::key::{Hashes, ValueKey};
use super::super::leaves;
use super::super::normal::{Form, decodings};
use super::super::part::{Kind, MAX_READ_BYTES, Part};
use super::super::result::{MAX_RESULT_VALUES, Observed, ResultLevel, ResultTrust};
use super::text::{sorted, text};
use crate::json::Json;

/// Bytes of a text without line breaks that is one value as a whole: a name or an id as the whole result.
const MAX_WHOLE_BYTES: usize = 128;

/// Distinct hashes, up to [`MAX_RESULT_VALUES`].
#[derive(Default)]
struct Bounded {
    hashes: Hashes,
    incomplete: bool,
}

impl Bounded {
    fn take(&mut self, hash: u64) {
        if self.hashes.len() < MAX_RESULT_VALUES || self.hashes.contains(&hash) {
            self.hashes.insert(hash);
        } else {
            self.incomplete = true;
        }
    }
}

/// The values of a result, whose parts are given.
///
/// `trust` has the tool's pointers, if it has any; `server_trusted` is what counts where no pointer does. A
/// text that is not JSON, or exceeds the bounds of JSON, is trusted only if no pointer is untrusted: its
/// author could have made it unreadable. The same holds for a part to which no pointer leads.
#[must_use]
pub fn result(
    key: &ValueKey,
    parts: &[Part<'_>],
    trust: Option<&ResultTrust>,
    server_trusted: bool,
) -> Observed {
    let mut observed = Observed::default();
    for part in parts {
        let value = match part.kind {
            Kind::Whole => part.value.as_ref(),
            Kind::Text => None,
            Kind::Rest => continue,
        };
        observed.add(read(key, (&part.text, value), trust, server_trusted));
    }
    observed
}

fn read(
    key: &ValueKey,
    (result, value): (&str, Option<&Json>),
    trust: Option<&ResultTrust>,
    server_trusted: bool,
) -> Observed {
    let rules: Vec<Rule<'_>> = trust
        .map(|trust| trust.0.iter().map(|(pointer, level)| (pointer.as_str(), *level)).collect())
        .unwrap_or_default();
    let server = if server_trusted { ResultLevel::Trusted } else { ResultLevel::Untrusted };
    let read = result.get(..result.floor_char_boundary(MAX_READ_BYTES)).unwrap_or_default();
    let mut form = Form::new();
    let (mut trusted, mut untrusted) = (Bounded::default(), Bounded::default());
    match value {
        Some(value) => {
            each_leaf(value, server, &rules, &mut |leaf, level| {
                if level == ResultLevel::Trusted {
                    of_leaf(key, leaf, &mut form, &mut |hash| trusted.take(hash));
                }
            });
            // An attacker who repeats a value does not change who wrote it elsewhere.
            each_leaf(value, server, &rules, &mut |leaf, level| {
                if level == ResultLevel::Untrusted {
                    of_leaf(key, leaf, &mut form, &mut |hash| {
                        if !trusted.hashes.contains(&hash) {
                            untrusted.take(hash);
                        }
                    });
                }
            });
        }
        None => {
            let whole = rules.iter().find(|(pointer, _)| pointer.is_empty());
            let all = rules.iter().all(|(_, level)| *level == ResultLevel::Trusted);
            let is_trusted =
                all && whole.map_or(server, |(_, level)| *level) == ResultLevel::Trusted;
            let into = if is_trusted { &mut trusted } else { &mut untrusted };
            if read.len() <= MAX_WHOLE_BYTES
                && let Some(form) = form.of(read)
            {
                into.take(key.hash(form));
            }
            text(key, read, &mut |hash| into.take(hash));
        }
    }
    let mut observed = Observed {
        key: key.fingerprint(),
        // A missing trusted value only counts as seen nowhere.
        incomplete: untrusted.incomplete || read.len() < result.len(),
        trusted: sorted(trusted.hashes),
        untrusted: sorted(untrusted.hashes),
    };
    let room = MAX_RESULT_VALUES.saturating_sub(observed.untrusted.len());
    observed.trusted.truncate(room);
    observed
}

/// The values in the texts of a list's items. All items have the same trust. Numbers are not read: they are bounds in
/// schemas, and sizes. Missing values make the result incomplete only if the items are untrusted. A missing value of a
/// trusted item only counts as seen nowhere.
#[must_use]
pub fn items<'a>(
    key: &ValueKey,
    items: impl IntoIterator<Item = &'a Json>,
    trusted: bool,
) -> Observed {
    let (mut found, mut form) = (Bounded::default(), Form::new());
    let mut left = MAX_READ_BYTES;
    for item in items {
        leaves::each_leaf(item, &mut |leaf| {
            let Json::String(said) = leaf else { return };
            match left.checked_sub(said.len()) {
                Some(rest) => left = rest,
                None => {
                    found.incomplete = true;
                    return;
                }
            }
            of_leaf(key, leaf, &mut form, &mut |hash| found.take(hash));
        });
    }
    let (hashes, incomplete) = (sorted(found.hashes), found.incomplete && !trusted);
    let (trusted, untrusted) = if trusted { (hashes, Vec::new()) } else { (Vec::new(), hashes) };
    Observed { key: key.fingerprint(), trusted, untrusted, incomplete }
}

/// The hashes of the values in a call's arguments, sorted, and whether there were more than
/// [`MAX_RESULT_VALUES`].
#[must_use]
pub fn arguments(key: &ValueKey, input: &Json) -> (Vec<u64>, bool) {
    let (mut sent, mut form) = (Bounded::default(), Form::new());
    leaves::each_leaf(input, &mut |leaf| {
        of_leaf(key, leaf, &mut form, &mut |hash| sent.take(hash));
        // A server can decode what it stores.
        for decoded in leaf.as_str().map(decodings).into_iter().flatten() {
            of_leaf(key, &Json::String(decoded), &mut form, &mut |hash| sent.take(hash));
        }
    });
    (sorted(sent.hashes), sent.incomplete)
}

fn of_leaf(key: &ValueKey, leaf: &Json, form: &mut Form, take: &mut dyn FnMut(u64)) {
    if let Some(form) = form.of_json(leaf) {
        take(key.hash(form));
    }
    if let Json::String(string) = leaf {
        text(key, string, take);
    }
}

/// What is left of a pointer below a value, and its level.
type Rule<'r> = (&'r str, ResultLevel);

/// Calls `found` with each value that is neither an array nor an object, and its level; and with each name in an object
/// that can be a value, and the object's level.
fn each_leaf(
    value: &Json,
    level: ResultLevel,
    rules: &[Rule<'_>],
    found: &mut dyn FnMut(&Json, ResultLevel),
) {
    // If two pointers lead to one value, such as `/*` and `/0`, the untrusted one counts.
    let here = || rules.iter().filter(|(rest, _)| rest.is_empty()).map(|(_, level)| *level);
    let level = match here().next() {
        Some(_) if here().any(|level| level == ResultLevel::Untrusted) => ResultLevel::Untrusted,
        Some(_) => ResultLevel::Trusted,
        None => level,
    };
    match value {
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let is_step = |step: &str| step == "*" || step.parse() == Ok(at);
                each_leaf(item, level, &below(rules, is_step), found);
            }
        }
        Json::Object(fields) => {
            for (name, field) in fields {
                let is_step = |step: &str| {
                    (step == name && step != "*")
                        || (step.contains('~')
                            && step.replace("~1", "/").replace("~0", "~") == *name)
                };
                if leaves::can_be_value(name) {
                    found(&Json::String(name.clone()), level);
                }
                each_leaf(field, level, &below(rules, is_step), found);
            }
        }
        _ => found(value, level),
    }
}

/// The rules that lead through a step.
fn below<'r>(rules: &[Rule<'r>], is_step: impl Fn(&str) -> bool) -> Vec<Rule<'r>> {
    let rest = |(pointer, level): &Rule<'r>| {
        let pointer = pointer.strip_prefix('/')?;
        let end = pointer.find('/').unwrap_or(pointer.len());
        let (step, rest) = pointer.split_at_checked(end)?;
        is_step(step).then_some((rest, *level))
    };
    rules.iter().filter_map(rest).collect()
}
