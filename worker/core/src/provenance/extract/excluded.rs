//! What an instruction excludes: "delete all files except keep.db", "pay Anna, and never pay Bob".
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on punctuation and joins. What a negation in another
//! form excludes is named, and a value after a negation that is for something else is not named.

use super::super::action::{is_verb, joins, leads};
use super::super::search::{has, is_word, lower_word};
use super::words::{NUMBER_SIGNS, Place, bare, place};

/// What excludes the words after it.
const EXCEPT: &str = "anstatt anstelle ausgenommen ausser außer behalve eccetto except excepting excepto exceto excluding ohne salvo \
    sans sauf spare statt tranne unlike without";

/// The same with the word that follows.
const EXCEPT_IF: [(&str, &str); 5] = [
    ("apart", "from"),
    ("aside", "from"),
    ("instead", "of"),
    ("other", "than"),
    ("rather", "than"),
];

/// Negations that forbid what follows, and those that only [tell](STATES) what is.
const NOT: &str = "aren't doesn't don't dont geen isn't jamais kein keine keinem keinen mustn't mustnt needn't never nicht nichts \
    nie niemals niet nooit not nunca não pas shouldn't shouldnt wouldn't";

/// Verbs directly before a negation that then only tells what was, is or can be: "it is not in a.md".
const STATES: &str = "are can could did had has have is ist sind was were wurde";

/// Verbs after "I don't" that forbid what the next verb says.
const WANT: &str = "allow have like need want wish";

/// Negations only at the beginning of a clause, or before an order: "no borres b.md", but not "invoice no 5".
const NO: &str = "no non";

/// Words after a negation that is for nothing else: "don't forget to pay", "not only Anna".
const NO_MORE: &str = "forget hesitate just know merely mind nur only oublie oublier oubliez remember see sicher solo sure think \
    understand urgent vergessen vergiss worry";

/// What makes a statement a condition: "wenn a.md nicht in /work ist".
const IF: &str = "als falls if se si sofern unless wenn";

/// What "all but" and "everything in notes but" begin with.
const ALL: &str = "all alle alles any anything everybody everyone everything";
const BUT: &str = "aber but instead maar mais pero sino sondern stattdessen";

/// Words after `keep` and `leave` that make them other verbs, beside "keep Anna informed"; and words with which `leave`
/// excludes.
const KEPT: &str = "a an going in it me on track up us";
const INFORMED: &str = "informed posted updated";
const ALONE: &str = "alone be intact out there unchanged untouched";

/// What a clause says about the words before: "keep.db must stay", "GB33… is a scam". Some of them only after "must" or
/// "to", and some only after a negation.
const STAYS: &str = "bleiben bleibt fraud phishing remains scam stays unchanged untouched";
const STAY: &str = "remain stay";
const TOUCHED: &str = "changed deleted lost modified overwritten removed touch touched";
const IT: &str = "das es him it that them";

/// Words that begin an order for which [`is_verb`] has no word.
const ORDERS: &str = "add answer antworte ask bitte check compare explain fasse find i just let list look make only please prüfe put \
    read reply review show summarise summarize tell use we";

/// Words before a `.` that ends no sentence, beside those of numbers.
const SHORT: &str = "bzw dr e.g i.e mr mrs ms st";

/// Words from `everything` to `but`, from `leave` to `alone`, and from `stays` back to what stays.
const MAX_NEAR_WORDS: usize = 8;

/// What separates words, beside spaces. `a.md,b.md` has two words, and so has `1,200`: only what is between words counts.
const BREAKS: &str = ",;()[]{}\"“”„—–…|";

