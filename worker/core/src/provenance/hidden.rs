//! Links that programs see in a text although the text does not have them literally: written with HTML entities, with
//! Markdown's backslashes, or in an HTML attribute, where browsers drop tabs and line breaks.
//!
//! INVARIANT (linear): each form of a text is read once, and none is longer than the text.

use super::extract::each_link;
use super::link;
use crate::decode::escapes::{self, Escapes};

/// Links of one content that are looked at. Further links count as seen nowhere.
pub const MAX_LINKS: usize = 64;

/// Attributes whose value is an address.
const ATTRIBUTES: [&str; 7] =
    ["action", "background", "data", "formaction", "href", "poster", "src"];

/// Whether a text has a hidden link. Also true if a decoded form of the text has more than [`MAX_LINKS`] links.
pub fn has_hidden_link(text: &str) -> bool {
    let entity = Escapes { entity: true, ..Escapes::default() };
    let decoded = text.contains('&').then(|| escapes::decode(text, entity).0);
    let html = decoded.as_deref().unwrap_or(text);
    let plain = html.contains('\\').then(|| without_backslashes(html));
    [decoded.as_deref(), plain.as_deref()].into_iter().flatten().any(|form| {
        let (mut links, mut hidden) = (0, false);
        each_link(form, &mut |link| {
            links += 1;
            hidden = hidden || links > MAX_LINKS || !text.contains(link);
        });
        hidden
    }) || (html.contains('=') && has_split_attribute(html))
}

/// As CommonMark reads it: a backslash before punctuation is not part of the text.
fn without_backslashes(text: &str) -> String {
    let mut characters = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        let escapes =
            character == '\\' && characters.peek().is_some_and(char::is_ascii_punctuation);
        match escapes {
            true => out.extend(characters.next()),
            false => out.push(character),
        }
    }
    out
}

/// Whether an attribute's address has spaces, tabs or line breaks in it, or begins with slashes that only
/// browsers take for the beginning of a host.
fn has_split_attribute(html: &str) -> bool {
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('=') {
        rest = after;
        let name = before.trim_end();
        let is_named = ATTRIBUTES.iter().any(|attribute| {
            let at = name.len().checked_sub(attribute.len());
            at.and_then(|at| name.get(at..)).is_some_and(|it| it.eq_ignore_ascii_case(attribute))
        });
        if !is_named {
            continue;
        }
        let value = after.trim_start();
        let (value, ends): (_, &[char]) = match value.strip_prefix(['"', '\'']) {
            Some(quoted) => (quoted, &['"', '\'', '<', '>']),
            None => (value, &['<', '>', ' ', '\t', '\n', '\r']),
        };
        let end = value.find(ends).unwrap_or(value.len());
        let Some((value, after)) = value.split_at_checked(end) else { return false };
        rest = after;
        let value = value.trim();
        let whole: String = value.split(['\t', '\n', '\r']).collect();
        let slashes = whole.bytes().take_while(|byte| matches!(byte, b'/' | b'\\')).count();
        if (slashes >= 2 || link::is_url(&whole)) && (whole.len() < value.len() || slashes > 2) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_do_not_stand_in_the_text_are_found() {
        for text in [
            r#"<a href="https&#58;&#47;&#47;evil&#46;example&#x2f;x">"#,
            "https&colon;&sol;&sol;evil&period;example&sol;x",
            "see https:/&#47evil.example/x",
            r"[Invoice](https\://evil.example/x)",
            r"[mail](mailto:eve\@evil.com)",
            "eve&#64;evil.com",
            "eve&commat;evil.com",
            "<a href=\"https://good.example\n.evil.example/x\">",
            "<a href='/\t/evil.example/x'>",
            "<img SRC = ///evil.example/x>",
            "<a href=&quot;https&colon;//evil&period;com&quot;>",
        ] {
            assert!(has_hidden_link(text), "{text}");
        }
    }

    #[test]
    fn texts_with_plain_links_or_none_have_no_hidden_ones() {
        for text in [
            "",
            "Tom & Jerry; a=b",
            "AT&T",
            "see https://good.example/a?b=c&d=e",
            "<a href=\"https://good.example/x\">here</a>",
            "<a href='/local/page'>",
            r"C:\Users\ada",
            r"1 \* 2",
            "x &lt; y and y &gt; z",
            "a = b\nc = d",
            "&#xffffffffff; &#; &",
        ] {
            assert!(!has_hidden_link(text), "{text}");
        }
    }
}
