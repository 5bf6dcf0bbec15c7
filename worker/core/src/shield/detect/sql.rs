//! SQL that ends the value around it.
//!
//! A text is read as tokens of SQL, and patterns of token kinds are matched with it in parallel. The cost of a token does
//! not depend on what came before.
//!
//! An injection differs from other SQL because it ends the value around it: with a quote that was never opened, after
//! a number or a bracket, or with a comment after it. Two words one after the other are prose, not SQL. A text that
//! begins as a statement is the argument of a tool for SQL. In such a text, only the patterns that begin with an
//! opening quote count. They still count because an attacker can easily put the first word of a statement before an
//! injection.

mod patterns;
mod tokens;

use patterns::Matched;
pub use patterns::Patterns;
pub use tokens::{functions, telling_words};

use self::tokens::{Kind, Tokens};
use super::{Dictionary, Found, is_word};
use crate::shield::left::TOKEN;
use crate::shield::signs::{Signed, Signs};

/// Reports what the patterns find in a text.
pub fn find(patterns: &Patterns, signed: Signed<'_>, found: Found<'_>) {
    let mut matched = patterns.begin();
    let text = signed.text;
    let mut tokens = Tokens::new(text);
    // The reading in which comments that end with their line are spaces, and where it goes on. The other one goes on within
    // comments too, because what looks like a comment can be in quotes.
    let mut spaced: Option<Matched<'_>> = None;
    let (mut goes_on, mut has_lines) = (0, true);
    let mut end = 0;
    while signed.work.take(TOKEN)
        && let Some(kind) = tokens.next()
    {
        if tokens.at > goes_on {
            let line_end =
                if kind == Kind::Comment && has_lines { tokens.line_end() } else { None };
            has_lines &= kind != Kind::Comment || line_end.is_some();
            match (line_end, &mut spaced) {
                (Some(line_end), spaced) => {
                    spaced.get_or_insert(matched);
                    goes_on = line_end;
                }
                (None, Some(spaced)) => spaced.step(kind),
                (None, None) => {}
            }
        }
        matched.step(kind);
        if matched.any() {
            end = tokens.at;
        }
    }
    matched.step(Kind::End);
    if let Some(mut spaced) = spaced {
        spaced.step(Kind::End);
        matched.add(spaced);
    }
    if !matched.any() {
        return;
    }
    let is_statement = begins_statement(text);
    for detector in matched.detectors(is_statement) {
        found(detector, 0..if end == 0 { text.len() } else { end });
    }
}

