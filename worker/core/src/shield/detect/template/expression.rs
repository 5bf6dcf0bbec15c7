//! One expression of a template: what it computes from constants.
//!
//! INVARIANT (linear): an expression reads at most [`MAX_EXPRESSION_BYTES`] bytes besides white space. So each byte of a
//! text is read for at most as many delimiters.

use super::super::{is_word, position};

/// Bytes of an expression that are read, besides white space.
const MAX_EXPRESSION_BYTES: usize = 64;

/// Bytes of a quoted operand that is computed with.
const MAX_QUOTED_BYTES: usize = 16;

/// Bytes of a text whose filters count. Longer ones are texts that somebody shows.
const MAX_FILTERED_BYTES: usize = 4;

/// Members of a literal with which attacks find out the language, or reach its classes. Sorted.
const MEMBERS: [&str; 36] = [
    "__class__",
    "bytes",
    "capitalize",
    "charat",
    "chars",
    "chr",
    "class",
    "codepointat",
    "concat",
    "constructor",
    "equals",
    "execute",
    "forname",
    "getbytes",
    "getclass",
    "hashcode",
    "inspect",
    "length",
    "lower",
    "methods",
    "mro",
    "replace",
    "reverse",
    "size",
    "split",
    "strip",
    "sub",
    "substring",
    "swapcase",
    "title",
    "tochararray",
    "tolowercase",
    "tostring",
    "touppercase",
    "type",
    "upper",
];

/// Members that reach classes or run commands, of any literal. Sorted.
const CLASS_MEMBERS: [&str; 11] = [
    "__class__",
    "class",
    "constructor",
    "execute",
    "forname",
    "getclass",
    "hashcode",
    "inspect",
    "methods",
    "mro",
    "tostring",
];

/// Filters that reach classes or run commands. Sorted.
const CLASS_FILTERS: [&str; 9] =
    ["assert", "attr", "eval", "exec", "passthru", "popen", "readfile", "shell_exec", "system"];

/// Filters whose result an attacker recognizes. Sorted.
const TEXT_FILTERS: [&str; 12] = [
    "capitalize",
    "count",
    "downcase",
    "join",
    "length",
    "lower",
    "md5",
    "reverse",
    "sha1",
    "size",
    "upcase",
    "upper",
];

/// The same for numbers. Sorted.
const NUMBER_FILTERS: [&str; 6] = ["abs", "divided_by", "minus", "modulo", "plus", "times"];

/// What Freemarker makes of a literal. Sorted.
const BUILT_INS: [&str; 14] = [
    "api",
    "c",
    "cap_first",
    "eval",
    "html",
    "interpret",
    "length",
    "lower_case",
    "new",
    "number",
    "reverse",
    "size",
    "string",
    "upper_case",
];

/// Operators that are words. Go templates write them before two operands. Sorted.
const WORD_OPERATORS: [&str; 14] =
    ["add", "and", "div", "eq", "ge", "gt", "in", "le", "lt", "mod", "mul", "ne", "or", "sub"];

/// Words before an expression. Sorted.
const STATEMENTS: [&str; 9] =
    ["echo", "elif", "elseif", "elsif", "if", "print", "puts", "return", "unless"];

/// Functions of Go templates that show one literal. Sorted.
const SHOWING: [&str; 6] = ["html", "js", "len", "print", "println", "urlquery"];

/// What begins an expression. It decides which operators count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{{`, `{%`, `<%`, `#{` and the like.
    Brace,
    /// `{{` within a formula of LaTeX.
    Formula,
    /// `${`, which shells have too.
    Dollar,
    /// `@(`, `@{`, `%{` and others, which shells or other languages have too.
    Sign,
    /// `<#` and `[#`: the expression ends at the end of the tag.
    Tag,
    /// `[[` and `[=`, which wikis and tables have too.
    Bracket,
    /// The value as a whole, within `{` and `}`.
    Value,
    /// `{` and a quote. Only filters of Smarty count.
    Quote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    Number {
        digits: usize,
        /// Whether it looks like a year.
        year: bool,
    },
    /// A text of letters and digits, or a list.
    Literal { bytes: usize },
    /// A text of other characters. It can be a separator.
    Text,
}

