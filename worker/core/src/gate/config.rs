//! The settings of an operator: the vars in wrangler.toml, each within its bounds.
//!
//! A var that is not a number, or is out of its bounds, fails closed: the worker answers 503
//! `misconfigured`, and the log names the var.

use crate::bucket::{MAX_CAPACITY, MAX_REFILL_PER_S, Rate};
use crate::limit::OffsetS;
use crate::provenance::ValueKey;

/// Bytes of the lane's storage at which it stops taking calls. A Durable Object holds 10 GB; the
/// rest is for the flush.
pub const MAX_STORAGE_BYTES: u64 = 8_000_000_000;

/// Bytes of D1's database that flushes leave free, so that administrators can still freeze agents
/// and change the registry. Such a change takes some kilobytes. Between two checks of the size
/// ([`DATABASE_CHECK_MS`]), flushes write about 200 MB at most, which is what D1's single writer can
/// do.
pub const DATABASE_RESERVE_BYTES: u64 = 256_000_000;

/// How often a lane that flushes checks the size of D1's database.
pub const DATABASE_CHECK_MS: u64 = 10_000;

/// Rows that a lane writes during an outage of D1 of one hour, at 300 rows a second. The default of
/// `JOURNAL_HARD_ROWS`.
pub const OUTAGE_ROWS: u64 = 3_600 * 300;

/// Bytes that an ordinary journal row takes in the lane's storage: one page of SQLite, which has no
/// room for a second row, and the index entries of request id and nonce. The largest row of a call
/// takes about 65 KB, with its approval. If there are many of those, the storage is full before the
/// journal is, and then calls are refused too ([`MAX_STORAGE_BYTES`]).
pub const JOURNAL_ROW_BYTES: u64 = 4_400;

/// The highest value of the journal's bounds: as many ordinary rows as the storage holds.
const MAX_JOURNAL_ROWS: u64 = MAX_STORAGE_BYTES / JOURNAL_ROW_BYTES;

const _: () = assert!(OUTAGE_ROWS <= MAX_JOURNAL_ROWS, "an hour's journal fits the storage");

/// The lane's settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long journal rows wait before they are copied to D1 together.
    pub flush_interval_ms: u64,
    /// Rows of one flush. 500 rows took 46 ms of D1's single writer.
    pub flush_batch_rows: u32,
    /// Journal rows at which calls that write are refused. By default, the last 80,000 rows of an
    /// hour's outage are left for reads and for rows that close something.
    pub journal_soft_rows: u64,
    /// Journal rows at which every call is refused; by default [`OUTAGE_ROWS`].
    pub journal_hard_rows: u64,
    /// How long a lane decides without confirming the registry's epoch. If no push reaches the
    /// lane, a revocation takes effect after this time at the latest.
    pub registry_ttl_ms: u64,
    /// Bytes of D1's database at which flushes wait: the database's limit less the reserve.
    pub flush_until_bytes: u64,
    /// The request rate of agents for which no limit sets one.
    pub default_rate: Rate,
    /// The key of the hashes of values that a run has seen.
    pub value_key: ValueKey,
    /// The key of the hashes of key ids that metrics show.
    pub key_id_key: ValueKey,
    /// The time zones of the runtime.
    pub offset_s: OffsetS,
}

impl Config {
    /// Reads every var through `var`. The value key and the key for key ids are derived from the MAC key.
    ///
    /// # Errors
    ///
    /// A sentence that names the var.
    pub fn read(
        (value_key, key_id_key): (ValueKey, ValueKey),
        offset_s: OffsetS,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let number = |name: &str, min: f64, max: f64| -> Result<f64, String> {
            let text = var(name).ok_or_else(|| format!("var `{name}` is not set"))?;
            let value = text.trim().parse::<f64>().ok().filter(|value| (min..=max).contains(value));
            value.ok_or_else(|| {
                format!("var `{name}` is `{text}`, not a number from {min} to {max}")
            })
        };
        let config = Self {
            flush_interval_ms: number("FLUSH_INTERVAL_MS", 10.0, 3_600_000.0)? as u64,
            flush_batch_rows: number("FLUSH_BATCH_ROWS", 1.0, 2_000.0)? as u32,
            journal_soft_rows: number("JOURNAL_SOFT_ROWS", 1.0, MAX_JOURNAL_ROWS as f64)? as u64,
            journal_hard_rows: number("JOURNAL_HARD_ROWS", 1.0, MAX_JOURNAL_ROWS as f64)? as u64,
            registry_ttl_ms: number("REGISTRY_TTL_MS", 100.0, 3_600_000.0)? as u64,
            flush_until_bytes: number("D1_MAX_BYTES", DATABASE_RESERVE_BYTES as f64, 1e15)? as u64
                - DATABASE_RESERVE_BYTES,
            default_rate: Rate::new(
                number("RATE_CAPACITY", 1.0, f64::from(MAX_CAPACITY))? as u32,
                number("RATE_REFILL_PER_S", 0.001, MAX_REFILL_PER_S)?,
            ),
            value_key,
            key_id_key,
            offset_s,
        };
        if config.journal_soft_rows > config.journal_hard_rows {
            return Err("var `JOURNAL_SOFT_ROWS` is above `JOURNAL_HARD_ROWS`".to_owned());
        }
        Ok(config)
    }
}

