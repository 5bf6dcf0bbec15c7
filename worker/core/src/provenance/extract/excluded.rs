//! What an instruction excludes: "delete all files except keep.db", "pay Anna, and never pay Bob".
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on punctuation and joins. What a negation in another
//! form excludes is named, and a value after a negation that is for something else is not named.

use std::borrow::Cow;

use super::super::action;
use super::super::key::ValueKey;
use super::super::search::{has, is_in};
use super::words::{NUMBER_SIGNS, Place, bare, place};

/// What excludes the words after it. Sorted, as all lists here.
#[rustfmt::skip]
const EXCEPT: [&str; 23] = [
    "anstatt", "anstelle", "ausgenommen", "ausser", "außer", "avoid", "behalte", "behalve", "besides", "eccetto",
    "except", "excepting", "excepto", "exceto", "excluding", "ohne", "salvo", "sans", "sauf", "statt", "tranne",
    "unlike", "without",
];

/// The same with the word that follows.
const EXCEPT_IF: [(&str, &[&str]); 5] = [
    ("apart", &["from"]),
    ("aside", &["from"]),
    ("instead", &["of"]),
    ("other", &["than"]),
    ("rather", &["than"]),
];

/// Negations. Before them, [`COULD`] only tells what was or can be.
#[rustfmt::skip]
const NOT: [&str; 32] = [
    "aren't", "doesn't", "don't", "dont", "geen", "isn't", "jamais", "kein", "keine", "keinem", "keinen", "mustn't",
    "mustnt", "needn't", "never", "nicht", "nichts", "nie", "niemals", "niemand", "niet", "nobody", "nooit", "not",
    "nunca", "não", "pas", "shouldn't", "shouldnt", "won't", "wont", "wouldn't",
];
#[rustfmt::skip]
const COULD: [&str; 8] = ["can", "could", "did", "had", "has", "have", "was", "were"];

/// Negations only at the beginning of a clause, or before an order: "no borres b.md", but not "invoice no 5".
const NO: [&str; 2] = ["no", "non"];

/// Words after a negation that is for nothing else: "don't forget to pay", "not only Anna".
#[rustfmt::skip]
const NO_MORE: [&str; 22] = [
    "forget", "hesitate", "just", "know", "merely", "mind", "nur", "only", "oublie", "oublier", "oubliez", "remember",
    "see", "sicher", "solo", "sure", "think", "understand", "urgent", "vergessen", "vergiss", "worry",
];

/// What makes a statement a condition: "if a.md is not in /work, create it".
const IF: [&str; 8] = ["als", "falls", "if", "se", "si", "sofern", "unless", "wenn"];
const STATES: [&str; 9] =
    ["are", "aren't", "does", "doesn't", "is", "isn't", "nicht", "niet", "pas"];

/// What "all but" and "everything in notes but" begin with.
const ALL: [&str; 8] =
    ["all", "alle", "alles", "any", "anything", "everybody", "everyone", "everything"];
const BUT: [&str; 9] =
    ["aber", "but", "instead", "maar", "mais", "pero", "sino", "sondern", "stattdessen"];

/// Words after `keep` that make it another verb, and words with which `leave` excludes.
const KEPT: [&str; 9] = ["an", "going", "in", "it", "me", "on", "track", "up", "us"];
const ALONE: [&str; 7] = ["alone", "be", "intact", "out", "there", "unchanged", "untouched"];

/// Words that join, and words that begin an order for which [`action`] has no word.
#[rustfmt::skip]
const JOINS: [&str; 18] = [
    "afterwards", "also", "and", "anschließend", "dan", "danach", "dann", "e", "en", "et", "luego", "or", "poi", "puis",
    "so", "then", "und", "y",
];
#[rustfmt::skip]
const ORDERS: [&str; 27] = [
    "add", "answer", "antworte", "ask", "check", "compare", "explain", "fasse", "find", "i", "just", "let", "list", "look",
    "only", "please", "prüfe", "put", "read", "reply", "review", "show", "summarise", "summarize", "tell", "use", "we",
];