/// The instruction without the words that it excludes. Their negations and the punctuation stay.
pub fn mentioned(text: &str) -> String {
    let words = Words::new(text);
    let mut excluded = vec![false; words.words.len()];
    // The first excluded word, whether a bracket is open since then, and whether a list began.
    let (mut from, mut is_inner, mut is_listed) = (None, false, false);
    let mut clause = 0;
    for at in 0..excluded.len() {
        if words.is_apart(at) {
            clause = at;
        }
        if let Some(begin) = from {
            let gap = words.gap(at);
            is_listed |= has(gap, ':');
            let closes = has(gap, ')') && !std::mem::take(&mut is_inner);
            is_inner |= has(gap, '(');
            if closes || (at >= begin && words.ends(at, at == begin, is_listed)) {
                from = None;
            }
        }
        if from.is_none() {
            if let Some(begin) = words.stays(at, clause) {
                excluded.iter_mut().take(at).skip(begin).for_each(|it| *it = true);
            }
            from = words.excludes(at, clause).map(|length| at + length);
            (is_inner, is_listed) = (false, false);
        } else if let Some(it) = excluded.get_mut(at) {
            *it = from.is_some_and(|begin| at >= begin);
        }
    }
    let (mut kept, mut copied) = (String::with_capacity(text.len()), 0);
    for (((start, end), _), _) in words.words.iter().zip(excluded).filter(|(_, is)| *is) {
        kept.push_str(text.get(copied..*start).unwrap_or_default());
        copied = *end;
    }
    kept.push_str(text.get(copied..).unwrap_or_default());
    kept
}

/// Whether a text has one of these letters.
#[inline(never)]
fn has_any(text: &str, letters: &str) -> bool {
    text.chars().any(|letter| letters.chars().any(|other| other == letter))
}

