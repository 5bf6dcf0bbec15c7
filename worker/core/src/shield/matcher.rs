//! A set of rules, ready to be matched: the automata of its literals, and what each literal is used for.

use std::collections::HashMap;
use std::ops::Range;

use super::automaton::{Automaton, Marks, Searched};
use super::detect::{address, html, is_word, sql};
use super::rule::{Detector, Rule, Rules, Test};
use super::signs::Signs;

/// Uses of one literal: the rules that name it. Bounds what one byte can cost.
pub const MAX_USES: usize = 8;

/// Literals that end at one byte.
pub const MAX_ENDS: usize = 6;

/// Literals of a rule set. The automaton has at most a state for each of their bytes.
pub const MAX_LITERALS: usize = 2_000;

/// Names after which a secret is assigned.
///
/// Keys of databases, caches and dictionaries have names with `_key` too, so each kind of secret key is listed.
pub(super) const ASSIGNED: [&str; 43] = [
    "access_key",
    "accesskey",
    "access_token",
    "accesstoken",
    "account_key",
    "admin_key",
    "api_key",
    "api-key",
    "apikey",
    "app_key",
    "auth_key",
    "auth_token",
    "authtoken",
    "aws_key",
    "client_key",
    "client_secret",
    "clientsecret",
    "db_pass",
    "deploy_key",
    "encryption_key",
    "hmac_key",
    "jwt_key",
    "license_key",
    "master_key",
    "openai_key",
    "passwd",
    "password",
    "private_key",
    "pwd",
    "secret",
    "secret_key",
    "secretkey",
    "server_key",
    "service_key",
    "session_key",
    "shared_key",
    "signing_key",
    "storage_key",
    "stripe_key",
    "subscription_key",
    "token",
    "webhook_key",
    "write_key",
];

/// The begin of a JSON web token.
const WEB_TOKEN: &str = "eyj";

/// Names after which a social security number follows.
const SOCIAL: [&str; 3] = ["ssn", "social security", "social-security"];

/// Literals, and the signs that they are.
fn signs() -> impl Iterator<Item = (&'static str, u32)> {
    let code = html::words().map(|word| (word, Signs::CODE));
    let sql = sql::telling_words()
        .chain(["union", "waitfor", "outfile", "dumpfile", "sleep", "select", "iif"]);
    let fixed = [
        ("//", Signs::URL),
        ("![", Signs::IMAGE),
        ("<img", Signs::IMAGE),
        ("-----begin", Signs::KEY),
        ("private-lines:", Signs::KEY),
        ("..", Signs::STEP),
        ("javascript:", Signs::SCHEME),
        ("vbscript:", Signs::SCHEME),
        ("script:", Signs::SCHEME),
        ("data:", Signs::SCHEME),
        ("--", Signs::COMPARE),
        (" like", Signs::COMPARE),
    ];
    let hosts = address::words().map(|word| (word, Signs::HOST));
    let sql = sql.map(|word| (word, Signs::SQL));
    fixed.into_iter().chain(code).chain(sql).chain(hosts)
}

/// What a literal is used for, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    /// The step that must have been reached before.
    pub(super) after: Steps,
    pub(super) unless: Cases,
    pub(super) of: Purpose,
}

impl Use {
    /// A use that does not depend on what came before.
    const fn new(unless: Cases, of: Purpose) -> Self {
        Self { after: Steps::BEGIN, unless, of }
    }
}

/// What ends at a literal.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Step(PhraseStep),
    Token {
        rule: u16,
    },
    /// A sign for the detectors.
    Sign(u32),
    /// A sign of SQL, if an operand follows.
    Logic,
    Assigned,
    WebToken,
    Social,
}

/// A step of a phrase, with what its phrase needs at each match.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhraseStep {
    pub(super) rule: u16,
    /// Its place in a scan's `last`. The last step of a phrase needs none.
    pub(super) place: u32,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    pub(super) within: u16,
}

/// The steps of phrases that were reached in a text, as bits. Steps share bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps(u64);

impl Steps {
    /// Reached in every text.
    pub(super) const BEGIN: Self = Self(1);

