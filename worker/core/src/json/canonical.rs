//! Writing the canonical form of RFC 8785.
//!
//! `serde_json` does not write it: RFC 8785 requires the number format of ECMAScript, and keys in the order
//! that [`Json::Object`] already has.

use super::value::Json;

/// Bytes that are reserved for a canonical form. Most arguments need fewer.
const CANONICAL_BYTES: usize = 256;

impl Json {
    /// Appends the RFC 8785 form.
    pub fn write_canonical(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Integer(value) => out.push_str(itoa::Buffer::new().format(*value)),
            Json::Number(value) => out.push_str(ryu_js::Buffer::new().format_finite(*value)),
            Json::Verbatim(text) => out.push_str(text),
            Json::String(text) => write_string(text, out),
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write_canonical(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    value.write_canonical(out);
                }
                out.push('}');
            }
        }
    }

    /// The RFC 8785 form.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::with_capacity(CANONICAL_BYTES);
        self.write_canonical(&mut out);
        out
    }
}

/// The offset of the first byte that RFC 8785 escapes: below 0x20, a quotation mark or a backslash.
/// Compares eight bytes at a time. In a word, higher bytes may be false positives; the lowest is not.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHEST_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    // The subtraction sets the highest bit of each smaller byte. `!word` clears it where it was set before.
    let less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let equal = |word: u64, to: u8| less(word ^ (ONES * u64::from(to)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = (less(word, 0x20) | equal(word, b'"') | equal(word, b'\\')) & HIGHEST_BITS;
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    rest.iter().position(escaped).map(|at| words.len() * 8 + at)
}

/// Appends a JSON string with exactly the escapes of RFC 8785.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_escaped(rest.as_bytes()) {
        out.push_str(rest.get(..at).unwrap_or_default());
        write_escape(rest.as_bytes().get(at).copied().unwrap_or_default(), out);
        rest = rest.get(at + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

fn write_escape(byte: u8, out: &mut String) {
    const HEX: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let escape = match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        0x08 => "\\b",
        b'\t' => "\\t",
        b'\n' => "\\n",
        0x0c => "\\f",
        b'\r' => "\\r",
        control => {
            out.push_str("\\u00");
            out.extend(HEX.get(usize::from(control >> 4)));
            out.extend(HEX.get(usize::from(control & 15)));
            return;
        }
    };
    out.push_str(escape);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn canonical_form_is_rfc_8785() {
        // The numbers, strings and key order of RFC 8785, sections 3.2.2 and 3.2.3 and appendix B.
        let cases = [
            (r#"{"b":1,"a":[ null ,true,{}]}"#, r#"{"a":[null,true,{}],"b":1}"#),
            ("[1.0,-0.0,0.10,1e3,4.50,2e-3,1e-7]", "[1,0,0.1,1000,4.5,0.002,1e-7]"),
            ("[0.000001,333333333.33333329]", "[0.000001,333333333.3333333]"),
            (
                r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#,
                "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"",
            ),
            (
                r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
                "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes()).unwrap().canonical(), expected, "{text}");
        }
    }

    #[test]
    fn finds_the_first_byte_to_escape_at_every_offset() {
        for length in 0..20 {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    // Bytes before and after it must not change the result.
                    let mut bytes = vec![0x20; length];
                    bytes[at..].fill(b'\\');
                    bytes[..at].fill(0x80);
                    bytes[at] = byte;
                    let escaped = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let next = (at + 1 < length).then_some(at + 1);
                    let expected = if escaped { Some(at) } else { next };
                    assert_eq!(first_escaped(&bytes), expected, "{bytes:?}");
                }
            }
        }
    }
}
