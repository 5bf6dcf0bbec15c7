//! Finds all literals in one pass over a text (A. V. Aho and M. J. Corasick, "Efficient string matching", 1975).
//!
//! A state is the longest beginning of a literal with which the text that was read so far ends. States that most texts
//! reach have a row: a table from byte to state. From most other states only one byte leads on. These states have a
//! link: that byte, and the state of the longest proper suffix, from which any other byte is read.
//!
//! INVARIANT (linear): a byte costs a lookup in a row, or a step along a link. Each suffix that is tried undoes such a
//! step. The literals that end at one byte are bounded when the tables are built.

use super::detect::is_word;

/// The literals of a rule set.
///
/// A state is a number: the offset of its row, or, from `first_link` on, the position of its link.
#[derive(Debug)]
pub struct Automaton {
    /// The class of each byte. Upper and lower case of ASCII have one class.
    classes: [u8; 256],
    /// For each row the next state by class. Its last entry says which of `lists` the state has.
    rows: Vec<u32>,
    columns: u32,
    links: Vec<Link>,
    /// The literals that end at a state; first those of most states: none.
    lists: Vec<Vec<u16>>,
    /// States before this one end no literal.
    first_end: u32,
    first_link: u32,
}

/// A state without a row.
#[derive(Debug)]
struct Link {
    /// The class of the byte that leads on.
    class: u8,
    next: u32,
    /// The state of the longest proper suffix.
    suffix: u32,
    list: u32,
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
    pub const START: u32 = 0;

    /// The automaton of these literals, whose numbers are their positions. Case of ASCII is ignored, and a space in
    /// a literal is any number of spaces and line breaks.
    #[must_use]
    pub fn new(literals: &[Searched<'_>]) -> Self {
        Trie::new(literals).into_automaton()
    }

    /// The state after one more byte.
    #[inline]
    #[must_use]
    pub fn next(&self, state: u32, byte: u8) -> u32 {
        let class = self.classes.get(usize::from(byte)).copied().unwrap_or_default();
        // A state with a link is a number after all rows.
        match self.rows.get((state + u32::from(class)) as usize) {
            Some(next) => *next,
            None => self.next_of_link(state, class),
        }
    }

    /// It is not inlined, so that the loop over all bytes stays small.
    #[inline(never)]
    fn next_of_link(&self, mut state: u32, class: u8) -> u32 {
        while let Some(link) = self.link(state) {
            if link.class == class {
                return link.next;
            }
            state = link.suffix;
        }
        self.rows.get((state + u32::from(class)) as usize).copied().unwrap_or_default()
    }

    /// Whether a literal may end at a state. None ends at most states.
    #[inline]
    #[must_use]
    pub const fn may_end(&self, state: u32) -> bool {
        state >= self.first_end
    }

    /// The literals that end at a state, by their numbers; the longest first.
    #[must_use]
    pub fn ends(&self, state: u32) -> &[u16] {
        if !self.may_end(state) {
            return &[];
        }
        let list = match self.link(state) {
            Some(link) => link.list,
            None => self.rows.get((state + self.columns) as usize).copied().unwrap_or_default(),
        };
        self.lists.get(list as usize).map(Vec::as_slice).unwrap_or_default()
    }

    fn link(&self, state: u32) -> Option<&Link> {
        self.links.get(state.checked_sub(self.first_link)? as usize)
    }

    /// The most literals that end at one byte.
    #[must_use]
    pub fn most_ends(&self) -> usize {
        let rows = (0..self.first_link).step_by(self.columns as usize + 1);
        let links = (self.first_link..).take(self.links.len());
        rows.chain(links).map(|state| self.ends(state).len()).max().unwrap_or(0)
    }

    /// The bytes of the tables.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        size_of_val(self.rows.as_slice())
            + size_of_val(self.links.as_slice())
            + self.lists.iter().map(|list| size_of_val(list.as_slice())).sum::<usize>()
            + size_of_val(self.lists.as_slice())
    }
}

/// Bytes of the beginnings that have a row in any case. Those of ordinary texts are seldom longer.
const MAX_ROW_BYTES: usize = 3;