/// Words before a `.` that ends no sentence, beside those of numbers.
const SHORT: [&str; 8] = ["bzw", "dr", "e.g", "i.e", "mr", "mrs", "ms", "st"];

/// Words from `everything` to `but`, from `leave` to `alone`, from `if` to a negation, and from `nicht` back to its order.
const MAX_NEAR_WORDS: usize = 8;

/// What separates words, beside spaces. `a.md,b.md` has two words, and so has `1,200`: only what is between words counts.
const BREAKS: [char; 16] =
    [',', ';', '(', ')', '[', ']', '{', '}', '"', '“', '”', '„', '—', '–', '…', '|'];

/// The instruction without the words that it excludes. Their negations and the punctuation stay.
pub fn mentioned<'t>(key: &ValueKey, text: &'t str) -> Cow<'t, str> {
    let words = Words::new(key, text);
    let count = words.places.len();
    let mut excluded = vec![false; count];
    // The first excluded word, and the brackets and colons since then.
    let (mut from, mut opened, mut is_listed) = (None, 0, false);
    for at in 0..count {
        if let Some(begin) = from {
            let gap = words.gap(at);
            is_listed |= has(gap, ':');
            opened += gap.matches('(').count();
            let closed = gap.matches(')').count();
            if closed > opened || (at >= begin && words.ends(at, at == begin, is_listed)) {
                from = None;
            }
            opened -= closed.min(opened);
        }
        match from {
            Some(begin) if at >= begin => {
                if let Some(it) = excluded.get_mut(at) {
                    *it = true;
                }
            }
            Some(_) => {}
            None => {
                if let Some(begin) = words.negated(at) {
                    excluded.iter_mut().take(at).skip(begin).for_each(|it| *it = true);
                }
                from = words.excludes(at).map(|length| at + length);
                (opened, is_listed) = (0, false);
            }
        }
    }
    if !excluded.contains(&true) {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut copied) = (String::with_capacity(text.len()), 0);
    for ((start, end), _) in words.places.iter().zip(&excluded).filter(|(_, is)| **is) {
        kept.push_str(text.get(copied..*start).unwrap_or_default());
        copied = *end;
    }
    kept.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(kept)
}

struct Words<'t> {
    key: &'t ValueKey,
    text: &'t str,
    places: Vec<Place>,
    /// In lower case, with `'` for each apostrophe.
    words: Vec<String>,
}

impl<'t> Words<'t> {
    fn new(key: &'t ValueKey, text: &'t str) -> Self {
        let tokens = text.split(|letter: char| letter.is_whitespace() || BREAKS.contains(&letter));
        let (mut places, mut words) = (Vec::new(), Vec::new());
        for word in tokens.map(bare).filter(|word| !word.is_empty()) {
            places.push(place(text, word));
            words.push(word.to_lowercase().replace(['’', '‘', '´', '`', 'ʼ', '′'], "'"));
        }
        Self { key, text, places, words }
    }

    fn get(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    fn is(&self, at: usize, list: &[&str]) -> bool {
        is_in(list, self.get(at))
    }

    fn is_before(&self, at: usize, list: &[&str]) -> bool {
        at.checked_sub(1).is_some_and(|before| self.is(before, list))
    }

    /// What is before a word.
    fn gap(&self, at: usize) -> &'t str {
        let begin = at.checked_sub(1).and_then(|before| self.places.get(before));
        let end = self.places.get(at).map_or(self.text.len(), |(start, _)| *start);
        self.text.get(begin.map_or(0, |(_, end)| *end)..end).unwrap_or_default()
    }

    /// Whether something is between a word and the one before it.
    fn is_apart(&self, at: usize) -> bool {
        at == 0
            || at >= self.places.len()
            || self.gap(at).contains(['.', ',', ';', ':', '!', '?', '\n', '(', ')'])
    }