impl Operand {
    const fn is_number(self) -> bool {
        matches!(self, Self::Number { .. })
    }
}

pub struct Expression<'t> {
    bytes: &'t [u8],
    pub at: usize,
    /// Bytes that may still be read, besides white space.
    left: usize,
    kind: Kind,
    /// Parentheses that are open.
    open: usize,
    /// Whether a function of Go templates is called.
    shows: bool,
}

impl<'t> Expression<'t> {
    pub const fn new(bytes: &'t [u8], at: usize, kind: Kind) -> Self {
        Self { bytes, at, left: MAX_EXPRESSION_BYTES, kind, open: 0, shows: false }
    }

    /// Skips `set name =`, statements, and what opens an expression.
    pub fn skip_opening(&mut self) {
        self.space();
        if matches!(self.kind, Kind::Bracket | Kind::Quote) {
            return;
        }
        self.left = MAX_EXPRESSION_BYTES;
        self.skip_marks();
        let statement = self.word();
        let shows = position(&SHOWING, |known| known, statement).is_some();
        if shows || position(&STATEMENTS, |known| known, statement).is_some() {
            self.shows = shows && self.kind == Kind::Brace;
            self.at += statement.len();
            self.skip_marks();
        }
        let rest = self.rest();
        let is_name =
            |byte: u8| is_word(byte) || byte.is_ascii_whitespace() || b"$(.".contains(&byte);
        let end = rest.iter().take_while(|byte| is_name(**byte)).count();
        if end > 0 && rest.get(end) == Some(&b'=') && rest.get(end + 1) != Some(&b'=') {
            self.at += end + 1;
            self.skip_marks();
        }
        self.left = MAX_EXPRESSION_BYTES;
    }

