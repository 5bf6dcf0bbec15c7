//! The values of results and arguments: JSON with a trust per pointer, or text.

use std::collections::HashSet;

use super::super::key::{self, Hashes, ValueKey};
use super::super::leaves;
use super::super::normal::decodings;
use super::super::part::{Kind, MAX_READ_BYTES, Part, looks_like_json};
use super::super::pointers::{first_step, unescaped};
use super::super::result::{
    MAX_RESULT_VALUES, MAX_UNTRUSTED_VALUES, Observed, ResultLevel, ResultTrust,
};
use super::super::search::has;
use super::scan::Kind as Span;
use super::text::{Reader, sorted, verbatim};
use crate::decode::binary;
use crate::decode::escapes::{self, Escapes};
use crate::decode::text::{is_binary, readings};
use crate::json::Json;

/// Bytes of a text without line breaks that is one value as a whole: a name or an id as the whole result.
const MAX_WHOLE_BYTES: usize = 128;

/// Characters of base64 that are read of one file.
const MAX_BASE64_BYTES: usize = MAX_READ_BYTES / 3 * 4;

/// Distinct hashes, up to a bound.
struct Bounded {
    hashes: Hashes,
    max: usize,
    incomplete: bool,
}

impl Bounded {
    fn new(max: usize) -> Self {
        Self { hashes: Hashes::default(), max, incomplete: false }
    }

    // Inlined into each caller, it takes much more code.
    #[inline(never)]
    fn take(&mut self, hash: u64) {
        if self.hashes.len() < self.max || key::has(&self.hashes, hash) {
            self.hashes.insert(hash);
        } else {
            self.incomplete = true;
        }
    }
}

/// The values of a result, whose parts are given.
///
/// `trust` has the tool's pointers, if it has any; `server_trusted` is what counts where no pointer does. No pointer leads
/// into a text that is not JSON, or exceeds the bounds of JSON ([`ResultTrust::trusts_text`]).
#[must_use]
pub fn result(
    key: &ValueKey,
    parts: &[Part<'_>],
    trust: Option<&ResultTrust>,
    server_trusted: bool,
) -> Observed {
    let rules: Vec<Rule<'_>> = trust
        .map(|trust| trust.0.iter().map(|(pointer, level)| (pointer.as_str(), *level)).collect())
        .unwrap_or_default();
    let level = |trusted| if trusted { ResultLevel::Trusted } else { ResultLevel::Untrusted };
    let server = level(server_trusted);
    let no_pointer = level(ResultTrust::trusts_text(trust, server_trusted));
    let mut values = Values {
        key,
        trusted: Bounded::new(MAX_RESULT_VALUES),
        untrusted: Bounded::new(MAX_UNTRUSTED_VALUES),
        incomplete: false,
    };
    for part in parts {
        let (level, rules) = match part.kind {
            Kind::Whole => (server, rules.as_slice()),
            _ => (no_pointer, &[][..]),
        };
        match (part.kind, &part.value) {
            (Kind::Rest, _) => {}
            (Kind::File, _) => values.of_file(&part.text, no_pointer),
            (_, Some(value)) => values.of_json(value, level, rules),
            (_, None) => values.of_text(&part.text, no_pointer),
        }
    }
    let Values { trusted, untrusted, incomplete, .. } = values;
    let is_incomplete = untrusted.incomplete || incomplete;
    let mut untrusted = sorted(untrusted.hashes);
    // Most servers repeat their structured content as a text.
    untrusted.retain(|hash| !key::has(&trusted.hashes, *hash));
    Observed {
        key: key.fingerprint(),
        // A missing trusted value only counts as seen nowhere.
        incomplete: is_incomplete,
        trusted: sorted(trusted.hashes),
        untrusted,
    }
}

/// The values of a result.
struct Values<'k> {
    key: &'k ValueKey,
    trusted: Bounded,
    untrusted: Bounded,
    /// Whether something was not read.
    incomplete: bool,
}

