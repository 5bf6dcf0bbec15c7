//! Finds all literals in one pass over a text (A. V. Aho and M. J. Corasick, "Efficient string matching", 1975).
//!
//! A state is the longest beginning of a literal with which the text that was read so far ends. The next states of all
//! states share one table: a state knows where its part begins, and each entry says by which byte it is reached, so
//! that entries of others are told apart (J. Aoe, "An efficient digital search algorithm by using a double-array
//! structure", 1989). A byte that leads nowhere from a state is read from the state of its longest proper suffix.
//!
//! The table is small, and the states of one literal are beside each other, because each call reads it anew: what the
//! processor's cache kept of it since the last call is mostly gone.
//!
//! INVARIANT (linear): a byte costs a step to a next state. Each suffix that is tried undoes such a step. The literals
//! that end at one byte are bounded when the table is built.

use std::ops::RangeInclusive;

use super::detect::is_word;
use super::signs::{self, Signs};

/// The literals of a rule set.
#[derive(Debug)]
pub struct Automaton {
    /// For each byte its signs, and above them its class. Upper and lower case of ASCII have one class.
    bytes: [u32; 256],
    /// Each state is at the base of the state before it plus the class of the byte that leads to it.
    states: Vec<State>,
    /// The base of the state within words in which no literal has begun. Outside of words it is zero.
    within: usize,
    /// For each state that ends literals: where its list begins in `lists`.
    ends: Vec<u16>,
    /// Lists of literals, the longest first. Before each list stands the number of its literals.
    lists: Vec<u16>,
}

/// A state, in 8 bytes: the class that leads to it, which state its longest proper suffix is, marks, its base, the index of
/// that suffix, and its number among the states that end literals, from 1 on.
#[derive(Debug, Clone, Copy)]
pub struct State(u64);

impl State {
    /// At the beginning of a text, and outside of words.
    pub const START: Self = Self(u8::MAX as u64);
    /// The suffix is empty: no literal has begun outside of words, or within one. Otherwise it is another state.
    const OUTSIDE: u64 = 0;
    const WITHIN: u64 = 1 << 8;
    const OTHER: u64 = 1 << 9;

    const fn class(self) -> u8 {
        self.0 as u8
    }

    const fn base(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }

    /// Whether the literals that end here have one of these marks.
    #[inline]
    #[must_use]
    pub const fn meets(self, marks: Marks) -> bool {
        self.0 & marks.0 != 0
    }

    const fn suffix(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }

    /// The number of a state among those that end a literal; `None` if it ends none. Most states end none.
    #[must_use]
    pub const fn end(self) -> Option<usize> {
        ((self.0 >> 48) as usize).checked_sub(1)
    }
}

/// When literals count, as the user of the automaton sees it: a few bits, so that most states that end literals are told by
/// themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks(u64);

impl Marks {
    const FIRST: u32 = 10;
    const COUNT: u32 = 6;

    /// The mark with a number. Marks with higher numbers share bits.
    #[must_use]
    pub const fn at(number: u32) -> Self {
        Self(1 << (Self::FIRST + number % Self::COUNT))
    }

    pub const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Where a class begins in what is known of a byte.
const CLASS_SHIFT: u32 = Signs::OF_BYTES.count_ones();

/// A literal that is searched.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'l> {
    pub text: &'l str,
    /// Whether it is also found within words. Other literals that begin like a word are found only where words begin.
    pub within_words: bool,
}

impl Automaton {
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
        self.states.len().max(self.lists.len()) < usize::from(u16::MAX)
    }

    /// The signs of a byte ([`Signs::OF_BYTES`]), and above them its class.
    #[inline]
    #[must_use]
    pub fn read(&self, byte: u8) -> u32 {
        self.bytes.get(usize::from(byte)).copied().unwrap_or_default()
    }

    /// The state after one more byte, which was read.
    #[inline]
    #[must_use]
    pub fn next(&self, mut state: State, read: u32) -> State {
        let class = (read >> CLASS_SHIFT) as u8;
        let mut base = state.base();
        loop {
            let Some(next) = self.states.get(base + usize::from(class)) else {
                return State::START;
            };
            if next.class() == class {
                return *next;
            }
            // Where no literal has begun, every class leads on. So this ends.
            base = if state.0 & State::OTHER != 0 {
                state = self.states.get(state.suffix()).copied().unwrap_or(State::START);
                state.base()
            } else if state.0 & State::WITHIN != 0 {
                self.within
            } else {
                0
            };
        }
    }

    /// Marks the states that end literals, by their numbers.
    pub fn mark(&mut self, marks: impl Fn(usize) -> Marks) {
        for state in &mut self.states {
            state.0 |= state.end().map_or(0, |end| marks(end).0);
        }
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
        size_of_val(&self.bytes)
            + size_of_val(self.states.as_slice())
            + size_of_val(self.ends.as_slice())
            + size_of_val(self.lists.as_slice())
    }
}

