//! Items of `RateLimit-Policy` and `RateLimit`.

/// Structured fields have integers of up to 15 digits (RFC 9651).
const MOST: u64 = 999_999_999_999_999;

/// Adds `"<id>";<key>=<number>`, and `;<key>=<number>` if there is a second number.
pub(super) fn push_item(
    text: &mut String,
    id: &str,
    (key, number): (&str, u64),
    (second_key, second): (&str, Option<u64>),
) {
    let mut digits = itoa::Buffer::new();
    text.extend(["\"", id, "\";", key, "=", digits.format(number.min(MOST))]);
    if let Some(second) = second {
        text.extend([";", second_key, "=", digits.format(second)]);
    }
}
