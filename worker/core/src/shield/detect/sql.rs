//! SQL that ends the value around it.
//!
//! A text is read as tokens of SQL, and patterns of token kinds are matched with it in parallel, a bit for each
//! element of a pattern (R. Baeza-Yates and G. Gonnet, "A new approach to text searching", 1992). So the cost of a
//! token does not depend on what came before.
//!
//! An injection differs from other SQL because it ends the value around it: with a quote that was never opened, after
//! a number or a bracket, or with a comment after it. Two words one after the other are prose, not SQL. A text that
//! begins as a statement is the argument of a tool for SQL. In such a text, an injection needs a quote that opens a
//! text which continues as SQL, because an attacker can easily add a first word.

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
    (Detector::SqlTautology, "' )* &x (* '\"? 0w? '\"? )* $#'\"&"),
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
#[derive(Debug)]
pub struct Patterns {
    /// For each kind the elements that accept it.
    accepts: [Bits; KINDS],
    firsts: Bits,
    optional: Bits,
    repeated: Bits,
    lasts: Bits,
    /// For each kind the elements that it reaches if no pattern has begun; `None`: none.
    begins: [Option<Bits>; KINDS],
    /// For each word of bits what its first elements carry over into the next word, if they may be left out.
    carried: Bits,
    /// For each last element its position, what the pattern finds, and whether the pattern begins with an opening quote.
    finds: Vec<(usize, Detector, bool)>,
}

/// A bit for each element of the patterns.
type Bits = [u64; WORDS_OF_BITS];
const WORDS_OF_BITS: usize = 7;

impl Default for Patterns {
    fn default() -> Self {
        Self::new()
    }
}

impl Patterns {
    /// # Panics
    ///
    /// Never: a test builds them.
    #[must_use]
    pub fn new() -> Self {
        let mut patterns = Self {
            accepts: [[0; WORDS_OF_BITS]; KINDS],
            firsts: [0; WORDS_OF_BITS],
            optional: [0; WORDS_OF_BITS],
            repeated: [0; WORDS_OF_BITS],
            lasts: [0; WORDS_OF_BITS],
            begins: [None; KINDS],
            carried: [0; WORDS_OF_BITS],
            finds: Vec::new(),
        };
        let mut at = 0;
        for (detector, pattern) in PATTERNS {
            set(&mut patterns.firsts, at);
            for element in pattern.split_ascii_whitespace() {
                let (letters, times) = match element.as_bytes() {
                    [letters @ .., b'*'] if !letters.is_empty() => (letters, Some(true)),
                    [letters @ .., b'?'] if !letters.is_empty() => (letters, Some(false)),
                    letters => (letters, None),
                };
                for letter in letters {
                    let call = (*letter == b'w').then_some(Kind::Call);
                    for kind in [kind_of(*letter)].into_iter().chain(call) {
                        let accepts = patterns.accepts.get_mut(kind as usize);
                        accepts.into_iter().for_each(|bits| set(bits, at));
                    }
                }
                if let Some(again) = times {
                    set(&mut patterns.optional, at);
                    if again {
                        set(&mut patterns.repeated, at);
                    }
                }
                at += 1;
            }
            set(&mut patterns.lasts, at - 1);
            patterns.finds.push((at - 1, *detector, pattern.starts_with("' ")));
        }
        let mut before = 0;
        for at in 0..WORDS_OF_BITS {
            let (_, carried) = reached(0, 0, before, &patterns, at);
            before = carried;
            if let Some(entry) = patterns.carried.get_mut(at) {
                *entry = carried;
            }
        }
        for kind in 0..KINDS {
            let begins = step([0; WORDS_OF_BITS], &patterns, kind);
            if let Some(entry) = patterns.begins.get_mut(kind) {
                *entry = Some(begins).filter(|bits| *bits != [0; WORDS_OF_BITS]);
            }
        }
        patterns
    }

    /// The elements in use.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.finds.last().map_or(0, |(at, ..)| at + 1)
    }
}

fn set(bits: &mut Bits, at: usize) {
    if let Some(word) = bits.get_mut(at / 64) {
        *word |= 1 << (at % 64);
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
    let mut matcher =
        Matcher { patterns, active: [0; WORDS_OF_BITS], begun: false, ends: [0; WORDS_OF_BITS] };
    matcher.step(Kind::Start);
    let mut tokens = Tokens::new(text);
    let mut end = 0;
    while let Some(kind) = tokens.next() {
        matcher.step(kind);
        if matcher.ends != [0; WORDS_OF_BITS] {
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
    /// Whether an element is active.
    begun: bool,
    /// Last elements that were reached.
    ends: Bits,
}

impl Matcher<'_> {
    #[inline]
    fn step(&mut self, kind: Kind) {
        if !self.begun {
            // Most words of a text begin no pattern.
            let Some(Some(begins)) = self.patterns.begins.get(kind as usize) else { return };
            self.active = *begins;
        } else {
            self.active = step(self.active, self.patterns, kind as usize);
        }
        self.begun = self.active != [0; WORDS_OF_BITS];
        for (ends, (active, lasts)) in
            self.ends.iter_mut().zip(self.active.iter().zip(&self.patterns.lasts))
        {
            *ends |= active & lasts;
        }
    }
}

/// The elements that are reached by a token of this kind from those that were.
fn step(active: Bits, patterns: &Patterns, kind: usize) -> Bits {
    let Some(accepts) = patterns.accepts.get(kind) else { return active };
    let begins = patterns.begins.get(kind).copied().flatten();
    let mut next = active;
    let mut carry = 0;
    let (mut carried, mut usual) = (0, 0);
    for (at, word) in next.iter_mut().enumerate() {
        let of = |bits: &Bits| bits.get(at).copied().unwrap_or_default();
        let was = *word;
        // Most words have no active element. Then only patterns begin in them.
        if was == 0
            && carry == 0
            && carried == usual
            && let Some(begins) = &begins
        {
            *word = of(begins);
            usual = of(&patterns.carried);
            carried = usual;
            continue;
        }
        let (reached, out) = reached(was, carry, carried, patterns, at);
        *word = (reached | was & of(&patterns.repeated)) & of(accepts);
        carry = was >> 63;
        carried = out;
        usual = of(&patterns.carried);
    }
    next
}

/// The elements of a word of bits that the next token may be, from those that are active, and whether the first one of
/// the next word is too. An element that may be left out reaches the next one.
#[inline]
fn reached(was: u64, carry: u64, carried: u64, patterns: &Patterns, at: usize) -> (u64, u64) {
    let of = |bits: &Bits| bits.get(at).copied().unwrap_or_default();
    let (optional, firsts) = (of(&patterns.optional), of(&patterns.firsts));
    let mut reached = ((was << 1 | carry) & !firsts) | firsts | carried & !firsts;
    for _ in 0..MAX_OPTIONAL {
        reached |= ((reached & optional) << 1) & !firsts;
    }
    (reached, (reached & optional) >> 63)
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
        assert!(Patterns::new().bits() <= WORDS_OF_BITS * 64);
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
