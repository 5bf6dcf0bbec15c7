//! The level of a value, as a whole and in parts.
//!
//! INVARIANT (lowest part): a value that is not known as a whole has the level of its lowest part. A part
//! that is known nowhere makes the whole unknown.

use super::extract;
use super::hidden::{self, MAX_LINKS};
use super::joined;
use super::leaves::{each_leaf, each_value};
use super::link::{self, Link, SLASHES};
use super::normal::{Form, MAX_VALUE_BYTES, decodings, is_exact};
use super::search::{is_in, lower as lower_case, rsplit_once, split_once};
use super::{Destinations, Level, ValueKey};
use crate::json::Json;

/// Parts of one sink, such as the recipients of a long list. Further parts count as seen nowhere.
pub const MAX_SINK_PARTS: usize = 256;

/// Words that many tools take for the user, or for what is the user's own. Sorted.
const USER: [&str; 4] = ["@me", "me", "primary", "self"];

/// Where a value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub level: Level,
    /// What the index of known values gives for its source.
    pub source: Option<u32>,
}

pub(super) const NOWHERE: Found = Found { level: Level::Nowhere, source: None };
const ALLOWED: Found = Found { level: Level::Allowed, source: None };

/// The values that are known in a run.
pub trait Known {
    /// `None`: seen nowhere.
    fn get(&self, hash: u64) -> Option<Found>;
}

impl<F: Fn(u64) -> Option<Found>> Known for F {
    fn get(&self, hash: u64) -> Option<Found> {
        self(hash)
    }
}

/// The level of a sink. `None` if there is nothing to judge: null, an empty text or list, a boolean in an
/// argument that is not `named` as a sink. No result or instruction states the boolean of a named one.
pub fn sink(
    key: &ValueKey,
    (value, named): (&Json, bool),
    allowed: &Destinations,
    known: &dyn Known,
) -> Option<Found> {
    judged(key, (value, named), allowed, known, each_leaf)
}

/// The same for one text.
pub(super) fn text(
    key: &ValueKey,
    text: &str,
    allowed: &Destinations,
    known: &dyn Known,
) -> Option<Found> {
    (!text.is_empty()).then(|| Lookup::new(key, allowed, known).text(text))
}

/// As [`sink`], but the names of members are not judged: the tool's schema says which ones are its own.
pub fn values(
    key: &ValueKey,
    (value, named): (&Json, bool),
    allowed: &Destinations,
    known: &dyn Known,
) -> Option<Found> {
    judged(key, (value, named), allowed, known, each_value)
}

/// Calls its second argument with the leaves of its first.
type EachLeaf = fn(&Json, &mut dyn FnMut(&Json));

fn judged(
    key: &ValueKey,
    (value, named): (&Json, bool),
    allowed: &Destinations,
    known: &dyn Known,
    each: EachLeaf,
) -> Option<Found> {
    let mut lookup = Lookup::new(key, allowed, known);
    each(value, &mut |leaf| {
        if lookup.is_nowhere() {
            return;
        }
        let found = match leaf {
            Json::String(text) => lookup.text(text),
            Json::Bool(_) if !named => return,
            Json::Bool(_) => NOWHERE,
            _ => lookup.whole_json(leaf).unwrap_or(NOWHERE),
        };
        lookup.add(found);
    });
    lookup.lowest
}

/// The lowest level of the links, addresses and [references](super::reference) inside of a content. `None` if there are
/// none.
pub fn links(
    key: &ValueKey,
    content: &Json,
    allowed: &Destinations,
    known: &dyn Known,
) -> Option<Found> {
    let (mut lookup, mut links) = (Lookup::new(key, allowed, known), 0);
    each_leaf(content, &mut |leaf| {
        let text = leaf.as_str().unwrap_or_default();
        let all = hidden::each_link(text, &mut |link| {
            if lookup.is_nowhere() {
                return;
            }
            links += 1;
            let found = if links > MAX_LINKS { NOWHERE } else { lookup.text(link) };
            lookup.add(found);
        });
        if !all {
            lookup.add(NOWHERE);
        }
    });
    lookup.lowest
}

