//! Ids that contain their lane and sequence number. So a record is found without an index: in D1 by its key,
//! in a lane's journal by its row.
//!
//! A decision id is a UUID version 7 (RFC 9562, section 5.7): 48 bits of Unix milliseconds, 12 bits of lane,
//! 40 bits of sequence number, and 22 bits from the hash chain. The last ones distinguish decisions of two
//! tenants with the same millisecond, lane and sequence number.

use chrono::{DateTime, Datelike as _, SecondsFormat};
use uuid::Uuid;

use crate::bounds::{HEAD_LANE, MAX_LANES};

/// Sequence numbers of a lane: 40 bits last 34 years at 1,000 decisions a second.
pub const MAX_SEQ: u64 = (1 << 40) - 1;

const SALT_BITS: u32 = 22;

/// The latest time of an id: 48 bits last up to the year 10889.
const MAX_MS: u64 = (1 << 48) - 1;

const _: () = assert!(MAX_LANES == 1 << 12, "a decision id has 12 bits for the lane");

/// The id of the decision at `seq` of `lane`. As long as `at_ms` does not decrease, ids increase. `seq` 0 is for
/// decisions that are not journalled.
#[must_use]
pub fn decision_id(at_ms: u64, lane: u16, seq: u64, salt: &[u8; 32]) -> String {
    let [a, b, c, d, ..] = *salt;
    let salt = u64::from(u32::from_be_bytes([a, b, c, d])) >> (32 - SALT_BITS);
    let high = (at_ms.min(MAX_MS) << 16) | (7 << 12) | u64::from(lane & 0xfff);
    let low = (2 << 62) | ((seq & MAX_SEQ) << SALT_BITS) | salt;
    Uuid::from_u64_pair(high, low).hyphenated().to_string()
}

/// The smallest id of a decision at `at_ms` or later. Decision ids sort by time.
#[must_use]
pub fn first_decision_id_at(at_ms: u64) -> String {
    Uuid::from_u64_pair((at_ms << 16) | (7 << 12), 2 << 62).hyphenated().to_string()
}

/// Lane and sequence number of a decision id; `None` if the text is not one.
#[must_use]
pub fn decision_position(id: &str) -> Option<(u16, u64)> {
    let uuid = Uuid::try_parse(id).ok().filter(|_| id.len() == 36)?;
    let (high, low) = uuid.as_u64_pair();
    ((high >> 12) & 0xf == 7 && low >> 62 == 2)
        .then_some(((high & 0xfff) as u16, (low >> SALT_BITS) & MAX_SEQ))
}

/// The id of the receipt at `seq` of `lane`.
#[must_use]
pub fn receipt_id(lane: u16, seq: u64) -> String {
    format!("rcpt_{lane}_{seq}")
}

/// Lane and sequence number of a receipt id.
#[must_use]
pub fn receipt_position(id: &str) -> Option<(u16, u64)> {
    let (lane, seq) = id.strip_prefix("rcpt_")?.split_once('_')?;
    let of_head = || (lane == HEAD_LANE.to_string()).then_some(HEAD_LANE);
    Some((lane_number(lane).or_else(of_head)?, sequence_number(seq)?))
}

/// The id of the approval that the decision at `seq` of `lane` requests.
#[must_use]
pub fn approval_id(lane: u16, seq: u64) -> String {
    format!("appr_{lane}_{seq}")
}

/// Lane and sequence number of an approval id.
#[must_use]
pub fn approval_position(id: &str) -> Option<(u16, u64)> {
    let (lane, seq) = id.strip_prefix("appr_")?.split_once('_')?;
    Some((lane_number(lane)?, sequence_number(seq)?))
}

/// Decimal, without a sign or leading zeros.
fn sequence_number(text: &str) -> Option<u64> {
    let canonical = !text.starts_with(['0', '+']);
    text.parse().ok().filter(|seq| canonical && *seq <= MAX_SEQ)
}

/// RFC 3339 in UTC with milliseconds. A time after the year 9999 becomes the epoch.
#[must_use]
pub fn rfc3339(at_ms: u64) -> String {
    let time = i64::try_from(at_ms).ok().and_then(DateTime::from_timestamp_millis);
    let time = time.filter(|time| time.year() <= 9_999).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Parses a lane number: decimal, without a sign or leading zeros.
#[must_use]
pub fn lane_number(text: &str) -> Option<u16> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|lane| canonical && *lane < MAX_LANES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_lane_and_sequence_number() {
        for (lane, seq) in [(0, 1), (1, 2), (4_095, MAX_SEQ), (77, 0)] {
            let id = decision_id(1_795_000_000_123, lane, seq, &[0xab; 32]);
            assert_eq!(decision_position(&id), Some((lane, seq)), "{id}");
            assert_eq!(Uuid::try_parse(&id).unwrap().get_version_num(), 7);
        }
        for position in [(3, 9), (4_095, MAX_SEQ), (HEAD_LANE, 1)] {
            assert_eq!(receipt_position(&receipt_id(position.0, position.1)), Some(position));
        }
        assert_eq!(approval_position(&approval_id(3, 9)), Some((3, 9)));
        assert_eq!(approval_position(&approval_id(HEAD_LANE, 9)), None);
        let wrong = ["rcpt_", "rcpt_1", "rcpt_01_2", "rcpt_1_0", "rcpt_1_-1", "rcpt_1_+1", "x"];
        for id in wrong.into_iter().chain(["rcpt_9999_1", "rcpt_+65535_1", "rcpt_65534_1"]) {
            assert_eq!(receipt_position(id), None, "{id}");
        }
        for id in ["", "00000000-0000-4000-8000-000000000000", "0192f0c1a2b37abc8def001122334455"] {
            assert_eq!(decision_position(id), None, "{id}");
        }
    }

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_795_000_000_123), "2026-11-18T11:06:40.123Z");
        assert_eq!(rfc3339(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        for at_ms in [253_402_300_800_000, u64::MAX / 2, u64::MAX] {
            assert_eq!(rfc3339(at_ms), rfc3339(0));
        }
    }
}
