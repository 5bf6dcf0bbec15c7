//! Writes records as JSON, for every call's row, receipt and answer. The text is the one that serde_json writes. serde_json
//! looks at each byte of a string for escapes, which took a third of a decision's instructions.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

use super::canonical::write_string;

/// How serde_json's [`RawValue`](serde_json::value::RawValue) says that its text is JSON already: a struct and its
/// only field have this name.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Most records fit.
const RECORD_BYTES: usize = 1_024;

/// A record's JSON text. It is empty if the record cannot be written, which plain data always can: only maps whose
/// keys are neither strings nor numbers, and errors of a type's own `Serialize`, have no text.
#[must_use]
pub fn to_string<T: Serialize + ?Sized>(record: &T) -> String {
    let mut out = String::with_capacity(RECORD_BYTES);
    if record.serialize(Writer { out: &mut out, raw: false }).is_err() {
        out.clear();
    }
    out
}

struct Writer<'a> {
    out: &'a mut String,
    /// The next string is JSON already.
    raw: bool,
}

impl<'a> Writer<'a> {
    #[inline(never)]
    fn integer(self, value: impl itoa::Integer) {
        self.out.push_str(itoa::Buffer::new().format(value));
    }

    #[inline(never)]
    fn open(self, variant: Option<&str>, open: char, close: &'static str) -> Members<'a> {
        if let Some(variant) = variant {
            self.out.push('{');
            write_string(variant, self.out);
            self.out.push(':');
        }
        self.out.push(open);
        Members { out: self.out, first: true, close }
    }
}

macro_rules! integers {
    ($($method:ident($integer:ty);)*) => {
        $(fn $method(self, value: $integer) -> Result<(), Error> {
            self.integer(value);
            Ok(())
        })*
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Members<'a>;
    type SerializeTupleVariant = Members<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    integers! {
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.out.push_str(&serde_json::to_string(&value)?);
        Ok(())
    }

    /// Rows and answers seldom have fractions, so serde_json writes them.
    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.out.push_str(&serde_json::to_string(&value)?);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.raw {
            self.out.push_str(value);
        } else {
            write_string(value, self.out);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut members = self.open(None, '{', "}");
        members.member(variant, value)?;
        members.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.open(None, '[', "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.open(None, '[', "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.open(None, '[', "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(self.open(Some(variant), '[', "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.open(None, '{', "}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, Error> {
        if name == RAW_VALUE {
            return Ok(Members { out: self.out, first: true, close: "" });
        }
        Ok(self.open(None, '{', "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(self.open(Some(variant), '{', "}}"))
    }
}

/// What stands between brackets.
struct Members<'a> {
    out: &'a mut String,
    first: bool,
    close: &'static str,
}

impl Members<'_> {
    #[inline(never)]
    fn separate(&mut self) {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
    }

    #[inline(never)]
    fn name(&mut self, name: &str) {
        self.separate();
        write_string(name, self.out);
        self.out.push(':');
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        self.name(name);
        self.value(value)
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        self.value(value)
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Writer { out: self.out, raw: false })
    }

    fn close(self) -> Result<(), Error> {
        self.out.push_str(self.close);
        Ok(())
    }
}

macro_rules! items {
    ($($of:ident::$method:ident;)*) => {
        $(impl $of for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

items! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let start = self.out.len();
        self.value(key)?;
        match self.out.as_bytes().get(start) {
            Some(b'"') => {}
            // A number or a boolean is written as a string.
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(start, '"');
                self.out.push('"');
            }
            _ => return Err(Error::custom("a key must be a string")),
        }
        self.out.push(':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

macro_rules! fields {
    ($($of:ident)*) => {
        $(impl $of for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                if name == RAW_VALUE {
                    return value.serialize(Writer { out: self.out, raw: true });
                }
                self.member(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Serialize)]
    enum Variant<'a> {
        Unit,
        Newtype(&'a str),
        Tuple(u8, char),
        Struct { text: &'a str, none: Option<u8> },
    }

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Newtype(i64);

    #[derive(Serialize)]
    struct Pair(f64, f32);

    #[derive(Serialize)]
    struct Inner {
        flag: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u8>,
    }

    #[derive(Serialize)]
    struct Record<'a> {
        numbers: (u64, i64, u8, i8, f64),
        #[serde(flatten)]
        inner: Inner,
        raw: &'a RawValue,
        variants: [Variant<'a>; 4],
        by_number: BTreeMap<u32, Unit>,
        by_name: BTreeMap<String, Newtype>,
        by_flag: BTreeMap<bool, Pair>,
        last: [(); 0],
    }

    #[test]
    fn a_record_of_every_shape_is_written_as_serde_json_writes_it() {
        let record = Record {
            numbers: (u64::MAX, i64::MIN, 0, -1, 1.0),
            inner: Inner { flag: true, absent: None },
            raw: serde_json::from_str(r#"{"a" : [1, "\u00e9\\"] }"#).unwrap(),
            variants: [
                Variant::Unit,
                Variant::Newtype("a\"b"),
                Variant::Tuple(1, '\n'),
                Variant::Struct { text: "\u{1f}é\u{7f}", none: None },
            ],
            by_number: [(7, Unit)].into(),
            by_name: [("k\"".to_owned(), Newtype(-5))].into(),
            by_flag: [(false, Pair(f64::NAN, 0.1))].into(),
            last: [],
        };
        assert_eq!(to_string(&record), serde_json::to_string(&record).unwrap());
    }

    #[test]
    fn a_record_without_json_has_no_text() {
        let by_list: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
        assert!(serde_json::to_string(&by_list).is_err());
        assert_eq!(to_string(&by_list), "");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            any::<String>().prop_map(Value::from),
            "[\\x00-\\x7f]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_written_as_serde_json_writes_it(value in value()) {
            prop_assert_eq!(to_string(&value), serde_json::to_string(&value).unwrap());
        }
    }
}