/// Whether a quote is followed by what can follow the end of a value in SQL. Most quotes are followed by a word.
#[must_use]
pub fn leaves_quotes(signed: Signed<'_>) -> bool {
    static FOLLOWING: Dictionary<()> = Dictionary::new(&[
        ("and", ()),
        ("between", ()),
        ("group", ()),
        ("having", ()),
        ("in", ()),
        ("into", ()),
        ("is", ()),
        ("like", ()),
        ("or", ()),
        ("order", ()),
        ("regexp", ()),
        ("xor", ()),
    ]);
    let bytes = signed.text.as_bytes();
    let mut at = 0;
    while let Some(quote) = signed.next(at, Signs::QUOTE) {
        at = quote + 1;
        let rest = bytes.get(at..).unwrap_or_default();
        let spaces = rest.iter().take_while(|byte| **byte <= b' ' || matches!(byte, b'+' | b')'));
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
                if FOLLOWING.get(word).is_some() {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Words after which a condition or an operand follows in SQL. Most of them are in prose too.
pub const LOGIC: [&str; 10] =
    ["or", "and", "xor", "||", "&&", "where", "having", "case", "order", "group"];

/// Where the first operand of a text ends, with the brackets and spaces around it. Patterns can begin there without anything
/// that tells them from prose.
#[must_use]
pub fn end_of_first_operand(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_between = |byte: &&u8| **byte <= b' ' || matches!(**byte, b'+' | b'(' | b')');
    let is_operand = |byte: &&u8| is_word(**byte) || matches!(**byte, b'@' | b'$' | b'.' | 0x80..);
    let after = |at: usize| bytes.get(at..).unwrap_or_default().iter();
    let mut at = after(0).take_while(is_between).count();
    at += after(at).take_while(is_operand).count();
    at += after(at).take_while(is_between).count();
    // A comment can be before, within or after it.
    let is_comment = matches!(bytes.get(at), Some(b'/' | b'*' | b'#' | b'-'));
    if is_comment { text.len() } else { at }
}

/// Whether an operand of SQL can follow after one of [`LOGIC`]: all that patterns can have there. Most words are prose.
#[must_use]
pub fn operand_follows(text: &str, mut at: usize) -> bool {
    let bytes = text.as_bytes();
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let is_between = |byte: &&u8| **byte <= b' ' || matches!(**byte, b'+' | b'(');
        let rest = rest.get(rest.iter().take_while(is_between).count()..).unwrap_or_default();
        let word = rest.get(..rest.iter().take_while(|byte| is_word(**byte)).count());
        let word = word.unwrap_or_default();
        match rest.first() {
            Some(b'0'..=b'9' | b'\'' | b'"' | b'/' | b'*' | b'#' | b'-' | b'@') => return true,
            Some(byte) if is_word(*byte) => match tokens::kind_of_word(word) {
                // It is asked for itself. So no word is read twice.
                _ if word.eq_ignore_ascii_case(b"case") => return false,
                Kind::Prefix | Kind::By | Kind::When => {
                    at = bytes.len() - rest.len() + word.len();
                }
                Kind::Number | Kind::Function | Kind::Telling | Kind::Select => return true,
                _ => return rest.get(word.len()) == Some(&b'('),
            },
            _ => return false,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> bool {
        let mut any = false;
        find(&Patterns::new(), text.into(), &mut |_, _| any = true);
        any
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
            // Comments that end with their line.
            "1' union--x\nselect 1,2--",
            "1' union -- it's\nselect 1,2",
            "1' union#x\n#y\nselect 1,2#",
            "1' or--x\n1=1",
            "a--b' or 1=1-- \n",
            // White space of some databases.
            "1'\u{b}UNION\u{b}SELECT\u{b}1,2",
            "1'\u{b}or\u{1}1=1-- ",
            // No space after a number.
            "1e0UNION SELECT 1,2,3",
            "1.union select 1,2",
            ".1union select 1,2",
            "0x1union select 1,2",
            "1e0or 1=1",
            "1' or not false--",
            "1' returning *--",
            "1'-0-'",
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
            "the users' and not admins'",
            "it's * and -- 5",
            "a 5'-6\" door",
            "# Heading",
            "1. First\n2. Second",
            "3rd of 5kg or 10mm",
            "# Select\nThe union that you want -- or\nnot",
        ] {
            assert!(!finds(text), "{text}");
        }
    }

    #[test]
    fn a_word_of_logic_is_told_from_prose_by_what_follows() {
        for (text, expected) in [
            ("or 1=1", true),
            ("or\n\n/*y*/ 1=1", true),
            ("and (not (0)=(0))", true),
            ("||'a'", true),
            ("or sleep(5)", true),
            ("or f(1)", true),
            ("order by 2", true),
            ("where true", true),
            ("and case when 1=1", false),
            ("and look at 1=1", false),
            ("order the 5 items", false),
            ("or, 1=1", false),
            ("and not exists any", false),
            ("and", false),
        ] {
            let begins = LOGIC.iter().filter(|word| text.starts_with(**word));
            let word = begins.max_by_key(|word| word.len()).unwrap();
            assert_eq!(operand_follows(text, word.len()), expected, "{text}");
        }
        for (text, expected) in [
            ("", 0),
            ("  (x) or 1", 6),
            ("x or y", 2),
            ("1.5)) or", 6),
            ("a b c", 2),
            ("/*x*/ a or", 10),
            ("a--\nor", 6),
        ] {
            assert_eq!(end_of_first_operand(text), expected, "{text}");
        }
    }
}
