//! HTML and JavaScript that run where a value is shown.
//!
//! A developer sends whole documents with scripts. An attack differs by code of the kind that attacks run, by an event
//! that a value brings along, or by a value that leaves the attribute or string around it.
//!
//! This file reads tags and quotes. `syntax` reads names and values, `code` finds the words of attacks' code, and
//! `script_url` finds URLs that run code.

mod code;
mod script_url;
mod syntax;

use std::ops::Range;

pub use self::code::words;
use self::code::{Code, is_code};
use self::script_url::{has_script_url, script_url};
use self::syntax::{MAX_NAME_BYTES, MAX_QUOTED_BYTES, is_event, name, value};
use super::{Found, MAX_VALUE_BYTES, before, is_word};
use crate::shield::left::CANDIDATE;
use crate::shield::rule::Detector;
use crate::shield::signs::{Signed, Signs};

/// Elements that load or run something by themselves.
const ACTIVE: [&str; 18] = [
    "applet", "base", "bgsound", "embed", "frame", "frameset", "iframe", "import", "isindex",
    "layer", "link", "marquee", "math", "meta", "object", "svg", "xml", "xss",
];

/// Those of them that have no ordinary use in a short text, such as showing a film or a map.
const LOADING: [&str; 12] = [
    "applet", "base", "bgsound", "embed", "frame", "iframe", "import", "isindex", "layer", "meta",
    "object", "xml",
];

/// Bytes of the code that belongs to one place.
const MAX_CODE_BYTES: usize = 4_096;

/// Reports what a text would run.
pub fn find(signed: Signed<'_>, found: Found<'_>) {
    let text = signed.text;
    let bytes = text.as_bytes();
    let document = is_document(text);
    let code = Code::default();
    let mut at = 0;
    let mut word = 0;
    let mut breakout = false;
    let ends = Signs::ANGLE | Signs::QUOTE | Signs::BACKTICK | Signs::CLOSING;
    while let Some(begin) = signed.next(at, ends) {
        at = begin + 1;
        if bytes.get(begin) == Some(&b'<') {
            at = tag((bytes, &code), begin, document, found);
            if breakout && at > begin + 1 {
                found(Detector::HtmlBreakout, begin..at);
                breakout = false;
            }
            continue;
        }
        if document {
            continue;
        }
        if word < at {
            let rest = bytes.get(at..).unwrap_or_default();
            let separators = rest.iter().take_while(|byte| !is_word(**byte) && **byte != b'<');
            word = at + separators.count();
        }
        match after_quote((bytes, &code), at, word) {
            Some(Leaves::Attribute(end)) => found(Detector::HtmlBreakout, begin..end),
            Some(Leaves::String(end)) => found(Detector::ScriptBreakout, begin..end),
            None => {
                let quote = matches!(bytes.get(begin), Some(b'"' | b'\''));
                breakout |= quote
                    && text.len() <= MAX_VALUE_BYTES
                    && closes_tag(bytes, at)
                    && !bytes.get(..begin).unwrap_or_default().contains(&b'<');
            }
        }
    }
    if let Some(end) = script_url(bytes, 0) {
        found(Detector::ScriptUrl, 0..end);
    }
    if !document {
        find_events((signed, &code), found);
        if text.len() <= MAX_VALUE_BYTES && has_script_url(bytes, false) {
            found(Detector::ScriptUrl, 0..bytes.len());
        }
    }
}

/// Reports events that run code, wherever they are. If quotes and comments do not match, a browser may see another tag
/// than this code does, or take the text for the rest of a tag.
fn find_events((signed, code): (Signed<'_>, &Code), found: Found<'_>) {
    let bytes = signed.text.as_bytes();
    let mut at = 0;
    while let Some(next) = bytes
        .get(at..)
        .and_then(|rest| rest.windows(2).position(|pair| pair.eq_ignore_ascii_case(b"on")))
    {
        let begin = at + next;
        let (name, end) = name(bytes, begin);
        at = begin + 2;
        let separated = before(bytes, begin).is_none_or(|byte| {
            byte.is_ascii_whitespace()
                || matches!(byte, b'/' | b'"' | b'\'' | b'`' | b';' | b'<' | b'\x0b' | b'\0')
        });
        if !separated || !is_event(name) {
            continue;
        }
        if !signed.work.take(CANDIDATE) {
            return;
        }
        at = end;
        let spaces = bytes.get(end..).unwrap_or_default().iter();
        let spaces = spaces.take(MAX_NAME_BYTES).take_while(|byte| **byte <= b' ').count();
        let equals = end + spaces;
        if bytes.get(equals) == Some(&b'=') && code.follows(bytes, equals) {
            found(Detector::HtmlEventCode, begin..equals + 1);
        }
    }
}

/// Whether a text is a document, or a large part of one.
fn is_document(text: &str) -> bool {
    let begin = text.trim_start().as_bytes();
    ["<!doctype", "<html", "<?xml", "<head"].iter().any(|start| {
        begin.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start.as_bytes()))
    })
}