/// The hashes with which [`sink`] finds a value that an approver approved: each text or number in it, and each
/// member of a list. Parts of a URL or path are not included: another URL of that host was not approved.
#[must_use]
pub fn hashes(key: &ValueKey, value: &Json) -> Vec<u64> {
    let (mut hashes, mut form) = (Vec::new(), Form::new());
    each_leaf(value, &mut |leaf| {
        match leaf {
            Json::String(text) if !is_exact(text) => hashes.push(key.verbatim(text)),
            _ => hashes.extend(form.of_json(leaf).map(|form| key.hash(form))),
        }
        for member in leaf.as_str().and_then(members).into_iter().flatten() {
            hashes.extend(form.of(member).map(|form| key.hash(form)));
        }
        hashes.truncate(MAX_SINK_PARTS);
    });
    hashes
}

/// The hash of a value that a plan states for one argument of one tool.
#[must_use]
pub fn planned(key: &ValueKey, tool: &str, pointer: &str, value: &Json) -> u64 {
    let mut form = Form::new();
    let canonical;
    let (kind, form) = match form.of_json(value).filter(|_| has_form(value)) {
        Some(form) => (b"=", form),
        None => {
            canonical = value.canonical();
            (b"#", canonical.as_bytes())
        }
    };
    // No normal form contains the byte 0xff, which is not UTF-8.
    key.hash(&[tool.as_bytes(), b"\xff", pointer.as_bytes(), b"\xff", kind, form].concat())
}

/// Where a value as a whole was found. Its parts do not count.
#[must_use]
pub fn known_whole(key: &ValueKey, value: &Json, known: &dyn Known) -> Option<Found> {
    match value {
        Json::String(text) => known_text(key, text, known),
        _ => Lookup::new(key, &NONE, known).whole_json(value),
    }
}

/// The same for a text.
#[must_use]
pub fn known_text(key: &ValueKey, text: &str, known: &dyn Known) -> Option<Found> {
    is_exact(text).then(|| Lookup::new(key, &NONE, known).whole(text)).flatten()
}

/// No allow-list.
static NONE: Destinations =
    Destinations { accounts: Vec::new(), domains: Vec::new(), hosts: Vec::new() };

/// Whether the normal form of a value is the value.
fn has_form(value: &Json) -> bool {
    value.as_str().is_none_or(is_exact)
}

/// The hash of an argument and a source, as a plan states them: the value of the argument may have been seen first in a
/// result of the tool `source`.
#[must_use]
pub fn from(key: &ValueKey, tool: &str, pointer: &str, source: &str) -> u64 {
    let parts = [tool.as_bytes(), b"\xff", pointer.as_bytes(), b"\xff@", source.as_bytes()];
    key.hash(&parts.concat())
}

/// The hash of an argument for which the agent has chosen a value from a result, as a plan allows once.
#[must_use]
pub fn chosen(key: &ValueKey, tool: &str, pointer: &str) -> u64 {
    key.hash(&[tool.as_bytes(), b"\xff", pointer.as_bytes(), b"\xff!"].concat())
}

/// The hash of an argument for which a plan states the largest number.
#[must_use]
pub fn limited(key: &ValueKey, tool: &str, pointer: &str) -> u64 {
    key.hash(&[tool.as_bytes(), b"\xff", pointer.as_bytes(), b"\xff<"].concat())
}

struct Lookup<'a> {
    key: &'a ValueKey,
    allowed: &'a Destinations,
    known: &'a dyn Known,
    form: Form,
    /// Parts that may still be looked up.
    room: usize,
    lowest: Option<Found>,
}

impl<'a> Lookup<'a> {
    fn new(key: &'a ValueKey, allowed: &'a Destinations, known: &'a dyn Known) -> Self {
        Self { key, allowed, known, form: Form::new(), room: MAX_SINK_PARTS, lowest: None }
    }

    /// Whether no further part can change the result.
    fn is_nowhere(&self) -> bool {
        self.lowest.is_some_and(|lowest| lowest.level == Level::Nowhere)
    }

    fn add(&mut self, found: Found) {
        self.lowest = Some(lower(self.lowest, found));
    }

    fn known(&mut self, form: impl FnOnce(&mut Form) -> Option<&[u8]>) -> Option<Found> {
        self.known.get(self.key.hash(form(&mut self.form)?))
    }

    /// The level of a text as a whole. If there is [more](is_exact) around a value than prose could have, the text is known
    /// only if it was a value with all of it: `plan.md!` is another file than `plan.md`. In an untrusted prose it was not,
    /// so a trusted result does not raise it.
    fn whole(&mut self, text: &str) -> Option<Found> {
        let plain = self.known(|form| form.of(text));
        if is_exact(text) {
            return plain.map(|found| self.lowered(text, found));
        }
        let verbatim = self.known.get(self.key.verbatim(text))?;
        let is_lower = |it: &Found| verbatim.level == Level::Trusted && it.level < Level::Trusted;
        Some(self.lowered(text, plain.filter(is_lower).unwrap_or(verbatim)))
    }

