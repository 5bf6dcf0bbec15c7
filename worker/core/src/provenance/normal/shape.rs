//! Numbers, dates and account numbers: one spelling each, if the shape fits.

/// Bytes of what is recognized: an IBAN has 34 letters and digits, and up to 8 gaps.
const MAX_SHAPE_BYTES: usize = 44;

/// Digits of an account, card or phone number (E.164 and ISO/IEC 7812). Fewer digits with gaps may be a list.
const NUMBER_DIGITS: std::ops::RangeInclusive<usize> = 7..=19;

/// Letters and digits of an IBAN (ISO 13616).
const IBAN_BYTES: std::ops::RangeInclusive<usize> = 15..=34;

/// The names of the months in English, German, French and Spanish. Of an English one, three letters are enough.
const MONTHS: [&str; 12] = [
    "january januar jänner janvier enero",
    "february februar février febrero",
    "march märz mars marzo",
    "april avril abril",
    "may mai mayo",
    "june juni juin junio",
    "july juli juillet julio",
    "august août agosto",
    "september septembre septiembre",
    "october oktober octobre octubre",
    "november novembre noviembre",
    "december dezember décembre diciembre",
];

/// A short text.
pub struct Short {
    bytes: [u8; MAX_SHAPE_BYTES],
    length: usize,
}

impl Short {
    const fn new() -> Self {
        Self { bytes: [0; MAX_SHAPE_BYTES], length: 0 }
    }

    fn push(&mut self, byte: u8) -> Option<()> {
        *self.bytes.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    /// Appends the letters and digits of a text.
    fn extend(&mut self, text: &[u8]) -> Option<()> {
        for byte in text.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
            self.push(*byte)?;
        }
        Some(())
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The one spelling of a number, date or account number in lower case. `None` for any other text.
pub fn compact(text: &[u8]) -> Option<Short> {
    if text.len() > MAX_SHAPE_BYTES || !text.iter().all(is_shape) {
        return None;
    }
    match text {
        [b'a'..=b'z', b'a'..=b'z', b'0'..=b'9', b'0'..=b'9', ..] => iban(text),
        [b'a'..=b'z', ..] => text.get(..3).and_then(month).and_then(|_| date(text)),
        [b'+', rest @ ..] => digits(rest, true),
        _ => date(text).or_else(|| number(text)).or_else(|| digits(text, false)),
    }
}

/// Whether a number, date or account number can contain the byte. Most texts with a digit have another one.
fn is_shape(byte: &u8) -> bool {
    let is_sign =
        |byte| matches!(byte, b'-' | b'/' | b'.' | b',' | b'\'' | b'(' | b')' | b'+' | b'$');
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b' ' | 0x80..) || is_sign(*byte)
}

fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'-')
}

/// Groups of four, the last may be shorter.
fn iban(text: &[u8]) -> Option<Short> {
    let mut groups = text.split(|byte| is_gap(*byte)).peekable();
    if text.iter().any(|byte| is_gap(*byte)) {
        while let Some(group) = groups.next() {
            let last = groups.peek().is_none();
            if group.len() > 4 || group.is_empty() || (group.len() < 4 && !last) {
                return None;
            }
        }
    }
    let is_part = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9') || is_gap(*byte);
    let mut out = Short::new();
    out.extend(text)?;
    (IBAN_BYTES.contains(&out.length) && text.iter().all(is_part)).then_some(out)
}

/// An account, card or phone number without its gaps.
fn digits(text: &[u8], plus: bool) -> Option<Short> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || is_gap(*byte) || matches!(byte, b'(' | b')');
    let count = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    if text.first().is_none_or(|first| is_gap(*first))
        || !text.iter().all(is_part)
        || !NUMBER_DIGITS.contains(&count)
    {
        return None;
    }
    let mut out = Short::new();
    if plus {
        out.push(b'+')?;
    }
    out.extend(text)?;
    Some(out)
}

