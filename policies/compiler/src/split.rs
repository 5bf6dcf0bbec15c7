//! Splits a file's text into the texts of its policies, so that each is parsed, located and embedded
//! separately.
//!
//! INVARIANT (nothing lost): every token of the file is in exactly one policy's text. A policy ends at
//! a `;`. Cedar's grammar has `;` nowhere else except in strings and comments, and both are skipped
//! here as Cedar's lexer skips them. Text that is not a policy is returned as one too, so that Cedar
//! refuses it.

use std::ops::Range;

/// One policy's place in its file, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PolicyText {
    /// From its first token to its `;`, or to the end of the file.
    pub range: Range<usize>,
    /// Where its annotations begin.
    pub annotations: Vec<usize>,
    /// The deepest nesting of brackets, plus its number of `if`s.
    pub nesting: usize,
}

pub(crate) fn split(text: &str) -> Vec<PolicyText> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied();
    let end_of = |from: usize, inside: &dyn Fn(u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|b| inside(**b)).count()
    };

    let mut policies = Vec::new();
    let mut current: Option<PolicyText> = None;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(b) = byte(at) {
        if b.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if b == b'/' && byte(at + 1) == Some(b'/') {
            at = end_of(at, &|b| b != b'\n' && b != b'\r');
            continue;
        }
        let policy = current.get_or_insert_with(|| {
            depth = 0;
            PolicyText { range: at..text.len(), annotations: Vec::new(), nesting: 0 }
        });
        let token = at;
        at += 1;
        match b {
            b'"' => at = end_of_string(bytes, token),
            b'(' | b'[' | b'{' => {
                depth += 1;
                policy.nesting = policy.nesting.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'@' => policy.annotations.push(token),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                at = end_of(token, &|b| b == b'_' || b.is_ascii_alphanumeric());
                if bytes.get(token..at) == Some(b"if") {
                    depth += 1;
                    policy.nesting = policy.nesting.max(depth);
                }
            }
            b';' => {
                policy.range.end = at;
                policies.extend(current.take());
            }
            _ => {}
        }
    }
    policies.extend(current);
    policies
}

/// The name of the annotation at `start`, and its whole range up to its closing parenthesis.
pub(crate) fn annotation(text: &str, start: usize) -> (&str, Range<usize>) {
    let rest = text.get(start + 1..).unwrap_or_default();
    let name_len =
        rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let name = rest.get(..name_len).unwrap_or_default();
    let name_end = start + 1 + name_len;
    let after = text.get(name_end..).unwrap_or_default();
    let end = match after.find('"') {
        Some(quote) if after.trim_start().starts_with('(') => {
            let value_end = end_of_string(text.as_bytes(), name_end + quote);
            let tail = text.get(value_end..).unwrap_or_default();
            value_end + tail.find(')').map_or(0, |parenthesis| parenthesis + 1)
        }
        _ => name_end,
    };
    (name, start..end)
}

/// The end of the string literal whose opening quote is at `quote`. If the literal is not closed, the
/// end of the text.
fn end_of_string(bytes: &[u8], quote: usize) -> usize {
    let mut escaped = false;
    let rest = bytes.get(quote + 1..).unwrap_or_default();
    for (length, b) in rest.iter().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return quote + 1 + length + 1,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_ends_at_its_own_semicolon() {
        for (text, expected) in [
            ("", vec![]),
            ("// only a comment; nothing else", vec![]),
            ("permit(a);", vec!["permit(a);"]),
            ("\n a;\r\n b;", vec!["a;", "b;"]),
            ("// x; y\na; // z;\rb;", vec!["a;", "b;"]),
            (r#"@reason("a; \"b;\" //c") p; q;"#, vec![r#"@reason("a; \"b;\" //c") p;"#, "q;"]),
            ("a; b // not closed", vec!["a;", "b // not closed"]),
            (r#"a; "not; closed"#, vec!["a;", r#""not; closed"#]),
            (";;", vec![";", ";"]),
            ("a\n// inside; it\n;", vec!["a\n// inside; it\n;"]),
            ("é; a;", vec!["é;", "a;"]),
        ] {
            let found: Vec<_> = split(text).into_iter().map(|p| &text[p.range]).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn nesting_counts_open_brackets_and_ifs() {
        for (text, expected) in [
            ("permit(a) when { (b) == [c] };", 2),
            ("(((", 3),
            (r#"x == "((((" // (((("#, 0),
            ("a when { if b then c else if d then e else f };", 3),
            ("iffy(if_x);", 1),
        ] {
            let nesting: Vec<_> = split(text).iter().map(|p| p.nesting).collect();
            assert_eq!(nesting, [expected], "{text:?}");
        }
    }

    #[test]
    fn an_annotation_reaches_to_its_parenthesis() {
        for (text, name, range) in [
            (r#"@id("a") permit"#, "id", 0..8),
            (r#"@id ( "a\")" ) permit"#, "id", 0..14),
            ("@bare permit", "bare", 0..5),
            (r#"@bare @id("a")"#, "bare", 0..5),
            ("@", "", 0..1),
        ] {
            assert_eq!(annotation(text, 0), (name, range), "{text}");
        }
    }
}
