//! Preferences of a request: the header `Prefer` (RFC 7240).

/// The seconds of the preference `wait`. If there are several, only the first counts. `None` if it is absent, or not a
/// number of seconds.
#[must_use]
pub fn wait_s(header: &str) -> Option<u32> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let preferences = header.split(|c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            _ if was_escaped => {}
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            _ => return c == ',' && !is_quoted,
        }
        false
    });
    let mut values = preferences.filter_map(|preference| {
        // What follows a semicolon are parameters of the preference.
        let preference =
            preference.split_once(';').map_or(preference, |(preference, _)| preference);
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim())
    });
    let value = values.next()?;
    let digits = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number that is too large is a long time.
    is_number.then(|| digits.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_are_those_of_the_first_preference_that_is_named_wait() {
        for (header, expected) in [
            ("wait=5", Some(5)),
            ("WAIT = 5", Some(5)),
            ("respond-async, wait=10", Some(10)),
            ("wait=\"7\"", Some(7)),
            ("wait=3; foo=1, wait=9", Some(3)),
            ("return=minimal; wait=5", None),
            ("foo=\"a, wait=4\", wait=2", Some(2)),
            (r#"foo="a\", wait=4", wait=2"#, Some(2)),
            ("wait=99999999999", Some(u32::MAX)),
            ("wait=0", Some(0)),
            ("wait", None),
            ("wait=x, wait=5", None),
            ("wait=+5", None),
            ("wait=-5", None),
            ("waiting=5", None),
            ("", None),
        ] {
            assert_eq!(wait_s(header), expected, "{header}");
        }
    }
}
