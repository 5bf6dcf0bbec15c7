//! Finds all literals in one pass over a text (A. V. Aho and M. J. Corasick, "Efficient string matching", 1975).
//!
//! A state is the longest beginning of a literal with which the text that was read so far ends. States that most texts
//! reach have a row: a table from byte to state. From most other states only one byte leads on. These states have a
//! link: that byte, and the state of the longest proper suffix, from which any other byte is read.
//!
//! INVARIANT (linear): a byte costs a lookup in a row, or a step along a link. Each suffix that is tried undoes such a
//! step. The literals that end at one byte are bounded when the tables are built.

use std::ops::RangeInclusive;

use super::detect::is_word;

/// The literals of a rule set.
///
/// A state is a number: of a row, or, from `first_link` on, of a link. The tables are small, because each call reads
/// them anew: what the processor kept of them since the last call is mostly gone.
#[derive(Debug)]
pub struct Automaton {
    /// The class of each byte. Upper and lower case of ASCII have one class.
    classes: [u8; 256],
    /// For each row the next state by class. A row has `1 << shift` entries.
    rows: Vec<u16>,
    shift: u32,
    links: Vec<Link>,
    first_link: u16,
    /// The states that end a literal: the last rows, and the first links.
    first_end: u16,
    /// For each of these states: where its list begins in `lists`.
    ends: Vec<u16>,
    /// Lists of literals, the longest first. Before each list stands the number of its literals.
    lists: Vec<u16>,
}

/// A state without a row.
#[derive(Debug)]
struct Link {
    /// The class of the byte that leads on.
    class: u8,
    next: u16,
    /// The state of the longest proper suffix.
    suffix: u16,
}

/// A literal that is searched.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'l> {
    pub text: &'l str,
    /// Whether it is also found within words. Other literals that begin like a word are found only where words begin.
    pub within_words: bool,
}

impl Automaton {
    /// The state at the beginning of a text.
    pub const START: u16 = 0;

    /// The automaton of these literals, whose numbers are their positions. Case of ASCII is ignored, and a space in
    /// a literal is any number of spaces and line breaks.
    ///
    /// It is right only if [`Self::fits`] says so.
    #[must_use]
    pub fn new(literals: &[Searched<'_>]) -> Self {
        Trie::new(literals).into_automaton()
    }

    /// Whether the numbers of all states and lists fit.
    #[must_use]
    pub fn fits(&self) -> bool {
        let states = (self.rows.len() >> self.shift) + self.links.len();
        states.max(self.lists.len()) <= usize::from(u16::MAX)
    }

    /// The state after one more byte.
    #[inline]
    #[must_use]
    pub fn next(&self, state: u16, byte: u8) -> u16 {
        let class = class_of(&self.classes, byte);
        // A state with a link is a number after all rows.
        match self.rows.get((usize::from(state) << self.shift) + usize::from(class)) {
            Some(next) => *next,
            None => self.next_of_link(state, class),
        }
    }

    /// It is not inlined, so that the loop over all bytes stays small.
    #[inline(never)]
    fn next_of_link(&self, mut state: u16, class: u8) -> u16 {
        while let Some(link) = self.link(state) {
            if link.class == class {
                return link.next;
            }
            state = link.suffix;
        }
        let row = usize::from(state) << self.shift;
        self.rows.get(row + usize::from(class)).copied().unwrap_or_default()
    }

    fn link(&self, state: u16) -> Option<&Link> {
        self.links.get(usize::from(state.checked_sub(self.first_link)?))
    }

    /// The number of a state among those that end a literal; `None` if it ends none. Most states end none.
    #[inline]
    #[must_use]
    pub fn end(&self, state: u16) -> Option<usize> {
        let end = usize::from(state.wrapping_sub(self.first_end));
        (end < self.ends.len()).then_some(end)
    }

    /// The literals that end at such a state, by their numbers; the longest first.
    #[must_use]
    pub fn list(&self, end: usize) -> &[u16] {
        let begin = self.ends.get(end).copied().unwrap_or_default();
        let list = self.lists.get(usize::from(begin)..).unwrap_or_default();
        let (count, list) = list.split_first().unwrap_or((&0, &[]));
        list.get(..usize::from(*count)).unwrap_or_default()
    }

    /// For each state that ends a literal its list, as [`Self::list`].
    pub fn all_lists(&self) -> impl Iterator<Item = &[u16]> {
        (0..self.ends.len()).map(|end| self.list(end))
    }

    /// The bytes of the tables.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        size_of_val(self.rows.as_slice())
            + size_of_val(self.links.as_slice())
            + size_of_val(self.ends.as_slice())
            + size_of_val(self.lists.as_slice())
    }
}

/// Bytes of the beginnings that have a row in any case. Those of ordinary texts are seldom longer.
const MAX_ROW_BYTES: usize = 3;

