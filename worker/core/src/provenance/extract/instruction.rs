//! The values that a user's instruction states.

use super::super::key::{Hashes, ValueKey};
use super::super::normal::Form;
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
/// of digits inside of an account number or a date is not a value, because it would state an amount. At most
/// [`MAX_INSTRUCTION_VALUES`]; the rest is missing, which can only lower levels. Sorted.
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
    scan(instruction, &mut |kind, span| {
        if !is_part(&numbers, place(instruction, span)) {
            value(key, &mut form, kind, span, &mut take);
        }
    });
    // A line break inside of a prompt is only where it was wrapped.
    let flat = instruction.replace(|character: char| character.is_whitespace(), " ");
    let numbers = self::numbers(&flat, &mut form);
    let words: Vec<&str> = flat.split(' ').filter(|word| !word.is_empty()).collect();
    for count in 1..=MAX_GROUP_WORDS {
        for group in words.windows(count) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (start, end) = (place(&flat, first).0, place(&flat, last).1);
            let Some(span) = flat.get(start..end).filter(|_| !is_part(&numbers, (start, end)))
            else {
                continue;
            };
            let counts = span.chars().filter(|letter| letter.is_alphabetic()).count();
            if count == 1
                && counts < MIN_WORD_LETTERS
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

/// `Alice` of `Alice's`.
fn without_possessive(word: &str) -> Option<&str> {
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"))
}
