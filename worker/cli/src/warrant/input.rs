//! What the commands read: texts that are arguments, files or standard input, and the clock.

use std::fs::File;
use std::io::{self, Read as _};
use std::time::{SystemTime, UNIX_EPOCH};

use gateward_core::field::parse_time;
use gateward_core::json::{Json, parse};
use gateward_core::warrant::bounds::MAX_TEXT_BYTES;
use gateward_core::warrant::cbor::Malformed;
use gateward_core::warrant::chain::{Chain, Envelope, envelopes, sha256};
use gateward_core::warrant::constraint::{Arguments, Work};
use gateward_core::warrant::{Refusal, text};

use super::form;
use crate::failure::Failure;

/// Bytes of a JSON document. It becomes part of a request, which the worker limits to 256 KiB.
const MAX_JSON_BYTES: usize = 256 * 1024;

/// The text of an argument. After `@` it is the name of a file, and `-` is standard input.
pub fn read(argument: &str, most: usize) -> Result<String, Failure> {
    let (name, input): (&str, Box<dyn io::Read>) = match argument.strip_prefix('@') {
        Some(file) => {
            let opened = File::open(file);
            (file, Box::new(opened.map_err(|error| Failure::Other(format!("{file}: {error}")))?))
        }
        None if argument == "-" => ("standard input", Box::new(io::stdin())),
        None => return Ok(argument.to_owned()),
    };
    let mut text = String::new();
    let read = input.take(most as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::Other(format!("{name}: {error}")))?;
    if text.len() > most {
        return Err(Failure::Other(format!("{name}: larger than {most} bytes")));
    }
    Ok(text)
}

/// A warrant or a stack, in CBOR.
pub fn stack(argument: &str) -> Result<Vec<u8>, Failure> {
    let malformed = |error: Malformed| refused(Refusal::malformed(error.0));
    let bytes = text::stack(read(argument, MAX_TEXT_BYTES)?.trim()).map_err(malformed)?;
    // An empty text is base64 of nothing.
    if bytes.is_empty() { Err(Failure::other("there is no warrant")) } else { Ok(bytes) }
}

/// The links of a stack, from the root to the leaf.
pub fn links(stack: &[u8]) -> Result<Vec<Envelope<'_>>, Failure> {
    envelopes(stack).map_err(refused)
}

/// Verifies the rules and signatures of all links.
pub fn verified(stack: &[u8]) -> Result<Chain, Failure> {
    Chain::verify(&links(stack)?, sha256(stack), &mut Work::default()).map_err(refused)
}

/// The arguments of a call: a JSON object.
pub fn object(option: &str, argument: &str) -> Result<Json, Failure> {
    let wrong = |reason: &str| Failure::Other(format!("{option}: {reason}"));
    let read = read(argument, MAX_JSON_BYTES)?;
    match parse(read.as_bytes()).map_err(|error| wrong(&error.message))? {
        object @ Json::Object(_) => Ok(object),
        _ => Err(wrong("it must be an object")),
    }
}

/// The tools of `--tools`.
pub fn tools(argument: &str) -> Result<Vec<(String, Arguments)>, Failure> {
    let document = object("--tools", argument)?;
    form::tools(&document).map_err(|wrong| Failure::Other(format!("--tools: {wrong}")))
}

/// A refusal as a failure: its code, and the sentence with rule and link.
pub fn refused(refusal: Refusal) -> Failure {
    let code = refusal.code.code().to_owned();
    Failure::Problem { code, detail: refusal.reason, field: None }
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    // A warrant that is issued before 1970 has expired.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// An RFC 3339 time, in seconds since 1970.
pub fn time(text: &str) -> Result<u64, String> {
    parse_time(text).map(|ms| ms / 1000).ok_or_else(|| "it must be an RFC 3339 time".to_owned())
}

/// A length of time such as `10m`, in seconds.
pub fn duration(text: &str) -> Result<u64, String> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit).filter(|it| it.bytes().all(|b| b.is_ascii_digit()))?;
        number.parse::<u64>().ok()?.checked_mul(seconds)
    });
    seconds
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "it must be a number with `s`, `m`, `h` or `d`, such as `10m`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, expected) in [
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7_200)),
            ("90d", Some(7_776_000)),
            ("0m", None),
            ("10", None),
            ("m", None),
            ("-1m", None),
            ("1.5h", None),
            ("99999999999999999d", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_is_the_argument_or_in_a_file() {
        let path = std::env::temp_dir().join(format!("gateward-warrant-{}", std::process::id()));
        std::fs::write(&path, "{}").unwrap();
        let file = format!("@{}", path.display());
        assert_eq!(read("{\"a\": 1}", 2), Ok("{\"a\": 1}".to_owned()));
        assert_eq!(read(&file, 2), Ok("{}".to_owned()));
        assert!(read(&file, 1).is_err());
        std::fs::remove_file(path).unwrap();
        assert!(read(&file, 2).is_err());
    }
}
