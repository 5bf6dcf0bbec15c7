//! Templates that compute with constants. Attackers send them to find out whether templates are evaluated. An ordinary
//! template names its values.

use super::{Found, before, is_word};
use crate::shield::rule::Detector;

/// Bytes of an expression that are read.
const MAX_EXPRESSION_BYTES: usize = 64;

/// Bytes of a quoted operand.
const MAX_QUOTED_BYTES: usize = 16;

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

/// Reports expressions of constants between delimiters of templates.
pub fn find(text: &str, found: Found<'_>) {
    let bytes = text.as_bytes();
    // A program with template strings computes in them.
    let string = text.find('`').unwrap_or(text.len());
    let mut at = 0;
    while let Some(next) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| matches!(byte, b'{' | b'<' | b'@' | b'#')))
    {
        let begin = at + next;
        at = begin + 1;
        let Some(start) = delimiter(bytes, begin) else { continue };
        if begin > string && before(bytes, begin) == Some(b'$') {
            continue;
        }
        let end = bytes.len().min(start + MAX_EXPRESSION_BYTES);
        let mut expression = Expression { bytes: bytes.get(start..end).unwrap_or_default(), at: 0 };
        expression.skip_opening();
        // A delimiter among the skipped bytes would begin the same expression.
        at = start + expression.at;
        if let Some(length) = expression.computes() {
            found(Detector::TemplateConstant, begin..start + length);
        }
    }
}

/// Where the expression begins whose delimiter has this byte in it.
fn delimiter(bytes: &[u8], at: usize) -> Option<usize> {
    let prior = before(bytes, at);
    match (bytes.get(at)?, bytes.get(at + 1)?) {
        (b'{', b'{' | b'%' | b'=' | b'@' | b'#') => Some(at + 2),
        (b'{', _) => match prior? {
            b'$' | b'#' | b'@' | b'~' | b'%' => Some(at + 1),
            // Commands of LaTeX end with a star.
            b'*' if !before(bytes, at - 1).is_some_and(is_word) => Some(at + 1),
            _ => None,
        },
        (b'<', b'%') | (b'@', b'(') => Some(at + 2),
        (b'#', b's') => bytes.get(at..at + 4).filter(|it| *it == b"#set").map(|_| at + 4),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    Number { digits: usize },
    Literal,
}

struct Expression<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Expression<'_> {
    /// The bytes of what it computes: a constant, an operator and a constant, or a member of a literal.
    fn computes(mut self) -> Option<usize> {
        let left = self.operand()?;
        let spaced = self.skip(|byte| byte == b' ') > 0;
        let operator = self.next()?;
        if left == Operand::Literal && operator == b'.' {
            let rest = self.bytes.get(self.at..)?;
            let name = rest.get(..rest.iter().take_while(|byte| is_word(**byte)).count())?;
            super::position(&MEMBERS, |known| known, name)?;
            return Some(self.at + name.len());
        }
        // `''['class']`
        if left == Operand::Literal && operator == b'[' {
            let quoted = matches!(self.next()?, b'\'' | b'"');
            return quoted.then_some(self.at);
        }
        match operator {
            b'*' => {
                self.skip(|byte| byte == b'*');
            }
            b'+' | b'/' | b'%' | b'~' => {}
            // `${1-80}` is a default of a shell, and `[[2026-11-23]]` a day.
            b'-' if spaced || matches!(left, Operand::Number { digits: 5.. }) => {}
            _ => return None,
        }
        self.skip(|byte| byte == b' ');
        let right = self.operand()?;
        if left == Operand::Literal && right == Operand::Literal {
            return None;
        }
        let end = self.at;
        self.skip(|byte| matches!(byte, b' ' | b')'));
        let closes = match self.next() {
            Some(byte) => {
                matches!(byte, b'}' | b'%' | b']' | b'#' | b';' | b'=' | b'*' | b'+' | b'|')
            }
            None => false,
        };
        (closes || before(self.bytes, self.at) == Some(b')')).then_some(end)
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, is: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| is(**byte)).count();
        self.at += count;
        count
    }

    /// Skips `set name =`, and what opens an expression.
    fn skip_opening(&mut self) {
        let names = self
            .bytes
            .iter()
            .take_while(|byte| is_word(**byte) || matches!(byte, b' ' | b'$' | b'(' | b'.'));
        let end = names.count();
        if end > 0 && self.bytes.get(end) == Some(&b'=') {
            self.at = end + 1;
        }
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'(' | b'=' | b'$' | b'{'));
    }

    fn operand(&mut self) -> Option<Operand> {
        match self.bytes.get(self.at)? {
            b'0'..=b'9' => {
                let digits = self.skip(|byte| byte.is_ascii_digit());
                Some(Operand::Number { digits })
            }
            quote @ (b'\'' | b'"') => {
                self.at += 1;
                let length = self.skip(|byte| byte.is_ascii_alphanumeric());
                (self.next()? == *quote && length <= MAX_QUOTED_BYTES).then_some(Operand::Literal)
            }
            b'[' => {
                self.at += 1;
                (self.next()? == b']').then_some(Operand::Literal)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> bool {
        let mut any = false;
        find(text, &mut |_, _| any = true);
        any
    }

    #[test]
    fn members_are_sorted() {
        assert!(MEMBERS.is_sorted());
    }

    #[test]
    fn a_template_that_computes_with_constants_is_found() {
        for text in [
            "{{7*7}}",
            "{{ 13*'3' }}",
            "${ 13 + 29 }",
            "#{3*3}",
            "*{7*7}",
            "@(6+5)",
            "%{7*7}",
            "<%= 13 ** 3 %>",
            "{{ 1337 - 1 }}",
            "{% set x = 7*7 %}",
            "#set($x = 7*7)",
            "/help/${(111+111)}/index.action",
            "{{'a'.toUpperCase()}}",
            "{{ [].class.base }}",
            "${\"\".getClass()}",
            "{{ ''['class'] }}",
            "{{ \"a\" ~ 7 }}",
            "{{'ab'.length}}",
        ] {
            assert!(finds(text), "{text}");
        }
        for text in [
            "{{ quantity * 2 }}",
            "{{ ', '.join(names) }}",
            "${1+\"$@\"}",
            "${1-80}",
            "[[2026-11-23]]",
            "{{2026-11-23}}",
            "\\section*{7*7}",
            "{{ price|round(2) }}",
            "${a + 1}",
            "{{- 2 }}",
            "user@(7)",
            "const a = `${b} and ${72 + 1}`;",
        ] {
            assert!(!finds(text), "{text}");
        }
    }
}