    /// The step at a place.
    pub(super) const fn at(place: u32) -> Self {
        Self(1 << (place % u64::BITS))
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The same steps as marks. [`Self::BEGIN`] is the first one.
    pub(super) fn marks(self) -> Marks {
        let mut marks = Marks::default();
        for step in (0..u64::BITS).filter(|step| self.0 >> step & 1 != 0) {
            marks.add(Marks::at(step));
        }
        marks
    }
}

/// Cases in which uses of literals do not count, as bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cases(u8);

impl Cases {
    pub(super) const NONE: Self = Self(0);
    /// The literal begins within a word, as a word begins.
    pub(super) const IN_WORD: Self = Self(1);
    /// A word goes on after the literal.
    pub(super) const GOES_ON: Self = Self(1 << 1);
    /// The text is not a single value.
    pub(super) const NO_VALUE: Self = Self(1 << 2);
    /// Phrases with a literal outside of ASCII are not matched now.
    pub(super) const ONLY_ASCII: Self = Self(1 << 3);

    pub(super) const fn and(self, other: Self, holds: bool) -> Self {
        if holds { Self(self.0 | other.0) } else { self }
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A set of rules, ready to be matched.
#[derive(Debug)]
pub struct Matcher {
    pub rules: Rules,
    /// The literals in ASCII.
    pub(super) ascii: Literals,
    /// All literals of the phrases that have a literal outside of ASCII. They are searched in texts that are not
    /// ASCII.
    pub(super) other: Literals,
    /// The number of places for steps of phrases.
    pub(super) places: usize,
    /// The rules that are for detectors.
    detectors: Vec<(Detector, u16)>,
    pub(super) sql: sql::Patterns,
}

/// Literals and the automaton that finds them.
#[derive(Debug)]
pub(super) struct Literals {
    pub(super) automaton: Automaton,
    /// For each state that ends literals: no use of them counts before one of these steps was reached.
    pub(super) after: Vec<Steps>,
    pub(super) all: Vec<Literal>,
}

/// A literal, and what it is used for.
#[derive(Debug)]
pub(super) struct Literal {
    pub(super) text: String,
    /// Whether it has a space, which can be many in a text.
    pub(super) spaced: bool,
    /// Whether it begins like a word, and is also found within words.
    pub(super) within_words: bool,
    /// No use counts before one of these steps was reached.
    pub(super) after: Steps,
    /// The cases on which its uses depend.
    pub(super) unless: Cases,
    pub(super) uses: Vec<Use>,
}

impl Literal {
    fn new(text: String, mut uses: Vec<Use>) -> Self {
        // A literal can be two steps of one phrase. The later step looks at the earlier one's last match first.
        uses.reverse();
        Self {
            spaced: text.contains(' '),
            within_words: text.bytes().next().is_some_and(is_word)
                && uses.iter().any(|of| !of.unless.meets(Cases::IN_WORD)),
            after: Steps(uses.iter().fold(0, |all, of| all | of.after.0)),
            unless: Cases(uses.iter().fold(0, |all, of| all | of.unless.0)),
            uses,
            text,
        }
    }

    fn searched(&self) -> Searched<'_> {
        Searched { text: &self.text, within_words: self.within_words }
    }
}

/// The literals while they are collected: each once, with its uses.
#[derive(Default)]
struct Naming {
    all: Vec<(String, Vec<Use>)>,
    numbers: HashMap<String, usize>,
}

impl Naming {
    fn add(&mut self, literal: &str, of: Use) {
        // A literal that ends with a space would be found again at each further space.
        let literal = literal.trim_end().to_ascii_lowercase();
        let at = *self.numbers.entry(literal).or_insert_with_key(|literal| {
            self.all.push((literal.clone(), Vec::new()));
            self.all.len() - 1
        });
        if let Some((_, uses)) = self.all.get_mut(at) {
            uses.push(of);
        }
    }

