//! Finds all literals in one pass over a text (A. V. Aho and M. J. Corasick, "Efficient string matching",
//! 1975), as a table from state and byte to state.
//!
//! INVARIANT (linear): one step of the table for each byte. The literals that end at one byte are bounded when
//! the table is built.

/// The state in which no literal has begun.
const ROOT: usize = 0;

/// The literals of a rule set.
#[derive(Debug)]
pub struct Automaton {
    /// The class of each byte. Upper and lower case of ASCII have one class; bytes of no literal have class 0.
    classes: [u8; 256],
    /// For each state a row with one entry a class: the next state.
    next: Vec<u16>,
    /// For each state where its literals begin in `literals`, and an end after the last one.
    ends: Vec<u32>,
    literals: Vec<u16>,
    columns: usize,
    /// States from here on end a literal.
    first_end: u16,
}

impl Automaton {
    /// The automaton of these literals, whose numbers are their positions. Case of ASCII is ignored, and a space in
    /// a literal is any number of spaces and line breaks.
    #[must_use]
    pub fn new(literals: &[&str]) -> Self {
        let mut classes = [0_u8; 256];
        let mut count = 1_u8;
        for byte in literals.iter().flat_map(|literal| literal.bytes()) {
            let byte = byte.to_ascii_lowercase();
            let Some(class) = classes.get_mut(usize::from(byte)) else { continue };
            if *class == 0 {
                *class = count;
                count = count.saturating_add(1);
            }
        }
        for letter in b'a'..=b'z' {
            let class = classes.get(usize::from(letter)).copied().unwrap_or_default();
            if let Some(upper) = classes.get_mut(usize::from(letter.to_ascii_uppercase())) {
                *upper = class;
            }
        }
        let columns = usize::from(count);
        let space = class_of(&classes, b' ');
        for byte in [b'\t', b'\n', b'\r'] {
            if let Some(class) = classes.get_mut(usize::from(byte)) {
                *class = space;
            }
        }
        let trie = Trie::new(literals, &classes, columns);
        trie.into_automaton(classes, columns)
    }

    /// Calls `found` with the number of each literal that ends at an offset, and the offset.
    #[inline]
    pub fn each(&self, text: &[u8], mut found: impl FnMut(u16, usize)) {
        let mut state = 0_u16;
        for (at, byte) in text.iter().enumerate() {
            let class = self.classes.get(usize::from(*byte)).copied().unwrap_or_default();
            let entry = usize::from(state) * self.columns + usize::from(class);
            state = self.next.get(entry).copied().unwrap_or_default();
            if state >= self.first_end {
                let state = usize::from(state);
                let (from, to) = match self.ends.get(state..state + 2) {
                    Some(&[from, to]) => (from as usize, to as usize),
                    _ => (0, 0),
                };
                for literal in self.literals.get(from..to).unwrap_or_default() {
                    found(*literal, at + 1);
                }
            }
        }
    }

    /// The most literals that end at one byte.
    #[must_use]
    pub fn most_ends(&self) -> usize {
        let bounds = self.ends.windows(2);
        bounds.map(|pair| pair.iter().fold(0, |from, to| *to - from) as usize).max().unwrap_or(0)
    }

    /// The bytes of the tables.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.next.len() * 2 + self.ends.len() * 4 + self.literals.len() * 2
    }
}

fn class_of(classes: &[u8; 256], byte: u8) -> u8 {
    classes.get(usize::from(byte)).copied().unwrap_or_default()
}

struct Trie {
    /// For each state its row of next states; 0: none.
    rows: Vec<usize>,
    literals: Vec<Vec<u16>>,
    /// For each state whether a space leads to it. Then more spaces stay there.
    after_space: Vec<bool>,
    columns: usize,
}

impl Trie {
    fn new(literals: &[&str], classes: &[u8; 256], columns: usize) -> Self {
        let mut trie = Self {
            rows: vec![0; columns],
            literals: vec![Vec::new()],
            after_space: vec![false],
            columns,
        };
        let space = usize::from(class_of(classes, b' '));
        for (number, literal) in literals.iter().enumerate() {
            let mut state = ROOT;
            for byte in literal.bytes() {
                let byte = usize::from(byte.to_ascii_lowercase());
                let class = usize::from(classes.get(byte).copied().unwrap_or_default());
                state = trie.child(state, class, class == space);
            }
            if let (Some(ends), Ok(number)) = (trie.literals.get_mut(state), number.try_into()) {
                ends.push(number);
            }
        }
        trie
    }