/// A number without currency, separators of thousands, and zeros at the end of its fraction.
fn number(text: &[u8]) -> Option<Short> {
    let text = without_currency(text);
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, without_currency(rest)),
        _ => (false, text),
    };
    let is_separator = |byte: &u8| matches!(byte, b',' | b'.' | b' ' | b'\'');
    let (whole, fraction) = match text.iter().rposition(is_separator) {
        None => (text, &[][..]),
        Some(at) => {
            let (head, tail) = text.split_at_checked(at)?;
            let (separator, tail) = tail.split_first()?;
            let before = head.iter().copied().find(|byte| is_separator(byte));
            let decimal = match before {
                // Three digits after the only comma are thousands. A point is always decimal, as in JSON.
                None => *separator == b'.' || (*separator == b',' && tail.len() == 2),
                Some(before) => before != *separator && matches!(separator, b'.' | b','),
            };
            if decimal && !tail.is_empty() { (head, tail) } else { (text, &[][..]) }
        }
    };
    let thousands = whole.iter().copied().find(|byte| is_separator(byte));
    let mut groups = whole.split(|byte| Some(*byte) == thousands);
    let first = groups.next()?;
    let is_digits = |group: &[u8]| !group.is_empty() && group.iter().all(u8::is_ascii_digit);
    let leading_zero = first.first() == Some(&b'0') && (first.len() > 1 || thousands.is_some());
    if !is_digits(first)
        || !fraction.iter().all(u8::is_ascii_digit)
        || leading_zero
        || (thousands.is_some() && first.len() > 3)
        || !groups.all(|group| group.len() == 3 && is_digits(group))
    {
        return None;
    }
    let zeros = fraction.iter().rev().take_while(|digit| **digit == b'0').count();
    let fraction = fraction.get(..fraction.len() - zeros).unwrap_or_default();
    let mut out = Short::new();
    if negative && !(whole == b"0" && fraction.is_empty()) {
        out.push(b'-')?;
    }
    out.extend(whole)?;
    if !fraction.is_empty() {
        out.push(b'.')?;
        out.extend(fraction)?;
    }
    Some(out)
}

fn without_currency(text: &[u8]) -> &[u8] {
    for sign in ["$", "€", "£", "¥"] {
        if let Some(rest) = text.strip_prefix(sign.as_bytes()) {
            return rest.strip_prefix(b" ").unwrap_or(rest);
        }
        if let Some(rest) = text.strip_suffix(sign.as_bytes()) {
            return rest.strip_suffix(b" ").unwrap_or(rest);
        }
    }
    text
}

/// A date with a year of four digits, whose day and month cannot be confused, as `2026-11-22`.
fn date(text: &[u8]) -> Option<Short> {
    let is_gap = |byte: &u8| matches!(byte, b' ' | b'-' | b'/' | b'.' | b',');
    let mut parts =
        text.split(is_gap).filter(|part| !part.is_empty() && !matches!(*part, b"of" | b"de"));
    let (Some(a), Some(b), Some(c), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let (year, month, day) = if let Some(month) = month(b) {
        (year(c)?, month, ordinal(a)?)
    } else if let Some(month) = month(a) {
        (year(c)?, month, ordinal(b)?)
    } else {
        let mut gaps = text.iter().filter(|byte| is_gap(byte));
        let gap = gaps.next()?;
        if gaps.next() != Some(gap) || gaps.next().is_some() || matches!(gap, b' ' | b',') {
            return None;
        }
        match (year(a), year(c)) {
            (Some(year), None) => (year, two_digits(b)?, two_digits(c)?),
            (None, Some(year)) => {
                let (a, b) = (two_digits(a)?, two_digits(b)?);
                // With points the day is always first.
                match (a, b) {
                    _ if *gap == b'.' || a == b || a > 12 => (year, b, a),
                    _ if b > 12 => (year, a, b),
                    _ => return None,
                }
            }
            _ => return None,
        }
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut out = Short::new();
    out.extend(year)?;
    for part in [month, day] {
        out.push(b'-')?;
        out.extend(&[b'0' + part / 10, b'0' + part % 10])?;
    }
    Some(out)
}

fn year(text: &[u8]) -> Option<&[u8]> {
    (text.len() == 4 && text.iter().all(u8::is_ascii_digit)).then_some(text)
}

/// The number of a month from its name in lower case.
// Inlined into each caller, it takes much more code.
#[inline(never)]
pub fn month(text: &[u8]) -> Option<u8> {
    let is_name = |names: &str| {
        let is_short = text.len() > 2
            && names.split(' ').next().is_some_and(|it| it.as_bytes().starts_with(text));
        is_short || names.split(' ').any(|name| name.as_bytes() == text)
    };
    let at = MONTHS.iter().position(|names| is_name(names))?;
    u8::try_from(at + 1).ok()
}

/// A day such as `1`, `22` or `22nd`.
fn ordinal(text: &[u8]) -> Option<u8> {
    let suffix = [b"st", b"nd", b"rd", b"th"].into_iter();
    two_digits(suffix.filter_map(|suffix| text.strip_suffix(suffix)).next().unwrap_or(text))
}

fn two_digits(text: &[u8]) -> Option<u8> {
    match text {
        [a @ b'0'..=b'9'] => Some(a - b'0'),
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some((a - b'0') * 10 + b - b'0'),
        _ => None,
    }
}