    fn finish(self) -> Literals {
        let all: Vec<Literal> =
            self.all.into_iter().map(|(text, uses)| Literal::new(text, uses)).collect();
        let searched: Vec<Searched<'_>> = all.iter().map(Literal::searched).collect();
        let mut automaton = Automaton::new(&searched);
        let any = |steps: u64, literal: &u16| {
            steps | all.get(usize::from(*literal)).map_or(0, |it| it.after.0)
        };
        let after = automaton.all_lists().map(|list| Steps(list.iter().fold(0, any)));
        let after: Vec<Steps> = after.collect();
        automaton.mark(|end| after.get(end).map_or_else(Marks::default, |after| after.marks()));
        Literals { automaton, after, all }
    }
}

/// A rule set that would cost too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooCostly(pub String);

impl Matcher {
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let (mut ascii, mut other) = (Naming::default(), Naming::default());
        let mut places = 0_u32;
        let mut detectors = Vec::new();
        for (rule, number) in rules.rules.iter().zip(0_u16..) {
            match &rule.test {
                Test::Phrase(phrase) => {
                    let is_ascii = |literal: &&&str| literal.is_ascii();
                    let is_mixed = !phrase.steps.iter().copied().flatten().all(|it| is_ascii(&it));
                    for (step, alternatives) in phrase.steps.iter().enumerate() {
                        for alternative in *alternatives {
                            let (literal, begins, ends) = words(alternative);
                            let place = places + step as u32;
                            let of = Purpose::Step(PhraseStep {
                                rule: number,
                                place,
                                is_first: step == 0,
                                is_last: step + 1 == phrase.steps.len(),
                                within: phrase.within,
                            });
                            let unless = Cases::NONE
                                .and(Cases::IN_WORD, begins)
                                .and(Cases::GOES_ON, ends)
                                .and(Cases::NO_VALUE, phrase.value)
                                .and(Cases::ONLY_ASCII, is_mixed);
                            let after = if step == 0 { Steps::BEGIN } else { Steps::at(place - 1) };
                            let of = Use { after, unless, of };
                            if literal.is_ascii() {
                                ascii.add(literal, of);
                            }
                            if is_mixed {
                                other.add(literal, of);
                            }
                        }
                    }
                    places += phrase.steps.len().saturating_sub(1) as u32;
                }
                Test::Token(token) => {
                    let of = Use::new(Cases::IN_WORD, Purpose::Token { rule: number });
                    token.prefixes.iter().for_each(|prefix| ascii.add(prefix, of));
                }
                Test::Detector(detector) => {
                    detectors.push((*detector, number));
                }
            }
        }
        let assigned = Use::new(Cases::NONE, Purpose::Assigned);
        ASSIGNED.iter().for_each(|name| ascii.add(name, assigned));
        let social = Use::new(Cases::NONE, Purpose::Social);
        SOCIAL.iter().for_each(|name| ascii.add(name, social));
        ascii.add(WEB_TOKEN, Use::new(Cases::IN_WORD, Purpose::WebToken));
        for literal in sql::LOGIC {
            let (_, begins, ends) = words(literal);
            let unless = Cases::NONE.and(Cases::IN_WORD, begins).and(Cases::GOES_ON, ends);
            ascii.add(literal, Use::new(unless, Purpose::Logic));
        }
        let function = Use::new(Cases::IN_WORD, Purpose::Sign(Signs::LOGIC));
        sql::functions().for_each(|name| ascii.add(&[name, "("].concat(), function));
        for (literal, sign) in signs() {
            ascii.add(literal, Use::new(Cases::IN_WORD, Purpose::Sign(sign)));
        }
        Self {
            rules,
            ascii: ascii.finish(),
            other: other.finish(),
            places: places as usize,
            detectors,
            sql: sql::Patterns::new(),
        }
    }

    /// Whether the rules stay within the bounds of this module.
    ///
    /// # Errors
    ///
    /// What they cost. The build refuses such rules.
    pub fn check_cost(&self) -> Result<(), TooCostly> {
        let sets = [&self.ascii, &self.other];
        let literals = || sets.iter().flat_map(|set| &set.all);
        let (literal, most) = literals()
            .map(|literal| (literal.text.as_str(), literal.uses.len()))
            .max_by_key(|(_, uses)| *uses)
            .unwrap_or_default();
        let count = literals().count();
        let lists = sets.iter().flat_map(|set| set.automaton.all_lists());
        let ends = lists.map(<[u16]>::len).max().unwrap_or(0);
        let fit = sets.iter().all(|set| set.automaton.fits());
        if most <= MAX_USES && ends <= MAX_ENDS && count <= MAX_LITERALS && fit {
            return Ok(());
        }
        let length = if fit { "" } else { "the literals are too long; " };
        Err(TooCostly(format!(
            "{length}{count} literals (at most {MAX_LITERALS}), {ends} of which end at one byte (at most {MAX_ENDS}); \
             the literal `{literal}` is used {most} times (at most {MAX_USES})"
        )))
    }

    /// The bytes that the tables take.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.ascii.automaton.table_bytes() + self.other.automaton.table_bytes()
    }

    /// Calls `found` with each rule that is for a detector.
    pub(super) fn report(
        &self,
        detector: Detector,
        bytes: Range<usize>,
        found: &mut dyn FnMut(u16, Range<usize>),
    ) {
        for (_, rule) in self.detectors.iter().filter(|(of, _)| *of == detector) {
            found(*rule, bytes.clone());
        }
    }

    pub(super) fn rule(&self, number: u16) -> Option<&'static Rule> {
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
