//! The decoded forms of a text. What stops a decoding is noted as `truncated`.

use super::{Inspection, MAX_LAYERS};
use crate::decode::binary::{self, Inflated};
use crate::decode::escapes::{Escapes, Round};
use crate::decode::letters;
use crate::shield::findings::Decoding;
use crate::shield::signs::{self, Signs};

/// Times that escapes are decoded: an encoding of an encoding of an encoding.
const MAX_ROUNDS: usize = 3;

/// Bytes of base64 or hexadecimal digits that are decoded: shorter texts are words or ids.
const MIN_ENCODED_BYTES: usize = 16;

/// Digits of a number that is not decoded, because it is an id. So few bytes without a digit from a to f are hardly an
/// attack.
const MAX_NUMBER_DIGITS: usize = 20;

/// Bytes of an id. Random bytes are seldom a text, unless they are so few.
const MAX_ID_BYTES: usize = 16;

impl Inspection<'_> {
    /// A text that is base64 or hexadecimal digits as a whole, decoded and decompressed.
    pub(super) fn binary(&mut self, text: &str, decodings: &mut Vec<Decoding>) -> Option<String> {
        if text.len() < MIN_ENCODED_BYTES {
            return None;
        }
        let text = text.trim();
        let text = binary::data_of_url(text).unwrap_or(text);
        // Many readers ignore white space.
        let is_encoded = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
                || byte.is_ascii_whitespace()
        };
        if !text.bytes().all(is_encoded) {
            return None;
        }
        let joined: String;
        let mut text = text;
        if text.contains(|character: char| character.is_ascii_whitespace()) {
            joined = text.split_ascii_whitespace().collect();
            text = &joined;
        }
        // Readers end at the first padding, and ignore a character that is left over.
        let end = text.find('=').unwrap_or(text.len());
        text = text.get(..end - usize::from(end % 4 == 1))?;
        let is_number =
            text.len() <= MAX_NUMBER_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        if text.len() < MIN_ENCODED_BYTES || is_number {
            return None;
        }
        let (mut bytes, encoding) = match binary::hexadecimal(text) {
            Some(bytes) => (bytes, Decoding::Hexadecimal),
            None => (binary::base64(text)?, Decoding::Base64),
        };
        decodings.push(encoding);
        for layer in 0.. {
            match binary::inflate(&bytes, &mut self.left.inflated) {
                Inflated::Plain => return readable(bytes),
                Inflated::Data(data) if layer < MAX_LAYERS => {
                    decodings.push(Decoding::Compressed);
                    bytes = data;
                }
                Inflated::Data(_) | Inflated::Unreadable => break,
            }
        }
        self.truncated = true;
        None
    }

    /// The text with its escapes decoded, in plain letters; `None` if that is the text itself. Plain letters can be
    /// escapes, so both are repeated until nothing changes.
    pub(super) fn canonical(
        &mut self,
        text: &str,
        decodings: &mut Vec<Decoding>,
    ) -> Option<String> {
        let kept = decodings.len();
        let mut note = |decoding| {
            if !decodings.get(kept..).unwrap_or_default().contains(&decoding) {
                decodings.push(decoding);
            }
        };
        let mut rounds = 0;
        let mut current: Option<String> = None;
        loop {
            match self.unescaped(current.as_deref().unwrap_or(text), &mut rounds, &mut note) {
                Some(decoded) => current = Some(decoded),
                // The letters are plain already.
                None if current.is_some() => break,
                None => {}
            }
            let before = current.as_deref().unwrap_or(text);
            if signs::next(before.as_bytes(), 0, Signs::HIGH | Signs::CONTROL).is_none() {
                break;
            }
            // Rules ignore case, so a form that differs only in case has no other findings.
            let Some(folded) = letters::folded_beyond_case(before) else { break };
            note(Decoding::Letters);
            current = Some(folded);
        }
        current
    }

    /// The text with its escapes decoded, in as many rounds as are left; `None` if it has none.
    fn unescaped(
        &mut self,
        text: &str,
        rounds: &mut usize,
        note: &mut dyn FnMut(Decoding),
    ) -> Option<String> {
        signs::next(text.as_bytes(), 0, Signs::ESCAPE)?;
        let mut decoded: Option<Round> = None;
        loop {
            let next = match &decoded {
                Some(decoded) => decoded.next(Escapes::ALL),
                None => Round::first(text, Escapes::ALL),
            };
            let Some(next) = next else { break };
            if *rounds == MAX_ROUNDS {
                self.truncated = true;
                break;
            }
            *rounds += 1;
            let found = next.found;
            for (is_found, decoding) in [
                (found.percent, Decoding::Percent),
                (found.entity, Decoding::Entities),
                (found.backslash, Decoding::Escapes),
            ] {
                if is_found {
                    note(decoding);
                }
            }
            decoded = Some(next);
        }
        decoded.map(|round| round.text)
    }
}

/// Decoded bytes as a text, if they look like one. Zeros are left out, so the Latin letters of UTF-16 are read too.
fn readable(bytes: Vec<u8>) -> Option<String> {
    let begin = bytes.get(..bytes.len().min(256)).unwrap_or_default();
    let of = |is: fn(&&u8) -> bool| begin.iter().filter(is).count();
    let plain = of(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let zeros = of(|byte| **byte == 0);
    let is_control =
        |byte: &u8| *byte != 0 && byte.is_ascii_control() && !byte.is_ascii_whitespace();
    // Anybody can add one at the end.
    let inner = begin.split_last().map_or(begin, |(_, inner)| inner);
    if bytes.len() <= MAX_ID_BYTES && inner.iter().any(is_control) {
        return None;
    }
    let looks_plain = plain * 4 >= (begin.len() - zeros) * 3 && zeros <= plain + 1;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if looks_plain => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(_) => return None,
    };
    Some(if text.contains('\0') { text.replace('\0', "") } else { text })
}