    /// What can stand before an expression. The marks do not count as read: no expression begins among them again.
    fn skip_marks(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'(' => self.open += 1,
                b'=' | b'$' | b'{' | b'-' | b'~' | b'!' | b':' | b'+' | b'&' => {}
                byte if byte.is_ascii_whitespace() => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    /// The end of what it computes: a constant, an operator and a constant, or a member of a literal.
    pub fn computes(mut self) -> Option<usize> {
        if self.kind == Kind::Brace
            && position(&WORD_OPERATORS, |known| known, self.word()).is_some()
        {
            self.take_word();
            let mut number = || self.space() > 0 && self.operand().is_some_and(Operand::is_number);
            return (number() && number() && self.closes()).then_some(self.at);
        }
        let left = if self.open > 0 && self.peek() == Some(b')') {
            self.next();
            self.open -= 1;
            // `()`
            Operand::Literal { bytes: 0 }
        } else {
            self.operand()?
        };
        let mut spaced = self.space() > 0;
        while self.open > 0 && self.peek() == Some(b')') {
            self.next();
            self.open -= 1;
            spaced |= self.space() > 0;
        }
        let only_arithmetic = matches!(self.kind, Kind::Bracket | Kind::Value);
        let operator = self.next()?;
        match operator {
            b'|' => return self.is_filtered(left).then_some(self.at),
            _ if self.kind == Kind::Quote => return None,
            b'}' if self.shows => return Some(self.at - 1),
            b'.' if self.peek() != Some(b'.') && !only_arithmetic => {
                let name = self.take_word();
                let known = if matches!(left, Operand::Literal { .. }) {
                    position(&MEMBERS, |known| known, name)
                } else {
                    position(&CLASS_MEMBERS, |known| known, name)
                };
                return known.map(|_| self.at);
            }
            // `''['class']`
            b'[' if !left.is_number() && !only_arithmetic => {
                let byte = self.next()?;
                let named = self.kind == Kind::Brace && is_word(byte);
                return (named || matches!(byte, b'\'' | b'"')).then_some(self.at);
            }
            b'?' if !only_arithmetic => {
                let name = self.take_word();
                position(&BUILT_INS, |known| known, name)?;
                let end = self.at;
                self.space();
                return self.peek().is_some_and(|it| b"}()?]>".contains(&it)).then_some(end);
            }
            _ => {}
        }
        if left == Operand::Text {
            return None;
        }
        let joins = self.operator(operator, left, spaced)?;
        self.space();
        while matches!(self.peek(), Some(b'(' | b'-' | b'+')) {
            self.next();
            self.space();
        }
        let right = self.operand().filter(|it| *it != Operand::Text)?;
        let texts = [left, right].into_iter().filter(|it| !it.is_number()).count();
        match joins {
            Join::Any if texts == 2 && !matches!(self.kind, Kind::Brace | Kind::Formula) => {
                return None;
            }
            Join::Text if texts == 0 => return None,
            Join::Short if !matches!(right, Operand::Number { digits: 1, .. }) => return None,
            _ => {}
        }
        let end = self.at;
        self.closes().then_some(end)
    }

    /// Whether the expression ends here, or goes on with an operator.
    fn closes(&mut self) -> bool {
        let mut parenthesis = false;
        loop {
            self.space();
            if self.peek() != Some(b')') {
                break;
            }
            parenthesis = true;
            self.next();
        }
        match (self.kind, self.peek()) {
            (Kind::Value, next) => next.is_none() && self.at == self.bytes.len(),
            (Kind::Bracket, next) => next == Some(b']'),
            (_, None) => parenthesis,
            // Delimiters that trim white space: `-}}`, `~}}`, `-%>`.
            (_, Some(b'-' | b'~')) => {
                self.next();
                self.peek().is_some_and(|byte| b"}%".contains(&byte))
            }
            (_, Some(byte)) => parenthesis || b"}%]#;=*+|<>?&!".contains(&byte),
        }
    }

    /// What the operands must be if this operator is between them; `None` if it is no operator.
    fn operator(&mut self, operator: u8, left: Operand, spaced: bool) -> Option<Join> {
        let kind = self.kind;
        let braces = matches!(kind, Kind::Brace | Kind::Formula);
        match operator {
            b'*' => {
                while self.peek() == Some(b'*') {
                    self.next();
                }
            }
            b'+' => {}
            // The others are written in links, tables and names too.
            _ if matches!(kind, Kind::Bracket | Kind::Value) => return None,
            // `${1//2}` is a shell's.
            b'/' if braces && self.peek() == Some(b'/') => {
                self.next();
            }
            b'/' | b'%' | b'~' => {}
            b'=' | b'!' if self.peek() == Some(b'=') => {
                self.next();
                if self.peek() == Some(b'=') {
                    self.next();
                }
            }
            b'<' | b'>' if braces || kind == Kind::Dollar => {
                if self.peek() == Some(b'=') {
                    self.next();
                }
            }
            b'^' if kind == Kind::Brace => {}
            b'.' if braces && self.next() == Some(b'.') => return Some(Join::Text),
            // `${1-80}` is a default of a shell, and `[[2026-11-23]]` a day.
            b'-' if spaced || matches!(left, Operand::Number { digits: 5.., .. }) => {}
            b'-' if braces && matches!(left, Operand::Number { digits: 3.., year: false }) => {
                return Some(Join::Short);
            }
            b'a'..=b'z' if spaced => {
                self.at -= 1;
                let word = self.take_word();
                position(&WORD_OPERATORS, |known| known, word)?;
                (self.space() > 0).then_some(())?;
            }
            _ => return None,
        }
        Some(Join::Any)
    }

    fn is_filtered(&mut self, left: Operand) -> bool {
        self.space();
        let name = self.take_word();
        let class = position(&CLASS_FILTERS, |known| known, name).is_some();
        match left {
            _ if matches!(self.kind, Kind::Bracket | Kind::Value | Kind::Formula) => false,
            Operand::Literal { .. } | Operand::Text if class => true,
            _ if self.kind != Kind::Brace => false,
            Operand::Number { .. } => position(&NUMBER_FILTERS, |known| known, name).is_some(),
            Operand::Literal { bytes } => {
                bytes <= MAX_FILTERED_BYTES
                    && position(&TEXT_FILTERS, |known| known, name).is_some()
            }
            Operand::Text => false,
        }
    }

    fn operand(&mut self) -> Option<Operand> {
        match self.peek()? {
            b'0' if matches!(self.bytes.get(self.at + 1), Some(b'x' | b'X')) => {
                self.next();
                self.next();
                let digits = self.skip(|byte| byte.is_ascii_hexdigit());
                (digits > 0).then_some(Operand::Number { digits, year: false })
            }
            b'0'..=b'9' => {
                let year = [&b"19"[..], b"20"].iter().any(|it| self.rest().starts_with(it));
                let digits = self.skip(|byte| byte.is_ascii_digit());
                if self.peek() == Some(b'.')
                    && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
                {
                    self.next();
                    self.skip(|byte| byte.is_ascii_digit());
                } else if self.peek() == Some(b'n')
                    && !self.bytes.get(self.at + 1).copied().is_some_and(is_word)
                {
                    self.next();
                }
                Some(Operand::Number { digits, year: year && digits == 4 })
            }
            quote @ (b'\'' | b'"') => {
                self.next();
                let begin = self.at;
                self.skip(|byte| byte != quote && byte != b'\n');
                let quoted = self.bytes.get(begin..self.at).unwrap_or_default();
                (self.next()? == quote).then_some(())?;
                let is_part = |byte: &u8| is_word(*byte) || b" ./-".contains(byte);
                // A separator begins or ends with another character.
                let ends = [quoted.first(), quoted.last()];
                let plain = ends.into_iter().flatten().all(|byte| byte.is_ascii_alphanumeric())
                    && quoted.iter().all(is_part)
                    && quoted.len() <= MAX_QUOTED_BYTES;
                Some(if plain { Operand::Literal { bytes: quoted.len() } } else { Operand::Text })
            }
            open @ (b'[' | b'(') => {
                let close = if open == b'[' { b']' } else { b')' };
                self.next();
                self.space();
                let digits = self.skip(|byte| byte.is_ascii_digit() || b", ".contains(&byte));
                self.space();
                (self.next()? == close).then_some(Operand::Literal { bytes: digits })
            }
            _ => None,
        }
    }

    fn rest(&self) -> &'t [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        rest.get(..self.left).unwrap_or(rest)
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        self.left -= 1;
        Some(byte)
    }

    fn skip(&mut self, is: impl Fn(u8) -> bool) -> usize {
        let count = self.rest().iter().take_while(|byte| is(**byte)).count();
        self.at += count;
        self.left -= count;
        count
    }

    /// Skips white space, which does not count as read.
    fn space(&mut self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += count;
        count
    }

    /// The word that begins here.
    fn word(&self) -> &'t [u8] {
        let rest = self.rest();
        rest.get(..rest.iter().take_while(|byte| is_word(**byte)).count()).unwrap_or_default()
    }

    fn take_word(&mut self) -> &'t [u8] {
        let word = self.word();
        self.at += word.len();
        self.left = self.left.saturating_sub(word.len());
        word
    }
}

/// What the operands of an operator must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Any,
    /// One of them a text.
    Text,
    /// The right one a number of one digit: the others are ranges.
    Short,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(MEMBERS.is_sorted() && CLASS_MEMBERS.is_sorted() && CLASS_FILTERS.is_sorted());
        assert!(TEXT_FILTERS.is_sorted() && NUMBER_FILTERS.is_sorted() && BUILT_INS.is_sorted());
        assert!(WORD_OPERATORS.is_sorted() && STATEMENTS.is_sorted() && SHOWING.is_sorted());
    }
}
