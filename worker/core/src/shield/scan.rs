//! One pass over one form of a text: literals, then the detectors whose characters are in it.
//!
//! INVARIANT (linear): each byte costs a step of the automaton, a bounded number of steps of phrases (the bounds are in
//! [`super::matcher`]), and a bounded number of reads by detectors.

mod phrases;

use std::ops::Range;

use self::phrases::{Last, Phrases};
use super::automaton::{Marks, State};
use super::detect::{
    self, Form, address, hidden, html, is_value, is_word, path, personal, secret, shell, sql,
    template,
};
use super::left::{BEGIN, OTHER, TOKEN, Work};
use super::matcher::{
    ASSIGNED, Cases, Literal, Literals, Matcher, PhraseStep, Purpose, Steps, Use,
};
use super::rule::{Check, Detector, Test, Token};
use super::signs::{self, BLOCK_BYTES, Signed, Signs};
use crate::decode::letters;

/// Ends of the names of fields with a social security number.
const SOCIAL_FIELDS: [&str; 5] =
    ["ssn", "social_security", "socialsecurity", "social_security_number", "socialsecuritynumber"];

/// Ends of the names of fields with a secret. In a text they are ordinary words.
const SECRET_FIELDS: [&str; 4] = ["pass", "passphrase", "passwort", "credential"];

/// What is known of a text besides the text.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Its form. Most texts do not need it.
    pub form: &'c dyn Fn() -> Form,
    /// Whether it is the decoded form of another text.
    pub decoded: bool,
    /// The name of the field whose value it is.
    pub name: Option<&'c str>,
    /// What the detectors may still do.
    pub work: &'c Work,
}

/// What a scan keeps from text to text.
#[derive(Debug)]
pub struct Scan<'m> {
    matcher: &'m Matcher,
    /// Where each step of each phrase matched last, and before that.
    last: Last,
    /// The signs in each part of the text that was read last.
    blocks: Vec<u32>,
    /// The number of this text. No phrase spans two texts.
    text: u32,
    /// Steps upwards in the text that was read last.
    steps: usize,
}

/// The shortest text that can match a rule.
const MIN_TEXT_BYTES: usize = 3;

impl<'m> Scan<'m> {
    #[must_use]
    pub const fn new(matcher: &'m Matcher) -> Self {
        Self { matcher, last: Last::new(matcher.places), blocks: Vec::new(), text: 0, steps: 0 }
    }

    /// Calls `found` with each rule that matches in a text, and the bytes that matched. Returns whether the text may have
    /// another form: it has an escape, a control character, or a character that is not ASCII.
    pub fn text(
        &mut self,
        text: &str,
        context: Context<'_>,
        found: &mut dyn FnMut(u16, Range<usize>),
    ) -> bool {
        if text.len() < MIN_TEXT_BYTES {
            let signs = text.bytes().fold(0, |signs, byte| signs | signs::of(byte));
            return may_be_encoded(Signs(signs));
        }
        let Context { form, decoded, name, work } = context;
        let value = is_value(text);
        let signs = self.literals(text, value, work, found);
        let matcher = self.matcher;
        let signed = Signed { text, blocks: &self.blocks, work };
        // Whether a detector that has a reason to read the text may do so.
        let begins = |has_reason: bool| has_reason && work.take(BEGIN);
        let has = |of: u32| begins(signs.has(of));
        let report =
            &mut |detector: Detector, range: Range<usize>| matcher.report(detector, range, found);
        if may_be_sql(signs, signed) {
            sql::find(&matcher.sql, signed, report);
        }
        let quoted_code = signs.has(Signs::CODE) && signs.has(Signs::QUOTE | Signs::BACKTICK);
        if begins(quoted_code || signs.has(Signs::ANGLE | Signs::SCHEME)) {
            html::find(signed, report);
        }
        if begins(text.starts_with('=') || signs.has(Signs::BRACE | Signs::ANGLE | Signs::AT)) {
            template::find(signed, report);
        }
        if has(Signs::SHELL) {
            shell::find(signed, value, decoded, form(), report);
        }
        let may_be_escaped = value && signs.has(Signs::ESCAPE | Signs::DIGIT);
        self.steps =
            if signs.has(Signs::STEP) || may_be_escaped && path::may_have_escaped_steps(text) {
                path::find(signed, decoded.then_some(self.steps), report)
            } else {
                0
            };
        let named = Signs::MARK | Signs::SLASH | Signs::ESCAPE | Signs::BRACE | Signs::HOST;
        let in_host_field = || {
            signs.has(Signs::DIGIT | Signs::AT | Signs::COMPARE)
                && name.is_some_and(address::is_host_field)
        };
        let may_be_address = signs.has(Signs::URL)
            || value && (signs.has(named) || in_host_field())
            || signs.has(Signs::MARK) && address::begins_as_url(text);
        if begins(may_be_address) {
            address::find(signed, value, decoded, name, form(), report);
        }
        if begins(signs.has(Signs::URL) && signs.has(Signs::AT)) {
            secret::find_in_urls(text, report);
        }
        if has(Signs::IMAGE) {
            hidden::find_images(text, report);
        }
        if has(Signs::KEY) {
            secret::find_private_keys(text, report);
            secret::find_putty_keys(text, report);
        }
        if has(Signs::DIGIT) {
            personal::find_numbers(signed, report);
        }
        if has(Signs::AT) {
            personal::find_addresses(signed, report);
        }
        if has(Signs::HIGH) {
            hidden::find(text, report);
        }
        if signs.has(Signs::DIGIT)
            && let Some(name) = name
        {
            if detect::ends_with(name, &ASSIGNED) || detect::ends_with(name, &SECRET_FIELDS) {
                secret::find_value(text, name, report);
            }
            if detect::ends_with(name, &SOCIAL_FIELDS) {
                personal::find_social_security(text, 0, report);
            }
        }
        may_be_encoded(signs)
    }

