//! SQL that ends the value around it.
//!
//! A text is read as tokens of SQL, and patterns of token kinds are matched with it in parallel, a bit for each
//! element of a pattern (R. Baeza-Yates and G. Gonnet, "A new approach to text searching", 1992). So the cost of a
//! token does not depend on what came before.
//!
//! An injection differs from other SQL because it ends the value around it: with a quote that was never opened, after
//! a number or a bracket, or with a comment after it. Two words one after the other are prose, not SQL. A text that
//! begins as a statement is the argument of a tool for SQL. In such a text, only the patterns that begin with an
//! opening quote count. They still count because an attacker can easily put the first word of a statement before an
//! injection.

mod tokens;

pub use tokens::telling_words;

use self::tokens::{KINDS, Kind, Tokens};
use super::{Found, is_word, position};
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

/// Elements in a row that may be left out.
const MAX_OPTIONAL: usize = 3;

/// The patterns as masks.
///
/// INVARIANT (whole): all elements of a pattern are in one word of bits, so a word needs nothing of another one. Patterns
/// that begin alike are near each other, so few words have active elements.
#[derive(Debug)]
pub struct Patterns {
    /// For each kind the elements that accept it.
    accepts: [Bits; KINDS],
    /// For each kind the elements that it reaches if no pattern has begun.
    begins: [Bits; KINDS],
    words: [Masks; WORDS_OF_BITS],
    /// The words from here on have only patterns that begin with the text.
    anchored: usize,
    /// For each last element its position, what the pattern finds, and whether the pattern begins with an opening quote.
    finds: Vec<(usize, Detector, bool)>,
}

/// The elements of one word of bits.
#[derive(Debug, Clone, Copy, Default)]
struct Masks {
    /// Those with which patterns begin.
    firsts: u64,
    lasts: u64,
    /// Those that may be left out.
    optional: u64,
    repeated: u64,
    /// The first elements, and those that a pattern begins with if the optional elements before them are left out.
    begin: u64,
    /// Entry `n`: the elements that can follow another element if the `n` optional elements between them are left out.
    follow: [u64; MAX_OPTIONAL + 1],
}

impl Masks {
    /// Fills the masks that follow from the others.
    fn link(&mut self) {
        self.begin = self.firsts;
        let mut follow = !self.firsts;
        for entry in &mut self.follow {
            *entry = follow;
            follow = (follow & self.optional) << 1 & !self.firsts;
        }
        for _ in 0..MAX_OPTIONAL {
            self.begin |= (self.begin & self.optional) << 1 & !self.firsts;
        }
    }

    /// The elements that the next token may be, from those that are active.
    #[inline]
    fn reached(&self, active: u64) -> u64 {
        let [one, two, three, four] = self.follow;
        let near = active << 1 & one | active << 2 & two | active & self.repeated | self.begin;
        // Few patterns have so many elements that may be left out.
        if three == 0 { near } else { near | active << 3 & three | active << 4 & four }
    }
}

/// A bit for each element of the patterns.
type Bits = [u64; WORDS_OF_BITS];
const WORDS_OF_BITS: usize = 8;

impl Default for Patterns {
    fn default() -> Self {
        Self::new()
    }
}

impl Patterns {
    #[must_use]
    pub fn new() -> Self {
        let mut patterns = Self {
            accepts: [[0; WORDS_OF_BITS]; KINDS],
            begins: [[0; WORDS_OF_BITS]; KINDS],
            words: [Masks::default(); WORDS_OF_BITS],
            anchored: WORDS_OF_BITS,
            finds: Vec::new(),
        };
        let mut sorted: Vec<_> = PATTERNS.iter().collect();
        // Most patterns that begin with the text have ended after a few tokens.
        sorted.sort_by_key(|(_, pattern)| (pattern.starts_with('^'), !pattern.starts_with("' ")));
        let mut at = 0_usize;
        for (detector, pattern) in sorted {
            let elements = pattern.split_ascii_whitespace().count();
            if at % 64 + elements > 64 {
                at = at.next_multiple_of(64);
            }
            patterns.add(pattern, at);
            at += elements;
            if !pattern.starts_with('^') {
                patterns.anchored = at.div_ceil(64);
            }
            patterns.finds.push((at - 1, *detector, pattern.starts_with("' ")));
        }
        patterns.words.iter_mut().for_each(Masks::link);
        for (begins, accepts) in patterns.begins.iter_mut().zip(&patterns.accepts) {
            let words = begins.iter_mut().zip(accepts).zip(&patterns.words);
            words.for_each(|((begins, accepts), masks)| *begins = masks.begin & accepts);
        }
        patterns
    }