/// Whether a tag is closed and another one begins: `">`, then `<`.
fn closes_tag(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    let spaces =
        rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b'/').count();
    rest.get(spaces) == Some(&b'>')
}

enum Leaves {
    /// An event follows the quote, as in `" onfocus=…`.
    Attribute(usize),
    /// Code follows the quote, as in `';alert(1)//`.
    String(usize),
}

/// What follows a value that ends here. `word`: where the next word or tag begins.
fn after_quote((bytes, code): (&[u8], &Code), at: usize, word: usize) -> Option<Leaves> {
    let between = bytes.get(at..word).filter(|between| between.len() <= MAX_NAME_BYTES)?;
    let (name, end) = name(bytes, word);
    let next = bytes.get(end..)?.iter().find(|byte| !byte.is_ascii_whitespace());
    if between.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b'/') && !between.is_empty()
    {
        let is_attack = is_event(name) && next == Some(&b'=') && code.follows(bytes, end);
        return is_attack.then_some(Leaves::Attribute(end));
    }
    let joins = between.iter().any(|byte| {
        matches!(byte, b';' | b'-' | b'+' | b'*' | b'/' | b'^' | b'|' | b'&' | b'?' | b',')
    });
    (joins
        && between.len() <= 8
        && matches!(next, Some(b'(' | b'`'))
        && is_code(name) == Some(true))
    .then_some(Leaves::String(end))
}

fn is_in(list: &[&str], name: &[u8]) -> bool {
    list.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether a script element ends here.
fn closes_script(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..at + 8).is_some_and(|end| end.eq_ignore_ascii_case(b"</script"))
}

/// Whether a tag names a source, or something that runs. Ordinary are: a base within the page's own site, a refresh
/// without an address, and an `https` address of a film or a map.
fn names_source(element: &[u8], tag: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] =
        [b"src", b"data", b"href", b"srcdoc", b"code", b"refresh", b"type", b"namespace"];
    let length = tag.iter().take(MAX_QUOTED_BYTES).take_while(|byte| **byte != b'>').count();
    let tag = tag.get(..length).unwrap_or_default();
    let has = |text: &[u8]| tag.windows(text.len()).any(|it| it.eq_ignore_ascii_case(text));
    let ordinary = match element.to_ascii_lowercase().as_slice() {
        b"base" => !has(b"//") && !has(b"script:"),
        b"iframe" => !has(b"src") || has(b"https:") || !has(b":") && !has(b"//") && !has(b"srcdoc"),
        b"meta" => !has(b"refresh") || !has(b"url") && !has(b";"),
        _ => false,
    };
    !ordinary && NAMES.into_iter().any(has)
}

