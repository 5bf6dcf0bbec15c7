//! Searches of short texts and lists. Inlined into each caller, as the library's are, they take much more code.

/// Whether a text has a letter.
#[inline(never)]
#[must_use]
pub fn has(text: &str, letter: char) -> bool {
    text.contains(letter)
}

/// Where a few bytes first occur. In texts as short as values, the library's search costs more to set up than to run.
#[must_use]
pub fn find<const N: usize>(text: &str, few: &[u8; N]) -> Option<usize> {
    text.as_bytes().windows(N).position(|window| window == few)
}

/// What is before the first such letter of a text, and what is after it.
#[inline(never)]
#[must_use]
pub fn split_once(text: &str, letter: char) -> Option<(&str, &str)> {
    text.split_once(letter)
}

/// The same for a letter that is sought from the end.
#[inline(never)]
#[must_use]
pub fn rsplit_once(text: &str, letter: char) -> Option<(&str, &str)> {
    text.rsplit_once(letter)
}

/// A text without white space around it. Most texts have none.
#[inline(never)]
#[must_use]
pub fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

/// A text without these letters at its beginning.
#[inline(never)]
#[must_use]
pub fn trim_start<'t>(text: &'t str, letters: &[char]) -> &'t str {
    text.trim_start_matches(letters)
}

/// A text without these letters at its end.
#[inline(never)]
#[must_use]
pub fn trim_end<'t>(text: &'t str, letters: &[char]) -> &'t str {
    text.trim_end_matches(letters)
}

/// A text in lower case, as far as it is ASCII.
#[inline(never)]
#[must_use]
pub fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// The number that a text is.
#[inline(never)]
#[must_use]
pub fn decimal(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// Whether two names differ at most in their case.
#[inline(never)]
#[must_use]
pub fn is_same(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Whether a list has the name, in any case.
#[inline(never)]
#[must_use]
pub fn is_one_of(list: &[&str], name: &str) -> bool {
    list.iter().any(|listed| listed.eq_ignore_ascii_case(name))
}

/// The same for a sorted list in lower case.
#[inline(never)]
#[must_use]
pub fn is_in(list: &[&str], name: &str) -> bool {
    let lower = || name.bytes().map(|byte| byte.to_ascii_lowercase());
    list.binary_search_by(|listed| listed.bytes().cmp(lower())).is_ok()
}

/// Whether words with a space between them have the word, in any case. A list of texts takes eight bytes more for each.
#[inline(never)]
#[must_use]
pub fn is_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|listed| is_same(listed, word))
}

/// Whether a text ends with one of these, in any case.
#[inline(never)]
#[must_use]
pub fn ends_with_any(text: &str, ends: &[&str]) -> bool {
    ends.iter().any(|end| {
        let at = text.len().checked_sub(end.len());
        at.and_then(|at| text.get(at..)).is_some_and(|it| it.eq_ignore_ascii_case(end))
    })
}

/// A word in lower case, with `'` for each sign that people use for an apostrophe.
// Inlined into each caller, it takes much more code.
#[inline(never)]
#[must_use]
pub fn lower_word(word: &str) -> String {
    word.to_lowercase().replace(|letter: char| "`´‘’‛ʼ′＇".contains(letter), "'")
}
