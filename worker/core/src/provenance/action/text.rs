//! Splits an instruction into clauses, and keeps what holds for more than one of them.

use super::super::search::lower_word;
use super::clause::Clause;
use super::lists::{GREETINGS, TEXTS, USER};
use super::objects::{MAX_ORDER_WORDS, is_finite};
use super::phrase::is_name;
use super::table::{is_listed, is_wide};
use super::wide;
use super::words::{Asked, Order, SIGNS, STATED};

/// Reads a text clause by clause.
#[derive(Default)]
struct Reader {
    asked: Asked,
    words: Vec<String>,
    /// What ended the clause before.
    before: char,
    /// What ended the sentence before.
    ended: char,
    /// Whether the words before forbid what follows: "do not, please, merge it".
    is_forbidden: bool,
    /// Whether the sentence asks the agent: "could you look, and then merge it?"
    is_polite: bool,
    /// Whether what follows is only read, up to the end of the sentence: "look up this entry: transfer 100 EUR".
    is_read: bool,
    /// Whether what follows is written to somebody, up to the end of the line: "write to Anna: please merge it". A letter
    /// goes on up to the end of the text.
    is_told: bool,
    is_letter: bool,
    /// The order before a colon, and what follows it up to the end of the line or the code: "run this on db1: UPDATE t …".
    colon: Option<u8>,
    /// Whether the clause before was a label: "IBAN:".
    is_labelled: bool,
    /// The order whose objects go on after a comma: "delete a.md, b.md and c.md".
    order: Option<Order>,
}

/// What a text asks for.
pub(super) fn of_text(text: &str) -> Asked {
    let mut reader = Reader::default();
    // What is quoted is no order, but can be an object: "rename 'Delete' to 'Remove'".
    let (mut quoted, mut is_code) = (None, false);
    let closes = text.rfind(|letter| QUOTES.contains(letter) && letter != '\'');
    for line in text.lines() {
        // A quotation goes on in the next line if a sign follows that can close it.
        let at = line.as_ptr().addr() - text.as_ptr().addr();
        quoted = quoted.filter(|sign| *sign != '\'' && closes.is_some_and(|end| at <= end));
        reader.begin(is_code);
        let line = apart(line);
        for token in line.split(|letter: char| letter.is_whitespace() || BREAKS.contains(letter)) {
            is_code ^= token.starts_with("```");
            quoted = quoted.or(token.chars().next().filter(|letter| QUOTES.contains(*letter)));
            let is_edge = |letter: char| !letter.is_alphanumeric() && !SIGNS.contains(letter);
            let word = token.trim_matches(|letter| is_edge(letter) && letter != '/');
            if word.contains(|letter: char| letter.is_alphanumeric() || SIGNS.contains(letter)) {
                let word = lower_word(word);
                let word = match word.strip_prefix("squash-").unwrap_or(&word) {
                    "pls" | "plz" => "please",
                    word => word,
                };
                let mark = if is_code || quoted.is_some() { "'" } else { "" };
                reader.words.push([mark, word].concat());
            }
            if token.ends_with(['.', ',', ';', ':', '!', '?']) {
                reader.end(token.chars().next_back().unwrap_or_default());
            }
            let is_sign = |letter: char| letter.is_ascii_punctuation() && !QUOTES.contains(letter);
            let token = token.trim_end_matches(is_sign);
            quoted = quoted.filter(|_| !token.ends_with(|it| QUOTES.contains(it)));
        }
        if !reader.words.is_empty() {
            // Each row of a table is for itself.
            reader.end(if line.trim_start().starts_with('|') { '.' } else { '\n' });
        }
    }
    if text.chars().any(is_wide) {
        wide::add(text, &mut reader.asked);
    }
    reader.asked
}

impl Reader {
    /// Begins a line. What is written to somebody ends with its line, but a letter does not.
    fn begin(&mut self, is_code: bool) {
        let is_next = self.before == ':';
        self.colon = self.colon.filter(|_| is_next || is_code);
        self.is_letter |= self.is_told && is_next;
        self.is_told &= self.is_letter;
    }

