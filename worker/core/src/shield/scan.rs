//! One pass over one form of a text: literals, then the detectors whose characters are in it.
//!
//! INVARIANT (linear): each byte costs a step of the automaton, a bounded number of steps of phrases, and a bounded
//! number of reads by detectors.

use std::collections::HashMap;
use std::ops::Range;

use super::automaton::Automaton;
use super::detect::{
    self, address, hidden, html, is_value, is_word, path, personal, secret, shell, sql,
};
use super::rule::{Check, Detector, Phrase, Rule, Rules, Test, Token};

/// Uses of one literal: the rules that name it. Bounds what one byte can cost.
pub const MAX_USES: usize = 8;

/// Literals that end at one byte.
pub const MAX_ENDS: usize = 6;

/// Literals of a rule set. Their automaton has a row of states for each byte of them.
pub const MAX_LITERALS: usize = 2_000;

/// Names after which a secret is assigned, and the places where other detectors begin.
const ASSIGNED: [&str; 22] = [
    "access_key",
    "accesskey",
    "access_token",
    "accesstoken",
    "api_key",
    "api-key",
    "apikey",
    "auth_token",
    "authtoken",
    "client_secret",
    "clientsecret",
    "db_pass",
    "encryption_key",
    "passwd",
    "password",
    "private_key",
    "pwd",
    "secret",
    "secret_key",
    "secretkey",
    "token",
    "_key",
];
const WEB_TOKEN: &str = "eyj";
const SOCIAL: [&str; 3] = ["ssn", "social security", "social-security"];

/// What ends at a literal.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// A step of a phrase: the rule, the step, and whether the literal must begin and end a word.
    Step {
        rule: u16,
        step: u16,
        begins: bool,
        ends: bool,
    },
    Token {
        rule: u16,
    },
    Assigned,
    WebToken,
    Social,
}

/// A set of rules, ready to be matched.
#[derive(Debug)]
pub struct Matcher {
    pub rules: Rules,
    automaton: Automaton,
    /// Each literal, and where its uses are.
    literals: Vec<(String, Range<usize>)>,
    uses: Vec<Use>,
    /// For each rule where its steps begin in a scan's `last`.
    first_step: Vec<u32>,
    steps: usize,
    detectors: HashMap<Detector, Vec<u16>>,
    sql: sql::Patterns,
}

/// A rule set that would cost too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooCostly(pub String);

impl Matcher {
    /// # Errors
    ///
    /// The rules are more than the bounds of this module allow.
    pub fn new(rules: Rules) -> Result<Self, TooCostly> {
        let mut names: Vec<String> = Vec::new();
        let mut used: Vec<Vec<Use>> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut add = |literal: &str, of: Use| {
            let at = *numbers.entry(literal.to_ascii_lowercase()).or_insert_with_key(|literal| {
                names.push(literal.clone());
                used.push(Vec::new());
                names.len() - 1
            });
            if let Some(uses) = used.get_mut(at) {
                uses.push(of);
            }
        };
        let mut first_step = Vec::new();
        let mut steps = 0_u32;
        let mut detectors: HashMap<Detector, Vec<u16>> = HashMap::new();
        for (rule, number) in rules.rules.iter().zip(0_u16..) {
            first_step.push(steps);
            match &rule.test {
                Test::Phrase(phrase) => {
                    for (step, alternatives) in (0_u16..).zip(phrase.steps) {
                        for alternative in *alternatives {
                            let (literal, begins, ends) = words(alternative);
                            add(literal, Use::Step { rule: number, step, begins, ends });
                        }
                        steps += 1;
                    }
                }
                Test::Token(token) => {
                    token
                        .prefixes
                        .iter()
                        .for_each(|prefix| add(prefix, Use::Token { rule: number }));
                }
                Test::Detector(detector) => detectors.entry(*detector).or_default().push(number),
            }
        }
        ASSIGNED.iter().for_each(|name| add(name, Use::Assigned));
        SOCIAL.iter().for_each(|name| add(name, Use::Social));
        add(WEB_TOKEN, Use::WebToken);
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let automaton = Automaton::new(&texts);
        let most = used.iter().map(Vec::len).max().unwrap_or(0);
        if most > MAX_USES || automaton.most_ends() > MAX_ENDS || names.len() > MAX_LITERALS {
            let literal = used.iter().zip(&names).max_by_key(|(uses, _)| uses.len());
            return Err(TooCostly(format!(
                "{} literals (at most {MAX_LITERALS}), {} of which end at one byte (at most {MAX_ENDS}); the literal \
                 `{}` is used {most} times (at most {MAX_USES})",
                names.len(),
                automaton.most_ends(),
                literal.map_or("", |(_, literal)| literal),
            )));
        }
        let mut uses = Vec::new();
        let mut literals = Vec::new();
        for (name, of) in names.into_iter().zip(used) {
            let begin = uses.len();
            // A literal can be two steps of one phrase. The later step looks at the earlier one's last match first.
            uses.extend(of.into_iter().rev());
            literals.push((name, begin..uses.len()));
        }
        let steps = steps as usize;
        Ok(Self {
            rules,
            automaton,
            literals,
            uses,
            first_step,
            steps,
            detectors,
            sql: sql::Patterns::new(),
        })
    }

