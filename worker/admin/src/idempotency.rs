//! Answers that are stored under an `Idempotency-Key`, so that a repeated request changes nothing.

use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::change::At;

/// How long a POST's answer is stored under its `Idempotency-Key`.
pub const IDEMPOTENCY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Characters of an `Idempotency-Key`: a UUID with a prefix fits several times.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 128;

/// The request that an idempotency key belongs to, as a hash.
#[must_use]
pub fn fingerprint(key_id: &str, method: &str, path: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [key_id, method, path] {
        hash.update(part);
        hash.update([0]);
    }
    hex::encode(hash.chain_update(body).finalize())
}

/// The statements that store an answer under its idempotency key, with the request's fingerprint.
#[must_use]
pub fn keep(
    at: &At<'_>,
    epoch: u64,
    status: u16,
    body: &Json,
    (key, fingerprint): (&str, &str),
) -> [Statement; 2] {
    // Keys belong to the tenant whose administrator sent them.
    let tenant = Value::from(at.actor.tenant.as_str());
    let expired = at.now_ms.saturating_sub(IDEMPOTENCY_MS).into();
    [
        Statement::new(sql::EXPIRE_IDEMPOTENCY_KEYS, vec![tenant.clone(), expired]),
        Statement::new(
            sql::KEEP_ANSWER,
            vec![
                tenant,
                key.into(),
                fingerprint.into(),
                epoch.into(),
                u64::from(status).into(),
                body.to_string().into(),
                at.now_ms.into(),
                at.tenant.into(),
            ],
        ),
    ]
}
