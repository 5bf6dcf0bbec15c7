//! One pass over one form of a text: literals, then the detectors whose characters are in it.
//!
//! INVARIANT (linear): each byte costs a step of the automaton, a bounded number of steps of phrases (the bounds are in
//! [`super::matcher`]), and a bounded number of reads by detectors.

use std::ops::Range;

use super::detect::{
    self, Form, address, hidden, html, is_value, is_word, path, personal, secret, shell, sql,
    template,
};
use super::matcher::{ASSIGNED, Literals, Matcher, PhraseStep, Use};
use super::rule::{Check, Detector, Test, Token};
use super::signs::Signs;

/// Ends of the names of fields with a social security number.
const SOCIAL_FIELDS: [&str; 5] =
    ["ssn", "social_security", "socialsecurity", "social_security_number", "socialsecuritynumber"];

/// What is known of a text besides the text.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    pub form: Form,
    /// Whether it is the decoded form of another text.
    pub decoded: bool,
    /// The name of the field whose value it is.
    pub name: Option<&'c str>,
}

/// What a scan keeps from text to text.
#[derive(Debug)]
pub struct Scan<'m> {
    matcher: &'m Matcher,
    /// Where each step of each phrase matched last, and before that. Counted from the first text on.
    last: Vec<[Reached; 2]>,
    /// The offset of this text, counted from the first text on. It leaves a gap between two texts, so that no phrase
    /// spans them.
    base: u64,
    /// Steps upwards in the text that was read last.
    steps: usize,
}

/// Whether a text may have another form: it has an escape, or a character that is not ASCII.
#[must_use]
pub fn may_be_encoded(text: &str) -> bool {
    Signs::of(text).has(Signs::ESCAPE | Signs::HIGH)
}

/// The shortest text that can match a rule.
const MIN_TEXT_BYTES: usize = 3;

impl<'m> Scan<'m> {
    #[must_use]
    pub fn new(matcher: &'m Matcher) -> Self {
        Self { matcher, last: vec![Default::default(); matcher.steps], base: 1, steps: 0 }
    }

    /// Calls `found` with each rule that matches in a text, and the bytes that matched. Returns whether the text was read to
    /// its end.
    pub fn text(
        &mut self,
        text: &str,
        context: Context<'_>,
        found: &mut dyn FnMut(u16, Range<usize>),
    ) -> bool {
        if text.len() < MIN_TEXT_BYTES {
            return true;
        }
        let Context { form, decoded, name } = context;
        let value = is_value(text);
        let signs = self.literals(text, value, found);
        let matcher = self.matcher;
        let report =
            &mut |detector: Detector, range: Range<usize>| matcher.report(detector, range, found);
        if signs.may_be_sql(text) {
            sql::find(&matcher.sql, text, report);
        }
        let quoted_code = signs.has(Signs::CODE) && signs.has(Signs::QUOTE);
        if signs.has(Signs::ANGLE | Signs::SCHEME) || quoted_code {
            html::find(text, report);
        }
        if signs.has(Signs::BRACE | Signs::ANGLE | Signs::AT) || text.starts_with('=') {
            template::find(text, report);
        }
        if signs.has(Signs::SHELL) {
            shell::find(text, decoded, form, report);
        }
        self.steps = if signs.has(Signs::STEP) || path::may_have_escaped_steps(text) {
            path::find(text, decoded.then_some(self.steps), report)
        } else {
            0
        };
        let whole = if signs.has(Signs::URL) || value || address::begins_as_url(text) {
            address::find(text, decoded, form, report)
        } else {
            true
        };
        if signs.has(Signs::URL) && signs.has(Signs::AT) {
            secret::find_in_urls(text, report);
        }
        if signs.has(Signs::IMAGE) {
            hidden::find_images(text, report);
        }
        if signs.has(Signs::KEY) {
            secret::find_private_keys(text, report);
        }
        if signs.has(Signs::DIGIT) {
            personal::find_numbers(text, report);
            personal::find_accounts(text, report);
        }
        if signs.has(Signs::AT) {
            personal::find_addresses(text, report);
        }
        if signs.has(Signs::HIGH) {
            hidden::find(text, report);
        }
        if signs.has(Signs::DIGIT)
            && let Some(name) = name
        {
            if detect::ends_with(name, &ASSIGNED) {
                secret::find_value(text, report);
            }
            if detect::ends_with(name, &SOCIAL_FIELDS) {
                personal::find_social_security(text, 0, report);
            }
        }
        whole
    }