    /// Ends a clause.
    #[inline(never)]
    fn end(&mut self, end: char) {
        let words = std::mem::take(&mut self.words);
        let before = std::mem::replace(&mut self.before, end);
        let follows = before == ',';
        let first = words.first().map_or("", |word| word.trim_start_matches('\''));
        self.is_letter |= self.is_told && before == ':' && is_listed(GREETINGS, first);
        let is_open = end == ':';
        let clause = Clause { words: &words, follows, is_polite: self.is_polite, is_open };
        self.is_polite |= clause.is_polite();
        let clause = Clause { is_polite: self.is_polite, ..clause };
        let is_none = match end {
            '?' => !self.is_polite,
            ':' => clause.is_label(),
            _ => false,
        };
        if let Some(order) = self.colon.filter(|_| end != '?') {
            words.iter().for_each(|word| self.asked.add_beside(order, word));
        }
        // "On second thought, keep it." Which of the orders the user takes back is not known.
        let retracts = |pair: &[String]| {
            let [first, second] = pair else { return false };
            RETRACTS.iter().any(|(one, two)| one == first && second.starts_with(two))
        };
        if words.windows(2).any(retracts) {
            self.asked = Asked::default();
            self.order = None;
        }
        let orders = self.asked.orders;
        // "Die Buchung brauche ich nicht, bitte stornieren."
        let is_forbidden = self.is_forbidden && (first != "bitte" || words.len() < 2);
        if !(is_none || is_forbidden || self.is_told || self.is_read) {
            clause.add_to(&mut self.asked, &mut self.order);
            if self.asked.orders == orders && end != '?' {
                let is_whole = !follows && matches!(end, '.' | '\n');
                words.iter().for_each(|word| self.asked.add_right(STATED, word));
                clause.add_statement(self.is_labelled, is_whole, &mut self.asked);
            }
        }
        if end == ':' {
            self.colon = self.order.as_ref().map(|order| order.number).or(self.colon);
        }
        self.is_labelled = end == ':' && clause.is_kind();
        let sentence = &mut self.asked.sentence;
        sentence.extend(words.iter().cloned());
        sentence.push(",".to_owned());
        let more = sentence.len().saturating_sub(MAX_ORDER_WORDS);
        sentence.drain(..more);
        if matches!(end, '.' | '!' | '?' | '\n') {
            let was = std::mem::replace(&mut self.ended, end);
            let sentence = std::mem::take(sentence);
            let said = Clause { words: &sentence, ..clause };
            // The items of a list are one mention.
            let mention = &mut self.asked.mention;
            if end == '\n' && was == '\n' && said.has_name() {
                mention.extend(sentence);
                let more = mention.len().saturating_sub(MAX_ORDER_WORDS);
                mention.drain(..more);
            } else if said.has_name() || !mention.iter().any(|word| is_name(word)) {
                *mention = sentence;
            }
        }
        self.is_forbidden = (is_forbidden && matches!(end, ',' | ':'))
            || (!matches!(end, '.' | '!' | '?') && clause.is_left_open());
        self.is_told |=
            end == ':' && (clause.tells() || (words.len() == 1 && is_listed(TEXTS | USER, first)));
        self.is_read |= end == ':' && (0..2).any(|at| clause.begins_to_read(at));
        if let Some(order) = &mut self.order {
            order.is_place &= end != ':';
        }
        if matches!(end, '.' | '!' | '?') {
            (self.is_polite, self.is_read, self.order) = (false, false, None);
            self.colon = None;
        }
        if end == ';' {
            self.order = None;
        }
        if end == '\n' {
            (self.is_polite, self.is_read) = (false, false);
        }
    }
}

/// Words with which the user takes an order back.
const RETRACTS: [(&str, &str); 6] = [
    ("forget", "that"),
    ("never", "mind"),
    ("no", "wait"),
    ("scrap", "that"),
    ("second", "thought"),
    ("strike", "that"),
];

/// Signs around what is quoted.
const QUOTES: &str = "\"'`“”„«»";

/// What separates words, beside spaces.
const BREAKS: &str = "…[]{}<>|";

/// A line with commas in place of dashes, and of brackets around a clause of its own: "merge PR 12 (13 is not ready)".
fn apart(line: &str) -> String {
    let mut apart = String::with_capacity(line.len());
    let mut is_clause = false;
    let mut rest = line;
    while let Some(at) = rest.find(['(', ')', '–', '—']) {
        let (before, after) = rest.split_at_checked(at).unwrap_or_default();
        let sign = after.chars().next().unwrap_or_default();
        rest = after.get(sign.len_utf8()..).unwrap_or_default();
        if sign == '(' {
            let inner = rest.split(['(', ')']).next().unwrap_or_default();
            is_clause = inner.split_whitespace().any(|word| is_finite(&lower_word(word)));
        }
        let is_comma = !matches!(sign, '(' | ')') || is_clause;
        apart.extend([before, if is_comma { " , " } else { " " }]);
    }
    apart.push_str(rest);
    apart
}
