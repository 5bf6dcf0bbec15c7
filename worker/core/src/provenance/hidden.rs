//! The links of a content: those in its text, and those that programs see although the text does not have them literally.
//! Such a link is written with HTML entities or with Markdown's backslashes, or is longer than the text lets it seem.
//!
//! INVARIANT (linear): each form of a text is read once, and none is longer than the text.

use super::extract;
use super::link;
use super::normal::MAX_VALUE_BYTES;
use super::reference::each_reference;
use super::search::{ends_with_any, has, is_one_of, lower, split_once, trim_start};
use crate::decode::escapes::{self, Escapes};

/// Links of one content that are looked at. Further links count as seen nowhere.
pub const MAX_LINKS: usize = 64;

/// Addresses in attributes, in Markdown's links and in CSS that are read of one content. A long page has fewer.
pub const MAX_TARGETS: usize = 1_024;

/// Attributes whose value is an address.
const ATTRIBUTES: [&str; 7] =
    ["action", "background", "data", "formaction", "href", "poster", "src"];

/// URLs that name a format or a licence. Nobody who reads the text is led astray by them. Sorted.
const INERT: &[&str] = &[
    "http://creativecommons.org/licenses/by/4.0/",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://maven.apache.org/POM/4.0.0",
    "http://maven.apache.org/xsd/maven-4.0.0.xsd",
    "http://ogp.me/ns#",
    "http://purl.org/dc/elements/1.1/",
    "http://purl.org/dc/terms/",
    "http://schema.org",
    "http://schema.org/",
    "http://schemas.android.com/apk/res-auto",
    "http://schemas.android.com/apk/res/android",
    "http://schemas.xmlsoap.org/soap/envelope/",
    "http://schemas.xmlsoap.org/wsdl/",
    "http://www.apache.org/licenses/",
    "http://www.apache.org/licenses/LICENSE-2.0",
    "http://www.gnu.org/licenses/",
    "http://www.sitemaps.org/schemas/sitemap/0.9",
    "http://www.w3.org/1998/Math/MathML",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/1999/XSL/Transform",
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/1999/xlink",
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/2001/XMLSchema",
    "http://www.w3.org/2001/XMLSchema#",
    "http://www.w3.org/2001/XMLSchema-instance",
    "http://www.w3.org/2002/07/owl#",
    "http://www.w3.org/2005/Atom",
    "http://www.w3.org/TR/html4/loose.dtd",
    "http://www.w3.org/TR/html4/strict.dtd",
    "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd",
    "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd",
    "http://www.w3.org/XML/1998/namespace",
    "https://creativecommons.org/licenses/by/4.0/",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "https://keepachangelog.com/en/1.0.0/",
    "https://keepachangelog.com/en/1.1.0/",
    "https://opensource.org/licenses/Apache-2.0",
    "https://opensource.org/licenses/BSD-3-Clause",
    "https://opensource.org/licenses/MIT",
    "https://schema.org",
    "https://schema.org/",
    "https://semver.org/spec/v2.0.0.html",
    "https://www.apache.org/licenses/",
    "https://www.apache.org/licenses/LICENSE-2.0",
    "https://www.gnu.org/licenses/",
    "yaml.org",
];

/// Calls `found` with each link, mail address and [reference](super::reference) of a content. Returns whether these are
/// all of them: there can be more than [`MAX_TARGETS`].
#[must_use]
pub fn each_link(text: &str, found: &mut dyn FnMut(&str)) -> bool {
    let mut seen = Vec::new();
    extract::each_link(text, &mut |link| {
        if seen.len() <= MAX_LINKS {
            seen.push(link);
        }
        if !is_inert(link) && !is_escaped(link) {
            found(link);
        }
    });
    each_reference(text, found);
    let entity = Escapes { entity: true, ..Escapes::default() };
    let decoded = has(text, '&').then(|| escapes::decode(text, entity).0);
    let html = decoded.as_deref().unwrap_or(text);
    let escapes = has(html, '\\');
    let plain = escapes.then(|| without_backslashes(html));
    let css = escapes.then(|| without_css_escapes(html)).filter(|it| is_css(it));
    let mut hidden = |link: &str| {
        if !seen.contains(&link) && !is_inert(link) {
            found(link);
        }
    };
    for form in [decoded.as_deref(), plain.as_deref(), css.as_deref()].into_iter().flatten() {
        extract::each_link(form, &mut hidden);
    }
    let mut all = true;
    for form in [Some(html), plain.as_deref(), css.as_deref()].into_iter().flatten() {
        all &= each_target(form, &mut hidden);
    }
    all
}

fn is_inert(link: &str) -> bool {
    INERT.binary_search(&link).is_ok()
}