    /// Reports what literals find, and returns the signs in the text.
    fn literals(
        &mut self,
        text: &str,
        value: bool,
        work: &Work,
        found: &mut dyn FnMut(u16, Range<usize>),
    ) -> Signs {
        self.text += 1;
        let Self { matcher, last, blocks, text: number, .. } = self;
        let bytes = text.as_bytes();
        let phrases = Phrases::new(last, *number, bytes);
        let mut uses = Uses {
            matcher,
            text,
            work,
            cases: Cases::NONE,
            phrases,
            reached: Steps::BEGIN,
            marks: Marks::at(0),
            signs: 0,
            first_end: None,
            assigned_at: 0,
            found,
        };
        // In a text that is not ASCII, phrases of both alphabets are searched by `other` alone, in their order. It ignores
        // the case of all letters.
        let is_ascii = text.is_ascii();
        let cases = Cases::NONE.and(Cases::NO_VALUE, !value);
        uses.cases = cases.and(Cases::ONLY_ASCII, !is_ascii);
        let of_bytes = uses.read(&matcher.ascii, bytes, blocks);
        if !is_ascii {
            work.take(OTHER * bytes.len());
            uses.cases = cases;
            // In lower case a text has the same signs.
            uses.read(&matcher.other, letters::lower(text).as_bytes(), blocks);
        }
        Signs(of_bytes | uses.signs)
    }
}

/// What literals are used for in a text.
struct Uses<'t> {
    matcher: &'t Matcher,
    text: &'t str,
    work: &'t Work,
    /// The cases that hold for each literal.
    cases: Cases,
    phrases: Phrases<'t>,
    reached: Steps,
    /// The same as marks: see [`Steps::marks`].
    marks: Marks,
    signs: u32,
    /// Where the text's first operand of SQL ends, if it was looked for.
    first_end: Option<usize>,
    /// Where the last name ended to which something is assigned. One name can end with another one. What is assigned to
    /// them is the same.
    assigned_at: usize,
    found: &'t mut dyn FnMut(u16, Range<usize>),
}

