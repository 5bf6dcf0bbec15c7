//! Reads every text of a JSON value, in each of its forms.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::findings::{Decoding, Finding, Findings, MAX_FINDINGS};
use super::matcher::{Matcher, TooCostly};
use super::path::{Path, each_literal, each_text};
use super::rule::{Rule, Rules};
use super::scan::{self, Context, Scan};
use crate::decode::binary::{self, Inflated};
use crate::decode::escapes::{Escapes, Round};
use crate::decode::letters;
use crate::json::Json;
use crate::provenance::part::{MAX_READ_BYTES, Part, looks_like_json};
use crate::provenance::{ArgumentRoles, Role, ValueKey};
use crate::shield::detect::{Form, shell};
use crate::shield::mode::{Category, Severity};

/// Times that escapes are decoded: an encoding of an encoding of an encoding.
const MAX_ROUNDS: usize = 3;

/// Times that a text is decoded as a whole: base64 of base64 of base64, or base64 of data that was compressed twice.
const MAX_LAYERS: usize = 3;

/// Bytes of a call's arguments that are read: more than a request may have.
const MAX_ARGUMENT_BYTES: usize = 512 * 1024;

/// Bytes that compressed data of one call may have when it is read. Arguments seldom hold files.
const MAX_INFLATED_BYTES: usize = 128 * 1024;

/// Bytes of base64 or hexadecimal digits that are decoded: shorter texts are words or ids.
const MIN_ENCODED_BYTES: usize = 16;

/// Bytes of the type in a URL with the scheme `data`.
const MAX_TYPE_BYTES: usize = 128;

/// The beginning of places that are not in the arguments. No JSON Pointer begins like this.
pub const BESIDE: &str = "request";

/// The rules of a bundle, ready to be matched.
#[derive(Debug)]
pub struct Shield {
    matcher: Matcher,
}

/// A rule that matched, for tests of rules and for what redacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub rule: &'static str,
    pub category: Category,
    /// Bytes that matched, in the form of the text in which it matched.
    pub length: usize,
    /// The bytes of the text that matched; `None` if it matched in another form of the text.
    pub bytes: Option<Range<usize>>,
}

impl Shield {
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { matcher: Matcher::new(rules) }
    }

    /// # Errors
    ///
    /// The rules cost more than the bounds of [`super::matcher`] allow.
    pub fn check_cost(&self) -> Result<(), TooCostly> {
        self.matcher.check_cost()
    }

    /// The bytes that the tables take.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.matcher.table_bytes()
    }

    /// What the rules that hold for a tenant find in a call: in its resource, its arguments, and what goes to the
    /// server beside them. `roles`: what the arguments of the tool are for. If it has any, only an argument with the
    /// role of content can be a document.
    #[must_use]
    pub fn inspect(
        &self,
        tenant: &str,
        key: &ValueKey,
        (resource, arguments, beside): (&str, &Json, &Json),
        roles: Option<&ArgumentRoles>,
    ) -> Findings {
        let mut inspection = self.begin(tenant, Some(key), Left::of(MAX_ARGUMENT_BYTES));
        inspection.text(resource, Path::ROOT, false);
        inspection.roles = roles.filter(|roles| !roles.0.is_empty());
        inspection.value(arguments, Path::ROOT);
        inspection.roles = None;
        inspection.value(beside, Path::Part(BESIDE));
        inspection.findings()
    }

    /// What the rules find in the parts of an answer.
    #[must_use]
    pub fn inspect_answer(&self, tenant: &str, key: &ValueKey, parts: &[Part<'_>]) -> Findings {
        let mut inspection = self.begin(tenant, Some(key), Left::of(MAX_READ_BYTES));
        for part in parts {
            inspection.part(part);
        }
        inspection.findings()
    }

    /// What it means that a rule matches.
    #[must_use]
    pub fn sentence(&self, rule: &str) -> &'static str {
        let rules = self.matcher.rules.rules;
        rules.iter().find(|known| known.id == rule).map_or("", |known| known.sentence)
    }

    /// The rules that match in one text.
    #[must_use]
    pub fn matches(&self, tenant: &str, text: &str) -> Vec<Match> {
        let left = &mut Left::of(MAX_READ_BYTES);
        self.matches_within(tenant, (None, text), left).unwrap_or_default()
    }

    /// The same, of the value of a field with this name; `None` if the text was not read to its end within what is left.
    #[must_use]
    pub(super) fn matches_within(
        &self,
        tenant: &str,
        (name, text): (Option<&str>, &str),
        left: &mut Left,
    ) -> Option<Vec<Match>> {
        let mut inspection = self.begin(tenant, None, *left);
        let path = name.map_or(Path::ROOT, |name| Path::Field(&Path::ROOT, name));
        inspection.text(text, path, false);
        *left = inspection.left;
        if inspection.truncated {
            return None;
        }
        let of = |found: &Hit| Match {
            rule: found.rule.id,
            category: found.rule.category,
            length: found.bytes.len(),
            bytes: found.decodings.is_empty().then(|| found.bytes.clone()),
        };
        Some(inspection.found.values().map(of).collect())
    }

    fn begin<'s>(
        &'s self,
        tenant: &'s str,
        key: Option<&'s ValueKey>,
        left: Left,
    ) -> Inspection<'s> {
        Inspection {
            rules: self.matcher.rules,
            tenant,
            key,
            roles: None,
            scan: Scan::new(&self.matcher),
            found: BTreeMap::new(),
            counts: BTreeMap::new(),
            place: 0,
            left,
            truncated: false,
        }
    }
}