/// Whether the link has a slash after each backslash, as some programs write JSON, or `&amp;`, as HTML has it. It leads where
/// the link without escapes leads, which is found as a hidden one.
fn is_escaped(link: &str) -> bool {
    match has(link, '\\') {
        true => link.split('\\').skip(1).all(|rest| rest.starts_with('/')),
        false => link.contains("&amp;"),
    }
}

/// As CommonMark reads it: a backslash before punctuation is not part of the text.
fn without_backslashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = split_once(rest, '\\') {
        let escapes = after.starts_with(|next: char| next.is_ascii_punctuation());
        let (escaped, after) = after.split_at_checked(usize::from(escapes)).unwrap_or(("", after));
        out.push_str(before);
        out.push_str(if escapes { escaped } else { "\\" });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// As CSS reads it: up to six hexadecimal digits after a backslash, and one space after them, are a character. A backslash
/// before punctuation is not part of the text.
fn without_css_escapes(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = String::with_capacity(text.len());
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        let (code, rest) = part.split_at_checked(digits).unwrap_or(("", part));
        let digits = code.chars().filter_map(|digit| digit.to_digit(16));
        let code = digits.fold(0, |code, digit| code * 16 + digit);
        let letter = Some(code).filter(|_| rest.len() < part.len()).and_then(char::from_u32);
        // `\n` of a program's text is no letter of a URL.
        let kept = Some('\\').filter(|_| part.starts_with(char::is_alphanumeric));
        out.extend(letter.or(kept));
        out.push_str(match letter {
            Some(_) => rest.strip_prefix([' ', '\t', '\n']).unwrap_or(rest),
            None => part,
        });
    }
    out
}

/// Whether a text has what loads an address in CSS.
fn is_css(text: &str) -> bool {
    let text = lower(text);
    // `curl(` is no CSS. `\nurl(` of a program's text is.
    let is_in_name = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.ends_with(|it: char| it.is_alphanumeric() || it == '_')
            && !ends_with_any(before, &["\\n", "\\r", "\\t"])
    };
    let loads = ["url(", "image-set(", "@import"];
    loads.iter().any(|it| text.match_indices(*it).any(|(at, _)| !is_in_name(at)))
}

/// Calls `found` with each URL in an attribute of HTML, a link of Markdown or `url(…)` of CSS, as a whole. A browser goes
/// to all of it, also to spaces, quotes and punctuation at which the text seems to end the URL. Also calls it with each mail
/// address that is percent-encoded after `mailto:`. Returns whether all were read.
fn each_target(text: &str, found: &mut dyn FnMut(&str)) -> bool {
    let mut read = 0;
    for (at, mark) in text.match_indices(['=', '(', ':']) {
        let (Some(before), Some(after)) = (text.get(..at), text.get(at + 1..)) else { continue };
        let before = if mark == "=" { before.trim_end() } else { before };
        let is_mail = mark == ":" && ends_with_any(before, &["mailto"]);
        // Before an address with any scheme, and before an address of the web.
        let (any, web): (&[&str], &[&str]) = match mark {
            "=" => (&["href", "src"], &ATTRIBUTES),
            "(" => (&["]"], &["url"]),
            _ => (&[], &["]", "mailto"]),
        };
        let any_scheme = ends_with_any(before, any);
        if !any_scheme && !ends_with_any(before, web) {
            continue;
        }
        read += 1;
        if read > MAX_TARGETS {
            return false;
        }
        let value = target(after.trim_start(), mark).trim();
        if is_mail {
            if has(value, '%') {
                let percent = Escapes { percent: true, ..Escapes::default() };
                extract::each_link(&escapes::decode(value, percent).0, found);
            }
            continue;
        }
        let whole: String = value.split(['\t', '\n', '\r']).collect();
        let host = trim_start(&whole, &['/', '\\', '@']);
        let is_host = |first: char| first.is_alphanumeric() || matches!(first, '[' | '%');
        let relative = whole.starts_with('/') && !host.starts_with(is_host);
        let slashes = whole.starts_with("/\\") || whole.starts_with("//");
        let scheme = if any_scheme { scheme_target(&whole) } else { None };
        let is_url = !relative && (slashes || link::is_url(&whole));
        let target = if is_url { Some(&*whole) } else { scheme };
        if let Some(target) = target {
            found(target);
        }
    }
    true
}

