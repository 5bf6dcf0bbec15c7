//! Reads every text of a JSON value, in each of its forms.

mod forms;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::findings::{Decoding, Finding, Findings, MAX_FINDINGS, gravest_first};
use super::left::{FORM, Left, NESTED, OF_BYTE, Work};
use super::matcher::{Matcher, TooCostly};
use super::path::{Path, begins_as_json, each_literal, each_text};
use super::rule::{Rule, Rules};
use super::scan::{Context, Scan};
use crate::json::{self, Json};
use crate::provenance::part::{MAX_READ_BYTES, Part, looks_like_json};
use crate::provenance::{ArgumentRoles, Role, ValueKey};
use crate::shield::detect::{Form, address, shell};
use crate::shield::mode::{Category, Severity};

/// Times that a text is decoded as a whole: base64 of base64 of base64, JSON in a text that is JSON, or base64 of data that
/// was compressed twice.
const MAX_LAYERS: usize = 3;

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
    pub reading: Reading,
    /// The bytes of the text that matched; `None` if it matched in another reading of the text.
    pub bytes: Option<Range<usize>>,
}

/// The reading of a text in which a rule matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// The text itself.
    Plain,
    /// A decoded form of it.
    Decoded,
    /// A text in it, because it is JSON.
    Nested,
    NestedDecoded,
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
        let left = Left::of_arguments();
        let mut inspection = self.begin(tenant, Some(key), left);
        inspection.text(resource, Leaf::at(Path::ROOT, false));
        inspection.roles = roles.filter(|roles| !roles.0.is_empty());
        inspection.value(arguments, Path::ROOT);
        inspection.roles = None;
        // What is found in the arguments must not displace what is found beside them, where nothing is redacted.
        inspection.counts.clear();
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

    /// The units of work that the arguments of a call take, and their budget. `bounded`: no more than the budget is taken.
    /// For tests of the budget.
    #[must_use]
    pub fn work(&self, arguments: &Json, bounded: bool) -> (usize, usize) {
        const ENDLESS: usize = usize::MAX / 2;
        let left = Left::of_arguments();
        let (bytes, constant) = (left.bytes, left.work.left());
        let work = if bounded { left.work.clone() } else { Work::of(ENDLESS) };
        let mut inspection = self.begin("", None, Left { work, ..left });
        inspection.value(arguments, Path::ROOT);
        let left = inspection.left;
        let added = OF_BYTE * (bytes - left.bytes);
        let before = if bounded { constant } else { ENDLESS };
        (before + added - left.work.left(), constant + added)
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
        self.matches_within((tenant, None), (None, text), left).unwrap_or_default()
    }

    /// The same for these categories, of the value of a field with this name; `None` if the text was not read to its end
    /// within what is left.
    #[must_use]
    pub(super) fn matches_within(
        &self,
        (tenant, only): (&str, Option<&[Category]>),
        (name, text): (Option<&str>, &str),
        left: &mut Left,
    ) -> Option<Vec<Match>> {
        let mut inspection = self.begin(tenant, None, left.clone());
        inspection.only = only;
        inspection.text(text, Leaf { name, ..Leaf::at(Path::ROOT, false) });
        left.clone_from(&inspection.left);
        if inspection.truncated {
            return None;
        }
        let of = |found: &Hit| Match {
            rule: found.rule.id,
            category: found.rule.category,
            length: found.bytes.len(),
            reading: found.reading,
            bytes: (found.reading == Reading::Plain).then(|| found.bytes.clone()),
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
            only: None,
            roles: None,
            scan: Scan::new(&self.matcher),
            found: BTreeMap::new(),
            counts: BTreeMap::new(),
            place: 0,
            left,
            is_found: false,
            truncated: false,
        }
    }
}

struct Hit {
    rule: &'static Rule,
    severity: Severity,
    digest: u64,
    decodings: Vec<Decoding>,
    reading: Reading,
    bytes: Range<usize>,
    pointer: String,
}

/// A text that is read, and what is known of it.
#[derive(Clone, Copy)]
struct Leaf<'p> {
    path: Path<'p>,
    is_key: bool,
    /// The name of the field whose value it is.
    name: Option<&'p str>,
    /// Whether it is in a text that is JSON. The path is that text's.
    is_nested: bool,
    /// Whether that text is a document. Then this one is too.
    in_document: bool,
    /// The decodings that led to that text.
    outer_decodings: usize,
    /// The role of that text's argument. It is looked up once for all that is in the text.
    outer_role: Option<Option<Role>>,
}

impl<'p> Leaf<'p> {
    fn at(path: Path<'p>, is_key: bool) -> Self {
        Self {
            path,
            is_key,
            name: path.name().filter(|_| !is_key),
            is_nested: false,
            in_document: false,
            outer_decodings: 0,
            outer_role: None,
        }
    }
}

