//! Webhooks: messages about a tenant's approvals, in the form of Standard Webhooks 1.0.0
//! (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md). The types of messages are the values of
//! [`ApprovalEvent`], with a full stop for the first underscore.
//!
//! INVARIANT (the same message at each attempt): id and body depend only on the step, so a receiver
//! recognizes a repetition by the id. Only time and signature differ between attempts.
//!
//! Out of scope: storing messages until they are delivered ([`crate::lane`]), sending them (the
//! shell).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use sha2::Sha256;

use crate::approval::{Approval, ApprovalEvent, ApprovalInput, ApprovalView};
use crate::credential::token::MacKeys;
use crate::id::rfc3339;
use crate::json;

/// A tenant's webhook, as lanes read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Webhook {
    pub url: String,
    /// A random text that makes its secret unique.
    pub salt: String,
}

/// A message, the same at each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    /// JSON.
    pub body: String,
}

#[derive(Serialize)]
struct Payload<'a> {
    r#type: &'a str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    tenant: &'a str,
    approval: ApprovalView<'a>,
}

impl Message {
    /// The message about the step `seq` of a lane. The approval is as it was after the step, without
    /// the call's arguments.
    #[must_use]
    pub fn of(
        (tenant, lane): (&str, u16),
        (seq, at_ms): (u64, u64),
        event: ApprovalEvent,
        approval: &Approval,
    ) -> Self {
        let payload = Payload {
            r#type: &event.as_str().replacen('_', ".", 1),
            timestamp: rfc3339(at_ms),
            data: Data { tenant, approval: approval.view(&ApprovalInput::default(), at_ms, false) },
        };
        Self {
            // It has no full stop: full stops separate the signed parts.
            id: format!("msg_{tenant}_{lane}_{seq}"),
            // Plain data always serializes.
            body: json::to_string(&payload),
        }
    }

    /// The headers of an attempt, in addition to those of every request with JSON. It is signed
    /// with the secret of each of the worker's keys, so that receivers have time to switch to a new
    /// one.
    #[must_use]
    pub fn headers(
        &self,
        keys: &MacKeys,
        (tenant, salt): (&str, &str),
        now_ms: u64,
    ) -> [(&'static str, String); 3] {
        let timestamp_s = now_ms / 1_000;
        let signatures: Vec<String> = keys
            .webhook_keys(tenant, salt)
            .map(|key| sign(&key, &self.id, timestamp_s, &self.body))
            .collect();
        [
            ("webhook-id", self.id.clone()),
            ("webhook-timestamp", timestamp_s.to_string()),
            ("webhook-signature", signatures.join(" ")),
        ]
    }
}

/// The secret with which a receiver verifies, in the form that an administrator sees.
#[must_use]
pub fn secret(keys: &MacKeys, tenant: &str, salt: &str) -> String {
    let current = keys.webhook_keys(tenant, salt).next().unwrap_or_default();
    format!("whsec_{}", STANDARD.encode(current))
}

fn sign(key: &[u8], id: &str, timestamp_s: u64, body: &str) -> String {
    // HMAC accepts keys of any length.
    Hmac::<Sha256>::new_from_slice(key).map_or_else(
        |_| String::new(),
        |mut hmac| {
            hmac.update(format!("{id}.{timestamp_s}.{body}").as_bytes());
            format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "fedcba9876543210fedcba9876543210";
    const NEW: &str = "0123456789abcdef0123456789abcdef";

    /// The vector of the specification's own libraries (`libraries/javascript/src/webhook.test.ts`).
    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_is_of_its_tenant_salt_and_mac_key() {
        let keys = |current, previous| MacKeys::new(current, previous).unwrap();
        let first = secret(&keys(NEW, None), "acme", "s1");
        let bytes = STANDARD.decode(first.strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(bytes.len(), 32);
        assert_eq!(first, secret(&keys(NEW, Some(OLD)), "acme", "s1"));
        for other in [
            secret(&keys(NEW, None), "acme", "s2"),
            secret(&keys(NEW, None), "acmf", "s1"),
            secret(&keys(OLD, None), "acme", "s1"),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn while_the_mac_key_is_rotated_the_old_secret_and_the_new_one_verify() {
        let message = Message { id: "msg_acme_0_7".to_owned(), body: "{}".to_owned() };
        let signatures = |keys: &MacKeys| {
            let [id, timestamp, signature] = message.headers(keys, ("acme", "s1"), 1_999);
            assert_eq!(id, ("webhook-id", "msg_acme_0_7".to_owned()));
            assert_eq!(timestamp, ("webhook-timestamp", "1".to_owned()));
            assert_eq!(signature.0, "webhook-signature");
            signature.1
        };
        let [old, new] = [OLD, NEW].map(|key| signatures(&MacKeys::new(key, None).unwrap()));
        assert_eq!(
            signatures(&MacKeys::new(NEW, Some(OLD)).unwrap()),
            format!("{new} {old}"),
            "the current one first"
        );
    }
}