    fn child(&mut self, state: usize, class: usize, is_space: bool) -> usize {
        let at = state * self.columns + class;
        match self.rows.get(at) {
            Some(0) => {
                let child = self.literals.len();
                self.rows.resize(self.rows.len() + self.columns, 0);
                self.literals.push(Vec::new());
                self.after_space.push(is_space);
                if let Some(entry) = self.rows.get_mut(at) {
                    *entry = child;
                }
                child
            }
            Some(child) => *child,
            None => ROOT,
        }
    }

    fn row(&self, state: usize) -> &[usize] {
        self.rows.get(state * self.columns..(state + 1) * self.columns).unwrap_or_default()
    }

    /// Fills the rows from the root outwards. The row of a state takes over what the state of its longest
    /// proper suffix does.
    fn into_automaton(mut self, classes: [u8; 256], columns: usize) -> Automaton {
        let states = self.literals.len();
        let mut suffix = vec![ROOT; states];
        let mut order: Vec<usize> = vec![ROOT];
        let mut taken = 0;
        let space = usize::from(class_of(&classes, b' '));
        while let Some(state) = order.get(taken).copied() {
            taken += 1;
            let of_suffix = suffix.get(state).copied().unwrap_or_default();
            for class in 0..columns {
                let child = self.row(state).get(class).copied().unwrap_or_default();
                let stays = class == space && self.after_space.get(state) == Some(&true);
                let fallback = match state {
                    _ if stays => state,
                    ROOT => ROOT,
                    _ => self.row(of_suffix).get(class).copied().unwrap_or_default(),
                };
                if child == 0 {
                    if let Some(entry) = self.rows.get_mut(state * columns + class) {
                        *entry = fallback;
                    }
                    continue;
                }
                if let Some(entry) = suffix.get_mut(child) {
                    *entry = fallback;
                }
                let inherited = self.literals.get(fallback).cloned().unwrap_or_default();
                if let Some(ends) = self.literals.get_mut(child) {
                    ends.extend(inherited);
                }
                order.push(child);
            }
        }
        self.numbered(&order, classes, columns)
    }

    /// Numbers the states so that those that end a literal are last.
    fn numbered(self, order: &[usize], classes: [u8; 256], columns: usize) -> Automaton {
        let is_end = |state: &usize| self.literals.get(*state).is_some_and(|ends| !ends.is_empty());
        let sorted: Vec<usize> = order
            .iter()
            .filter(|state| !is_end(state))
            .chain(order.iter().filter(|state| is_end(state)))
            .copied()
            .collect();
        let mut number = vec![0_u16; sorted.len()];
        for (at, state) in (0_u16..).zip(&sorted) {
            if let Some(entry) = number.get_mut(*state) {
                *entry = at;
            }
        }
        let number = |state: &usize| number.get(*state).copied().unwrap_or_default();
        let first_end = sorted.iter().filter(|state| !is_end(state)).count();
        let mut automaton = Automaton {
            classes,
            next: Vec::with_capacity(sorted.len() * columns),
            ends: vec![0],
            literals: Vec::new(),
            columns,
            first_end: u16::try_from(first_end).unwrap_or(u16::MAX),
        };
        for state in &sorted {
            automaton.next.extend(self.row(*state).iter().map(number));
            automaton.literals.extend(self.literals.get(*state).into_iter().flatten());
            automaton.ends.push(u32::try_from(automaton.literals.len()).unwrap_or(u32::MAX));
        }
        automaton
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(literals: &[&str], text: &str) -> Vec<(u16, usize)> {
        let mut found = Vec::new();
        Automaton::new(literals).each(text.as_bytes(), |literal, end| found.push((literal, end)));
        found.sort_unstable();
        found
    }

    #[test]
    fn every_literal_is_found_also_inside_of_another() {
        assert_eq!(found(&["he", "she", "hers"], "uSHErs"), [(0, 4), (1, 4), (2, 6)]);
        assert_eq!(found(&["игнор"], "о игнор"), [(0, 13)]);
        assert_eq!(found(&[], "text"), []);
    }

    proptest! {
        #[test]
        fn the_automaton_finds_what_a_plain_search_finds(
            literals in prop::collection::vec("[abc]{1,4}", 1..8),
            text in "[abcd]{0,40}",
        ) {
            let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
            let mut expected = Vec::new();
            for (number, literal) in (0..).zip(&literals) {
                for end in literal.len()..=text.len() {
                    if text[..end].ends_with(literal) {
                        expected.push((number, end));
                    }
                }
            }
            expected.sort_unstable();
            prop_assert_eq!(found(&literals, &text), expected);
        }
    }
}