    fn literals(
        &mut self,
        text: &str,
        value: bool,
        found: &mut dyn FnMut(u16, Range<usize>),
    ) -> Signs {
        let Self { matcher, last, base, .. } = self;
        let matcher: &Matcher = matcher;
        let bytes = text.as_bytes();
        let mut signs = Signs::of(text);
        let is_ascii = text.is_ascii();
        // One name can end with another one. What is assigned to them is the same.
        let mut assigned_at = 0;
        let mut squeezed = Squeezed::default();
        // In a text that is not ASCII, phrases of both alphabets are searched by `other` alone, in their order.
        let mut each = |set: &Literals, number: u16, end: usize, mixed: bool| {
            let Some((literal, uses)) = set.all.get(usize::from(number)) else { return };
            let begin = begin_of(literal.as_bytes(), bytes, end);
            for of in set.uses.get(uses.clone()).unwrap_or_default() {
                match *of {
                    // A sign that is a word counts only at the beginning of a word.
                    Use::Sign(sign) => {
                        let inside = detect::before(bytes, begin).is_some_and(is_word)
                            && bytes.get(begin).copied().is_some_and(is_word);
                        signs.0 |= if inside { 0 } else { sign };
                    }
                    Use::Step(step) => {
                        if !mixed && step.mixed {
                            continue;
                        }
                        let outside = |byte: Option<u8>| !byte.is_some_and(is_word);
                        if step.begins && !outside(detect::before(bytes, begin))
                            || step.ends && !outside(bytes.get(end).copied())
                        {
                            continue;
                        }
                        // In a literal, a run of white space is one space.
                        let squeezed_end = squeezed.until(bytes, end);
                        let squeezed_begin = squeezed_end.saturating_sub(literal.len());
                        let at = Reached {
                            begin: *base + begin as u64,
                            end: *base + end as u64,
                            squeezed_end: *base + squeezed_end as u64,
                        };
                        if let Some(begin) = advance(step, last, at, *base + squeezed_begin as u64)
                            && (!step.value || value)
                        {
                            let begin = begin.saturating_sub(*base) as usize;
                            found(step.rule, begin..end);
                        }
                    }
                    Use::Token { rule } => {
                        let Some(Test::Token(token)) = matcher.rule(rule).map(|it| &it.test) else {
                            continue;
                        };
                        if let Some(range) = of_token(token, text, begin..end) {
                            found(rule, range);
                        }
                    }
                    Use::Assigned if assigned_at == end => {}
                    Use::Assigned | Use::WebToken | Use::Social => {
                        let report = &mut |detector: Detector, range: Range<usize>| {
                            matcher.report(detector, range, found);
                        };
                        match of {
                            Use::Assigned => {
                                assigned_at = end;
                                secret::find_assigned(text, end, report);
                            }
                            Use::WebToken => secret::find_web_token(text, end, report),
                            _ => personal::find_social_security(text, end, report),
                        }
                    }
                }
            }
        };
        let Matcher { ascii, other, .. } = matcher;
        ascii.automaton.each(bytes, |number, end| each(ascii, number, end, is_ascii));
        if !is_ascii {
            other.automaton.each(bytes, |number, end| each(other, number, end, true));
        }
        *base += text.len() as u64 + u64::from(u16::MAX) + 1;
        signs
    }
}

/// Where a literal that ends at `end` begins: each space in it is any number of them.
fn begin_of(literal: &[u8], bytes: &[u8], end: usize) -> usize {
    if !literal.contains(&b' ') {
        return end.saturating_sub(literal.len());
    }
    literal.iter().rev().fold(end, |at, byte| {
        let before = bytes.get(..at).unwrap_or_default();
        let spaces = before.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        at.saturating_sub(if *byte == b' ' { spaces.max(1) } else { 1 })
    })
}

