//! The values that a user's instruction states.

use super::super::key::{Hashes, ValueKey};
use super::super::normal::Form;
use super::text::{sorted, text};

/// Bytes of an instruction: some 2,500 words.
pub const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

/// Values of an instruction: all words and word groups of some 2,000 words.
pub const MAX_INSTRUCTION_VALUES: usize = 8_192;

/// Words of a group that an instruction may name a value with: "the Miller project files".
const MAX_GROUP_WORDS: usize = 4;

/// Letters of a word that is a value by itself. "to" or "a" is in every instruction.
const MIN_WORD_LETTERS: usize = 3;

/// The hashes of an instruction's values: what [`text`] finds, single words, and groups of up to four
/// words. At most [`MAX_INSTRUCTION_VALUES`]; the rest is missing, which lowers. Sorted.
#[must_use]
pub fn instruction(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let mut hashes = Hashes::default();
    let mut take = |hash| {
        if hashes.len() < MAX_INSTRUCTION_VALUES {
            hashes.insert(hash);
        }
    };
    text(key, instruction, &mut take);
    // A line break inside of a prompt is only where it was wrapped.
    let flat = instruction.replace(|character: char| character.is_whitespace(), " ");
    let words: Vec<&str> = flat.split(' ').filter(|word| !word.is_empty()).collect();
    let start = |word: &str| word.as_ptr().addr() - flat.as_ptr().addr();
    let mut form = Form::new();
    for count in 1..=MAX_GROUP_WORDS {
        for group in words.windows(count) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let Some(span) = flat.get(start(first)..start(last) + last.len()) else { continue };
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

/// `Alice` of `Alice's`.
fn without_possessive(word: &str) -> Option<&str> {
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"))
}