/// The class of the bytes that no literal has.
const UNKNOWN: u8 = 0;

/// The class of white space. It, and the letters after it, are together in a row, because most bytes are of these classes.
const SPACE: u8 = 1;

/// The classes of the bytes of words. They are the same for all literals.
const WORD_CLASSES: RangeInclusive<u8> = SPACE + 1..=SPACE + 26 + 10 + 1;

/// No class: its link leads to no next state.
const NO_CLASS: u8 = u8::MAX;

/// The nodes before any literal has begun: outside of a word, and after a byte of a word. After such a byte, only those
/// literals begin that are found within words.
const OUTSIDE: usize = 0;
const WITHIN: usize = 1;

/// The beginnings of all literals. Each is a node.
struct Trie {
    classes: [u8; 256],
    columns: u8,
    nodes: Vec<Node>,
    /// For each node the literals that end there.
    ends: Vec<Vec<u16>>,
    /// The next node, for each node with a row and each class.
    rows: Vec<usize>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// The class of the byte that leads here.
    class: u8,
    bytes: usize,
    /// The first node that is one byte longer, and the next node of the same parent; zero: none.
    child: usize,
    sibling: usize,
    /// The node of the longest proper suffix. For the first two nodes: each other.
    suffix: usize,
    /// Where its row begins.
    row: Option<usize>,
}

impl Trie {
    fn new(literals: &[Searched<'_>]) -> Self {
        let (classes, columns) = classes_of(literals);
        let first = [WITHIN, OUTSIDE].map(|suffix| Node { suffix, ..Node::default() });
        let ends = vec![Vec::new(); first.len()];
        let mut trie = Self { classes, columns, nodes: first.to_vec(), ends, rows: Vec::new() };
        for (literal, number) in literals.iter().zip(0..) {
            trie.add(OUTSIDE, literal.text, number);
            if literal.within_words {
                trie.add(WITHIN, literal.text, number);
            }
        }
        trie
    }

    fn add(&mut self, mut node: usize, literal: &str, number: u16) {
        for byte in literal.bytes() {
            let class = class_of(&self.classes, byte);
            node = self.child(node, class).unwrap_or_else(|| self.add_child(node, class));
        }
        if let Some(ends) = self.ends.get_mut(node) {
            ends.push(number);
        }
    }

    fn add_child(&mut self, parent: usize, class: u8) -> usize {
        let child = self.nodes.len();
        let Node { bytes, child: sibling, .. } = self.node(parent);
        self.nodes.push(Node { class, bytes: bytes + 1, sibling, ..Node::default() });
        self.ends.push(Vec::new());
        self.change(parent, |parent| parent.child = child);
        child
    }

    fn node(&self, at: usize) -> Node {
        self.nodes.get(at).copied().unwrap_or_default()
    }

    fn change(&mut self, at: usize, change: impl FnMut(&mut Node)) {
        self.nodes.get_mut(at).into_iter().for_each(change);
    }

    fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let some = |child: usize| (child != 0).then_some(child);
        std::iter::successors(some(self.node(node).child), move |child| {
            some(self.node(*child).sibling)
        })
    }

    fn child(&self, node: usize, class: u8) -> Option<usize> {
        self.children(node).find(|child| self.node(*child).class == class)
    }

    /// Whether more spaces stay at a node.
    const fn is_spaced(node: Node) -> bool {
        node.bytes > 0 && node.class == SPACE
    }

    /// The node in which no literal has begun after such a byte.
    fn root(class: u8) -> usize {
        if WORD_CLASSES.contains(&class) { WITHIN } else { OUTSIDE }
    }

    /// The node after one more byte.
    fn next(&self, mut at: usize, class: u8) -> usize {
        loop {
            let node = self.node(at);
            if let Some(row) = node.row {
                return self.rows.get(row + usize::from(class)).copied().unwrap_or_default();
            }
            if let Some(child) = self.child(at, class) {
                return child;
            }
            let stays = Self::is_spaced(node) && node.class == class;
            if stays || at == Self::root(class) {
                return at;
            }
            at = node.suffix;
        }
    }

    /// The row of a node. Only the bytes that lead on from here lead elsewhere than from the suffix.
    fn row(&self, at: usize, children: &[usize]) -> Vec<usize> {
        let node = self.node(at);
        let of_suffix = self.node(node.suffix).row.filter(|_| node.bytes > 0);
        let of_suffix =
            of_suffix.and_then(|row| self.rows.get(row..row + usize::from(self.columns)));
        let Some(of_suffix) = of_suffix else {
            return (0..self.columns).map(|class| self.next(at, class)).collect();
        };
        let mut row = of_suffix.to_vec();
        let stays = Self::is_spaced(node).then_some((node.class, at));
        let children = children.iter().map(|child| (self.node(*child).class, *child));
        for (class, next) in stays.into_iter().chain(children) {
            row.get_mut(usize::from(class)).into_iter().for_each(|entry| *entry = next);
        }
        row
    }

