//! Paths that lead out of their folder.

use super::{Found, is_value};
use crate::shield::rule::Detector;

/// Steps upwards that a relative path between two packages of one repository seldom has.
const DEEP_STEPS: usize = 4;

/// Reports paths with steps upwards.
pub fn find(text: &str, decoded: bool, found: Found<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut steps = 0;
    let mut begin = 0;
    while let Some(next) =
        bytes.get(at..).and_then(|rest| rest.windows(2).position(|pair| pair == b".."))
    {
        let step = at + next;
        if next != 0 || steps == 0 {
            (steps, begin) = (0, step);
        }
        let end = step + 2 + separators(bytes, step + 2);
        if end == step + 2 {
            // Filters that remove `../` once leave it in `....//`.
            at = step + 1;
            steps = 0;
            continue;
        }
        steps += 1;
        at = end;
        let odd = bytes
            .get(step + 2..end)
            .is_some_and(|it| it.contains(&b'\\') && it.contains(&b'/') || it.contains(&b';'));
        let goes_on = bytes.get(at..at + 2) == Some(b"..") || bytes.get(at) == Some(&b'.');
        if !goes_on && (odd || (steps >= DEEP_STEPS && is_value(text))) {
            found(Detector::PathDeep, begin..end);
        }
        if decoded {
            found(Detector::PathEncoded, begin..end);
        }
    }
}

/// The separators at an offset: slashes of both kinds, and what servers of Java drop with a semicolon.
fn separators(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let count = rest.iter().take(8).take_while(|byte| matches!(byte, b'/' | b'\\')).count();
    match rest {
        [b';', b'/', ..] => 2,
        _ => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str, decoded: bool) -> bool {
        let mut any = false;
        find(text, decoded, &mut |_, _| any = true);
        any
    }

    #[test]
    fn a_value_that_climbs_far_or_in_disguise_is_found() {
        for (text, decoded) in [
            ("../../../../etc/passwd", false),
            ("..\\..\\..\\..\\windows", false),
            ("/var/www/../../../../x", false),
            ("..;/..;/admin", false),
            ("../x", true),
        ] {
            assert!(finds(text, decoded), "{text}");
        }
        for text in
            ["../src/lib.rs", "../../package.json", "a..b", "1...2", "see ../../../../x for more"]
        {
            assert!(!finds(text, false), "{text}");
        }
    }
}