    /// The same for a component of a path, which keeps its case.
    fn component(&mut self, component: &str) -> Option<Found> {
        self.take_room()?;
        is_exact(component).then(|| self.known(|form| form.of_component(component))).flatten()
    }

    fn whole_json(&mut self, value: &Json) -> Option<Found> {
        self.take_room()?;
        self.known(|form| form.of_json(value))
    }

    fn place(&mut self, place: &str) -> Option<Found> {
        let found = is_exact(place).then(|| self.known(|form| form.of_place(place))).flatten()?;
        Some(self.lowered(place, found))
    }

    /// The level of a known text. A trusted server could have made it from what the agent sent or a stranger wrote: from the
    /// same path in another case, which many servers ignore, or from [two arguments](joined::is_sent).
    fn lowered(&mut self, text: &str, found: Found) -> Found {
        if found.level != Level::Trusted || !text.contains(['/', '@']) {
            return found;
        }
        let known = self.known;
        let is_low = |hash| known.get(hash).is_some_and(|it| it.level < Level::Trusted);
        match self.known(|form| form.in_any_case(text)) {
            Some(other) if other.level < Level::Trusted => other,
            _ if joined::is_sent(self.key, text, &is_low) => NOWHERE,
            _ => found,
        }
    }

    fn take_room(&mut self) -> Option<()> {
        self.room = self.room.checked_sub(1)?;
        Some(())
    }

    /// The level of a text: the highest of the ways in which it is known.
    fn text(&mut self, text: &str) -> Found {
        let found = match members(text) {
            // `1,200` is a number: its normal form has no comma.
            Some(members)
                if self.form.of(text).is_none_or(|form| {
                    form.iter().any(|byte| matches!(byte, b',' | b';' | b'<' | b':'))
                }) =>
            {
                let mut lowest = None;
                for member in members {
                    lowest = Some(lower(lowest, self.one(member)));
                }
                // A trusted result that has the whole has the members, too, unless one of them is not raised by it.
                let stated = self.whole(text).filter(|whole| whole.level > Level::Trusted);
                higher(lowest, stated)
            }
            _ => Some(self.one(text)),
        };
        match found {
            Some(found) if found.level > Level::Nowhere => found,
            _ => self.decoded(text),
        }
    }

    /// The level of a text that is not a list.
    fn one(&mut self, text: &str) -> Found {
        if self.take_room().is_none() {
            return NOWHERE;
        }
        let trimmed = text.trim();
        let is_url = link::is_url(trimmed);
        let link = is_url.then(|| Link::parse(trimmed)).flatten();
        let plain = link.filter(|link| is_plain(trimmed, link));
        let mut whole = self.whole(text);
        if let Some(place) = plain.and_then(|link| link.place) {
            whole = higher(whole, self.place(place));
        }
        if self.is_allowed(trimmed, link) {
            whole = higher(whole, Some(ALLOWED));
        }
        if is_in(&USER, text) {
            whole = higher(whole, Some(Found { level: Level::Trusted, source: None }));
        }
        if let Some(found) = whole {
            return found;
        }
        let found = match plain {
            Some(link) => self.link(link),
            None if is_url || !trimmed.contains(SLASHES) => NOWHERE,
            None => self.path(trimmed),
        };
        self.lowered(trimmed, found)
    }

    /// Whether the allow-list has the host, the domain of an address, or the account.
    fn is_allowed(&mut self, text: &str, link: Option<Link<'_>>) -> bool {
        let allowed = self.allowed;
        if let Some(link) = link {
            return !allowed.hosts.is_empty() && allowed.has_host(&lower_case(link.host));
        }
        if !allowed.domains.is_empty() && link::is_address(text) {
            return allowed.has_address(&lower_case(text));
        }
        let is_account = !allowed.accounts.is_empty() && is_exact(text);
        let account = is_account.then(|| self.form.of(text)).flatten();
        account.and_then(|form| str::from_utf8(form).ok()).is_some_and(|it| allowed.has_account(it))
    }

