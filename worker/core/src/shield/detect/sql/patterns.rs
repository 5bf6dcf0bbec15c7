//! Patterns of kinds of tokens, as one automaton. It has a state for each set of elements that the last token can be. Sets
//! are words of bits (R. Baeza-Yates and G. Gonnet, "A new approach to text searching", 1992).

use std::collections::BTreeMap;

use super::tokens::{KINDS, Kind};
use crate::shield::rule::Detector;

/// Patterns of token kinds. Each element is a set of letters; `*` after it: any number, `?`: one or none.
///
/// `^` start, `$` end, `'` opening quote, `"` closing quote, `0` number, `w` word, `p` prose, `&` logic, `x` its symbols, `!` prefix,
/// `=` comparison, `+` operator, `(`, `)`, `,`, `;`, `#` comment, `U` union, `A` all, `S` select, `T` statement,
/// `C` begin, `O` object, `E` set, `H` where, `N` when, `R` order, `B` by, `f` function, `F` telling, `I` into, `o` outfile,
/// `W` waitfor, `D` delay, `.`. `w` is also a word with a bracket right after it, and `c` only that.
const PATTERNS: &[(Detector, &str)] = &[
    // ' or 'a'='a    ') and exists(select    " or a like
    (Detector::SqlTautology, "' )* &x '\"0w!+(),.fFO* =S"),
    (Detector::SqlTautology, "' )* &x (* '\"? 0w '\"? )* $#'\"&"),
    (Detector::SqlTautology, "' )* &x !? (* cfF ("),
    (Detector::SqlTautology, "' )* &x ! (* 0 )* $#'\"&"),
    // 1) or 1=1    or 'a'='a'    and 5=cast(    and 5=(select
    (Detector::SqlTautology, "& !? (* 0 = (* 0fFS"),
    (Detector::SqlTautology, "& !? (* 0 = c ("),
    (Detector::SqlTautology, "& !? (* '\" 0w* '\" = (* '\"cfF"),
    (Detector::SqlTautology, "^ 0w )* &x !? 0 #$"),
    (Detector::SqlTautology, "^ 0w )* &x (* S"),
    (Detector::SqlTautology, "^ 0w? ) )* &x '\"0w!+(),.fF* =S"),
    (Detector::SqlTautology, "^ 0 )* &x !? (* cfF ("),
    (Detector::SqlTautology, "^ 0 )* &x !? (* w ( "),
    (Detector::SqlTautology, "^ 0 =+ (* fFS"),
    (Detector::SqlTautology, "^ 0w )* &x 0w =+ !? 0w #$"),
    (Detector::SqlTautology, "^ & 0 # $"),
    (Detector::SqlTautology, "^ (* x (* 0fF )($"),
    // having 1=1    case when (1=1)    if(1=1,    ) as x where 1=1
    (Detector::SqlTautology, "R B? (* 0 = 0"),
    (Detector::SqlTautology, "! N (* 0 = 0"),
    (Detector::SqlTautology, "fFc ( 0 = 0 )* ,S"),
    (Detector::SqlTautology, "^ ( 0 = 0 )"),
    (Detector::SqlTautology, "'\")0 w? p? H (* 0 = 0"),
    (Detector::SqlTautology, "^ w? H (* 0 = 0"),
    (Detector::SqlTautology, "S 0w'\"* H (* 0 = 0"),
    // '='    '-'    '||'    ' like '
    (Detector::SqlBreakout, "^ w? ' )* =+&x '\"0 '\"0 #$"),
    (Detector::SqlBreakout, "^ w? ' )* =+&x '\" $"),
    (Detector::SqlBreakout, "^ w? ' )* = 0 #$"),
    (Detector::SqlBreakout, "^ 0 ' = '\" 0w'\"* #$"),
    (Detector::SqlBreakout, "' )* + 0 #"),
    (Detector::SqlBreakout, "^ 0w? ' + 0 + \" $"),
    (Detector::SqlBreakout, "' )* w + # $"),
    (Detector::SqlBreakout, "' )* +&x (* SFf ("),
    (Detector::SqlBreakout, "' )* +&x ( S"),
    (Detector::SqlBreakout, "' )* ( S '\"0fF(+"),
    (Detector::SqlBreakout, "^ 0 )* +, (* S"),
    (Detector::SqlBreakout, "' )* , ( S"),
    // admin'--    ') #
    (Detector::SqlBreakout, "^ w0.+* ' )* ;? #"),
    (Detector::SqlBreakout, "^ 0 )* ;? # $"),
    (Detector::SqlBreakout, "^ 0? )* ;? # &S U?"),
    // ' order by 1    1 having 1=1
    (Detector::SqlBreakout, "' )* R B? 0w(f"),
    (Detector::SqlBreakout, "^ 0 )* R B? 0"),
    (Detector::SqlBreakout, "R B 0 ,0* #"),
    // (select 1)    (select(0)from    (select char(
    (Detector::SqlBreakout, "^ ( (* S 0(fF+ 0)(O"),
    (Detector::SqlUnion, "' )* U A* (* S"),
    (Detector::SqlUnion, "^ 0w+.* )* #? U A* (* S"),
    (Detector::SqlUnion, "0)# )* U A* (* S"),
    (Detector::SqlUnion, "' )* +? U A* (* S 0f'\","),
    (Detector::SqlUnion, "U A* (* S 0'\"( ,#)'\""),
    (Detector::SqlUnion, "U A* (* S 0 $"),
    (Detector::SqlUnion, "^ U A* (* S"),
    // '; drop table    1; exec xp_cmdshell    1; select count(
    (Detector::SqlStacked, "' )* ; ;* (* TSWC"),
    (Detector::SqlStacked, "^ 0w )* ; ;* T OFI"),
    (Detector::SqlStacked, "^ 0w )* ; ;* T w E"),
    (Detector::SqlStacked, "^ 0w )* ; ;* (* S (cfF+"),
    (Detector::SqlStacked, "^ 0w )* ; ;* T $#"),
    (Detector::SqlStacked, "^ ; ;* T OFI"),
    (Detector::SqlStacked, "T F"),
    (Detector::SqlStacked, "; C F"),
    (Detector::SqlStacked, "T O . . F"),
    (Detector::SqlStacked, "; w ( S"),
    (Detector::SqlStacked, "W D '\"w"),
    (Detector::SqlStacked, "I o '\""),
    // and pg_sleep(    select(sleep(5)    chr(65)||chr(66)
    (Detector::SqlFunction, "&,(S+ (* F ("),
    (Detector::SqlFunction, "&=,(S+; (* F ."),
    (Detector::SqlFunction, "&=S+ (* f ( 0 ) )* $#&+H"),
    (Detector::SqlFunction, "S ( f ( 0"),
    (Detector::SqlFunction, "&x=, cfF ( +* ( S"),
    (Detector::SqlFunction, "fF ( ( S"),
    (Detector::SqlFunction, "& ( S fF ("),
    (Detector::SqlFunction, "& cfF ( 0 + 0 )"),
    (Detector::SqlFunction, "f ( 0 ) x? f ( 0 )"),
    (Detector::SqlFunction, "R B fF ( 0"),
    (Detector::SqlFunction, "^ f ( 0 ) #= '\"? $"),
    (Detector::SqlFunction, "^ 0? )* ;? F ("),
    (Detector::SqlFunction, "f ( 0w!+(),.fF* = 0w'\"()f.* , f ( 0 )"),
    (Detector::SqlFunction, "S F"),
    (Detector::SqlFunction, "O F . w"),
];

