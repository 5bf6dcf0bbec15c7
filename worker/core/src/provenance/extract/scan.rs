//! Finds the spans of a text that may be values, in one pass over its bytes.
//!
//! A table gives the class of each byte. Words in lower case, which most of a prose text is, cost nothing
//! else. All other words, and each line, are looked at more closely.

use super::super::class::{
    AT, BANG, BAR, COLON, COMMA, Classes, DIGIT, DOT, HASH, HIGH, MARK, QUOTE, SEMICOLON,
    SEPARATOR, SLASH, SOFT, SPACE, TAB, UPPER, class, class_of, plain,
};
use super::super::link;
use super::super::normal::MAX_VALUE_BYTES;
use super::super::reference;
use super::super::search::{find, split_once, trim, trim_end, trim_start};

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Mail address.
    Address,
    /// URL, or a host that clients turn into a link.
    Link,
    /// Anything else that may be a value.
    Value,
}

/// Bytes of a quoted string that is a value.
const MAX_QUOTED_BYTES: usize = 200;

/// Bytes of a field's value, a list item or a cell of a table.
const MAX_FIELD_BYTES: usize = 128;

/// Bytes of a line that is a value as a whole: a name in a list of names. Lines of prose are longer.
const MAX_LINE_BYTES: usize = 64;

/// Bytes before the `: ` of a field.
const MAX_NAME_BYTES: usize = 48;

/// Words of a name in capitals.
const MAX_NAME_WORDS: usize = 6;

/// A place in the text: the offsets of its first byte and of the one after its last.
type Place = (usize, usize);

/// Calls `found` with each link and mail address in a text.
pub fn each_link<'t>(text: &'t str, found: &mut dyn FnMut(&'t str)) {
    scan(text, &mut |kind, span| match kind {
        Kind::Link => found(with_rest(text, span)),
        Kind::Address => found(span),
        Kind::Value => {}
    });
}

/// Punctuation after a URL, such as `")**.` in prose or `"}]}` in JSON. A longer one could be a message.
const MAX_AFTER_BYTES: usize = 8;

/// What is before a URL and what after it, if no client takes more of the text for the URL. `](` and `=`: the links of
/// Markdown and HTML, which [`super::super::hidden`] also reads as a whole.
const AROUND: [(&str, &str); 8] = [
    ("](", ""),
    ("\"", "\""),
    ("`", "`"),
    ("<", ">"),
    ("<", "|"),
    ("=", ">"),
    ("'", "'>"),
    ("='", "'"),
];

/// A URL together with what stands directly after it, if that can belong to the URL. Browsers take letters after a quote
/// or a bracket for more of the host (`https://x.com{.evil.com`), and clients for more of the path (`https://x.com/a|b`).
fn with_rest<'t>(text: &'t str, url: &'t str) -> &'t str {
    let start = url.as_ptr().addr() - text.as_ptr().addr();
    let (Some(before), Some(after)) = (text.get(..start), text.get(start + url.len()..)) else {
        return url;
    };
    let is_around =
        |(open, close): (&str, &str)| before.ends_with(open) && after.starts_with(close);
    if !url.contains(['/', '?', '#']) || AROUND.into_iter().any(is_around) {
        return url;
    }
    let after = after.get(..after.floor_char_boundary(MAX_VALUE_BYTES)).unwrap_or_default();
    let is_end = |character: char| character.is_whitespace() || character == '<';
    let glued = after.split(is_end).next().unwrap_or_default();
    let next = trim_start(glued, &[',', ';', '|', ')', '(', ']', '\'', '"']);
    let is_next = (1..=MAX_AFTER_BYTES).contains(&(glued.len() - next.len())) && link::is_url(next);
    let is_short = glued.len() <= MAX_AFTER_BYTES && !glued.contains(char::is_alphanumeric);
    let is_more = !is_short && !is_next && glued != "'s";
    let length = if is_more { url.len() + glued.len() } else { url.len() };
    text.get(start..start + length).unwrap_or(url)
}