/// The class of the bytes that no literal has.
const UNKNOWN: u8 = 0;

/// The class of white space. Most bytes are of this class, or of those of the letters after it. Their states are beside each
/// other.
const SPACE: u8 = 1;

/// The classes of the bytes of words. They are the same for all literals.
const WORD_CLASSES: RangeInclusive<u8> = SPACE + 1..=SPACE + 26 + 10 + 1;

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
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// The class of the byte that leads here.
    class: u8,
    /// The first node that is one byte longer, and the next node of the same parent; zero: none.
    child: usize,
    sibling: usize,
    /// The node of the longest proper suffix. For the first two nodes: each other.
    suffix: usize,
    /// The index of its state.
    at: usize,
    /// Where the states after it are; `None` if no class leads on.
    base: Option<usize>,
    /// The number of its list of literals, from 1 on.
    end: usize,
}

impl Trie {
    fn new(literals: &[Searched<'_>]) -> Self {
        let (classes, columns) = classes_of(literals);
        let first = [WITHIN, OUTSIDE].map(|suffix| Node { suffix, ..Node::default() });
        let ends = vec![Vec::new(); first.len()];
        let mut trie = Self { classes, columns, nodes: first.to_vec(), ends };
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
        let sibling = self.node(parent).child;
        self.nodes.push(Node { class, sibling, ..Node::default() });
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

    /// Whether more spaces stay at a node. The first two nodes have no class.
    const fn is_spaced(node: Node) -> bool {
        node.class == SPACE
    }

    /// The node in which no literal has begun after such a byte.
    fn root(class: u8) -> usize {
        if WORD_CLASSES.contains(&class) { WITHIN } else { OUTSIDE }
    }

    /// The node after one more byte.
    fn next(&self, mut at: usize, class: u8) -> usize {
        loop {
            if let Some(child) = self.child(at, class) {
                return child;
            }
            let node = self.node(at);
            let stays = Self::is_spaced(node) && node.class == class;
            if stays || at == Self::root(class) {
                return at;
            }
            at = node.suffix;
        }
    }

    /// Links the nodes from the beginning outwards. Returns them in this order.
    fn link(&mut self) -> Vec<usize> {
        let mut order = vec![OUTSIDE, WITHIN];
        let mut taken = 0;
        while let Some(at) = order.get(taken).copied() {
            taken += 1;
            let node = self.node(at);
            let children: Vec<usize> = self.children(at).collect();
            for child in &children {
                let class = self.node(*child).class;
                let suffix = match at {
                    OUTSIDE | WITHIN => Self::root(class),
                    _ if Self::is_spaced(node) && node.class == class => at,
                    _ => self.next(node.suffix, class),
                };
                let inherited = self.ends.get(suffix).cloned().unwrap_or_default();
                self.ends.get_mut(*child).into_iter().for_each(|ends| ends.extend(&inherited));
                self.change(*child, |child| child.suffix = suffix);
            }
            order.extend(children);
        }
        order
    }

    /// The classes that lead on from a node.
    fn ways(&self, at: usize) -> Vec<u8> {
        if at <= WITHIN {
            return (0..self.columns).collect();
        }
        let node = self.node(at);
        let mut ways: Vec<u8> = self.children(at).map(|child| self.node(child).class).collect();
        // More spaces stay here, unless one leads on.
        if Self::is_spaced(node) && !ways.contains(&SPACE) {
            ways.push(SPACE);
        }
        ways
    }

    /// Gives each node its base. Nodes with several ways are first: most texts do not come further. What follows a node
    /// with one way is behind it. Returns how many states there are.
    fn place(&mut self, order: &[usize]) -> usize {
        let mut places = Places::default();
        for several in [true, false] {
            places.first = 0;
            for first in order {
                let mut at = Some(*first);
                while let Some(node) = at.take() {
                    let ways = self.ways(node);
                    if self.node(node).base.is_some()
                        || ways.is_empty()
                        || several != (ways.len() > 1)
                    {
                        break;
                    }
                    let base = places.take(&ways);
                    self.change(node, |node| node.base = Some(base));
                    for child in self.children(node).collect::<Vec<_>>() {
                        let place = base + usize::from(self.node(child).class);
                        self.change(child, |child| child.at = place);
                        at = (!several).then_some(child);
                    }
                }
            }
        }
        places.taken.len()
    }

    fn into_automaton(mut self) -> Automaton {
        let order = self.link();
        let count = self.place(&order);
        let (mut ends, mut lists) = (Vec::new(), Vec::new());
        for at in order.iter().copied() {
            let list = self.ends.get(at).map(Vec::as_slice).unwrap_or_default();
            if !list.is_empty() {
                ends.push(lists.len() as u16);
                lists.push(list.len() as u16);
                lists.extend(list);
            }
            let end = if list.is_empty() { 0 } else { ends.len() };
            let node = self.node(at);
            let suffix = self.node(node.suffix);
            self.change(at, |node| {
                node.end = end;
                // Nothing leads on from here, so the next byte is read from the suffix.
                if node.base.is_none() {
                    (node.base, node.suffix) = (suffix.base, suffix.suffix);
                }
            });
        }
        // No index is after the last one, whatever the class.
        let mut states = vec![State::START; count + usize::from(self.columns)];
        for at in order {
            for class in self.ways(at) {
                let place = self.node(at).base.unwrap_or_default() + usize::from(class);
                let state = self.state(self.next(at, class), class);
                states.get_mut(place).into_iter().for_each(|it| *it = state);
            }
        }
        let read =
            |byte: u8| signs::of(byte) | u32::from(class_of(&self.classes, byte)) << CLASS_SHIFT;
        let bytes = std::array::from_fn(|byte| read(byte as u8));
        let within = self.node(WITHIN).base.unwrap_or_default();
        Automaton { bytes, states, within, ends, lists }
    }

    fn state(&self, at: usize, class: u8) -> State {
        let node = self.node(at);
        let suffix = match node.suffix {
            OUTSIDE => State::OUTSIDE,
            WITHIN => State::WITHIN,
            _ => State::OTHER | (self.node(node.suffix).at as u64) << 32,
        };
        let base = node.base.unwrap_or_default() as u64;
        State(u64::from(class) | suffix | base << 16 | (node.end as u64) << 48)
    }
}

/// Which places in the table of states are taken.
#[derive(Default)]
struct Places {
    taken: Vec<bool>,
    bases: Vec<bool>,
    /// Where a free place is looked for.
    first: usize,
}

/// Places that are tried. If all of them are of no use, the next ones are not looked for there.
const MAX_TRIED: usize = 64;

impl Places {
    /// The first base of which no other node has a place, or the base itself.
    fn take(&mut self, ways: &[u8]) -> usize {
        let is = |of: &[bool], at: usize| of.get(at).copied().unwrap_or_default();
        let lowest = ways.iter().min().copied().map_or(0, usize::from);
        let places = |base: usize| ways.iter().map(move |way| base + usize::from(*way));
        while is(&self.taken, self.first) {
            self.first += 1;
        }
        let first = self.first.saturating_sub(lowest);
        let mut base = first;
        while is(&self.bases, base) || places(base).any(|place| is(&self.taken, place)) {
            base += 1;
        }
        if base - first > MAX_TRIED {
            self.first = base + lowest;
        }
        for (of, at) in places(base).map(|place| (true, place)).chain([(false, base)]) {
            let list = if of { &mut self.taken } else { &mut self.bases };
            list.resize(list.len().max(at + 1), false);
            list.get_mut(at).into_iter().for_each(|it| *it = true);
        }
        base
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
mod tests;