/// What may still be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub bytes: usize,
    /// Bytes of compressed data.
    inflated: usize,
}

impl Left {
    pub const fn of(bytes: usize) -> Self {
        Self { bytes, inflated: MAX_INFLATED_BYTES }
    }
}

struct Hit {
    rule: &'static Rule,
    severity: Severity,
    digest: u64,
    decodings: Vec<Decoding>,
    bytes: Range<usize>,
    pointer: String,
}

struct Inspection<'v> {
    rules: Rules,
    tenant: &'v str,
    /// The key of digests; `None` if each match is wanted, and no digest.
    key: Option<&'v ValueKey>,
    /// What the arguments that are read are for.
    roles: Option<&'v ArgumentRoles>,
    scan: Scan<'v>,
    /// By rule, place, and a pair: whether the text was decoded, and the offset. If not each match is wanted, the pair
    /// is always `(false, 0)`.
    found: BTreeMap<(u16, u32, (bool, usize)), Hit>,
    /// How often each rule matched, by severity.
    counts: BTreeMap<(u16, i64), usize>,
    /// The number of the current text.
    place: u32,
    left: Left,
    truncated: bool,
}

impl Inspection<'_> {
    fn part(&mut self, part: &Part<'_>) {
        let path = Path::Part(&part.pointer);
        match &part.value {
            Some(value) => self.value(value, path),
            // Its author could have made it unreadable as JSON, to hide an attack among much else.
            None if looks_like_json(&part.text) => {
                each_literal(&part.text, &mut |text| self.text(text, path, false));
            }
            None => self.text(&part.text, path, false),
        }
    }

    fn value(&mut self, value: &Json, path: Path<'_>) {
        each_text(value, path, &mut |text, path, is_key| self.text(text, path, is_key));
    }

    /// Reads a text as it is and decoded.
    fn text(&mut self, text: &str, path: Path<'_>, is_key: bool) {
        self.place += 1;
        let bound = text.floor_char_boundary(self.left.bytes);
        self.left.bytes -= bound;
        self.truncated |= bound < text.len();
        let text = text.get(..bound).unwrap_or_default();
        self.form(text, &[], path, is_key);
        let mut decodings = Vec::new();
        let mut current = Cow::Borrowed(text);
        for layer in 0.. {
            if scan::may_be_encoded(&current)
                && let Some(decoded) = self.canonical(&current, &mut decodings)
            {
                self.form(&decoded, &decodings, path, is_key);
                current = Cow::Owned(decoded);
            }
            let Some(decoded) = self.binary(&current, &mut decodings) else { return };
            if layer == MAX_LAYERS {
                self.truncated = true;
                return;
            }
            self.form(&decoded, &decodings, path, is_key);
            current = Cow::Owned(decoded);
        }
    }

    /// What a text is, by the role of its argument.
    fn form_of(&self, text: &str, path: Path<'_>) -> Form {
        let form = Form::of(text);
        match self.roles {
            // The role makes a difference only in these texts.
            Some(roles) if form == Form::Document || shell::may_go_on(text) => {
                let may_be_document = path.role(roles) == Some(Role::Content);
                if may_be_document { form } else { Form::Argument }
            }
            _ => form,
        }
    }

    /// A text that is base64 or hexadecimal digits as a whole, decoded and decompressed.
    fn binary(&mut self, text: &str, decodings: &mut Vec<Decoding>) -> Option<String> {
        let joined: String;
        let text = text.trim();
        let text = match data_of_url(text).unwrap_or(text) {
            text if text.contains('\n') => {
                joined = text.split_ascii_whitespace().collect();
                joined.as_str()
            }
            text => text,
        };
        let encoded = text.len() >= MIN_ENCODED_BYTES
            && text.bytes().all(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
            });
        if !encoded {
            return None;
        }
        let (mut bytes, encoding) = match binary::hexadecimal(text) {
            Some(bytes) => (bytes, Decoding::Hexadecimal),
            None => (binary::base64(text)?, Decoding::Base64),
        };
        decodings.push(encoding);
        for layer in 0.. {
            match binary::inflate(&bytes, self.left.inflated) {
                Inflated::Plain => return readable(bytes),
                Inflated::Data(data) if layer < MAX_LAYERS => {
                    decodings.push(Decoding::Compressed);
                    self.left.inflated = self.left.inflated.saturating_sub(data.len());
                    bytes = data;
                }
                Inflated::Data(_) | Inflated::Unreadable => break,
            }
        }
        // It may have used up everything that was left.
        self.left.inflated = 0;
        self.truncated = true;
        None
    }

    /// The text with its escapes decoded, in plain letters; `None` if that is the text itself.
    fn canonical(&mut self, text: &str, decodings: &mut Vec<Decoding>) -> Option<String> {
        let kept = decodings.len();
        let mut decoded: Option<Round> = None;
        for round in 0.. {
            let next = match &decoded {
                Some(decoded) => decoded.next(Escapes::ALL),
                None if !text.contains(['%', '&', '\\']) => break,
                None => Round::first(text, Escapes::ALL),
            };
            let found = next.found;
            if !found.any() {
                break;
            }
            if round == MAX_ROUNDS {
                self.truncated = true;
                break;
            }
            for (is_found, decoding) in [
                (found.percent, Decoding::Percent),
                (found.entity, Decoding::Entities),
                (found.backslash, Decoding::Escapes),
            ] {
                let so_far = decodings.get(kept..).unwrap_or_default();
                if is_found && !so_far.contains(&decoding) {
                    decodings.push(decoding);
                }
            }
            decoded = Some(next);
        }
        let mut current = decoded.map(|round| round.text);
        let before = current.as_deref().unwrap_or(text);
        if !before.is_ascii() {
            let folded = letters::folded(before);
            // Rules ignore case, so a form that differs only in case has no other findings.
            if !folded.eq_ignore_ascii_case(before) {
                decodings.push(Decoding::Letters);
                current = Some(folded);
            }
        }
        current
    }

    fn form(&mut self, text: &str, decodings: &[Decoding], path: Path<'_>, is_key: bool) {
        let form = self.form_of(text, path);
        let Self { scan, found, counts, rules, tenant, key, place, .. } = self;
        let is_decoded = !decodings.is_empty();
        let name = path.name().filter(|_| !is_key);
        let context = Context { form, decoded: is_decoded, name };
        let whole = scan.text(text, context, &mut |number, bytes| {
            let Some(rule) = rules.rules.get(usize::from(number)) else { return };
            let holds = rule.tenant.is_none_or(|of| of == *tenant)
                && !rules.disabled.contains(&(tenant, rule.id));
            if !holds {
                return;
            }
            let severity = match form {
                Form::Document => rule.in_documents,
                Form::Argument | Form::Line => rule.severity,
            };
            let at = match key {
                Some(_) => (false, 0),
                None => (is_decoded, bytes.start),
            };
            let known = found.get(&(number, *place, at));
            if known.is_some_and(|hit| hit.severity >= severity) {
                return;
            }
            // If a rule matches often, some places of each severity are kept. A place of one severity does not
            // displace one of another.
            let of_rule = counts.entry((number, severity.rank())).or_default();
            *of_rule += 1;
            if key.is_some() && *of_rule > MAX_FINDINGS {
                return;
            }
            let hit = Hit {
                rule,
                severity,
                digest: key.map_or(0, |key| {
                    key.hash(text.as_bytes().get(bytes.clone()).unwrap_or_default())
                }),
                decodings: decodings.to_vec(),
                bytes,
                pointer: path.pointer(is_key),
            };
            found.insert((number, *place, at), hit);
        });
        self.truncated |= !whole;
    }

    /// The findings, the gravest first.
    fn findings(mut self) -> Findings {
        let mut hits: Vec<Hit> = std::mem::take(&mut self.found).into_values().collect();
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.severity));
        let finding = |hit: Hit| Finding {
            category: hit.rule.category,
            decodings: hit.decodings,
            digest: format!("{:016x}", hit.digest),
            length: u32::try_from(hit.bytes.len()).unwrap_or(u32::MAX),
            pointer: hit.pointer,
            rule: hit.rule.id.to_owned(),
            severity: hit.severity,
        };
        Findings { list: hits.into_iter().map(finding).collect(), truncated: self.truncated }
    }
}

/// The data of a URL with the scheme `data` (RFC 2397) that is in base64.
fn data_of_url(text: &str) -> Option<&str> {
    let (kind, data) = text.strip_prefix("data:")?.split_once(";base64,")?;
    (kind.len() <= MAX_TYPE_BYTES).then_some(data)
}

/// Decoded bytes as a text, if they look like one. Zeros are left out, so the Latin letters of UTF-16 are read too.
fn readable(bytes: Vec<u8>) -> Option<String> {
    let begin = bytes.get(..bytes.len().min(256)).unwrap_or_default();
    let of = |is: fn(&&u8) -> bool| begin.iter().filter(is).count();
    let plain = of(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let zeros = of(|byte| **byte == 0);
    let looks_plain = plain * 4 >= (begin.len() - zeros) * 3 && zeros <= plain + 1;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if looks_plain => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(_) => return None,
    };
    Some(if text.contains('\0') { text.replace('\0', "") } else { text })
}
