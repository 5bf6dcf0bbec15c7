//! The runs that share a mark of taint.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a set, so that three hexadecimal digits name a bit.
const SET_BYTES: usize = 512;

/// Bits of each run in a set. A run's 16 hexadecimal digits name five.
const BITS_OF_A_RUN: usize = 5;

/// A Bloom filter (Bloom, 1970): each run that was inserted is found in it. If it has 200 runs, one other run in 2,000 is
/// found in it too. A run is named by the first 64 bits of a hash, in hex. As JSON, a set is base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSet(Vec<u8>);

impl RunSet {
    pub fn empty() -> Self {
        Self(vec![0; SET_BYTES])
    }

    pub fn insert(&mut self, run: &str) {
        for (byte, bit) in bits(run) {
            if let Some(known) = self.0.get_mut(byte) {
                *known |= bit;
            }
        }
    }

    pub fn may_have(&self, run: &str) -> bool {
        bits(run).all(|(byte, bit)| self.0.get(byte).is_some_and(|known| known & bit != 0))
    }
}

/// The bytes and bits of a run.
fn bits(run: &str) -> impl Iterator<Item = (usize, u8)> {
    (0..BITS_OF_A_RUN).filter_map(move |at| {
        let digits = run.get(3 * at..3 * at + 3)?;
        let bit = usize::from_str_radix(digits, 16).ok()?;
        Some((bit / 8, 1_u8 << (bit % 8)))
    })
}

impl Serialize for RunSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for RunSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let runs = STANDARD_NO_PAD.decode(text).map_err(D::Error::custom)?;
        match runs.len() {
            SET_BYTES => Ok(Self(runs)),
            _ => Err(D::Error::custom("a set of runs has another length")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_three_digits_of_a_run_are_the_number_of_a_bit() {
        let mut runs = RunSet::empty();
        runs.insert("ca978112ca1bbdca");
        let is_set = |bit: &usize| runs.0[bit / 8] & (1 << (bit % 8)) != 0;
        let set: Vec<usize> = (0..8 * SET_BYTES).filter(is_set).collect();
        assert_eq!(set, [0x12c, 0x781, 0xa1b, 0xbdc, 0xca9]);
    }
}