    /// The bytes that the tables take.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.automaton.table_bytes()
    }

    fn rule(&self, number: u16) -> Option<&'static Rule> {
        self.rules.rules.get(usize::from(number))
    }
}

/// A literal without its stars, and whether it must begin and end a word.
fn words(alternative: &str) -> (&str, bool, bool) {
    let literal = alternative.strip_prefix('*').filter(|rest| !rest.is_empty());
    let open_begin = literal.is_some();
    let literal = literal.unwrap_or(alternative);
    let rest = literal.strip_suffix('*').filter(|rest| !rest.is_empty());
    let open_end = rest.is_some();
    let literal = rest.unwrap_or(literal);
    let word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let bytes = literal.as_bytes();
    (literal, !open_begin && word(bytes.first()), !open_end && word(bytes.last()))
}

/// What a scan keeps from text to text.
#[derive(Debug)]
pub struct Scan<'m> {
    matcher: &'m Matcher,
    /// Where each step of each phrase matched last, and before that. Counted from the first text on.
    last: Vec<[Reached; 2]>,
    /// What was read before this text, and more.
    base: u64,
}

/// The bytes of each text that detectors look for.
#[derive(Debug, Clone, Copy, Default)]
struct Signs(u8);

impl Signs {
    const QUOTE: u8 = 1;
    const DIGIT: u8 = 1 << 1;
    const SHELL: u8 = 1 << 2;
    const ANGLE: u8 = 1 << 3;
    const AT: u8 = 1 << 4;
    const SLASH: u8 = 1 << 5;
    const OTHER: u8 = 1 << 6;
    const HASH: u8 = 1 << 7;

    const OF: [u8; 256] = {
        let mut of = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            of[byte] = match byte as u8 {
                b'\'' | b'"' | b'`' => Self::QUOTE | Self::SHELL,
                b'0'..=b'9' => Self::DIGIT,
                b';' | b'|' | b'&' | b'$' | b'\n' => Self::SHELL,
                b'<' => Self::ANGLE | Self::SHELL,
                b'>' => Self::SHELL,
                b'@' => Self::AT,
                b'/' | b'\\' => Self::SLASH,
                b'#' | b'(' | b'-' => Self::HASH,
                0x80.. => Self::OTHER,
                _ => 0,
            };
            byte += 1;
        }
        of
    };

    fn has(self, sign: u8) -> bool {
        self.0 & sign != 0
    }
}

/// The shortest text that can match a rule.
const MIN_TEXT_BYTES: usize = 3;

impl<'m> Scan<'m> {
    #[must_use]
    pub fn new(matcher: &'m Matcher) -> Self {
        Self { matcher, last: vec![Default::default(); matcher.steps], base: 1 }
    }

