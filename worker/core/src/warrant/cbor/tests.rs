//! What is read and written, and that nothing else is read.

use proptest::prelude::*;

use super::super::bounds::MAX_NESTING;
use super::reader::half;
use super::{Malformed, Reader, Writer, sorted};
use crate::json::Json;

fn read(bytes: &[u8]) -> Result<Json, Malformed> {
    let mut reader = Reader::new(bytes);
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

#[test]
fn what_is_not_the_one_encoding_of_a_value_is_refused() {
    for (name, text) in [
        ("nothing", ""),
        ("a number that is too long", "1817"),
        ("the same in two bytes", "1900ff"),
        ("in four", "1a0000ffff"),
        ("in eight", "1b00000000ffffffff"),
        ("a text that is too long", "780161"),
        ("a text without an end", "7f6161ff"),
        ("an array without an end", "9f01ff"),
        ("a map without an end", "bf616101ff"),
        ("a reserved length", "1c"),
        ("a byte string", "4101"),
        ("a tag", "c001"),
        ("undefined", "f7"),
        ("another simple value", "f820"),
        ("a text that is cut off", "6261"),
        ("a text that is no UTF-8", "61ff"),
        ("an array of 2^64-1 items", "9bffffffffffffffff"),
        ("a text of 2^64-1 bytes", "7bffffffffffffffff"),
        ("a map of 2^32 entries", "bb0000000100000000"),
        ("a key that occurs twice", "a2616101616102"),
        ("a key that is no text", "a10101"),
        ("something after it", "0101"),
        ("a whole number less than -2^63", "3b8000000000000000"),
    ] {
        assert!(read(&hex::decode(text).unwrap()).is_err(), "{name}");
    }
    let nested = |depth| read(&[vec![0x81; depth], vec![0x01]].concat());
    assert!(nested(MAX_NESTING).is_ok());
    assert!(nested(MAX_NESTING + 1).is_err());
    assert!(nested(100_000).is_err());
}

#[test]
fn floats_are_read_in_every_width_and_written_in_the_shortest() {
    // From RFC 8949, appendix A.
    for (text, value) in [
        ("f90000", 0.0),
        ("f98000", -0.0),
        ("f93c00", 1.0),
        ("fb3ff199999999999a", 1.1),
        ("f93e00", 1.5),
        ("f97bff", 65_504.0),
        ("fa47c35000", 100_000.0),
        ("fa7f7fffff", 3.402_823_466_385_288_6e38),
        ("fb7e37e43c8800759c", 1.0e300),
        ("f90001", 5.960_464_477_539_063e-8),
        ("f90400", 0.000_061_035_156_25),
        ("f9c400", -4.0),
        ("fbc010666666666666", -4.1),
    ] {
        let mut writer = Writer::default();
        writer.float(value);
        assert_eq!(hex::encode(&writer.bytes), text, "{value}");
        assert_eq!(read(&writer.bytes), Ok(Json::Number(value)), "{value}");
    }
}

proptest! {
    #[test]
    fn a_float_is_what_it_was(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
        let mut writer = Writer::default();
        writer.float(value);
        prop_assert_eq!(read(&writer.bytes), Ok(Json::Number(value)));
    }

    #[test]
    fn every_half_is_what_it_was(bits in any::<u16>()) {
        let value = half(u64::from(bits));
        prop_assume!(value.is_finite());
        let mut writer = Writer::default();
        writer.float(value);
        prop_assert_eq!(writer.bytes, [vec![0xf9], bits.to_be_bytes().to_vec()].concat());
    }

    #[test]
    fn an_integer_is_what_it_was(value in any::<i64>()) {
        let mut writer = Writer::default();
        writer.integer(value);
        prop_assert_eq!(read(&writer.bytes), Ok(Json::Integer(value)));
    }

    #[test]
    fn no_input_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(read(&bytes));
    }
}

/// The keys are all texts of at most three of these letters, so they differ in each way and at each place.
#[test]
fn fields_are_in_the_order_of_their_bytes() {
    let letters = ["\0", "a", "é", "\u{d7ff}", "\u{e000}", "\u{ffff}", "\u{10000}", "\u{10ffff}"];
    let mut keys = vec![String::new()];
    let mut from = 0;
    for _ in 0..3 {
        let longer: Vec<_> = keys[from..]
            .iter()
            .flat_map(|key| letters.iter().map(move |letter| [key, *letter].concat()))
            .collect();
        from = keys.len();
        keys.extend(longer);
    }
    let mut fields: Vec<_> = keys.iter().map(|key| (key.clone(), Json::Null)).collect();
    crate::json::sort_fields(&mut fields);
    keys.sort();
    assert_eq!(sorted(&fields).iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys);
}