/// Calls `found` with each span of the text that may be a value.
pub fn scan<'t>(text: &'t str, found: &mut dyn FnMut(Kind, &'t str)) {
    let mut scanner = Scanner {
        text,
        found,
        line_at: 0,
        quotes: [None; 4],
        names: [(0, 0); MAX_NAME_WORDS],
        named: 0,
        groups: None,
    };
    let bytes = text.as_bytes();
    let (mut rest_at, mut line) = (0, 0);
    // Letters in lower case and spaces are skipped, up to the first other byte.
    while let Some(rest) = bytes.get(rest_at..)
        && let plain = plain(rest)
        && let Some(others) = rest.get(plain..)
        && let Some(more) = others.iter().position(|byte| class(*byte) & !SPACE != 0)
    {
        let skipped = plain + more;
        let before = rest.get(..skipped).unwrap_or_default();
        let begun = before.iter().rev().take_while(|byte| class(**byte) == 0).count();
        let start = rest_at + skipped - begun;
        let (mut end, mut word) = (rest_at + skipped, 0);
        // The rest of the word.
        let separator = loop {
            let Some(byte) = bytes.get(end) else { break b' ' };
            let class = class(*byte);
            word |= class;
            if class & SEPARATOR != 0 {
                break *byte;
            }
            end += 1;
        };
        line |= word;
        if word & !SEPARATOR != 0 {
            scanner.word((start, end), word);
        }
        match separator {
            b'"' => scanner.quote(0, end, end + 1),
            b'`' => scanner.quote(1, end, end + 1),
            b'\n' | b'\r' => {
                scanner.end_line(end, line);
                line = 0;
            }
            _ => {}
        }
        rest_at = end + 1;
    }
    scanner.end_line(text.len(), line);
}

struct Scanner<'t, 'f> {
    text: &'t str,
    found: &'f mut dyn FnMut(Kind, &'t str),
    line_at: usize,
    /// Where the last quotation of each kind began: `"`, `` ` ``, `'` and `“`.
    quotes: [Option<usize>; 4],
    /// The words in capitals of one name. The first `named` of them count.
    names: [Place; MAX_NAME_WORDS],
    named: usize,
    groups: Option<Groups>,
}

/// Groups of digits, or of an IBAN, with one space between them.
struct Groups {
    place: Place,
    count: usize,
    iban: bool,
}