/// Counts the bytes of a text with each run of white space as one byte, so that padding puts no distance between the
/// steps of a phrase. The ends that are asked for grow, so the text is read once.
#[derive(Debug, Default)]
struct Squeezed {
    at: usize,
    bytes: usize,
    in_space: bool,
}

impl Squeezed {
    fn until(&mut self, text: &[u8], end: usize) -> usize {
        if end < self.at {
            // The second automaton begins again.
            *self = Self::default();
        }
        for byte in text.get(self.at..end).unwrap_or_default() {
            let is_space = byte.is_ascii_whitespace();
            self.bytes += usize::from(!(is_space && self.in_space));
            self.in_space = is_space;
        }
        self.at = end;
        self.bytes
    }
}

/// Where a phrase began, and where its last step ended. Counted from a scan's first text on.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    begin: u64,
    end: u64,
    /// The end, with each run of white space in this text counted as one byte.
    squeezed_end: u64,
}

/// Takes a match of a step, which begins at `squeezed_begin`. Returns where the phrase began if it was the last step.
///
/// Only the last match of the step before counts: it is the nearest. If that one overlaps, the one before it does.
fn advance(
    step: PhraseStep,
    last: &mut [[Reached; 2]],
    at: Reached,
    squeezed_begin: u64,
) -> Option<u64> {
    let place = step.place as usize;
    let begin = if step.is_first {
        at.begin
    } else {
        let before = last.get(place.checked_sub(1)?)?;
        let before = before.iter().find(|it| it.end != 0 && it.end <= at.begin)?;
        let distance = squeezed_begin.saturating_sub(before.squeezed_end);
        (distance <= u64::from(step.within)).then_some(before.begin)?
    };
    if step.is_last {
        return Some(begin);
    }
    let reached = last.get_mut(place)?;
    *reached = [Reached { begin, ..at }, reached[0]];
    None
}

/// Spaces between a prefix and what follows it.
const MAX_SPACES: usize = 8;

/// The token whose prefix is at `prefix`.
fn of_token(token: &Token, text: &str, prefix: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let found = bytes.get(prefix.clone())?;
    let named = token.prefixes.iter().find(|it| it.trim_end().as_bytes() == found)?;
    let spaces = bytes.get(prefix.end..)?.iter().take(MAX_SPACES);
    let spaces = spaces.take_while(|byte| byte.is_ascii_whitespace()).count();
    (named.ends_with(' ') == (spaces > 0)).then_some(())?;
    let prefix = prefix.start..prefix.end + spaces;
    let inside = |byte: u8| is_word(byte) || token.alphabet.has(byte);
    if detect::before(bytes, prefix.start).is_some_and(inside) {
        return None;
    }
    let rest = bytes.get(prefix.end..)?;
    let max = usize::from(token.max);
    let length = rest.iter().take(max + 1).take_while(|byte| token.alphabet.has(**byte)).count();
    let characters =
        rest.get(..length).filter(|_| (usize::from(token.min)..=max).contains(&length))?;
    let holds = match token.check {
        Check::None => characters.iter().any(|byte| Some(byte) != characters.first()),
        Check::Random => secret::is_random(characters),
        Check::Crc32Base62 => secret::has_checksum(characters),
    };
    holds.then_some(prefix.start..prefix.end + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_white_space_counts_as_one_byte() {
        for (text, expected) in
            [("", 0), ("ab", 2), ("a  b", 3), ("a \t\n b  ", 4), ("  é", 3), ("{{   x", 4)]
        {
            let mut squeezed = Squeezed::default();
            for end in 0..=text.len() {
                squeezed.until(text.as_bytes(), end);
            }
            assert_eq!(squeezed.until(text.as_bytes(), text.len()), expected, "{text:?}");
            // From the beginning again, in one step.
            squeezed.until(text.as_bytes(), 0);
            assert_eq!(squeezed.until(text.as_bytes(), text.len()), expected, "{text:?}");
        }
    }
}