impl Leaf<'_> {
    fn role(&self, roles: &ArgumentRoles) -> Option<Role> {
        self.outer_role.unwrap_or_else(|| self.path.role(roles))
    }
}

struct Inspection<'v> {
    rules: Rules,
    tenant: &'v str,
    /// The key of digests; `None` if each match is wanted, and no digest.
    key: Option<&'v ValueKey>,
    /// The only categories that are wanted; `None` for all.
    only: Option<&'v [Category]>,
    /// What the arguments that are read are for.
    roles: Option<&'v ArgumentRoles>,
    scan: Scan<'v>,
    /// By rule, place, and a pair: the reading, and the offset. If not each match is wanted, the pair is always
    /// `(Plain, 0)`.
    found: BTreeMap<(u16, u32, (Reading, usize)), Hit>,
    /// How often each rule matched, by severity.
    counts: BTreeMap<(u16, i64), usize>,
    /// The number of the current text.
    place: u32,
    left: Left,
    /// Whether a rule matched in the current text.
    is_found: bool,
    truncated: bool,
}

impl Inspection<'_> {
    fn part(&mut self, part: &Part<'_>) {
        let path = Path::Part(&part.pointer);
        match &part.value {
            Some(value) => self.value(value, path),
            None => {
                // Its author could have made it unreadable as JSON, to hide an attack among much else.
                if looks_like_json(&part.text) {
                    let before = (self.left.bytes, self.left.work.left());
                    each_literal(&part.text, &mut |text| {
                        self.text(text, Leaf::at(path, false));
                    });
                    // What the literals added for their bytes counts once.
                    let added = self.left.work.left().saturating_sub(before.1);
                    self.left.work.take(added);
                    self.left.bytes = before.0;
                }
                self.text(&part.text, Leaf::at(path, false));
            }
        }
    }

    fn value(&mut self, value: &Json, path: Path<'_>) {
        each_text(value, path, &mut |text, path, is_key| self.text(text, Leaf::at(path, is_key)));
    }

    /// Reads a text in all its forms. Returns whether it has, or may have, something that must not be stored.
    fn text(&mut self, text: &str, leaf: Leaf<'_>) -> bool {
        self.place += 1;
        self.is_found = false;
        let bound = text.floor_char_boundary(self.left.bytes);
        self.left.bytes -= bound;
        self.left.work.add(OF_BYTE * bound);
        let truncated = std::mem::replace(&mut self.truncated, bound < text.len());
        self.forms(text.get(..bound).unwrap_or_default(), &[], leaf, 0);
        let is_kept_out = self.is_found || self.truncated;
        self.truncated |= truncated;
        is_kept_out
    }

    /// Reads a text as it is and decoded, and the texts in it if it is JSON. `layer`: how often it was decoded as a whole.
    fn forms(&mut self, text: &str, decodings: &[Decoding], leaf: Leaf<'_>, layer: usize) {
        let mut may_be_encoded = self.form(text, decodings, leaf);
        let mut decodings = decodings.to_vec();
        let mut current = Cow::Borrowed(text);
        for layer in layer.. {
            let so_far = decodings.len();
            // Decoding costs about as much as reading.
            if may_be_encoded && self.left.work.left() < FORM {
                self.truncated = true;
                return;
            }
            let plain = may_be_encoded.then(|| self.canonical(&current, &mut decodings)).flatten();
            if let Some(plain) = &plain {
                if !self.takes(FORM + plain.len()) {
                    return;
                }
                self.form(plain, &decodings, leaf);
            }
            let before = decodings.get(..so_far).unwrap_or_default();
            let is_json = self.nested(&current, before, leaf, layer);
            if let Some(plain) = plain {
                if !is_json {
                    self.nested(&plain, &decodings, leaf, layer);
                }
                current = Cow::Owned(plain);
            }
            let Some(decoded) = self.binary(&current, &mut decodings) else { return };
            if layer == MAX_LAYERS {
                self.truncated = true;
                return;
            }
            if !self.takes(FORM + decoded.len()) {
                return;
            }
            may_be_encoded = self.form(&decoded, &decodings, leaf);
            current = Cow::Owned(decoded);
        }
    }

    /// Takes units of work. If fewer are left, the text is not read to its end.
    fn takes(&mut self, units: usize) -> bool {
        let may = self.left.work.take(units);
        self.truncated |= self.left.work.was_refused();
        may
    }

    /// Reads the texts in a text that is JSON, or that another reader may take for JSON. Returns false if it is neither.
    ///
    /// They are not longer than the text, and a text that is JSON is not base64. So each layer reads at most as much as the
    /// one before it.
    fn nested(&mut self, text: &str, decodings: &[Decoding], leaf: Leaf<'_>, layer: usize) -> bool {
        let json = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        if !json.starts_with(['{', '[']) {
            return false;
        }
        if !self.takes(NESTED) {
            return true;
        }
        let value = json::parse_definition(json.as_bytes()).ok();
        if value.is_none() && !begins_as_json(json) {
            return false;
        }
        let inner = Leaf {
            is_nested: true,
            in_document: leaf.in_document || Form::of(text) == Form::Document,
            outer_decodings: decodings.len(),
            outer_role: self.roles.map(|roles| leaf.role(roles)),
            ..leaf
        };
        let mut read = |text: &str, name: Option<&str>| {
            if layer == MAX_LAYERS {
                self.truncated = true;
                return;
            }
            if !self.takes(NESTED + text.len()) {
                return;
            }
            if self.key.is_none() {
                self.place += 1;
            }
            self.forms(text, decodings, Leaf { name, ..inner }, layer + 1);
        };
        match &value {
            Some(value) => each_text(value, Path::ROOT, &mut |text, path, is_key| {
                read(text, path.name().filter(|_| !is_key));
                false
            }),
            None => each_literal(json, &mut |text| read(text, None)),
        }
        true
    }

    /// What a text is, by the role of its argument.
    fn form_of(roles: Option<&ArgumentRoles>, text: &str, leaf: Leaf<'_>) -> Form {
        let form = if leaf.in_document { Form::Document } else { Form::of(text) };
        match roles {
            // The role makes a difference only in these texts.
            Some(roles)
                if form == Form::Document
                    || shell::may_go_on(text)
                    || address::begins_as_url(text) =>
            {
                let may_be_document = leaf.role(roles) == Some(Role::Content);
                if may_be_document { form } else { Form::Argument }
            }
            _ => form,
        }
    }

    /// Returns whether the text may have another form.
    fn form(&mut self, text: &str, decodings: &[Decoding], leaf: Leaf<'_>) -> bool {
        let Self { scan, found, counts, rules, tenant, key, only, place, is_found, left, .. } =
            self;
        let (known, roles) = (OnceCell::new(), self.roles);
        let form = || *known.get_or_init(|| Self::form_of(roles, text, leaf));
        let is_decoded = decodings.len() > leaf.outer_decodings;
        let reading = match (leaf.is_nested, is_decoded) {
            (false, false) => Reading::Plain,
            (false, true) => Reading::Decoded,
            (true, false) => Reading::Nested,
            (true, true) => Reading::NestedDecoded,
        };
        let context =
            Context { form: &form, decoded: is_decoded, name: leaf.name, work: &left.work };
        let may_be_encoded = scan.text(text, context, &mut |number, bytes| {
            let Some(rule) = rules.rules.get(usize::from(number)) else { return };
            let holds = rule.tenant.is_none_or(|of| of == *tenant)
                && only.is_none_or(|only| only.contains(&rule.category))
                && !rules.disabled.contains(&(tenant, rule.id));
            if !holds {
                return;
            }
            *is_found = true;
            let severity = match form() {
                Form::Document => rule.in_documents,
                Form::Argument | Form::Line => rule.severity,
            };
            let at = match key {
                Some(_) => (Reading::Plain, 0),
                None => (reading, bytes.start),
            };
            // If a rule matches often, some places of each severity are kept. A place of one severity does not
            // displace one of another.
            let of_rule = counts.entry((number, severity.rank())).or_default();
            if key.is_some() && *of_rule == MAX_FINDINGS {
                return;
            }
            let known = found.get(&(number, *place, at));
            if known.is_some_and(|hit| hit.severity >= severity) {
                return;
            }
            *of_rule += 1;
            let hit = Hit {
                rule,
                severity,
                digest: key.map_or(0, |key| {
                    key.hash(text.as_bytes().get(bytes.clone()).unwrap_or_default())
                }),
                decodings: decodings.to_vec(),
                reading,
                bytes,
                pointer: key.map_or_else(String::new, |_| leaf.path.pointer(leaf.is_key)),
            };
            found.insert((number, *place, at), hit);
        });
        self.truncated |= self.left.work.was_refused();
        may_be_encoded
    }

    /// The findings, the gravest first.
    fn findings(mut self) -> Findings {
        let hits = std::mem::take(&mut self.found).into_values();
        let finding = |hit: Hit| Finding {
            category: hit.rule.category,
            decodings: hit.decodings,
            digest: format!("{:016x}", hit.digest),
            length: u32::try_from(hit.bytes.len()).unwrap_or(u32::MAX),
            pointer: hit.pointer,
            rule: hit.rule.id.to_owned(),
            severity: hit.severity,
        };
        Findings { list: gravest_first(hits.map(finding).collect()), truncated: self.truncated }
    }
}
