//! Lists of hashes as they are stored and sent: the eight bytes of each, little endian. In JSON, they are in base64.
//!
//! A varint, which the lane's protocol has for numbers, takes ten bytes for most hashes, and is read byte by byte.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::{Error, Visitor};
use serde::{Deserialize as _, Deserializer, Serializer};

/// # Errors
///
/// The serializer's.
pub fn serialize<S: Serializer>(hashes: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::with_capacity(hashes.len() * 8);
    for hash in hashes {
        bytes.extend_from_slice(&hash.to_le_bytes());
    }
    match serializer.is_human_readable() {
        true => serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes)),
        false => serializer.serialize_bytes(&bytes),
    }
}

/// # Errors
///
/// It is no base64 in JSON, or the last hash is cut off.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    if !deserializer.is_human_readable() {
        return deserializer.deserialize_bytes(Bytes);
    }
    let text = String::deserialize(deserializer)?;
    read(&STANDARD_NO_PAD.decode(text).map_err(Error::custom)?)
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<u64>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the bytes of hashes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u64>, E> {
        read(bytes)
    }
}

fn read<E: Error>(bytes: &[u8]) -> Result<Vec<u64>, E> {
    let (hashes, rest) = bytes.as_chunks::<8>();
    match rest {
        [] => Ok(hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect()),
        _ => Err(E::custom("hashes have eight bytes each")),
    }
}