    /// Calls `found` with each rule that matches in a text, and the bytes that matched. `decoded`: the text is the
    /// decoded form of another one.
    pub fn text(&mut self, text: &str, decoded: bool, found: &mut dyn FnMut(u16, Range<usize>)) {
        if text.len() < MIN_TEXT_BYTES {
            return;
        }
        let signs = Signs(text.bytes().fold(0, |signs, byte| {
            signs | Signs::OF.get(usize::from(byte)).copied().unwrap_or_default()
        }));
        self.literals(text, found);
        let matcher = self.matcher;
        let report = &mut |detector: Detector, range: Range<usize>| {
            for rule in matcher.detectors.get(&detector).into_iter().flatten() {
                found(*rule, range.clone());
            }
        };
        if signs.has(Signs::QUOTE | Signs::HASH | Signs::DIGIT) {
            sql::find(&matcher.sql, text, report);
        }
        if signs.has(Signs::QUOTE | Signs::ANGLE) || text.contains(':') {
            html::find(text, report);
        }
        if signs.has(Signs::SHELL) {
            shell::find(text, report);
        }
        if signs.has(Signs::SLASH) {
            path::find(text, decoded, report);
        }
        if signs.has(Signs::SLASH | Signs::DIGIT) || is_value(text) {
            address::find(text, decoded, report);
        }
        if signs.has(Signs::SLASH) {
            secret::find_in_urls(text, report);
            hidden::find_images(text, report);
        }
        if signs.has(Signs::HASH) {
            secret::find_private_keys(text, report);
        }
        if signs.has(Signs::DIGIT) {
            personal::find_numbers(text, report);
            personal::find_accounts(text, report);
        }
        if signs.has(Signs::AT) {
            personal::find_addresses(text, report);
        }
        if signs.has(Signs::OTHER) {
            hidden::find(text, report);
        }
    }

    fn literals(&mut self, text: &str, found: &mut dyn FnMut(u16, Range<usize>)) {
        let Self { matcher, last, base } = self;
        let matcher: &Matcher = matcher;
        let value = is_value(text);
        let bytes = text.as_bytes();
        matcher.automaton.each(bytes, |literal, end| {
            let Some((literal, uses)) = matcher.literals.get(usize::from(literal)) else { return };
            let begin = begin_of(literal.as_bytes(), bytes, end);
            for of in matcher.uses.get(uses.clone()).unwrap_or_default() {
                match *of {
                    Use::Step { rule, step, begins, ends } => {
                        let outside = |byte: Option<u8>| !byte.is_some_and(is_word);
                        if begins && !outside(detect::before(bytes, begin))
                            || ends && !outside(bytes.get(end).copied())
                        {
                            continue;
                        }
                        let Some(Test::Phrase(phrase)) = matcher.rule(rule).map(|it| &it.test)
                        else {
                            continue;
                        };
                        let first =
                            matcher.first_step.get(usize::from(rule)).copied().unwrap_or_default()
                                as usize;
                        let reached = last.get_mut(first..).unwrap_or_default();
                        let at = Reached { begin: *base + begin as u64, end: *base + end as u64 };
                        if let Some(begin) = advance(phrase, reached, usize::from(step), at)
                            && (!phrase.value || value)
                        {
                            let begin = begin.saturating_sub(*base) as usize;
                            found(rule, begin..end);
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
                    Use::Assigned | Use::WebToken | Use::Social => {
                        let report = &mut |detector: Detector, range: Range<usize>| {
                            for rule in matcher.detectors.get(&detector).into_iter().flatten() {
                                found(*rule, range.clone());
                            }
                        };
                        match of {
                            Use::Assigned => secret::find_assigned(text, end, report),
                            Use::WebToken => secret::find_web_token(text, end, report),
                            _ => personal::find_social_security(text, end, report),
                        }
                    }
                }
            }
        });
        *base += text.len() as u64 + u64::from(u16::MAX) + 1;
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

/// Where a phrase began, and where its last step ended. Counted from a scan's first text on.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    begin: u64,
    end: u64,
}

/// Takes a match of a step. Returns where the phrase began if it was the last step.
///
/// Only the last match of the step before counts: it is the nearest. If that one overlaps, the one before it does.
fn advance(phrase: &Phrase, reached: &mut [[Reached; 2]], step: usize, at: Reached) -> Option<u64> {
    let begin = match step.checked_sub(1) {
        None => at.begin,
        Some(before) => {
            let before = reached.get(before)?.iter().find(|it| it.end != 0 && it.end <= at.begin)?;
            (at.begin - before.end <= u64::from(phrase.within)).then_some(before.begin)?
        }
    };
    let last = reached.get_mut(step)?;
    *last = [Reached { begin, end: at.end }, last[0]];
    (step + 1 == phrase.steps.len()).then_some(begin)
}

/// The token whose prefix is at `prefix`.
fn of_token(token: &Token, text: &str, prefix: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let found = bytes.get(prefix.clone())?;
    // The prefixes of one rule may have any case of the literal.
    token.prefixes.iter().any(|it| it.as_bytes() == found).then_some(())?;
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
