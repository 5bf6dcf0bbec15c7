//! The values that a user's instruction states.

use super::super::key::{Hashes, ValueKey};
use super::super::normal::{Form, month};
use super::scan::{Kind, scan};
use super::text::{sorted, value};

/// Bytes of an instruction: some 2,500 words.
pub const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

/// Values of an instruction: all words and word groups of some 2,000 words.
pub const MAX_INSTRUCTION_VALUES: usize = 8_192;

/// Words of a group that an instruction may name a value with: "the Miller project files".
const MAX_GROUP_WORDS: usize = 4;

/// Letters of a word that is a value by itself. "to" or "a" is in every instruction.
const MIN_WORD_LETTERS: usize = 3;

/// The hashes of an instruction's values: what [`text`] finds, single words, and groups of up to four words. A group
/// of digits inside of an account number or a date is not a value, because it would state an amount. Nor is a number
/// that only [counts or orders](counting). At most [`MAX_INSTRUCTION_VALUES`]; the rest is missing, which can only lower
/// levels. Sorted.
#[must_use]
pub fn instruction(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let mut hashes = Hashes::default();
    let mut take = |hash| {
        if hashes.len() < MAX_INSTRUCTION_VALUES {
            hashes.insert(hash);
        }
    };
    let mut form = Form::new();
    let numbers = numbers(instruction, &mut form);
    let counting = counting(instruction);
    scan(instruction, &mut |kind, span| {
        let place = place(instruction, span);
        if !is_part(&numbers, place) && !is_within(&counting, place) {
            value(key, &mut form, kind, span, &mut take);
        }
    });
    // A line break inside of a prompt is only where it was wrapped.
    let flat = instruction.replace(|character: char| character.is_whitespace(), " ");
    let numbers = self::numbers(&flat, &mut form);
    let words: Vec<&str> = flat.split(' ').filter(|word| !word.is_empty()).collect();
    for count in 1..=MAX_GROUP_WORDS {
        for (at, group) in words.windows(count).enumerate() {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (start, end) = (place(&flat, first).0, place(&flat, last).1);
            let is_value = !is_part(&numbers, (start, end)) && !only_counts(&counting, at, group);
            let Some(span) = flat.get(start..end).filter(|_| is_value) else { continue };
            let letters = span.chars().filter(|letter| letter.is_alphabetic()).count();
            if count == 1
                && letters < MIN_WORD_LETTERS
                && !span.contains(|c: char| c.is_ascii_digit())
            {
                continue;
            }
            for span in [Some(span), without_possessive(span)].into_iter().flatten() {
                if let Some(form) = form.of(span) {
                    take(key.hash(form));
                }
            }
        }
    }
    sorted(hashes)
}

/// Offsets of the first byte of a span, and of the one after its last.
type Place = (usize, usize);

fn place(text: &str, span: &str) -> Place {
    let start = span.as_ptr().addr() - text.as_ptr().addr();
    (start, start + span.len())
}

/// Where numbers and dates of several words are, in order: their normal form has no gaps.
fn numbers(text: &str, form: &mut Form) -> Vec<Place> {
    let mut places = Vec::new();
    scan(text, &mut |kind, span| {
        if kind == Kind::Value
            && span.trim().contains(' ')
            && form.of(span).is_some_and(|form| !form.contains(&b' '))
        {
            places.push(place(text, span));
        }
    });
    places.sort_unstable();
    places
}

/// Whether a span begins in one of these places, and does not cover the whole.
fn is_part(numbers: &[Place], (start, end): Place) -> bool {
    let after = numbers.partition_point(|(from, _)| *from <= start);
    let before = numbers.get(..after).unwrap_or_default();
    before
        .iter()
        .rev()
        .take(MAX_GROUP_WORDS)
        .any(|(from, to)| start < *to && (start > *from || end < *to))
}

/// A word by its number among the words, and its place.
type Word = (usize, Place);