    /// The words before a word and from it on, up to the punctuation.
    fn clause(&self, at: usize) -> std::ops::Range<usize> {
        let mut start = at;
        while start + MAX_NEAR_WORDS > at && !self.is_apart(start) {
            start -= 1;
        }
        let mut end = at + 1;
        while at + MAX_NEAR_WORDS > end && !self.is_apart(end) {
            end += 1;
        }
        start..end
    }

    fn is_order(&self, at: usize) -> bool {
        self.is(at, &ORDERS) || !action::stated(self.key, self.get(at)).is_empty()
    }

    /// How many words a word and the next ones are that exclude what follows.
    fn excludes(&self, at: usize) -> Option<usize> {
        let (word, next) = (self.get(at), self.get(at + 1));
        if EXCEPT_IF.iter().any(|(first, nexts)| *first == word && is_in(nexts, next)) {
            return Some(2);
        }
        let near = |list: &[&str]| self.clause(at).any(|it| self.is(it, list));
        let excludes = match word {
            "but" => !self.is_order(at + 1) && !self.is(at + 1, &NOT) && near(&ALL),
            "keep" => !self.is(at + 1, &KEPT),
            "leave" => near(&ALONE),
            _ if self.is(at, &NO) => {
                let begins = self.is_apart(at) || self.is_before(at, &JOINS);
                self.is_order(at + 1) || (begins && !self.is_apart(at + 1))
            }
            _ if self.is(at, &NOT) => {
                let is_statement = self.is(at, &STATES) || self.is_before(at, &STATES);
                !(self.is_before(at, &COULD)
                    || self.is(at + 1, &NO_MORE)
                    || self.is(at + 2, &NO_MORE) && !self.is_order(at + 1)
                    || self.is_before(at, &NO_MORE)
                    || is_statement && near(&IF))
            }
            _ => self.is(at, &EXCEPT),
        };
        excludes.then_some(1)
    }

    /// The first word of the clause if its negation is at its end: "lösche b.md nicht".
    fn negated(&self, at: usize) -> Option<usize> {
        if !matches!(self.get(at), "nicht" | "niet") {
            return None;
        }
        let clause = self.clause(at);
        let is_end = match clause.end - at {
            1 => self.is_order(clause.start),
            2 => self.is_order(at + 1),
            _ => false,
        };
        (is_end && !self.is_before(at, &NO_MORE)).then_some(clause.start)
    }