    /// A URL by its parts: the host, the path as a whole or each of its components, each value of the query,
    /// and the fragment. A part that a trusted result had can be a secret: it goes only to a host that a trusted result had
    /// too, and not to one that the user named.
    fn link(&mut self, link: Link<'_>) -> Found {
        let Some(host) = self.place(link.host) else { return NOWHERE };
        let goes = |part: &Found| host.level <= Level::Trusted || part.level != Level::Trusted;
        let mut lowest = host;
        let mut add = |found: Option<Found>| {
            lowest = lower(Some(lowest), found.filter(goes).unwrap_or(NOWHERE));
        };
        let page = link.page.and_then(|page| self.place(page));
        if page.is_none() {
            let components = link.path.split('/').filter(|component| !component.is_empty());
            components.for_each(|component| add(self.component(component)));
        }
        let mut part = |part: &str| {
            if !part.is_empty() {
                add(self.part(part));
            }
        };
        link.each_query_part(&mut part);
        part(link.fragment);
        page.map_or(lowest, |page| lower(Some(lowest), page))
    }

    /// A path by its components. A path with `..` leads elsewhere than its components say.
    fn path(&mut self, path: &str) -> Found {
        let mut lowest = None;
        for part in path.split(SLASHES).filter(|part| !matches!(*part, "" | ".")) {
            lowest = Some(lower(lowest, self.component(part).unwrap_or(NOWHERE)));
        }
        lowest.unwrap_or(NOWHERE)
    }

    fn part(&mut self, part: &str) -> Option<Found> {
        self.take_room()?;
        self.whole(part)
    }

    /// Whether a text that is known nowhere contains an untrusted value, as it is or decoded. Nothing else
    /// that a decoding finds counts.
    fn decoded(&mut self, text: &str) -> Found {
        let (key, known) = (self.key, self.known);
        let mut found = NOWHERE;
        let mut take = |hash| {
            let untrusted = |found: &Found| found.level == Level::Untrusted;
            if let Some(untrusted) = known.get(hash).filter(untrusted) {
                found = untrusted;
            }
        };
        let whole = text.get(..text.floor_char_boundary(super::normal::MAX_DECODED_BYTES));
        let forms = decodings(text);
        for text in whole.into_iter().chain(forms.iter().map(String::as_str)) {
            if let Some(form) = self.form.of(text) {
                take(key.hash(form));
            }
            extract::text(key, text, &mut take);
        }
        found
    }
}

/// Whether every part of a URL says something. In punctuation and empty parts, a URL of known parts could carry a message
/// of any length.
fn is_plain(url: &str, link: &Link<'_>) -> bool {
    let path = link.path.strip_prefix('/').unwrap_or(link.path);
    let before_last = rsplit_once(path, '/').map(|(before, _)| before);
    let pairs = Some(link.query).filter(|query| !query.is_empty()).map(|query| query.split('&'));
    url.len() <= MAX_VALUE_BYTES
        && is_exact(url)
        && before_last.is_none_or(|it| it.split('/').all(|component| !component.is_empty()))
        && pairs.is_none_or(|mut pairs| pairs.all(|pair| pair.chars().any(|it| it != '=')))
}

/// The members of a list: addresses and URLs, with `,` or `;` between them. The member of `Alice <alice@x.com>` and of
/// `"Smith, Alice" <alice@x.com>` is its address. `None` if the text is not such a list. Numbers are in none: some readers
/// take `12,4500` for one.
fn members(text: &str) -> Option<Vec<&str>> {
    if !text.contains([',', ';', '<']) && !text.starts_with("mailto:") {
        return None;
    }
    let mut is_quoted = false;
    let is_end = |letter: char| {
        is_quoted ^= letter == '"';
        !is_quoted && is_separator(letter)
    };
    let mut members = Vec::new();
    for part in text.split(is_end) {
        members.push(member(part)?);
    }
    Some(members)
}

const fn is_separator(letter: char) -> bool {
    matches!(letter, ',' | ';')
}

fn member(text: &str) -> Option<&str> {
    let text = text.trim();
    let address = match split_once(text, '<') {
        // A server that ignores quotes would take what is between two separators for one more member.
        Some((name, address))
            if !name.contains(['@', '>', '\n', '\r']) && name.matches(is_separator).count() < 2 =>
        {
            address.strip_suffix('>')?
        }
        _ => text.strip_prefix("mailto:").unwrap_or(text),
    };
    let fits = link::is_address(address) || (address.len() == text.len() && link::is_url(text));
    fits.then_some(address)
}

fn lower(a: Option<Found>, b: Found) -> Found {
    a.filter(|a| a.level <= b.level).unwrap_or(b)
}

fn higher(a: Option<Found>, b: Option<Found>) -> Option<Found> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.level >= b.level { a } else { b }),
        (a, b) => a.or(b),
    }
}
