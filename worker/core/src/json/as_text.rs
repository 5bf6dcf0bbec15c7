//! A record as the text of its JSON, for `#[serde(with)]`. Such records leave out absent members or flatten a struct,
//! which postcard cannot do.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer, Serialize, Serializer};

pub fn serialize<S: Serializer>(record: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&super::to_string(record))
}

pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    serde_json::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}