/// The class of the bytes that no literal has.
const UNKNOWN: u8 = 0;

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
    fn is_spaced(&self, node: Node) -> bool {
        node.bytes > 0 && node.class == class_of(&self.classes, b' ')
    }

    /// The node in which no literal has begun after such a byte.
    const fn root(class: u8) -> usize {
        if class != UNKNOWN && class <= WORD_CLASSES { WITHIN } else { OUTSIDE }
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
            let stays = self.is_spaced(node) && node.class == class;
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
        let stays = self.is_spaced(node).then_some((node.class, at));
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
                    _ if self.is_spaced(node) && node.class == class => at,
                    _ => self.next(node.suffix, class),
                };
                let inherited = self.ends.get(suffix).cloned().unwrap_or_default();
                self.ends.get_mut(*child).into_iter().for_each(|ends| ends.extend(&inherited));
                self.change(*child, |child| child.suffix = suffix);
            }
            if node.bytes <= MAX_ROW_BYTES || children.len() > 1 || self.is_spaced(node) {
                let row = self.row(at, &children);
                let begin = self.rows.len();
                self.rows.extend(row);
                self.change(at, |node| node.row = Some(begin));
            }
            order.extend(children);
        }
        self.numbered(order)
    }

    /// Numbers the nodes: those with a row first, and of those the ones that end no literal.
    fn numbered(self, nodes: Vec<usize>) -> Automaton {
        let ends = |at: usize| self.ends.get(at).map(Vec::as_slice).unwrap_or_default();
        let mut order = Vec::with_capacity(nodes.len());
        // A pass for each kind of node needs less code than a sort.
        for kind in [(true, false), (true, true), (false, false), (false, true)] {
            let kind_of = |at: usize| (self.node(at).row.is_some(), !ends(at).is_empty());
            order.extend(nodes.iter().copied().filter(|at| kind_of(*at) == kind));
        }
        let with_row = || order.iter().filter(|at| self.node(**at).row.is_some());
        let rows = with_row().count() as u32;
        let plain = with_row().filter(|at| ends(**at).is_empty()).count() as u32;
        let columns = u32::from(self.columns);
        let mut automaton = Automaton {
            classes: self.classes,
            rows: Vec::new(),
            columns,
            links: Vec::new(),
            lists: vec![Vec::new()],
            first_end: plain * (columns + 1),
            first_link: rows * (columns + 1),
        };
        let mut states = vec![0; order.len()];
        for (at, number) in order.iter().zip(0..) {
            let link = u32::checked_sub(number, rows);
            let state = link.map_or(number * (columns + 1), |link| automaton.first_link + link);
            states.get_mut(*at).into_iter().for_each(|it| *it = state);
        }
        let state = |at: usize| states.get(at).copied().unwrap_or_default();
        for at in order {
            let node = self.node(at);
            let mut list = 0;
            if !ends(at).is_empty() {
                list = automaton.lists.len() as u32;
                automaton.lists.push(ends(at).to_vec());
            }
            if let Some(row) = node.row {
                let row = self.rows.get(row..row + usize::from(self.columns)).unwrap_or_default();
                automaton.rows.extend(row.iter().map(|at| state(*at)).chain([list]));
            } else {
                let child = self.node(node.child);
                let class = if node.child == 0 { NO_CLASS } else { child.class };
                let (next, suffix) = (state(node.child), state(node.suffix));
                automaton.links.push(Link { class, next, suffix, list });
            }
        }
        automaton
    }
}

fn class_of(classes: &[u8; 256], byte: u8) -> u8 {
    classes.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The classes of the bytes of words. They come after [`UNKNOWN`], and are the same for all literals.
const WORD_CLASSES: u8 = 26 + 10 + 1;

/// The classes of all bytes, and their number.
fn classes_of(literals: &[Searched<'_>]) -> ([u8; 256], u8) {
    let mut classes = [UNKNOWN; 256];
    let mut count = 1;
    let words = (0..=u8::MAX).filter(|byte| is_word(*byte));
    for byte in words.chain(literals.iter().flat_map(|literal| literal.text.bytes())) {
        let lower = byte.to_ascii_lowercase();
        let known = class_of(&classes, lower);
        let class = if known == UNKNOWN { count } else { known };
        count = count.max(class + 1);
        for byte in [byte, lower] {
            classes.get_mut(usize::from(byte)).into_iter().for_each(|it| *it = class);
        }
    }
    let space = class_of(&classes, b' ');
    for byte in [b'\t', b'\n', b'\r'] {
        classes.get_mut(usize::from(byte)).into_iter().for_each(|it| *it = space);
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
            found.extend(automaton.ends(state).iter().map(|literal| (*literal, at + 1)));
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