/// Whether a span is in one of these words.
fn is_within(counting: &[Word], (start, end): Place) -> bool {
    let after = counting.partition_point(|(_, (from, _))| *from <= start);
    let before = after.checked_sub(1).and_then(|at| counting.get(at));
    before.is_some_and(|(_, (_, to))| end <= *to)
}

/// Whether a group of words is one of these words, with nothing but punctuation beside it.
fn only_counts(counting: &[Word], first: usize, group: &[&str]) -> bool {
    let mut words =
        group.iter().enumerate().filter(|(_, word)| word.contains(char::is_alphanumeric));
    let (Some((at, _)), None) = (words.next(), words.next()) else { return false };
    counting.binary_search_by_key(&(first + at), |(word, _)| *word).is_ok()
}

/// What a number counts if one of these words follows it.
const UNITS: [&str; 19] = [
    "day", "days", "hour", "hours", "hr", "hrs", "min", "mins", "minute", "minutes", "month",
    "months", "night", "nights", "seconds", "week", "weeks", "year", "years",
];

/// Hours of the clock, and what follows them.
const HOURS: std::ops::RangeInclusive<u32> = 1..=12;
const OF_THE_CLOCK: [&str; 3] = ["am", "pm", "o'clock"];

const DAYS: std::ops::RangeInclusive<u32> = 1..=31;

/// What stands before a number that names something.
const NUMBER_SIGNS: [&str; 4] = ["no", "nr", "number", "num"];

/// The places of numbers that identify nothing, in order: the numbers of list items, durations, times, and
/// days of a month. A short id could be equal to such a number by accident.
fn counting(text: &str) -> Vec<Word> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut counting: Vec<Word> = Vec::new();
    // The items of the list that the text is in, from 1 on. One item alone is no list.
    let (mut items, mut first_item) = (0, None);
    for (at, word) in words.iter().enumerate() {
        let bare = word.trim_matches(|character: char| !character.is_alphanumeric());
        let Ok(number) = bare.parse::<u32>() else { continue };
        let (opening, after) = word.split_once(bare).unwrap_or_default();
        // A currency or a `#` makes it the number of something.
        if !opening.chars().all(|character| "([{\"'«“‘".contains(character)) {
            continue;
        }
        let found = (at, place(text, word));
        let previous = at.checked_sub(1).and_then(|at| words.get(at)).copied().unwrap_or_default();
        let next = words.get(at + 1).copied().unwrap_or_default();
        if matches!(after, "." | ")") && begins_item(text, found.1, previous) {
            match number {
                1 => (items, first_item) = (1, Some(found)),
                _ if number == items + 1 => {
                    items = number;
                    counting.extend(first_item.take());
                    counting.push(found);
                }
                _ => {}
            }
        }
        // Nothing stands between the number and its unit or month.
        let next = next.trim_end_matches(|character: char| !character.is_alphanumeric());
        let next = if after.is_empty() { next } else { "" };
        let followed = |by: &[&str]| by.iter().any(|unit| unit.eq_ignore_ascii_case(next));
        let is_day = DAYS.contains(&number) && (is_month(previous) || is_month(next));
        let is_hour = HOURS.contains(&number) && followed(&OF_THE_CLOCK);
        if is_day || is_hour || followed(&UNITS) {
            counting.push(found);
        }
    }
    counting.sort_unstable();
    counting
}

/// Whether an item of a list can begin at a place: at the beginning of a line, or after a sentence. `No. 13.` is none.
fn begins_item(text: &str, (start, _): Place, previous: &str) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end_matches([' ', '\t']);
    let sign = previous.trim_matches(|character: char| !character.is_alphanumeric());
    (before.is_empty() || before.ends_with(['\n', '.', ':', ';', '?', '!']))
        && !NUMBER_SIGNS.iter().any(|it| it.eq_ignore_ascii_case(sign))
}

/// Whether a word is the name of a month. It begins with a capital, unlike the verb `may`.
fn is_month(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && month(word.to_ascii_lowercase().as_bytes()).is_some()
}

/// `Alice` of `Alice's`.
fn without_possessive(word: &str) -> Option<&str> {
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"))
}