    /// Sets the bits of a pattern whose first element is at `first`.
    fn add(&mut self, pattern: &str, first: usize) {
        // A test checks that there is room.
        let Some(masks) = self.words.get_mut(first / 64) else { return };
        let (mut bit, mut last) = (1 << (first % 64), 0);
        masks.firsts |= bit;
        for element in pattern.split_ascii_whitespace() {
            let (letters, times) = match element.as_bytes() {
                [letters @ .., b'*'] if !letters.is_empty() => (letters, Some(true)),
                [letters @ .., b'?'] if !letters.is_empty() => (letters, Some(false)),
                letters => (letters, None),
            };
            for letter in letters {
                let call = (*letter == b'w').then_some(Kind::Call);
                for kind in [kind_of(*letter)].into_iter().chain(call) {
                    let accepts = self.accepts.get_mut(kind as usize);
                    let word = accepts.and_then(|bits| bits.get_mut(first / 64));
                    word.into_iter().for_each(|word| *word |= bit);
                }
            }
            masks.optional |= if times.is_some() { bit } else { 0 };
            masks.repeated |= if times == Some(true) { bit } else { 0 };
            last = bit;
            bit <<= 1;
        }
        masks.lasts |= last;
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

/// Reports what the patterns find in a text.
pub fn find(patterns: &Patterns, text: &str, found: Found<'_>) {
    let is_statement = begins_statement(text);
    let mut matcher = Matcher {
        patterns,
        active: [0; WORDS_OF_BITS],
        words: WORDS_OF_BITS,
        ends: [0; WORDS_OF_BITS],
        any: 0,
    };
    matcher.step(Kind::Start);
    let mut tokens = Tokens::new(text);
    let mut end = 0;
    while let Some(kind) = tokens.next() {
        if matcher.step(kind) {
            end = tokens.at;
        }
    }
    matcher.step(Kind::End);
    for (at, detector, leaves_quote) in &patterns.finds {
        if matcher.ends.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
            && (*leaves_quote || !is_statement)
        {
            found(*detector, 0..if end == 0 { text.len() } else { end });
        }
    }
}

/// Whether a quote is followed by what can follow the end of a value in SQL. Most quotes are followed by a word.
#[must_use]
pub fn leaves_quotes(text: &str) -> bool {
    const FOLLOWING: [&str; 12] = [
        "and", "between", "group", "having", "in", "into", "is", "like", "or", "order", "regexp",
        "xor",
    ];
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(next) =
        bytes.get(at..).and_then(|rest| rest.iter().position(|byte| matches!(byte, b'\'' | b'"')))
    {
        at += next + 1;
        let rest = bytes.get(at..).unwrap_or_default();
        let spaces = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'+' | b')'));
        let rest = rest.get(spaces.count()..).unwrap_or_default();
        let word = rest.get(..rest.iter().take_while(|byte| is_word(**byte)).take(12).count());
        match rest.first() {
            Some(
                b'=' | b'<' | b'>' | b'!' | b'|' | b'&' | b'-' | b'*' | b'/' | b'^' | b'%' | b'#'
                | b';',
            ) => {
                return true;
            }
            Some(byte) if is_word(*byte) => {
                let word = word.unwrap_or_default();
                if position(&FOLLOWING, |known| known, word).is_some() {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether a text begins as a statement: what a tool for SQL takes.
fn begins_statement(text: &str) -> bool {
    let text = text.trim_start();
    let word = text.get(..text.bytes().take_while(u8::is_ascii_alphabetic).count());
    let rest = text.get(word.map_or(0, str::len)..).unwrap_or_default();
    rest.starts_with(|c: char| c.is_whitespace() || c == ';')
        && word.is_some_and(|word| {
            [
                "select", "with", "insert", "update", "delete", "create", "alter", "explain",
                "merge", "begin",
            ]
            .iter()
            .any(|begin| begin.eq_ignore_ascii_case(word))
        })
}

struct Matcher<'p> {
    patterns: &'p Patterns,
    active: Bits,
    /// The words of bits in which a pattern can be active.
    words: usize,
    /// Last elements that were reached.
    ends: Bits,
    /// All words of `ends` together.
    any: u64,
}

impl Matcher<'_> {
    /// Takes a token. Returns whether a last element was reached, now or before.
    #[inline]
    fn step(&mut self, kind: Kind) -> bool {
        let Self { patterns, active, words, ends, any } = self;
        let (Some(accepts), Some(begins)) =
            (patterns.accepts.get(kind as usize), patterns.begins.get(kind as usize))
        else {
            return false;
        };
        let mut last = 0;
        let elements = active.iter_mut().zip(ends).zip(&patterns.words).take(*words);
        for (((active, ends), masks), (accepts, begins)) in elements.zip(accepts.iter().zip(begins))
        {
            // In most words no pattern has begun.
            *active = if *active == 0 { *begins } else { masks.reached(*active) & accepts };
            *ends |= *active & masks.lasts;
            *any |= *ends;
            last = *active;
        }
        // Patterns that begin with the text do not begin again.
        if last == 0 && *words > patterns.anchored {
            *words -= 1;
        }
        *any != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> bool {
        let mut any = false;
        find(&Patterns::new(), text, &mut |_, _| any = true);
        any
    }

    #[test]
    fn the_patterns_fit() {
        let patterns = Patterns::new();
        let count = |of: fn(&Masks) -> u64| {
            patterns.words.iter().map(|masks| of(masks).count_ones() as usize).sum::<usize>()
        };
        let counts = (count(|masks| masks.firsts), count(|masks| masks.lasts));
        assert_eq!(counts, (PATTERNS.len(), PATTERNS.len()));
    }

    #[test]
    fn a_value_that_ends_and_goes_on_as_sql_is_found() {
        for text in [
            "' or '1'='1",
            "' OR 1=1 --",
            "admin'--",
            "admin' #",
            "1 or 1=1",
            "1) or (1=1",
            "\" or \"\"=\"",
            "' union select null, null--",
            "1 UNION ALL SELECT 1,2,3",
            "1/**/union/*x*/select 1",
            "'; drop table users--",
            "1; exec xp_cmdshell 'dir'",
            "1 and sleep(5)",
            "' and (select count(*) from users) > 0",
            "1' waitfor delay '0:0:5'--",
            "' order by 3--",
            "'||(select password from users)||'",
            "1 and if(1=1,sleep(5),0)",
            "'='",
            "x' and extractvalue(1, concat(0x7e, version()))",
            "1'or'1'='1",
            "' or true--",
            "' /*!50000union*/ select 1",
            "update ' or 1=1--",
            "select x' union select password from users--",
            "select ' or 1=1 or ''='",
        ] {
            assert!(finds(text), "{text}");
        }
    }

    #[test]
    fn prose_names_code_and_whole_statements_are_not() {
        for text in [
            "O'Brien and d'Artagnan",
            "I don't think so, and you can't either",
            "SELECT a FROM b WHERE c = 'd' OR 1=1 UNION ALL SELECT e FROM f",
            "SELECT split(a, ';') FROM b WHERE c = ',' OR d LIKE '%--%'; -- all",
            "if x == 'a' and y == 'b': pass",
            "status = 'open' and priority = 'high'",
            "Please select the union that you belong to and order by Friday",
            "drop the table from the agenda; update me",
            "it's fine -- really",
            "rock 'n' roll",
            "# Heading",
            "1. First\n2. Second",
        ] {
            assert!(!finds(text), "{text}");
        }
    }
}