impl Values<'_> {
    fn of_json(&mut self, value: &Json, level: ResultLevel, rules: &[Rule<'_>]) {
        let Self { key, trusted, untrusted, .. } = self;
        // The trusted values first: an attacker who repeats a value does not change who wrote it elsewhere.
        for read in [ResultLevel::Trusted, ResultLevel::Untrusted] {
            if rules.is_empty() && level != read {
                continue;
            }
            let mut reader = Reader::new(key);
            each_leaf(value, level, rules, &mut |leaf, level| {
                if level != read {
                    return;
                }
                of_leaf(&mut reader, leaf, &mut |hash| {
                    if level == ResultLevel::Trusted {
                        trusted.take(hash);
                    } else if !key::has(&trusted.hashes, hash) {
                        untrusted.take(hash);
                    }
                });
            });
        }
    }

    fn of_text(&mut self, whole: &str, level: ResultLevel) {
        let read = whole.get(..whole.floor_char_boundary(MAX_READ_BYTES)).unwrap_or_default();
        // A missing trusted value only counts as seen nowhere.
        self.incomplete |= level == ResultLevel::Untrusted && read.len() < whole.len();
        let Self { key, trusted, untrusted, .. } = self;
        let mut reader = Reader::new(key);
        let into = if level == ResultLevel::Trusted { trusted } else { untrusted };
        if read.len() <= MAX_WHOLE_BYTES {
            of_string(&mut reader, read, &mut |hash| into.take(hash));
        } else {
            reader.text(read, &mut |hash| into.take(hash));
        }
        // Its author could have hidden a value in the escapes of JSON that exceeds the bounds.
        if level == ResultLevel::Untrusted && looks_like_json(read) && has(read, '\\') {
            let kinds = Escapes { backslash: true, ..Escapes::default() };
            reader.text(&escapes::decode(read, kinds).0, &mut |hash| into.take(hash));
        }
    }

    /// Reads the texts that a file may be. What is not read may be text of a stranger.
    fn of_file(&mut self, base64: &str, level: ResultLevel) {
        // Many readers skip all other characters.
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
        let digits: Vec<u8> = base64.bytes().filter(is_base64).take(MAX_BASE64_BYTES + 1).collect();
        let digits = str::from_utf8(&digits).unwrap_or_default();
        let read = digits.get(..MAX_BASE64_BYTES).unwrap_or(digits);
        let bytes = binary::base64(read);
        if level == ResultLevel::Untrusted {
            let is_unread = bytes.is_none() && read.len() >= binary::MIN_BASE64_BYTES;
            self.incomplete |= is_unread || read.len() < digits.len();
        }
        let bytes = bytes.unwrap_or_default();
        // The letters of a PDF or an archive would leave no space for the values of texts.
        if level == ResultLevel::Trusted && is_binary(&bytes) {
            return;
        }
        for reading in readings(&bytes) {
            self.of_text(&reading, level);
        }
    }
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
    let max = if trusted { MAX_RESULT_VALUES } else { MAX_UNTRUSTED_VALUES };
    let (mut found, mut reader) = (Bounded::new(max), Reader::new(key));
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
            of_leaf(&mut reader, leaf, &mut |hash| found.take(hash));
        });
    }
    let (hashes, incomplete) = (sorted(found.hashes), found.incomplete && !trusted);
    let (trusted, untrusted) = if trusted { (hashes, Vec::new()) } else { (Vec::new(), hashes) };
    Observed { key: key.fingerprint(), trusted, untrusted, incomplete }
}

/// The hashes of the values in a call's arguments, sorted, and whether there were more than
/// [`MAX_RESULT_VALUES`]. If it is known which names the tool declares, each other name is a value: the agent chose it.
#[must_use]
pub fn arguments(
    key: &ValueKey,
    input: &Json,
    declared: Option<&HashSet<Box<str>>>,
) -> (Vec<u64>, bool) {
    let (mut sent, mut reader) = (Bounded::new(MAX_RESULT_VALUES), Reader::new(key));
    let is_value = |name: &str| {
        leaves::can_be_value(name) || declared.is_some_and(|declared| !declared.contains(name))
    };
    leaves::visit(input, &is_value, &mut |leaf| {
        of_leaf(&mut reader, leaf, &mut |hash| sent.take(hash));
        // A server can decode what it stores.
        for decoded in leaf.as_str().map(decodings).into_iter().flatten() {
            of_leaf(&mut reader, &Json::String(decoded), &mut |hash| sent.take(hash));
        }
    });
    (sorted(sent.hashes), sent.incomplete)
}

fn of_leaf(reader: &mut Reader<'_>, leaf: &Json, take: &mut dyn FnMut(u64)) {
    match leaf {
        Json::String(string) => of_string(reader, string, take),
        _ => {
            if let Some(form) = reader.form.of_json(leaf) {
                take(reader.key.hash(form));
            }
        }
    }
}

/// A text that is also a value as a whole.
fn of_string(reader: &mut Reader<'_>, string: &str, take: &mut dyn FnMut(u64)) {
    reader.value(Span::Value, string, take);
    verbatim(reader.key, &mut reader.form, string, take);
    reader.text(string, take);
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
    // A server can leave out a level of its answer: an object or a text in place of an array of one.
    let level =
        if rules.iter().any(|rule| misses(rule, value)) { ResultLevel::Untrusted } else { level };
    match value {
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let is_step = |step: &str| step == "*" || step.parse() == Ok(at);
                each_leaf(item, level, &below(rules, &is_step), found);
            }
        }
        Json::Object(fields) => {
            for (name, field) in fields {
                let is_step = |step: &str| {
                    (step == name && step != "*") || (has(step, '~') && unescaped(step) == *name)
                };
                if leaves::can_be_value(name) {
                    found(&Json::String(name.clone()), level);
                }
                each_leaf(field, level, &below(rules, &is_step), found);
            }
        }
        _ => found(value, level),
    }
}

/// Whether a rule for an untrusted part goes on with a step that a value of this kind cannot have.
fn misses((rest, level): &Rule<'_>, value: &Json) -> bool {
    let Some(step) = rest.strip_prefix('/').map(|rest| rest.split('/').next().unwrap_or_default())
    else {
        return false;
    };
    let is_item =
        step == "*" || (!step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()));
    *level == ResultLevel::Untrusted
        && match value {
            Json::Null => false,
            Json::Array(_) => !is_item,
            Json::Object(_) => step == "*",
            _ => true,
        }
}

/// The rules that lead through a step.
fn below<'r>(rules: &[Rule<'r>], is_step: &dyn Fn(&str) -> bool) -> Vec<Rule<'r>> {
    let rest = |(pointer, level): &Rule<'r>| {
        let (step, rest) = first_step(pointer)?;
        is_step(step).then_some((rest, *level))
    };
    rules.iter().filter_map(rest).collect()
}