impl<'t> Scanner<'t, '_> {
    // Inlined into each caller, it takes much more code.
    #[inline(never)]
    fn value(&mut self, (start, end): Place) {
        if let Some(span) = self.text.get(start..end) {
            (self.found)(Kind::Value, span);
        }
    }

    /// A quotation mark from `at` up to `after`: ends a quotation of this kind, and begins the next.
    /// So a single mark too many does not hide the quotations after it.
    #[inline(never)]
    fn quote(&mut self, kind: usize, at: usize, after: usize) {
        let Some(open) = self.quotes.get_mut(kind) else { return };
        if let Some(start) = open.replace(after)
            && at.saturating_sub(start) <= MAX_QUOTED_BYTES
        {
            self.value((start, at));
        }
    }

    /// A word that is more than letters in lower case, and the classes of its bytes and of the separator after it.
    fn word(&mut self, (start, end): Place, all: Classes) {
        let text = self.text;
        if all & (QUOTE | HIGH) != 0 {
            self.quotes_in(text.get(start..end).unwrap_or_default(), start);
        }
        let word = text.as_bytes().get(start..end).unwrap_or_default();
        let before = word.iter().take_while(|byte| is_before(**byte)).count();
        let begun = word.get(before..).unwrap_or_default();
        let is_after = |byte: &&u8| is_before(**byte) || matches!(**byte, b')' | b'.');
        let after = begun.iter().rev().take_while(is_after).count();
        let place = (start + before, end - after);
        let bytes = begun.get(..begun.len() - after).unwrap_or_default();
        let class = match bytes.len() == word.len() {
            true => all & !SEPARATOR,
            false => class_of(bytes),
        };
        // Most of the words that end a sentence or a part of it.
        if class == 0 && self.groups.is_none() {
            return;
        }
        let Some(core) = text.get(place.0..place.1) else { return };
        if class & (MARK | SOFT) != 0 {
            let found = &mut *self.found;
            let begun = text.get(place.0..end).unwrap_or_default();
            // Each URL has one of these.
            let linked = all & (DOT | SLASH | AT | COLON) != 0
                && link::each_url(begun, &mut |url| found(Kind::Link, url));
            if class & AT != 0 {
                link::each_address(core, &mut |address| found(Kind::Address, address));
            }
            if linked {
                return;
            }
            self.parts(core, class);
        }
        let is_upper = match bytes.first() {
            Some(first) if class & HIGH == 0 => first.is_ascii_uppercase(),
            _ => core.starts_with(char::is_uppercase),
        };
        if class & (DIGIT | MARK) != 0 || (class & UPPER != 0 && !is_upper) {
            self.value(place);
        }
        if class & DIGIT != 0 {
            match class & SOFT {
                0 => self.group(core, place),
                _ => self.groups_in(core, place),
            }
            if core.len() == 4 {
                self.date(place);
            }
        } else if self.groups.as_ref().is_some_and(|groups| groups.iban && groups.count == 1) {
            // The letters of a bank.
            self.group(core, place);
        }
        if is_upper {
            self.name(core, place);
        }
    }

    /// The parts of a word with punctuation in it, such as `key=value`, `a/b`, `#general` or `Alice's`.
    fn parts(&mut self, core: &'t str, class: Classes) {
        let is_number = |byte: u8| class_of_number(byte) || !byte.is_ascii();
        if core.bytes().all(is_number) {
            return;
        }
        if class & SOFT != 0 {
            (self.found)(Kind::Value, core);
        }
        if class & (AT | HASH | BANG) != 0 && class & SLASH != 0 {
            reference::each_repository(core, &mut |it| (self.found)(Kind::Value, it));
        }
        if class & (SOFT | SLASH | AT | HASH) == 0 {
            return;
        }
        let mut rest = Some(core);
        while let Some(text) = rest {
            let end = text.bytes().position(is_between);
            let part = end.map_or(Some(text), |end| text.get(..end)).unwrap_or_default();
            let part = trim_start(part, &['#', '@']);
            if part.len() > 1 && part.len() < core.len() {
                (self.found)(Kind::Value, part);
            }
            rest = end.and_then(|end| text.get(end + 1..));
        }
    }

    /// The quotations that begin or end in a word.
    fn quotes_in(&mut self, word: &str, start: usize) {
        let mut before = ' ';
        for (at, character) in word.char_indices() {
            let after = at + character.len_utf8();
            let next = || word.get(after..).and_then(|rest| rest.chars().next());
            let kind = match character {
                // An apostrophe has letters on both sides.
                '\'' if before.is_alphanumeric() && next().is_some_and(char::is_alphanumeric) => {
                    None
                }
                '\'' => Some(2),
                '“' | '”' | '„' | '«' | '»' | '‘' | '’' => Some(3),
                _ => None,
            };
            if let Some(kind) = kind {
                self.quote(kind, start + at, start + after);
            }
            before = character;
        }
    }

    /// A date of several words that ends with a year: `22 Nov 2026`, `22nd of November 2026`.
    fn date(&mut self, (start, end): Place) {
        const MAX_BEFORE_BYTES: usize = 24;
        let from = self.text.ceil_char_boundary(start.saturating_sub(MAX_BEFORE_BYTES));
        let before = self.text.get(from.max(self.line_at)..start).unwrap_or_default();
        let begins = before.rmatch_indices(' ').map(|(at, _)| start - before.len() + at + 1);
        let begins: [Option<usize>; 2] = {
            let mut begins = begins.skip(2);
            [begins.next(), begins.next()]
        };
        let whole = (start - before.len() == self.line_at).then_some(self.line_at);
        for begin in begins.into_iter().flatten().chain(whole) {
            self.value((begin, end));
        }
    }

    /// A word with digits and punctuation. Of the fields of a table, and of a field's name and its value, one can end and
    /// the next one can begin in the word.
    #[inline(never)]
    fn groups_in(&mut self, core: &'t str, (start, end): Place) {
        let at = core.len().saturating_sub(4);
        let (before, last) = core.split_at_checked(at).unwrap_or((core, ""));
        let begins = begins_iban(last) && before.ends_with(ends_group);
        let is_iban = self.groups.as_ref().is_some_and(|groups| groups.iban);
        if !is_iban && !begins {
            return self.group(core, (start, end));
        }
        let first = core.split(ends_group).next().filter(|first| is_iban && !first.is_empty());
        if let Some(first) = first {
            self.group(first, (start, start + first.len()));
        }
        if begins {
            self.group(last, (end - last.len(), end));
        } else if first.is_some() {
            self.end_groups();
        } else {
            self.group(core, (start, end));
        }
    }

    /// One more group of digits or of an IBAN.
    fn group(&mut self, core: &str, (start, end): Place) {
        const MAX_GROUPS_BYTES: usize = 48;
        let bytes = core.as_bytes();
        let is_digits = bytes
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'(' | b')' | b',' | b'.'));
        let is_iban_part = bytes.len() <= 4
            && bytes.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let begins_iban = begins_iban(core);
        if let Some(groups) = &mut self.groups {
            let gap = self.text.get(groups.place.1..start).unwrap_or_default();
            if matches!(gap, " " | ") " | " (" | "(")
                && end - groups.place.0 <= MAX_GROUPS_BYTES
                && (is_digits || (groups.iban && is_iban_part))
            {
                groups.place.1 = end;
                groups.count += 1;
                return;
            }
        }
        self.end_groups();
        if is_digits || begins_iban {
            self.groups = Some(Groups { place: (start, end), count: 1, iban: begins_iban });
        }
    }

    fn end_groups(&mut self) {
        if let Some(groups) = self.groups.take()
            && groups.count > 1
        {
            self.value(groups.place);
        }
    }

    /// One more word in capitals.
    fn name(&mut self, core: &str, (start, end): Place) {
        let possessive = core.strip_suffix("'s").or_else(|| core.strip_suffix("’s"));
        let end = possessive.map_or(end, |name| start + name.len());
        let last = self.named.checked_sub(1).and_then(|last| self.names.get(last));
        if let Some((last_start, last_end)) = last {
            let gap = self.text.get(*last_end..start).unwrap_or_default();
            let joins = match gap {
                " " | " of " | " the " | " of the " | " de " | " von " | " van " | " & " => true,
                // An initial.
                ". " => last_end - last_start == 1,
                _ => false,
            };
            if !joins || self.named == MAX_NAME_WORDS {
                self.end_name();
            }
        }
        if let Some(place) = self.names.get_mut(self.named) {
            *place = (start, end);
            self.named += 1;
        }
    }

    /// Each part of a name is a value: of `Dear Alice Smith` only the last two words are the name.
    fn end_name(&mut self) {
        let (names, named) = (self.names, std::mem::take(&mut self.named));
        for (at, (start, _)) in names.iter().take(named).enumerate() {
            for (_, end) in names.iter().take(named).skip(at) {
                self.value((*start, *end));
            }
        }
    }

    /// The line as a whole, the value of a field, the items of a list, and the cells of a table.
    fn end_line(&mut self, end: usize, class: Classes) {
        self.end_name();
        self.end_groups();
        self.quotes = [None; 4];
        let text = self.text;
        let line = text.get(std::mem::replace(&mut self.line_at, end + 1)..end).unwrap_or_default();
        let line = trim(line);
        self.short(line, MAX_LINE_BYTES);
        let item = without_marker(line);
        let name_end = item.floor_char_boundary(MAX_NAME_BYTES);
        let colon = (class & COLON != 0).then(|| item.get(..name_end)).flatten();
        let colon = colon.and_then(|name| find(name, b": "));
        let field = colon.and_then(|colon| item.get(colon + 2..)).unwrap_or(item);
        let field = trim(field);
        if item.len() < line.len() {
            self.short(item, MAX_FIELD_BYTES);
        }
        if colon.is_some() {
            self.short(field, MAX_FIELD_BYTES);
        }
        let has = |separator: Classes| class & separator != 0;
        if has(COMMA | SEMICOLON)
            && (field.len() < line.len() || find(field, b", ").is_none())
            && !field.bytes().all(class_of_number)
        {
            if has(COMMA) {
                self.each(field, ',');
            }
            if has(SEMICOLON) {
                // Most lines of code end with one.
                self.each(trim_end(field, &[';']), ';');
            }
        }
        if has(BAR) {
            self.each(line, '|');
        }
        if has(TAB) {
            self.each(line, '\t');
        }
    }

    #[inline(never)]
    fn short(&mut self, text: &'t str, max: usize) {
        if text.len() <= max {
            (self.found)(Kind::Value, text);
        }
    }

    /// The items of a list. A text without the separator is no list.
    #[inline(never)]
    fn each(&mut self, text: &'t str, separator: char) {
        let mut rest = text;
        while let Some((item, after)) = split_once(rest, separator) {
            self.short(trim(item), MAX_FIELD_BYTES);
            rest = after;
        }
        if rest.len() < text.len() {
            self.short(trim(rest), MAX_FIELD_BYTES);
        }
    }
}

