//! Reads lines of bounded length.

use std::io::{self, BufRead, Read as _};

/// Bytes of a line. The longest are audit events: a row of D1 has at most 2 MB, and as a JSON string a text of JSON takes
/// at most twice that, if only what must be escaped is. An entry has at most 65,535 bytes, so it fits with any escapes.
pub const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Line,
    /// The line is longer than [`LINE_BYTES_MAX`].
    TooLong,
    End,
}

/// Reads the next line into `line`, without its end. The last line needs no end.
pub fn line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Read> {
    line.clear();
    // One more for the line's end.
    input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', line)?;
    Ok(match line.pop() {
        None => Read::End,
        Some(b'\n') => Read::Line,
        Some(_) if line.len() as u64 == LINE_BYTES_MAX => Read::TooLong,
        Some(last) => {
            line.push(last);
            Read::Line
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_long_as_the_bound_or_it_is_too_long() {
        let most = LINE_BYTES_MAX as usize;
        let text = |length: usize| "x".repeat(length);
        for (input, expected) in [
            (String::new(), vec![]),
            ("\n".to_owned(), vec![Ok(0)]),
            ("a\n\nbc".to_owned(), vec![Ok(1), Ok(0), Ok(2)]),
            (text(most), vec![Ok(most)]),
            (text(most) + "\na", vec![Ok(most), Ok(1)]),
            (text(most + 1), vec![Err(())]),
            (text(most + 1) + "\n", vec![Err(())]),
            (text(3 * most), vec![Err(())]),
        ] {
            let (mut input, mut buffer, mut read) = (input.as_bytes(), Vec::new(), Vec::new());
            loop {
                match line(&mut input, &mut buffer).unwrap() {
                    Read::Line => read.push(Ok(buffer.len())),
                    Read::TooLong => break read.push(Err(())),
                    Read::End => break,
                }
            }
            assert_eq!(read, expected);
        }
    }
}
