//! Paths and the templates of routes.

use std::iter;

use crate::json::same_folded;
use crate::percent::decode;

/// A path's segments, decoded.
///
/// # Errors
///
/// Says why readers could read the path differently.
pub fn segments(path: &str) -> Result<Vec<String>, &'static str> {
    // Some readers cut off a matrix parameter (`/..;x/`), others keep it as part of the segment.
    if !is_visible(path) || path.contains(['\\', ';', '?']) {
        return Err("the path contains a character that must be percent-encoded");
    }
    let path = path.strip_prefix('/').ok_or("the path must begin with a slash")?;
    let last = path.split('/').count() - 1;
    let decoded = path.split('/').enumerate().map(|(at, segment)| {
        let segment = decode(segment).ok_or("the path is not valid percent-encoded UTF-8")?;
        let bytes = segment.as_bytes();
        let encoded_twice =
            bytes.windows(3).any(|w| matches!(w, [b'%', a, b] if is_hex(a) && is_hex(b)));
        if segment.contains(|c: char| c == '/' || c == '\\' || c.is_control()) || encoded_twice {
            return Err("the path contains an encoded slash, backslash, control character or percent-encoding");
        }
        // Some readers cut off what follows a semicolon, after decoding.
        let cut = segment.split(';').next().unwrap_or_default();
        if cut == "." || cut == ".." || (segment.is_empty() && at < last) {
            return Err("the path contains an empty, `.` or `..` segment");
        }
        Ok(segment)
    });
    decoded.collect()
}

/// The parameters of a path that matches the template, with their values. A parameter does not match an
/// empty segment.
pub fn parameters<'s>(
    template: &'s str,
    segments: &'s [String],
) -> Option<Vec<(&'s str, &'s str)>> {
    let mut parts = template.strip_prefix('/')?.split('/');
    let mut found = Vec::new();
    for segment in segments {
        let part = parts.next()?;
        match parameter(part) {
            Some(name) if !segment.is_empty() => {
                found.push((name, segment.as_str()));
            }
            None if part == segment => {}
            _ => return None,
        }
    }
    parts.next().is_none().then_some(found)
}

/// The segments of a path that matches the template, as they are, each with the name of the parameter that it is. Without a
/// template, they have no names.
pub fn named_segments<'p>(
    path: &'p str,
    template: &'p str,
) -> impl Iterator<Item = (&'p str, Option<&'p str>)> {
    let names = template.split('/').map(parameter).chain(iter::repeat(None));
    path.split('/').zip(names)
}

/// Whether a router that ignores case or a trailing slash may choose `other` for the path instead of
/// `route`, because `other` has a literal where `route` has a parameter.
pub fn is_shadowed(other: &str, route: &str, segments: &[String]) -> bool {
    if parameters(other, segments).is_some() {
        // It matches exactly, so the order of the routes decides.
        return false;
    }
    let segments = match segments {
        [rest @ .., last] if last.is_empty() && !rest.is_empty() => rest,
        all => all,
    };
    let (other, route) = (parts(other), parts(route));
    let fits =
        |(part, segment): (&&str, &String)| parameter(part).is_some() || same_folded(part, segment);
    let mut pairs = other.iter().zip(&route);
    other.len() == segments.len()
        && pairs.any(|(other, route)| parameter(other).is_none() && parameter(route).is_some())
        && other.iter().zip(segments).all(fits)
}

/// A template's segments, without an empty last one.
fn parts(template: &str) -> Vec<&str> {
    let template = template.strip_prefix('/').unwrap_or(template);
    template.strip_suffix('/').unwrap_or(template).split('/').collect()
}

/// The parameter's name, if a template's segment is one.
pub fn parameter(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// Whether a part of a URL has visible ASCII only, and no fragment.
pub fn is_visible(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() && b != b'#')
}

fn is_hex(byte: &u8) -> bool {
    byte.is_ascii_hexdigit()
}