/// What patterns find. For each, a state has two bits: found by a pattern that begins with an opening quote, and by another
/// one.
const DETECTORS: [Detector; 5] = [
    Detector::SqlTautology,
    Detector::SqlBreakout,
    Detector::SqlUnion,
    Detector::SqlStacked,
    Detector::SqlFunction,
];

/// The automaton of all patterns.
#[derive(Debug)]
pub struct Patterns {
    /// For each state a row: for each kind of token where the row of the next state begins, then what was found.
    rows: Vec<u16>,
}

/// Entries of a row.
const COLUMNS: usize = KINDS + 1;

impl Default for Patterns {
    fn default() -> Self {
        Self::new()
    }
}

impl Patterns {
    #[must_use]
    pub fn new() -> Self {
        let elements = elements();
        let (mut rows, mut states) = (Vec::new(), vec![[0; WORDS]]);
        let mut numbers = BTreeMap::from([([0; WORDS], 0)]);
        let mut taken = 0;
        while let Some(active) = states.get(taken).copied() {
            taken += 1;
            let mut next = active;
            next.iter_mut().zip(&elements).for_each(|(next, of)| *next = of.next(*next));
            for kind in 0..KINDS {
                let mut accepted = next;
                for (word, of) in accepted.iter_mut().zip(&elements) {
                    *word &= of.accepts.get(kind).copied().unwrap_or_default();
                }
                let row = numbers.entry(accepted).or_insert_with(|| {
                    states.push(accepted);
                    (states.len() - 1) * COLUMNS
                });
                rows.push(*row as u16);
            }
            let active = active.into_iter().zip(&elements);
            rows.push(active.fold(0, |found, (active, of)| found | of.found(active)));
        }
        Self { rows }
    }

