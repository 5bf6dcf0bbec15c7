//! What a witness signs: the text of a checkpoint, after a line with the time (c2sp.org/tlog-cosignature, with
//! Ed25519).

/// Bytes of an Ed25519 signature.
pub(super) const SIGNATURE_BYTES: usize = 64;

/// The latest time of a cosignature, in seconds since 1970.
const MAX_TIME_S: u64 = i64::MAX as u64;

/// The message that a witness signs at a time, in seconds since 1970.
pub(super) fn message(time_s: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {time_s}\n{text}")
}

/// The time, in seconds since 1970, and the Ed25519 signature of a cosignature. `None` if the length is wrong, or if
/// the time is later than the format allows.
pub(super) fn split(cosignature: &[u8]) -> Option<(u64, &[u8])> {
    let (time, signature) = cosignature.split_first_chunk()?;
    let time_s = u64::from_be_bytes(*time);
    (signature.len() == SIGNATURE_BYTES && time_s <= MAX_TIME_S).then_some((time_s, signature))
}