    /// Whether what is excluded ends before a word. It is the first one after the negation, or not.
    fn ends(&self, at: usize, is_first: bool, is_listed: bool) -> bool {
        let gap = self.gap(at);
        let before = gap.split(char::is_whitespace).next().unwrap_or_default();
        let lines = gap.matches('\n').count();
        let last = at.saturating_sub(1);
        let begins_sentence = || {
            let start = self.places.get(at).map_or(0, |(start, _)| *start);
            self.text.get(start..).is_some_and(|rest| rest.starts_with(char::is_uppercase))
        };
        let is_short = || self.is(last, &SHORT) || NUMBER_SIGNS.contains(&self.get(last));
        if before.contains(['!', '?', ';']) {
            return true;
        }
        if has(before, '.') && !is_short() && (lines > 0 || begins_sentence()) {
            return true;
        }
        if lines > 0 && !before.contains([',', ':']) && !is_first {
            let is_item = gap.trim_end().ends_with(['-', '*', '•']);
            let is_name = self.get(at).chars().all(char::is_alphabetic) && begins_sentence();
            if if is_item { !is_listed } else { lines > 1 || (is_name && self.get(last).len() > 3) }
            {
                return true;
            }
        }
        if is_first {
            return has(before, ',') && self.is_order(at);
        }
        let after_join = self.is(last, &JOINS) && self.is_order(at);
        let is_soft = lines > 0 || gap.contains(['.', ',', ':', '(', ')', '–', '—']);
        after_join || self.is(at, &BUT) || (is_soft && self.is_order(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ValueKey = ValueKey::new([7; 16]);

    #[test]
    fn what_an_instruction_excludes_is_left_out() {
        for (text, excluded) in [
            ("Delete all files in /tmp/x except /tmp/x/keep.db.", "/tmp/x/keep.db"),
            ("Delete everything in notes other than notes/plan.md", "notes/plan.md"),
            ("Delete everything but x.md", "x.md"),
            ("Delete all files in notes but x.md", "x.md"),
            ("Delete a.md but not x.md.", "x.md"),
            ("Delete a.md. Never touch x.md. Mail it.", "x.md"),
            ("Delete a.md. Don’t touch x.md", "x.md"),
            ("Delete a.md. Dont touch x.md", "x.md"),
            ("Delete a.md. Don´t touch b.md and x.md, then mail it", "x.md"),
            ("Delete a.md. Do not touch e.g. x.md. Mail it", "x.md"),
            ("Delete a.md, leave x.md alone", "x.md"),
            ("Delete a.md and keep x.md", "x.md"),
            ("Delete a.md instead of x.md", "x.md"),
            ("Delete a.md rather than b.md and x.md", "x.md"),
            ("Delete a.md, not x.md, and mail anna", "x.md"),
            ("Delete a.md (not x.md) for anna", "x.md"),
            ("Delete a.md,not x.md", "x.md"),
            ("Delete a.md, except:\n- b.md\n- x.md\n\nMail it", "x.md"),
            ("Delete a.md. Never pay the account of\nx.md", "x.md"),
            ("Make acme/shop private, it must not be x.md.", "x.md"),
            ("Lösche a.md, aber nicht x.md", "x.md"),
            ("Lösche alle außer x.md", "x.md"),
            ("Lösche a.md. Lösche x.md nicht.", "x.md"),
            ("Lösche a.md, x.md nicht löschen", "x.md"),
            ("Borra a.md. No borres x.md", "x.md"),
            ("Supprime a.md, mais ne supprime pas x.md", "x.md"),
            ("Supprime tout sauf x.md", "x.md"),
            ("Never touch .env or x.md", "x.md"),
        ] {
            let kept = mentioned(&KEY, text);
            assert!(!kept.contains(excluded), "{text}: {kept}");
            assert!(!text.contains("a.md") || kept.contains("a.md"), "{text}: {kept}");
            assert!(!text.contains("anna") || kept.contains("anna"), "{text}: {kept}");
        }
    }

    #[test]
    fn what_it_does_not_exclude_stays() {
        for text in [
            "Don't forget to pay x.md",
            "Please do not hesitate to delete x.md.",
            "Vergiss nicht, x.md zu löschen",
            "Pay not only Anna but x.md",
            "This is not urgent, pay x.md",
            "Don't merge it. Close x.md",
            "Don't merge it, close x.md",
            "Don't merge it but close x.md",
            "Don't merge it and delete x.md",
            "Do not use emojis\nRepository: x.md",
            "- Do not use emojis\n- Delete x.md",
            "Do not use emojis\n\nx.md",
            "Leave a comment on x.md",
            "Keep me posted on x.md",
            "I can't open x.md",
            "I did not get x.md",
            "If there is not one in x.md, create it",
            "Invoice no 5 is x.md",
            "No problem, delete x.md",
            "Answer bob, but also x.md",
            "If not, delete x.md",
            "Der Server x.md antwortet nicht.",
        ] {
            let kept = mentioned(&KEY, text);
            assert!(kept.contains("x.md"), "{text}: {kept}");
        }
    }

    #[test]
    fn the_lists_are_sorted() {
        let lists: [&[&str]; 13] = [
            &EXCEPT, &NOT, &COULD, &NO, &NO_MORE, &IF, &STATES, &ALL, &BUT, &KEPT, &ALONE, &JOINS,
            &ORDERS,
        ];
        assert!(lists.iter().all(|list| list.is_sorted()) && SHORT.is_sorted());
    }
}