/// The address with which a text begins: up to the quote or bracket that closes it. Not more than is a value.
fn target<'t>(text: &'t str, mark: &str) -> &'t str {
    let text = text.get(..text.floor_char_boundary(MAX_VALUE_BYTES + 4)).unwrap_or_default();
    let is_attribute = mark == "=";
    let close = match text.bytes().next() {
        Some(b'"') => Some('"'),
        Some(b'\'') => Some('\''),
        Some(b'<') if !is_attribute => Some('>'),
        _ => None,
    };
    let text = text.get(usize::from(close.is_some())..).unwrap_or_default();
    let mut open = 0_usize;
    let end = text.find(|character: char| match character {
        _ if close.is_some() => close == Some(character),
        ' ' | '\t' | '\n' | '\r' => true,
        '<' | '>' => is_attribute,
        _ if is_attribute => false,
        '(' => {
            open += 1;
            false
        }
        ')' => {
            let closes = open == 0;
            open = open.saturating_sub(1);
            closes
        }
        other => other.is_whitespace(),
    });
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// What a link with another scheme leads to: `tel:` to its number, and any other one, such as `javascript:` or `bitcoin:`,
/// to the whole. `None` if it is no such link, if it leads nowhere, or if it is a mail address, which is found by itself.
fn scheme_target(link: &str) -> Option<&str> {
    let (scheme, rest) = split_once(link, ':')?;
    let is = |names: &[&str]| is_one_of(names, scheme);
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'));
    if is(&["tel", "sms", "callto"]) {
        return Some(rest).filter(|rest| !rest.is_empty());
    }
    let image = is(&["data"]) && is_one_of(&["image/"], rest.get(..6).unwrap_or_default());
    let nothing = is(&["javascript"]) && matches!(rest, "" | ";" | "void(0)" | "void(0);");
    let is_name =
        rest.is_empty() || rest.starts_with(|first: char| first == ':' || first.is_ascii_digit());
    (is_scheme && !image && !nothing && !is_name && !is(&["mailto", "cid", "about"]))
        .then_some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        assert!(each_link(text, &mut |link| all.push(link.to_owned())), "{text}");
        all
    }

    #[test]
    fn links_that_do_not_stand_in_the_text_are_found() {
        for (text, expected) in [
            (r#"<a href="https&#58;&#47;&#47;evil&#46;example&#x2f;x">"#, "https://evil.example/x"),
            ("https&colon;&sol;&sol;evil&period;example&sol;x", "https://evil.example/x"),
            ("see https:/&#47evil.example/x", "https://evil.example/x"),
            (r"[Invoice](https\://evil.example/x)", "https://evil.example/x"),
            (r"[mail](mailto:eve\@evil.com)", "eve@evil.com"),
            ("eve&#64;evil.com", "eve@evil.com"),
            ("eve&commat;evil.com", "eve@evil.com"),
            (
                "<a href=\"https://good.example\n.evil.example/x\">",
                "https://good.example.evil.example/x",
            ),
            ("<a href='/\t/evil.example/x'>", "//evil.example/x"),
            ("<img SRC = ///evil.example/x>", "///evil.example/x"),
            ("<a href=&quot;https&colon;//evil&period;com&quot;>", "https://evil.com"),
            (r#"{"u":"https:\/\/x.com\/a"}"#, "https://x.com/a"),
            ("[mail](mailto:eve%40evil.company)", "eve@evil.company"),
            ("<mailto:%65ve@evil%2ecompany> 100%", "eve@evil.company"),
            ("<a href='MAILTO:a@x.com?cc=eve%40evil.company'>50%</a>", "eve@evil.company"),
            // Only a program that reads CSS sees them.
            (r"<p style='background:url(https\3a//evil.example/x)'>", "https://evil.example/x"),
            (r"url(\00002f\00002fevil.example/x)", "//evil.example/x"),
            (r"u\72l(https\3a \2f\/evil.example/a the secret)", "https://evil.example/a"),
            (r"URL('https\3a//evil.example/a the secret')", "https://evil.example/a the secret"),
            (r#"@import "https\3a//evil.example/x";"#, "https://evil.example/x"),
            (r#"image-set("https\3a//evil.example/x" 1x)"#, "https://evil.example/x"),
            ("<a href='https://x.com/?a=b&amp;c=d'>", "https://x.com/?a=b&c=d"),
            (r"re.compile(r'acme\.com')", "acme.com"),
            // Longer than the text lets them seem.
            ("![x](https://x.com/a!!?!.;)", "https://x.com/a!!?!.;"),
            ("![x](https://x.com/a|secret)", "https://x.com/a|secret"),
            ("![x](https://x.com/a\"secret)", "https://x.com/a\"secret"),
            ("![x](<https://x.com/a the secret>)", "https://x.com/a the secret"),
            ("[x]: <https://x.com/a the secret>", "https://x.com/a the secret"),
            ("<img src=\"https://x.com/a the secret\">", "https://x.com/a the secret"),
            ("<img src='https://x.com/a\"secret'>", "https://x.com/a\"secret"),
            ("<img src=\"https://x.com/a)))]]\">", "https://x.com/a)))]]"),
            ("url('https://x.com/a the secret')", "https://x.com/a the secret"),
            // Other schemes.
            ("<a href=\"tel:+19005550199\">call us</a>", "+19005550199"),
            ("<a href='sms:+1900555'>", "+1900555"),
            ("[pay](bitcoin:bc1qxyz)", "bitcoin:bc1qxyz"),
            ("[x](data:text/html;base64,PHM+)", "data:text/html;base64,PHM+"),
            ("[x](javascript:alert(1))", "javascript:alert(1)"),
            ("<a href=&#106avascript:alert(1)>", "javascript:alert(1)"),
        ] {
            assert!(links(text).iter().any(|link| link == expected), "{text}: {:?}", links(text));
        }
    }

    #[test]
    fn a_plain_link_is_found_once_and_nothing_else() {
        for (text, expected) in [
            ("see https://good.example/a?b=c&d=e", vec!["https://good.example/a?b=c&d=e"]),
            ("<a href=\"https://x.com/a\">here</a>", vec!["https://x.com/a"]),
            ("<a href='https://x.com/a'>here</a>", vec!["https://x.com/a"]),
            ("<a href=https://x.com/a>here</a>", vec!["https://x.com/a"]),
            ("[here](https://x.com/a_(b)), and", vec!["https://x.com/a_(b)"]),
            ("[here](https://x.com/a \"Title\")", vec!["https://x.com/a"]),
            ("[1]: https://x.com/a 'Title'", vec!["https://x.com/a"]),
            ("<https://x.com/a|the page>", vec!["https://x.com/a"]),
            (r#"{"a":"https://x.com/a","b":1}"#, vec!["https://x.com/a"]),
            ("`https://x.com/a`: (https://x.com/b).", vec!["https://x.com/a", "https://x.com/b"]),
            ("**https://x.com/a**.", vec!["https://x.com/a"]),
            ("https://x.com/a|https://x.com/b", vec!["https://x.com/a", "https://x.com/b"]),
            ("mail [us](mailto:a@x.com)", vec!["a@x.com"]),
            ("<a href='mailto:a@x.com?subject=Hello%20Anna'>", vec!["a@x.com"]),
            (r#"curl("https://x.com/a") # \n"#, vec!["https://x.com/a"]),
        ] {
            assert_eq!(links(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_texts_have_no_links() {
        for text in [
            "",
            "Tom & Jerry; a=b",
            "AT&T",
            "<a href='/local/page'>",
            "<a href=\"page.html?x=1#top\">",
            "<a href=\"#\" onclick=\"f()\"> <a href=\"javascript:void(0)\">",
            "<img src=\"cid:logo\"><img src=\"data:image/png;base64,AAAA\">",
            "![](data:image/gif;base64,R0lG)",
            r"C:\Users\ada",
            r".a::before { content: '\f101'; background: url(a.png) } .w-1\.5 {}",
            r"1 \* 2",
            "x &lt; y and y &gt; z",
            "a = b\nc = d",
            "&#xffffffffff; &#; &",
            "[guide](docs/guide.md#top), [`x`](crate::x::y), [a](README.md), [b](#c)",
            "arr[i](x: y); map[k]: Vec<u8>",
            "curl localhost:3000 [here](localhost:3000)",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink='http://www.w3.org/1999/xlink'>",
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
            "    http://www.apache.org/licenses/LICENSE-2.0\n",
            "tag:yaml.org,2002:str",
        ] {
            assert_eq!(links(text), Vec::<String>::new(), "{text}");
        }
        for other in ["http://www.w3.org/2000/svg?x", "http://www.w3.org.evil.example/2000/svg"] {
            assert_eq!(links(other), [other]);
        }
    }

    #[test]
    fn more_addresses_than_are_read_are_noticed() {
        let many = |count| "<a href='#'>".repeat(count);
        assert!(each_link(&many(MAX_TARGETS), &mut |_| {}));
        assert!(!each_link(&many(MAX_TARGETS + 1), &mut |_| {}));
    }

    #[test]
    fn the_name_of_a_function_of_a_program_is_no_css() {
        for text in ["curl(x)", "build_url(x)", "getUrl(x)"] {
            assert!(!is_css(text), "{text}");
        }
        for text in ["a:URL(x)", "-webkit-image-set(x)", r"\nurl(x)", "@import x", "curl(x) url(y)"]
        {
            assert!(is_css(text), "{text}");
        }
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(INERT.is_sorted());
    }
}