/// Whether an IBAN in groups can begin with a word.
fn begins_iban(word: &str) -> bool {
    matches!(word.as_bytes(), [b'A'..=b'Z', b'A'..=b'Z', b'0'..=b'9', b'0'..=b'9'])
}

/// What can be directly before or after an IBAN.
fn ends_group(character: char) -> bool {
    matches!(character, ':' | ';' | '=' | ',')
}

/// What can be before a word in prose, and also after it.
fn is_before(byte: u8) -> bool {
    matches!(byte, b',' | b';' | b'(' | b'\'' | b'=' | b'!' | b'?' | b':' | b'*')
}

/// What separates the parts of a word.
fn is_between(byte: u8) -> bool {
    matches!(byte, b',' | b';' | b'(' | b')' | b'\'' | b'=' | b'!' | b'?' | b':' | b'/' | b'\\')
}

/// Whether a number, a date or a time may contain the byte. Its parts are not values: of `1,200.50` the
/// `200.50` would be another amount.
fn class_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b',' | b':' | b'\'' | b'-' | b'+' | b'/' | b'$' | b'%')
}

/// A line without the `-`, `*` or `1.` of a list.
fn without_marker(line: &str) -> &str {
    let number = line.trim_start_matches(|first: char| first.is_ascii_digit());
    let rest = match number.len() < line.len() {
        true => number.strip_prefix(['.', ')']),
        false => line.strip_prefix(['-', '*', '+', '•']),
    };
    rest.and_then(|rest| rest.strip_prefix(' ')).map_or(line, str::trim_start)
}