impl Uses<'_> {
    /// Reads a text for one set of literals. Returns the signs of its bytes, and notes those of each part.
    fn read(&mut self, set: &Literals, bytes: &[u8], blocks: &mut Vec<u32>) -> u32 {
        blocks.clear();
        blocks.reserve(bytes.len().div_ceil(BLOCK_BYTES));
        let mut state = State::START;
        let (mut signs, mut end) = (0, 0);
        for block in bytes.chunks(BLOCK_BYTES) {
            let mut of_block = 0;
            for byte in block {
                let read = set.automaton.read(*byte);
                of_block |= read;
                state = set.automaton.next(state, read);
                end += 1;
                if state.meets(self.marks) {
                    self.ends(set, state, end);
                }
            }
            of_block &= Signs::OF_BYTES;
            signs |= of_block;
            blocks.push(of_block);
        }
        signs
    }

    /// Takes the literals that end at `end`. It is not inlined, so that the loop over all bytes stays small.
    #[inline(never)]
    fn ends(&mut self, set: &Literals, state: State, end: usize) {
        let Some(of) = state.end() else { return };
        if !set.after.get(of).is_some_and(|after| after.meets(self.reached)) {
            return;
        }
        for number in set.automaton.list(of) {
            if let Some(literal) = set.all.get(usize::from(*number))
                && literal.after.meets(self.reached)
            {
                self.literal(literal, end);
            }
        }
    }

    /// Takes a match of a literal, which ends at `end`. Most literals do not come here.
    #[inline(never)]
    fn literal(&mut self, literal: &Literal, end: usize) {
        // It is read even if the budget is used up, so that every phrase and every token is found.
        self.work.take(TOKEN);
        let bytes = self.text.as_bytes();
        let is_word = |at: usize| bytes.get(at).copied().is_some_and(is_word);
        let begin = literal.begin(bytes, end);
        let in_word = literal.within_words && begin > 0 && is_word(begin - 1);
        let goes_on = literal.unless.meets(Cases::GOES_ON) && is_word(end);
        let cases = self.cases.and(Cases::IN_WORD, in_word).and(Cases::GOES_ON, goes_on);
        for Use { after, unless, of } in &literal.uses {
            if !after.meets(self.reached) || unless.meets(cases) {
                continue;
            }
            match of {
                Purpose::Sign(sign) => self.signs |= sign,
                Purpose::Logic => self.logic(begin, end),
                Purpose::Step(step) => self.step(step, begin..end, literal.text.len()),
                of => self.detect(of, begin..end),
            }
        }
    }

    /// Takes a word that joins conditions in SQL, and conjunctions in prose.
    fn logic(&mut self, begin: usize, end: usize) {
        if self.signs & Signs::LOGIC == 0 {
            let text = self.text;
            let first_end = *self.first_end.get_or_insert_with(|| sql::end_of_first_operand(text));
            if begin <= first_end || sql::operand_follows(text, end) {
                self.signs |= Signs::LOGIC;
            }
        }
    }

    /// Takes a match of a step of a phrase, by a literal of so many bytes.
    fn step(&mut self, step: &PhraseStep, at: Range<usize>, literal_bytes: usize) {
        let end = at.end;
        let begin = if step.is_first {
            at.start
        } else {
            let Some(begin) = self.phrases.go_on(step, at, literal_bytes) else { return };
            begin
        };
        if step.is_last {
            (self.found)(step.rule, begin..end);
        } else {
            self.phrases.reach(step, begin..end);
            self.reached.add(Steps::at(step.place));
            self.marks.add(Marks::at(step.place % u64::BITS));
        }
    }

    /// Reads what follows a literal. Few texts have such literals.
    #[cold]
    fn detect(&mut self, of: &Purpose, at: Range<usize>) {
        let Self { matcher, text, assigned_at, found, .. } = self;
        let report = &mut |detector, range| matcher.report(detector, range, *found);
        match of {
            Purpose::Token { rule } => {
                if let Some(Test::Token(token)) = matcher.rule(*rule).map(|it| &it.test)
                    && let Some(range) = of_token(token, text, at)
                {
                    found(*rule, range);
                }
            }
            Purpose::Assigned if *assigned_at == at.end => {}
            Purpose::Assigned => {
                *assigned_at = at.end;
                secret::find_assigned(text, at.end, report);
            }
            Purpose::WebToken => secret::find_web_token(text, at.end, report),
            Purpose::Social => personal::find_social_security(text, at.end, report),
            Purpose::Sign(_) | Purpose::Logic | Purpose::Step(_) => {}
        }
    }
}

/// Whether a text with these signs may have another form.
const fn may_be_encoded(signs: Signs) -> bool {
    signs.has(Signs::ESCAPE | Signs::HIGH | Signs::CONTROL)
}

/// Whether a text with these signs may have SQL that leaves its value.
fn may_be_sql(signs: Signs, signed: Signed<'_>) -> bool {
    let text = signed.text;
    signs.has(Signs::SQL)
        || (signs.has(Signs::LOGIC) && signs.has(Signs::COMPARE) && signs.has(Signs::DIGIT))
        || text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, ';' | '-' | '('))
        || (signs.has(Signs::QUOTE) && sql::leaves_quotes(signed))
}

impl Literal {
    /// Where a match that ends at `end` begins: each space in the literal is any number of them.
    fn begin(&self, bytes: &[u8], end: usize) -> usize {
        if !self.spaced {
            return end.saturating_sub(self.text.len());
        }
        self.text.bytes().rev().fold(end, |at, byte| {
            let before = bytes.get(..at).unwrap_or_default();
            let spaces = before.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
            at.saturating_sub(if byte == b' ' { spaces.max(1) } else { 1 })
        })
    }
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
    // A prefix that begins like a word must begin one, and must not be within base64. Paths and assignments have `/` and
    // `=` before it. A prefix such as `:AA` follows the id of the token.
    let inside =
        |byte: u8| is_word(byte) || !matches!(byte, b'/' | b'=') && token.alphabet.has(byte);
    if found.first().copied().is_some_and(is_word)
        && detect::before(bytes, prefix.start).is_some_and(inside)
    {
        return None;
    }
    let rest = bytes.get(prefix.end..)?;
    let max = usize::from(token.max);
    let length = rest.iter().take(max + 1).take_while(|byte| token.alphabet.has(**byte)).count();
    // A full stop at the end belongs to the sentence.
    let last = rest.get(..length)?.iter().rposition(|byte| *byte != b'.')?;
    let length = last + 1;
    let characters =
        rest.get(..length).filter(|_| (usize::from(token.min)..=max).contains(&length))?;
    let holds = match token.check {
        Check::None => characters.iter().any(|byte| Some(byte) != characters.first()),
        Check::Random => secret::is_random(characters),
        Check::Crc32Base62 => secret::has_checksum(characters),
    };
    holds.then_some(prefix.start..prefix.end + length)
}