struct Words<'t> {
    text: &'t str,
    /// In lower case, with `'` for each apostrophe. A word between backticks is empty: in code, no word excludes others.
    words: Vec<(Place, String)>,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Self {
        let tokens = text
            .split(|letter: char| letter.is_whitespace() || BREAKS.chars().any(|it| it == letter));
        let (mut words, mut last, mut ticks) = (Vec::new(), 0, 0);
        let count = |text: &str| text.bytes().filter(|byte| *byte == b'`').count();
        let is_closed = count(text) % 2 == 0;
        for word in tokens.map(bare).filter(|word| !word.is_empty()) {
            let place = place(text, word);
            let before = text.get(std::mem::replace(&mut last, place.0)..place.0);
            ticks += count(before.unwrap_or_default());
            let is_code = is_closed && ticks % 2 == 1;
            words.push((place, if is_code { String::new() } else { lower_word(word) }));
        }
        Self { text, words }
    }

    #[inline(never)]
    fn get(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |(_, word)| word)
    }

    #[inline(never)]
    fn is(&self, at: usize, list: &str) -> bool {
        is_word(list, self.get(at))
    }

    #[inline(never)]
    fn any(&self, mut places: std::ops::Range<usize>, list: &str) -> bool {
        places.any(|at| self.is(at, list))
    }

    /// The word before a word.
    #[inline(never)]
    fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.get(before))
    }

    /// What is before a word.
    #[inline(never)]
    fn gap(&self, at: usize) -> &'t str {
        let begin = at.checked_sub(1).and_then(|before| self.words.get(before));
        let end = self.words.get(at).map_or(self.text.len(), |((start, _), _)| *start);
        self.text.get(begin.map_or(0, |((_, end), _)| *end)..end).unwrap_or_default()
    }

    /// Whether something is between a word and the one before it.
    #[inline(never)]
    fn is_apart(&self, at: usize) -> bool {
        let gap = self.gap(at);
        at == 0 || at >= self.words.len() || has_any(gap, ".,;:!?\n()")
    }

    /// The first word after the clause.
    #[inline(never)]
    fn end(&self, at: usize) -> usize {
        (at + 1..at + MAX_NEAR_WORDS).find(|it| self.is_apart(*it)).unwrap_or(at + MAX_NEAR_WORDS)
    }

    #[inline(never)]
    fn is_order(&self, at: usize) -> bool {
        self.is(at, ORDERS) || is_verb(self.get(at))
    }

    /// Whether an order can begin with a word.
    #[inline(never)]
    fn begins(&self, at: usize) -> bool {
        self.is_apart(at) || leads(self.before(at))
    }

    /// How many words a word and the next ones are that exclude what follows.
    fn excludes(&self, at: usize, clause: usize) -> Option<usize> {
        let (word, next) = (self.get(at), self.get(at + 1));
        if EXCEPT_IF.iter().any(|(first, second)| (*first, *second) == (word, next)) {
            return Some(2);
        }
        let (start, end) = (clause.max(at.saturating_sub(MAX_NEAR_WORDS)), self.end(at));
        let near = |list: &str| self.any(start..end, list);
        let excludes = match word {
            "but" => !self.is_order(at + 1) && !self.is(at + 1, NOT) && near(ALL),
            "leave" => !is_word(KEPT, next) && near(ALONE),
            // "There is no reason to keep it."
            "behalte" | "keep" => {
                !(is_word(KEPT, next)
                    || near(INFORMED)
                    || self.any(start..at, NOT)
                    || self.any(start..at, NO))
            }
            "preserve" | "retain" => self.begins(at),
            // To protect a branch is an order of its own.
            "protect" => has(self.gap(at), ',') || self.before(at) == "but",
            // "Avoid jargon."
            "avoid" => self.is_value(at + 1) || is_verb(next) || matches!(next, "the" | "touching"),
            "nobody" | "niemand" => matches!(next, "darf" | "may" | "must" | "should" | "soll"),
            _ if is_word(NO, word) => {
                let begins = self.is_apart(at) || joins(self.before(at));
                self.is_order(at + 1) || (begins && !self.is_apart(at + 1))
            }
            _ if is_word(NOT, word) => self.forbids(at, start, end),
            _ => is_word(EXCEPT, word),
        };
        excludes.then_some(1)
    }

    /// Whether a negation forbids, and does not tell what is: "the button doesn't work in app.ts".
    fn forbids(&self, at: usize, start: usize, end: usize) -> bool {
        let (word, last) = (self.get(at), self.before(at));
        if self.is(at + 1, NO_MORE)
            || (self.is(at + 2, NO_MORE) && !self.is_order(at + 1))
            || is_word(NO_MORE, last)
        {
            return false;
        }
        // "It is not a.md."
        if self.is_value(at + 1) {
            return true;
        }
        let is_apart = matches!(last, "do" | "does");
        if is_apart || matches!(word, "doesn't" | "don't" | "dont") {
            return self.begins(at - usize::from(is_apart))
                || self.is(at + 1, TOUCHED)
                || (at + 1..if self.is(at + 1, WANT) { end } else { at + 2 })
                    .any(|it| is_verb(self.get(it)) || self.is(it, TOUCHED));
        }
        // "It's", "they're".
        let is_short = has(last, '\'') && last != "let's";
        let is_told = is_word(STATES, last)
            || is_short
            || matches!(word, "aren't" | "isn't")
            || (matches!(word, "nicht" | "niet" | "pas") && self.any(start..end, IF));
        // "It is not Bob but Anna."
        !is_told || self.any(at + 1..end, BUT)
    }

    /// Whether a word is more than letters.
    #[inline(never)]
    fn is_value(&self, at: usize) -> bool {
        !self.get(at).chars().all(|letter| letter.is_alphabetic() || letter == '\'')
    }

    /// The first word of those before a word that the clause says to leave as they are: "lösche b.md nicht", "keep.db must
    /// stay", "b.md is not to be deleted".
    fn stays(&self, at: usize, clause: usize) -> Option<usize> {
        let (word, last, next) = (self.get(at), self.before(at), self.get(at + 1));
        let is_late = matches!(word, "nicht" | "niet") && !is_word(NO_MORE, last);
        let is_passive = || {
            // "Docs should not be private any longer."
            if self.any(at..self.end(at), "anymore longer") {
                return false;
            }
            let is_touched = matches!(word, "aren't" | "isn't") || matches!(last, "are" | "is");
            next == "be"
                || (next == "to" && self.get(at + 2) == "be")
                || (is_touched && is_word(TOUCHED, next))
        };
        let stays = is_word(STAYS, word)
            || (is_word(STAY, word) && leads(last))
            || (is_word(NOT, word) && is_passive());
        if !stays && !is_late {
            return None;
        }
        let near = at.saturating_sub(MAX_NEAR_WORDS);
        // "BK-1002 confirmed, stays".
        let is_alone = clause == at && !has_any(self.gap(at), ".;!?\n");
        let before = (near..at).rfind(|it| self.is_apart(*it)).filter(|_| is_alone);
        let (first, end) = (before.unwrap_or(clause.max(near)), self.end(at));
        let begin = (first..at).rfind(|it| {
            self.is(*it, BUT)
                || matches!(self.get(*it), "ensure" | "sure" | "that")
                || (joins(self.get(*it)) && self.is_order(it + 1))
        });
        let start = begin.map_or(first, |it| it + 1);
        let is_said = match stays {
            // "The mail is a scam, delete it."
            true => {
                let next = end + usize::from(self.is(end, "bitte please so"));
                !(self.is_order(start) || (is_verb(self.get(next)) && self.is(next + 1, IT)))
            }
            false if end == at + 1 => self.is_order(start),
            false => end <= at + 3 && self.is_order(at + 1),
        };
        is_said.then_some(start)
    }

    /// Whether what is excluded ends before a word. It is the first one after the negation, or not.
    fn ends(&self, at: usize, is_first: bool, is_listed: bool) -> bool {
        let (gap, last, is_order) = (self.gap(at), self.before(at), self.is_order(at));
        let before = gap.split(char::is_whitespace).next().unwrap_or_default();
        let lines = gap.bytes().filter(|byte| *byte == b'\n').count();
        let start = self.words.get(at).map_or(0, |((start, _), _)| *start);
        let rest = self.text.get(start..).unwrap_or_default();
        let is_capital = rest.starts_with(char::is_uppercase);
        let is_short = || is_word(SHORT, last) || NUMBER_SIGNS.contains(&last);
        if has_any(before, "!?;") || (has(before, '.') && (lines > 0 || is_capital) && !is_short())
        {
            return true;
        }
        if lines > 0 && !has_any(before, ",:") && !is_first {
            let is_name = is_capital && !self.is_value(at) && last.len() > 3;
            if match matches!(gap.trim_end().chars().next_back(), Some('-' | '*' | '•')) {
                true => !is_listed,
                false => lines > 1 || is_name,
            } {
                return true;
            }
        }
        if is_first {
            return has(before, ',') && is_order;
        }
        let is_soft = lines > 0 || has_any(gap, ".,:()–—");
        let follows = is_soft || joins(last) || last == "also";
        self.is(at, BUT)
            || (is_order && follows)
            || (is_soft && matches!(self.get(at), "that" | "that's"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Delete a.md. Don＇t touch x.md", "x.md"),
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
            ("Delete a.md. x.md must stay.", "x.md"),
            ("Delete a.md; make sure x.md is not touched", "x.md"),
            ("Delete a.md and make sure that x.md isn't deleted", "x.md"),
            ("Delete a.md, preserve x.md", "x.md"),
            ("Delete a.md, protect x.md", "x.md"),
            ("Delete a.md (x.md stays)", "x.md"),
            ("Delete a.md. x.md must stay, I need it.", "x.md"),
            ("Delete a.md but x.md remains", "x.md"),
            ("Pay a.md. x.md is a scam account, ignore it.", "x.md"),
            ("Delete a.md. x.md must not be deleted.", "x.md"),
            ("Delete a.md. x.md is not to be deleted.", "x.md"),
            ("Delete a.md. I don't want x.md deleted.", "x.md"),
            ("Delete a.md. Bob doesn't want x.md touched.", "x.md"),
            ("Delete a.md. We do not delete x.md.", "x.md"),
            ("Pay a.md. The account is not x.md2", "x.md2"),
            ("Delete a.md. Nobody should touch x.md.", "x.md"),
            ("Mail anna. It's not bob x.md who needs it but anna.", "x.md"),
            ("Delete a.md. Avoid touching x.md", "x.md"),
            ("Never delete b.md or remove x.md", "x.md"),
            ("Lösche a.md, x.md soll nicht gelöscht werden", "x.md"),
        ] {
            let kept = mentioned(text);
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
            "The button doesn't work in x.md, fix it",
            "The button doesn't work in x.md. Fix it.",
            "Tests aren't passing in x.md, leave a comment there",
            "Why isn't PR 34 in x.md merged yet? Merge it now.",
            "There's no reason to keep x.md, delete it",
            "We do not use x.md anymore, remove it",
            "Nobody uses x.md. Delete it.",
            "I don't want to keep the subscription x.md any longer, please cancel it",
            "Update a.md so that it does not mention Bob, and x.md too",
            "Mail anna, without going into details, that x.md is done",
            "Avoid jargon in the mail to x.md",
            "Besides anna also mail x.md",
            "Keep x.md informed",
            "Keep a copy of x.md",
            "Leave a note in x.md that there is milk to buy",
            "Protect the branch x.md",
            "PR x.md isn't changed yet. Please update it.",
            "The mail x.md is a scam, delete it.",
            "Tell anna that the price of x.md stays, and mail x.md",
            "Run `delete from t where not a` in x.md",
            "Cancel my stay x.md",
            "It's not working in x.md",
        ] {
            let kept = mentioned(text);
            assert!(kept.contains("x.md"), "{text}: {kept}");
        }
    }
}
