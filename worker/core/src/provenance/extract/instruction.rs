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
    let counts = |(start, end): Place| {
        let after = counting.partition_point(|(from, _)| *from <= start);
        after.checked_sub(1).and_then(|at| counting.get(at)).is_some_and(|(_, to)| end <= *to)
    };
    scan(instruction, &mut |kind, span| {
        let place = place(instruction, span);
        if !is_part(&numbers, place) && !counts(place) {
            value(key, &mut form, kind, span, &mut take);
        }
    });
    // A line break inside of a prompt is only where it was wrapped. Each place stays the same.
    let mut flat = String::with_capacity(instruction.len());
    for character in instruction.chars() {
        match character.is_whitespace() {
            true => flat.extend(std::iter::repeat_n(' ', character.len_utf8())),
            false => flat.push(character),
        }
    }
    let numbers = self::numbers(&flat, &mut form);
    let words: Vec<&str> = flat.split(' ').filter(|word| !word.is_empty()).collect();
    for count in 1..=MAX_GROUP_WORDS {
        for group in words.windows(count) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (start, end) = (place(&flat, first).0, place(&flat, last).1);
            let is_value = !is_part(&numbers, (start, end)) && !counts((start, end));
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

/// What a number counts if one of these words follows it.
const UNITS: [&str; 24] = [
    "am", "days", "day", "hour", "hours", "hr", "hrs", "min", "mins", "minute", "minutes", "month",
    "months", "night", "nights", "o'clock", "percent", "pm", "second", "seconds", "week", "weeks",
    "year", "years",
];

/// Where numbers are that name nothing, in order: the number of a list's item, a duration, a time, or the day of a month.
/// A short id could be equal to one by accident.
fn counting(text: &str) -> Vec<Place> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |at: Option<usize>| {
        let word = words.get(at?)?;
        Some(word.trim_matches(|character: char| !character.is_alphanumeric()))
    };
    let (mut places, mut items) = (Vec::new(), 0_u32);
    for (at, word) in words.iter().enumerate() {
        let Some(number) = bare(Some(at)).filter(|it| is_number(it)) else { continue };
        let place = place(text, word);
        // The items of a list are numbered from 1 on, so `No. 13.` is none.
        let before = text.get(..place.0).unwrap_or_default().trim_end_matches([' ', '\t']);
        let is_next = matches!(word.strip_prefix(number), Some("." | ")"))
            && number.parse().is_ok_and(|number: u32| number == 1 || number == items + 1)
            && (before.is_empty() || before.ends_with(['\n', '.', ':', ';', '?', '!']));
        if is_next {
            items = number.parse().unwrap_or(items);
        }
        let (previous, next) = (bare(at.checked_sub(1)), bare(at.checked_add(1)));
        let is_counted =
            next.is_some_and(|next| UNITS.iter().any(|it| it.eq_ignore_ascii_case(next)));
        let is_day = number.len() <= 2 && [previous, next].into_iter().flatten().any(is_month);
        if is_next || is_counted || is_day {
            places.push(place);
        }
    }
    places
}

fn is_number(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    word.starts_with(|first: char| first.is_ascii_digit()) && word.bytes().all(is_part)
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