    /// The state before the first token.
    #[must_use]
    pub fn begin(&self) -> Matched<'_> {
        let mut matched = Matched { patterns: self, state: 0, found: 0 };
        matched.step(Kind::Start);
        matched
    }

    fn entry(&self, state: u16, column: usize) -> u16 {
        self.rows.get(usize::from(state) + column).copied().unwrap_or_default()
    }
}

/// What was matched of a text so far.
#[derive(Debug, Clone, Copy)]
pub struct Matched<'p> {
    patterns: &'p Patterns,
    state: u16,
    found: u16,
}

impl Matched<'_> {
    /// Takes a token.
    #[inline]
    pub fn step(&mut self, kind: Kind) {
        self.state = self.patterns.entry(self.state, kind as usize);
        self.found |= self.patterns.entry(self.state, KINDS);
    }

    /// Adds what another reading of the text found.
    pub const fn add(&mut self, other: Self) {
        self.found |= other.found;
    }

    #[must_use]
    pub const fn any(&self) -> bool {
        self.found != 0
    }

    /// What was found. `quoted`: only by patterns that begin with an opening quote.
    pub fn detectors(&self, quoted: bool) -> impl Iterator<Item = Detector> {
        let (found, bits) = (self.found, if quoted { 1 } else { 3 });
        DETECTORS
            .into_iter()
            .zip(0..)
            .filter(move |(_, at)| found >> (2 * at) & bits != 0)
            .map(|it| it.0)
    }
}

/// Words of bits for all elements. A pattern is in one of them.
const WORDS: usize = 4;

/// The elements of all patterns.
fn elements() -> [Elements; WORDS] {
    let mut words = [const { Elements::NONE }; WORDS];
    let mut at = 0;
    for (detector, pattern) in PATTERNS {
        let count = pattern.split_ascii_whitespace().count();
        // A test checks that there is room.
        at += usize::from(words.get(at).is_some_and(|word| !word.has_room(count)));
        words.get_mut(at).into_iter().for_each(|word| word.add(pattern, *detector));
    }
    words
}

/// The elements of some patterns, as a word of bits.
struct Elements {
    count: usize,
    /// For each kind the elements that accept it.
    accepts: [u128; KINDS],
    /// Those with which patterns begin.
    firsts: u128,
    /// Those that may be left out.
    optional: u128,
    repeated: u128,
    /// The last element of each pattern, and what it finds.
    lasts: Vec<(u128, u16)>,
}

impl Elements {
    const NONE: Self = Self {
        count: 0,
        accepts: [0; KINDS],
        firsts: 0,
        optional: 0,
        repeated: 0,
        lasts: Vec::new(),
    };

