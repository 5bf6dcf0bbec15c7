//! A set of rules, ready to be matched: the automata of its literals, and what each literal is used for.

use std::collections::HashMap;
use std::ops::Range;

use super::automaton::Automaton;
use super::detect::sql;
use super::rule::{Detector, Rule, Rules, Test};
use super::signs::Signs;

/// Uses of one literal: the rules that name it. Bounds what one byte can cost.
pub const MAX_USES: usize = 8;

/// Literals that end at one byte.
pub const MAX_ENDS: usize = 6;

/// Literals of a rule set. The automaton has a row of states for each of their bytes.
pub const MAX_LITERALS: usize = 2_000;

/// Names after which a secret is assigned.
pub(super) const ASSIGNED: [&str; 22] = [
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

/// The begin of a JSON web token.
const WEB_TOKEN: &str = "eyj";

/// Names after which a social security number follows.
const SOCIAL: [&str; 3] = ["ssn", "social security", "social-security"];

/// What ends at a literal.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    Step(PhraseStep),
    Token {
        rule: u16,
    },
    /// A sign for the detectors.
    Sign(u32),
    Assigned,
    WebToken,
    Social,
}

/// A step of a phrase, with what its phrase needs at each match.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhraseStep {
    pub(super) rule: u16,
    /// Its place in a scan's `last`.
    pub(super) place: u32,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    pub(super) within: u16,
    /// Whether the text must be a value.
    pub(super) value: bool,
    /// Whether the phrase has literals that are not ASCII.
    pub(super) mixed: bool,
    /// Whether the literal must begin and end a word.
    pub(super) begins: bool,
    pub(super) ends: bool,
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
    pub(super) steps: usize,
    detectors: HashMap<Detector, Vec<u16>>,
    pub(super) sql: sql::Patterns,
}

/// Literals and the automaton that finds them.
#[derive(Debug)]
pub(super) struct Literals {
    pub(super) automaton: Automaton,
    /// Each literal, and where its uses are.
    pub(super) all: Vec<(String, Range<usize>)>,
    pub(super) uses: Vec<Use>,
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
        let texts: Vec<&str> = self.all.iter().map(|(literal, _)| literal.as_str()).collect();
        let automaton = Automaton::new(&texts);
        let mut uses = Vec::new();
        let mut all = Vec::new();
        for (literal, of) in self.all {
            let begin = uses.len();
            // A literal can be two steps of one phrase. The later step looks at the earlier one's last match first.
            uses.extend(of.into_iter().rev());
            all.push((literal, begin..uses.len()));
        }
        Literals { automaton, all, uses }
    }
}

/// A rule set that would cost too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooCostly(pub String);

impl Matcher {
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let (mut ascii, mut other) = (Naming::default(), Naming::default());
        let mut steps = 0_u32;
        let mut detectors: HashMap<Detector, Vec<u16>> = HashMap::new();
        for (rule, number) in rules.rules.iter().zip(0_u16..) {
            match &rule.test {
                Test::Phrase(phrase) => {
                    let is_ascii = |literal: &&&str| literal.is_ascii();
                    let is_mixed = !phrase.steps.iter().copied().flatten().all(|it| is_ascii(&it));
                    for (step, alternatives) in phrase.steps.iter().enumerate() {
                        for alternative in *alternatives {
                            let (literal, begins, ends) = words(alternative);
                            let of = Use::Step(PhraseStep {
                                rule: number,
                                place: steps,
                                is_first: step == 0,
                                is_last: step + 1 == phrase.steps.len(),
                                within: phrase.within,
                                value: phrase.value,
                                mixed: is_mixed,
                                begins,
                                ends,
                            });
                            if literal.is_ascii() {
                                ascii.add(literal, of);
                            }
                            if is_mixed {
                                other.add(literal, of);
                            }
                        }
                        steps += 1;
                    }
                }
                Test::Token(token) => {
                    let of = Use::Token { rule: number };
                    token.prefixes.iter().for_each(|prefix| ascii.add(prefix, of));
                }
                Test::Detector(detector) => {
                    detectors.entry(*detector).or_default().push(number);
                }
            }
        }
        ASSIGNED.iter().for_each(|name| ascii.add(name, Use::Assigned));
        SOCIAL.iter().for_each(|name| ascii.add(name, Use::Social));
        ascii.add(WEB_TOKEN, Use::WebToken);
        Signs::literals().for_each(|(literal, sign)| ascii.add(literal, Use::Sign(sign)));
        let steps = steps as usize;
        Self {
            rules,
            ascii: ascii.finish(),
            other: other.finish(),
            steps,
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
            .map(|(literal, uses)| (literal.as_str(), uses.len()))
            .max_by_key(|(_, uses)| *uses)
            .unwrap_or_default();
        let count = literals().count();
        let ends = sets.iter().map(|set| set.automaton.most_ends()).max().unwrap_or(0);
        if most <= MAX_USES && ends <= MAX_ENDS && count <= MAX_LITERALS {
            return Ok(());
        }
        Err(TooCostly(format!(
            "{count} literals (at most {MAX_LITERALS}), {ends} of which end at one byte (at most {MAX_ENDS}); \
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
        for rule in self.detectors.get(&detector).into_iter().flatten() {
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
