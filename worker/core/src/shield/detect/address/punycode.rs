//! Labels of hosts in Punycode (RFC 3492).

/// Bytes of a label in the DNS.
const MAX_LABEL_BYTES: usize = 63;

/// What a host's labels with the prefix `xn--` stand for; `None` if it has none, or one that is not valid.
pub fn decoded(host: &str) -> Option<String> {
    let is_encoded = |label: &str| label.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("xn--"));
    if !host.split('.').any(is_encoded) {
        return None;
    }
    let label = |label: &str| match label.get(4..) {
        Some(rest) if is_encoded(label) => decode(rest),
        _ => Some(label.to_owned()),
    };
    Some(host.split('.').map(label).collect::<Option<Vec<_>>>()?.join("."))
}

/// The decoder of RFC 3492, section 6.2.
fn decode(label: &str) -> Option<String> {
    const BASE: u32 = 36;
    if label.len() > MAX_LABEL_BYTES || !label.is_ascii() {
        return None;
    }
    let (basic, rest) = label.rsplit_once('-').unwrap_or(("", label));
    let mut out: Vec<char> = basic.chars().collect();
    let (mut code, mut index, mut bias) = (128_u32, 0_u32, 72_u32);
    let mut digits = rest.bytes();
    let mut first = true;
    while digits.len() > 0 {
        let before = index;
        let (mut weight, mut k) = (1_u32, BASE);
        loop {
            let digit = match digits.next()?.to_ascii_lowercase() {
                letter @ b'a'..=b'z' => letter - b'a',
                digit @ b'0'..=b'9' => digit - b'0' + 26,
                _ => return None,
            };
            let digit = u32::from(digit);
            index = index.checked_add(digit.checked_mul(weight)?)?;
            let threshold = k.saturating_sub(bias).clamp(1, 26);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
            k += BASE;
        }
        let count = u32::try_from(out.len()).ok()? + 1;
        let mut delta = (index - before) / if first { 700 } else { 2 };
        first = false;
        delta += delta / count;
        let mut steps = 0;
        while delta > 455 {
            delta /= 35;
            steps += BASE;
        }
        bias = steps + 36 * delta / (delta + 38);
        code = code.checked_add(index / count)?;
        index %= count;
        out.insert(usize::try_from(index).ok()?, char::from_u32(code)?);
        index += 1;
    }
    Some(out.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_decoded_as_the_rfc_says() {
        for (host, expected) in [
            ("xn--bcher-kva.example", Some("bücher.example")),
            ("a.XN--BCHER-KVA", Some("a.BüCHER")),
            ("xn--e1afmkfd.example", Some("пример.example")),
            ("xn--p1b6ci4b4b3a.example", Some("xn--p1b6ci4b4b3a.example")),
            ("example.com", None),
            ("xn--\u{fc}.example", None),
            ("xn--99999999", None),
        ] {
            let expected = expected.map(str::to_owned);
            if expected.as_deref() == Some(host) {
                assert!(decoded(host).is_some_and(|it| !it.is_ascii()), "{host}");
            } else {
                assert_eq!(decoded(host), expected, "{host}");
            }
        }
    }
}