    /// Links the nodes from the beginning outwards, and fills the rows.
    fn into_automaton(mut self) -> Automaton {
        let mut order = vec![OUTSIDE, WITHIN];
        let mut taken = 0;
        while let Some(at) = order.get(taken).copied() {
            taken += 1;
            let node = self.node(at);
            let children: Vec<usize> = self.children(at).collect();
            for child in &children {
                let class = self.node(*child).class;
                let suffix = match node.bytes {
                    0 => Self::root(class),
                    _ if Self::is_spaced(node) && node.class == class => at,
                    _ => self.next(node.suffix, class),
                };
                let inherited = self.ends.get(suffix).cloned().unwrap_or_default();
                self.ends.get_mut(*child).into_iter().for_each(|ends| ends.extend(&inherited));
                self.change(*child, |child| child.suffix = suffix);
            }
            if node.bytes <= MAX_ROW_BYTES || children.len() > 1 || Self::is_spaced(node) {
                let row = self.row(at, &children);
                let begin = self.rows.len();
                self.rows.extend(row);
                self.change(at, |node| node.row = Some(begin));
            }
            order.extend(children);
        }
        self.numbered(order)
    }

    /// Numbers the nodes: those with a row first. Those that end a literal are in the middle.
    fn numbered(self, nodes: Vec<usize>) -> Automaton {
        let list = |at: usize| self.ends.get(at).map(Vec::as_slice).unwrap_or_default();
        let has_row = |at: usize| self.node(at).row.is_some();
        let mut order = Vec::with_capacity(nodes.len());
        // A pass for each kind of node needs less code than a sort.
        for kind in [(true, true), (true, false), (false, false), (false, true)] {
            let kind_of = |at: usize| (has_row(at), list(at).is_empty());
            order.extend(nodes.iter().copied().filter(|at| kind_of(*at) == kind));
        }
        let mut states = vec![0; order.len()];
        for (at, number) in order.iter().zip(0..) {
            states.get_mut(*at).into_iter().for_each(|state| *state = number);
        }
        let state = |at: usize| states.get(at).copied().unwrap_or_default();
        let count = |is: &dyn Fn(usize) -> bool| order.iter().filter(|at| is(**at)).count() as u16;
        let shift = usize::from(self.columns).next_power_of_two().trailing_zeros();
        let mut automaton = Automaton {
            classes: self.classes,
            rows: Vec::new(),
            shift,
            links: Vec::new(),
            first_link: count(&has_row),
            first_end: count(&|at| has_row(at) && list(at).is_empty()),
            ends: Vec::new(),
            lists: Vec::new(),
        };
        for at in order.iter().copied() {
            let node = self.node(at);
            let list = list(at);
            if !list.is_empty() {
                automaton.ends.push(automaton.lists.len() as u16);
                automaton.lists.push(list.len() as u16);
                automaton.lists.extend(list);
            }
            if let Some(row) = node.row {
                let row = self.rows.get(row..row + usize::from(self.columns)).unwrap_or_default();
                automaton.rows.extend(row.iter().map(|at| state(*at)));
                automaton.rows.resize(automaton.rows.len().next_multiple_of(1 << shift), 0);
            } else {
                let class = if node.child == 0 { NO_CLASS } else { self.node(node.child).class };
                let (next, suffix) = (state(node.child), state(node.suffix));
                automaton.links.push(Link { class, next, suffix });
            }
        }
        automaton
    }
}

fn class_of(classes: &[u8; 256], byte: u8) -> u8 {
    classes.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The classes of all bytes, and their number.
fn classes_of(literals: &[Searched<'_>]) -> ([u8; 256], u8) {
    let mut classes = [UNKNOWN; 256];
    for byte in [b' ', b'\t', b'\n', b'\r'] {
        classes.get_mut(usize::from(byte)).into_iter().for_each(|it| *it = SPACE);
    }
    let mut count = SPACE + 1;
    let words = (b'a'..=b'z').chain((0..=u8::MAX).filter(|byte| is_word(*byte)));
    for byte in words.chain(literals.iter().flat_map(|literal| literal.text.bytes())) {
        let lower = byte.to_ascii_lowercase();
        let known = class_of(&classes, lower);
        let class = if known == UNKNOWN { count } else { known };
        count = count.max(class + 1);
        for byte in [byte, lower] {
            classes.get_mut(usize::from(byte)).into_iter().for_each(|it| *it = class);
        }
    }
    (classes, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(literals: &[Searched<'_>], text: &str) -> Vec<(u16, usize)> {
        let automaton = Automaton::new(literals);
        let mut found = Vec::new();
        let mut state = Automaton::START;
        for (at, byte) in text.bytes().enumerate() {
            state = automaton.next(state, byte);
            let list = automaton.end(state).map_or(&[][..], |end| automaton.list(end));
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
}