/// Reads the tag that begins at `begin`, and returns where to go on.
fn tag((bytes, words): (&[u8], &Code), begin: usize, document: bool, found: Found<'_>) -> usize {
    let mut at = begin + 1;
    while matches!(bytes.get(at), Some(b'/' | b'!' | b'?' | b'%' | b'\0')) {
        at += 1;
    }
    let (element, mut at) = name(bytes, at);
    if element.is_empty() || !element.first().is_some_and(u8::is_ascii_alphabetic) {
        return begin + 1;
    }
    let closing = bytes.get(begin + 1) == Some(&b'/');
    if element.eq_ignore_ascii_case(b"script") && !closing {
        let rest = bytes.get(at..).unwrap_or_default();
        let length = rest
            .iter()
            .take(MAX_CODE_BYTES)
            .position(|byte| *byte == b'<')
            .unwrap_or(rest.len().min(MAX_CODE_BYTES));
        let code = rest.get(..length).unwrap_or_default();
        let short = bytes.len() <= MAX_VALUE_BYTES && !document;
        // Scripts for search engines, and modules, have an attribute that says so.
        let is_bare = rest.first() == Some(&b'>') && closes_script(bytes, at + length);
        // A relative path is a script of the page's own server. Browsers drop tabs and line breaks in it.
        let is_absolute = code.windows(2).any(|it| {
            matches!(it, b"//" | [b':' | b'\\' | b'&', _] | [b'/', b'\t' | b'\r' | b'\n'])
        });
        let has_source = code.windows(4).any(|it| it.eq_ignore_ascii_case(b"src="));
        let loads = short
            && (is_bare && code.iter().any(|byte| matches!(byte, b'(' | b'`'))
                || has_source && is_absolute);
        let has_code = words.is_in(bytes, at..at + length);
        let detector = if (has_code && !document) || loads {
            Detector::HtmlScriptCode
        } else {
            Detector::HtmlScript
        };
        found(detector, begin..at + length);
    } else if is_in(&ACTIVE, element) && !document && !closing {
        let loads = bytes.len() <= MAX_VALUE_BYTES
            && is_in(&LOADING, element)
            && names_source(element, bytes.get(at..).unwrap_or_default());
        found(if loads { Detector::HtmlScriptCode } else { Detector::HtmlElement }, begin..at);
    }
    // Attributes, up to the end of the tag or the begin of the next one.
    let mut quote = None;
    while let Some(byte) = bytes.get(at).copied() {
        match byte {
            b'<' => return at,
            b'>' if quote.is_none() => return at + 1,
            b'\'' | b'"' => quote = if quote == Some(byte) { None } else { quote.or(Some(byte)) },
            _ if byte.is_ascii_alphabetic() && !before(bytes, at).is_some_and(is_word) => {
                let (_, end) = name(bytes, at);
                let spaces = bytes
                    .get(end..)
                    .unwrap_or_default()
                    .iter()
                    .take(MAX_NAME_BYTES)
                    .take_while(|byte| byte.is_ascii_whitespace())
                    .count();
                at = if bytes.get(end + spaces) == Some(&b'=') {
                    attribute_value((bytes, words), at..end, end + spaces, document, found)
                } else {
                    end
                };
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Reads the value of an attribute, whose `=` is at `equals`. Returns where the value ends.
fn attribute_value(
    (bytes, words): (&[u8], &Code),
    name: Range<usize>,
    equals: usize,
    document: bool,
    found: Found<'_>,
) -> usize {
    let begin = name.start;
    let (code, end) = value(bytes, equals, MAX_CODE_BYTES);
    if is_event(bytes.get(name).unwrap_or_default()) {
        let attack = words.is_in(bytes, code) && (!document || bytes.len() <= MAX_VALUE_BYTES);
        let detector = if attack { Detector::HtmlEventCode } else { Detector::HtmlEvent };
        found(detector, begin..end);
    } else if script_url(bytes, equals + 1).is_some()
        || has_script_url(bytes.get(code).unwrap_or_default(), true)
    {
        found(Detector::ScriptUrl, begin..end);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> Vec<Detector> {
        let mut all = Vec::new();
        find(text.into(), &mut |detector, _| all.push(detector));
        all.dedup();
        all
    }

    #[test]
    fn what_runs_code_is_found() {
        for (text, expected) in [
            ("<script>alert(1)</script>", Detector::HtmlScriptCode),
            ("<ScRiPt src=//evil.example></script>", Detector::HtmlScriptCode),
            ("<img src=x onerror=alert(1)>", Detector::HtmlEventCode),
            ("<svg/onload=alert`1`>", Detector::HtmlEventCode),
            ("\" onfocus=\"alert(1)\" autofocus=\"", Detector::HtmlBreakout),
            ("\"><b>", Detector::HtmlBreakout),
            ("<a href=\"java\tscript:alert(1)\">x</a>", Detector::ScriptUrl),
            ("javascript:alert(1)", Detector::ScriptUrl),
            ("';alert(document.domain)//", Detector::ScriptBreakout),
            ("'-alert(1)-'", Detector::ScriptBreakout),
            ("<iframe src=x>", Detector::HtmlElement),
            ("<iframe src=https://maps.example/></iframe>", Detector::HtmlElement),
            ("<iframe src=http://evil.example></iframe>", Detector::HtmlScriptCode),
            ("<embed src=x.swf>", Detector::HtmlScriptCode),
            (
                "<meta http-equiv=refresh content=\"0;url=//evil.example\">",
                Detector::HtmlScriptCode,
            ),
            ("<script>start()</script>", Detector::HtmlScriptCode),
            ("<script type=\"application/json\">{\"a\": 1}</script>", Detector::HtmlScript),
            ("<html onclick=alert(1)>", Detector::HtmlEventCode),
            ("x onerror=alert(1)>", Detector::HtmlEventCode),
            ("<!--<img src=\"--><img src=x onerror=alert(1)//\">", Detector::HtmlEventCode),
            ("<img src=x onerror=alert;throw>", Detector::HtmlEventCode),
            ("<p style=\"background:url(javascript:alert(1))\">", Detector::ScriptUrl),
            ("[x](javascript:alert(1))", Detector::ScriptUrl),
        ] {
            assert!(finds(text).contains(&expected), "{text}: {:?}", finds(text));
        }
    }

    #[test]
    fn markup_without_attacks_code_is_not() {
        for text in [
            "<p>Hello <b>you</b></p>",
            "a < b and c > d",
            "Vec<String>",
            "<a href=\"javascript:void(0)\">x</a>",
            "it's alert(1) that we saw",
            "document.getElementById('x')",
            "a 'quoted' word, then fetch(url)",
            "window.onload = alert(1)",
            "[x](javascript:void(0))",
            "online = alert",
        ] {
            assert_eq!(finds(text), [], "{text}");
        }
    }
}
