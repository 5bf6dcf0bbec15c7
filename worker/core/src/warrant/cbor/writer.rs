//! Writes items.

use super::item::major;
use crate::json::Json;

/// Writes items, each in its shortest form.
#[derive(Debug, Default, Clone)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    fn head(&mut self, major: u8, argument: u64) {
        let major = major << 5;
        let bytes = argument.to_be_bytes();
        let (info, from) = match argument {
            0..=23 => {
                self.bytes.push(major | bytes.last().copied().unwrap_or_default());
                return;
            }
            24..=0xff => (24, 7),
            0x100..=0xffff => (25, 6),
            0x1_0000..=0xffff_ffff => (26, 4),
            _ => (27, 0),
        };
        self.bytes.push(major | info);
        self.bytes.extend_from_slice(bytes.get(from..).unwrap_or_default());
    }

    pub fn unsigned(&mut self, value: u64) {
        self.head(major::UNSIGNED, value);
    }

    pub fn integer(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
            Err(_) => self.head(major::NEGATIVE, !value.cast_unsigned()),
        }
    }

    #[inline(never)]
    fn string(&mut self, major: u8, value: &[u8]) {
        self.head(major, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.string(major::BYTES, value);
    }

    pub fn text(&mut self, value: &str) {
        self.string(major::TEXT, value.as_bytes());
    }

    pub fn flag(&mut self, value: bool) {
        self.bytes.push(if value { 0xf5 } else { 0xf4 });
    }

    pub fn null(&mut self) {
        self.bytes.push(0xf6);
    }

    pub fn array(&mut self, items: usize) {
        self.head(major::ARRAY, items as u64);
    }

    pub fn map(&mut self, entries: usize) {
        self.head(major::MAP, entries as u64);
    }

    /// Bytes as an array of small numbers.
    pub fn octets(&mut self, value: &[u8]) {
        self.array(value.len());
        for byte in value {
            self.unsigned(u64::from(*byte));
        }
    }

    /// A float, in the shortest of the three widths that hold it.
    pub fn float(&mut self, value: f64) {
        let narrow = value as f32;
        if f64::from(narrow) != value {
            self.bytes.push(0xfb);
            self.bytes.extend_from_slice(&value.to_be_bytes());
            return;
        }
        match shortest(narrow) {
            Some(bits) => {
                self.bytes.push(0xf9);
                self.bytes.extend_from_slice(&bits.to_be_bytes());
            }
            None => {
                self.bytes.push(0xfa);
                self.bytes.extend_from_slice(&narrow.to_be_bytes());
            }
        }
    }

    /// The keys of objects are in the order of their bytes.
    pub fn value(&mut self, value: &Json) {
        match value {
            Json::Null => self.null(),
            Json::Bool(value) => self.flag(*value),
            Json::Integer(value) => self.integer(*value),
            Json::Number(value) => self.float(*value),
            Json::String(value) | Json::Verbatim(value) => self.text(value),
            Json::Array(items) => {
                self.array(items.len());
                for item in items {
                    self.value(item);
                }
            }
            Json::Object(fields) => {
                self.map(fields.len());
                for (key, value) in sorted(fields) {
                    self.text(key);
                    self.value(value);
                }
            }
        }
    }
}

/// The fields of a [`Json::Object`] in the order of their keys' bytes. An object is sorted by UTF-16 code units, which
/// differs for keys outside of the Basic Multilingual Plane.
#[must_use]
pub fn sorted(fields: &[(String, Json)]) -> Vec<(&str, &Json)> {
    let mut sorted = Vec::with_capacity(fields.len());
    push_sorted(fields, 0, &mut sorted);
    sorted
}

/// Pushes fields whose keys have so many bytes in common. The time is linear in the length of the keys: where keys begin to
/// differ, those with an astral character, whose first byte is at least 0xf0, change places with those that have a
/// character from U+E000.
fn push_sorted<'a>(
    fields: &'a [(String, Json)],
    common: usize,
    sorted: &mut Vec<(&'a str, &'a Json)>,
) {
    let (first, last) = match fields {
        [] => return,
        [(key, value)] => {
            sorted.push((key, value));
            return;
        }
        [(first, _), .., (last, _)] => (first.as_bytes(), last.as_bytes()),
    };
    // As the fields are sorted, all of them have in common what the first and the last one have.
    let more = first.iter().skip(common).zip(last.iter().skip(common));
    let common = common + more.take_while(|(a, b)| a == b).count();
    let byte = |field: &(String, Json)| field.0.as_bytes().get(common).copied();
    let (before, from_e000) = split(fields, |field| byte(field) < Some(0xee));
    let (astral, from_e000) = split(from_e000, |field| byte(field) >= Some(0xf0));
    for mut rest in [before, from_e000, astral] {
        while let Some(first) = rest.first() {
            let (same, others) = split(rest, |field| byte(field) == byte(first));
            push_sorted(same, common + 1, sorted);
            rest = others;
        }
    }
}

/// Splits a list before the first item for which this does not hold.
fn split<T>(items: &[T], holds: impl Fn(&T) -> bool) -> (&[T], &[T]) {
    items.split_at_checked(items.partition_point(holds)).unwrap_or_default()
}

/// The 16 bits of a finite float, if it fits into them.
fn shortest(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let sign = u16::try_from(bits >> 16 & 0x8000).ok()?;
    if value == 0.0 {
        return Some(sign);
    }
    let exponent = i32::try_from(bits >> 23 & 0xff).ok()? - 127;
    let mantissa = bits & 0x7f_ffff;
    let (shift, base) = match exponent {
        -14..=15 => (13, u32::try_from(exponent + 15).ok()? << 10),
        // Subnormal: the leading one is written too.
        -24..=-15 => (u32::try_from(-1 - exponent).ok()?, 0),
        _ => return None,
    };
    let mantissa = if base == 0 { mantissa | 0x80_0000 } else { mantissa };
    (mantissa.trailing_zeros() >= shift || mantissa == 0)
        .then(|| u16::try_from(base + (mantissa >> shift)).ok().map(|bits| sign | bits))
        .flatten()
}
