//! Enums whose variants are stable texts: on the wire, in D1 and in stored records.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, Unexpected, VariantAccess, Visitor};

/// Defines such an enum from its list, so that a variant is added in one line. A text that is not in
/// the list cannot be read.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$of_variant:meta])* $variant:ident = $text:tt,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
        pub enum $name {
            $($(#[$of_variant])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The variant with this text.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.as_str() == text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let at = $crate::text_enum::place(deserializer, stringify!($name), &[$($text),+])?;
                Self::ALL.get(at).copied().ok_or_else(|| serde::de::Error::custom("no such name"))
            }
        }
    };
}
pub(crate) use text_enum;

/// Reads a variant of an enum with these texts, and returns its place in the list. It reads what derived code reads: the
/// text from JSON, and the place from postcard. All enums share it, because derived code would be compiled for each enum and
/// each format.
pub(crate) fn place<'de, D: Deserializer<'de>>(
    deserializer: D,
    name: &'static str,
    texts: &'static [&'static str],
) -> Result<usize, D::Error> {
    deserializer.deserialize_enum(name, texts, Variant(texts))
}

struct Variant(&'static [&'static str]);

impl Variant {
    fn find<E: Error>(&self, text: &str) -> Result<usize, E> {
        let place = self.0.iter().position(|it| *it == text);
        place.ok_or_else(|| E::unknown_variant(text, self.0))
    }
}

impl<'de> Visitor<'de> for Variant {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("one of the names")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<usize, A::Error> {
        let (place, variant) = access.variant_seed(self)?;
        variant.unit_variant()?;
        Ok(place)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        self.find(text)
    }

    fn visit_u64<E: Error>(self, place: u64) -> Result<usize, E> {
        match usize::try_from(place) {
            Ok(at) if at < self.0.len() => Ok(at),
            _ => Err(E::invalid_value(Unexpected::Unsigned(place), &self)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Variant {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, from_value, json};

    use crate::decision::Decision;

    #[test]
    fn a_variant_is_read_by_its_text_and_from_postcard_by_its_place() {
        let read = |text: &str| from_str::<Decision>(text).map_err(|error| error.to_string());
        for decision in Decision::ALL {
            let text = decision.as_str();
            assert_eq!(read(&format!("\"{text}\"")), Ok(decision));
            assert_eq!(read(&format!("{{\"{text}\":null}}")), Ok(decision));
            assert_eq!(from_value::<Decision>(json!(text)).ok(), Some(decision));
            let bytes = postcard::to_allocvec(&decision).unwrap();
            assert_eq!(postcard::from_bytes(&bytes), Ok(decision));
        }
        let unknown = read("\"maybe\"").unwrap_err();
        assert!(
            unknown.starts_with("unknown variant `maybe`, expected one of `quarantine`, "),
            "{unknown}"
        );
        for other in ["1", "null", "[]", "{\"allow\":1}"] {
            assert!(read(other).is_err(), "{other}");
        }
        assert!(postcard::from_bytes::<Decision>(&[99]).is_err());
    }
}