    const fn has_room(&self, count: usize) -> bool {
        self.count + count <= u128::BITS as usize
    }

    fn add(&mut self, pattern: &str, detector: Detector) {
        self.firsts |= 1 << self.count;
        let mut bit = 0;
        for element in pattern.split_ascii_whitespace() {
            bit = 1 << self.count;
            self.count += 1;
            let (letters, times) = match element.as_bytes() {
                [letters @ .., b'*'] if !letters.is_empty() => (letters, Some(true)),
                [letters @ .., b'?'] if !letters.is_empty() => (letters, Some(false)),
                letters => (letters, None),
            };
            for letter in letters {
                let call = (*letter == b'w').then_some(Kind::Call);
                for kind in [kind_of(*letter)].into_iter().chain(call) {
                    self.accepts.get_mut(kind as usize).into_iter().for_each(|it| *it |= bit);
                }
            }
            self.optional |= if times.is_some() { bit } else { 0 };
            self.repeated |= if times == Some(true) { bit } else { 0 };
        }
        let detector = DETECTORS.iter().position(|it| *it == detector).unwrap_or_default();
        let is_quoted = pattern.starts_with("' ");
        self.lasts.push((bit, 1 << (2 * detector + usize::from(!is_quoted))));
    }

    /// The elements that the next token can be, from those that the last one was.
    fn next(&self, active: u128) -> u128 {
        let mut next = active & self.repeated;
        let mut reached = active << 1 & !self.firsts | self.firsts;
        while reached & !next != 0 {
            next |= reached;
            reached = (reached & self.optional) << 1 & !self.firsts;
        }
        next
    }

    /// What is found if these elements are active.
    fn found(&self, active: u128) -> u16 {
        let lasts = self.lasts.iter().filter(|(last, _)| active & last != 0);
        lasts.fold(0, |found, (_, finds)| found | finds)
    }
}

const fn kind_of(letter: u8) -> Kind {
    match letter {
        b'^' => Kind::Start,
        b'$' => Kind::End,
        b'\'' => Kind::Opening,
        b'"' => Kind::Closing,
        b'0' => Kind::Number,
        b'w' => Kind::Word,
        b'c' => Kind::Call,
        b'p' => Kind::Prose,
        b'&' => Kind::Logic,
        b'x' => Kind::Symbol,
        b'!' => Kind::Prefix,
        b'=' => Kind::Compare,
        b'+' => Kind::Operator,
        b'(' => Kind::OpenBracket,
        b')' => Kind::CloseBracket,
        b',' => Kind::Comma,
        b';' => Kind::Semicolon,
        b'#' => Kind::Comment,
        b'U' => Kind::Union,
        b'A' => Kind::All,
        b'S' => Kind::Select,
        b'T' => Kind::Statement,
        b'C' => Kind::Begin,
        b'O' => Kind::Object,
        b'E' => Kind::Set,
        b'H' => Kind::Where,
        b'N' => Kind::When,
        b'R' => Kind::Order,
        b'B' => Kind::By,
        b'f' => Kind::Function,
        b'F' => Kind::Telling,
        b'I' => Kind::Into,
        b'o' => Kind::Outfile,
        b'W' => Kind::Waitfor,
        b'D' => Kind::Delay,
        b'.' => Kind::Dot,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_fit() {
        let count = |of: &Elements| of.lasts.len();
        assert_eq!(elements().iter().map(count).sum::<usize>(), PATTERNS.len());
        assert!(Patterns::new().rows.len() <= usize::from(u16::MAX));
    }

    #[test]
    fn each_pattern_finds_its_first_letters() {
        let patterns = Patterns::new();
        for (detector, pattern) in PATTERNS {
            let mut matched = patterns.begin();
            for element in pattern.trim_start_matches('^').split_ascii_whitespace() {
                matched.step(kind_of(element.as_bytes()[0]));
            }
            let only_quoted = pattern.starts_with("' ");
            assert!(matched.detectors(only_quoted).any(|it| it == *detector), "{pattern}");
        }
    }
}
