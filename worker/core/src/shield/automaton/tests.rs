use super::*;
use proptest::prelude::*;

fn found(literals: &[Searched<'_>], text: &str) -> Vec<(u16, usize)> {
    let automaton = Automaton::new(literals);
    let mut found = Vec::new();
    let mut state = State::START;
    for (at, byte) in text.bytes().enumerate() {
        state = automaton.next(state, automaton.read(byte));
        let list = state.end().map_or(&[][..], |end| automaton.list(end));
        found.extend(list.iter().map(|literal| (*literal, at + 1)));
    }
    found.sort_unstable();
    found
}

fn searched<'l>(literals: &[&'l str], within_words: bool) -> Vec<Searched<'l>> {
    let begins_word = |text: &str| text.bytes().next().is_some_and(is_word);
    literals
        .iter()
        .map(|text| Searched { text, within_words: within_words && begins_word(text) })
        .collect()
}

#[test]
fn every_literal_is_found_also_inside_of_another() {
    for (literals, text, within_words, expected) in [
        (&["he", "she", "hers"][..], "uSHErs", true, &[(0, 4), (1, 4), (2, 6)][..]),
        (&["he", "she", "hers"], "uSHErs SHE he", false, &[(0, 13), (1, 10)]),
        (&["игнор"], "о игнор", false, &[(0, 13)]),
        (&["a b"], "a \r\n\t b", false, &[(0, 7)]),
        (&[" like"], "x  like", false, &[(0, 7)]),
        (&[], "text", true, &[]),
    ] {
        assert_eq!(found(&searched(literals, within_words), text), expected, "{text}");
    }
}

proptest! {
    /// Most literals are longer than what has a row.
    #[test]
    fn the_automaton_finds_what_a_plain_search_finds(
        literals in prop::collection::vec(("[ab.-]{1,9}", any::<bool>()), 1..8),
        text in "[abc.-]{0,60}",
    ) {
        let literals: Vec<Searched<'_>> = literals
            .iter()
            .map(|(text, within_words)| Searched {
                text,
                within_words: *within_words && is_word(text.as_bytes()[0]),
            })
            .collect();
        let bytes = text.as_bytes();
        let mut expected = Vec::new();
        for (number, literal) in (0..).zip(&literals) {
            for end in literal.text.len()..=text.len() {
                let begin = end - literal.text.len();
                let begins = |at: usize| bytes.get(at).copied().is_some_and(is_word);
                let within_word = begin > 0 && begins(begin - 1) && begins(begin);
                if &text[begin..end] == literal.text && (literal.within_words || !within_word) {
                    expected.push((number, end));
                }
            }
        }
        expected.sort_unstable();
        prop_assert_eq!(found(&literals, &text), expected);
    }
}