/// Bytes of a header's name. The names that platforms use are far shorter.
const MAX_HEADER_NAME_BYTES: usize = 64;

/// The name of the request header in which the platform in front of the worker puts the address
/// that connected. The platform must overwrite what a client sends under that name: Cloudflare does
/// so with `cf-connecting-ip`, a bare workerd does not. If the var is absent or empty, the address
/// is not known.
///
/// # Errors
///
/// A sentence that names the var.
pub fn connecting_address_header(
    var: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
    const NAME: &str = "CONNECTING_ADDRESS_HEADER";
    let Some(header) = var(NAME).filter(|header| !header.is_empty()) else { return Ok(None) };
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if header.len() <= MAX_HEADER_NAME_BYTES && header.bytes().all(allowed) {
        return Ok(Some(header));
    }
    Err(format!(
        "var `{NAME}` must be a header's name: at most {MAX_HEADER_NAME_BYTES} of `[a-z0-9-]`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::window::utc_only;

    #[test]
    fn a_var_out_of_bounds_is_named() {
        let good = |name: &str| match name {
            "JOURNAL_HARD_ROWS" => Some("160".to_owned()),
            "D1_MAX_BYTES" => Some("256000001".to_owned()),
            _ => Some("150".to_owned()),
        };
        let key = (ValueKey::new([0; 16]), ValueKey::new([1; 16]));
        assert_eq!(Config::read(key, utc_only, good).map(|config| config.flush_until_bytes), Ok(1));
        for (name, value, expected) in [
            ("FLUSH_INTERVAL_MS", None, "var `FLUSH_INTERVAL_MS` is not set"),
            ("FLUSH_BATCH_ROWS", Some("0"), "var `FLUSH_BATCH_ROWS` is `0`"),
            ("D1_MAX_BYTES", Some("255999999"), "var `D1_MAX_BYTES` is `255999999`"),
            ("RATE_REFILL_PER_S", Some("NaN"), "var `RATE_REFILL_PER_S` is `NaN`"),
            ("JOURNAL_SOFT_ROWS", Some("161"), "is above `JOURNAL_HARD_ROWS`"),
        ] {
            let value = value.map(str::to_owned);
            let error =
                Config::read(
                    key,
                    utc_only,
                    |var| if var == name { value.clone() } else { good(var) },
                );
            assert!(error.unwrap_err().contains(expected), "{name}");
        }
    }

    #[test]
    fn the_journal_holds_an_hour_of_an_outage_by_default() {
        let settings = include_str!("../../../../wrangler.toml");
        let hard = format!("JOURNAL_HARD_ROWS = {OUTAGE_ROWS}\n");
        assert!(settings.contains(&hard) && settings.contains("JOURNAL_SOFT_ROWS = 1000000\n"));
    }

    #[test]
    fn no_header_tells_the_connecting_address_unless_the_var_names_it() {
        for (var, expected) in [
            (None, Ok(None)),
            (Some(""), Ok(None)),
            (Some("cf-connecting-ip"), Ok(Some("cf-connecting-ip"))),
            (Some("CF-Connecting-IP"), Err(())),
            (Some("a b"), Err(())),
            (Some("x:"), Err(())),
            (Some(&*"a".repeat(65)), Err(())),
        ] {
            let found = connecting_address_header(|_| var.map(str::to_owned));
            let found = found.map_err(|message| assert!(message.contains("CONNECTING")));
            assert_eq!(found.as_ref().map(Option::as_deref), expected.as_ref().copied(), "{var:?}");
        }
    }
}
