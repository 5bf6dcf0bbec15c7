//! The table `signature_nonces`: each nonce can be used once.

use gateward_core::credential::signature::SignatureNonce;
use gateward_core::gate::NONCE_MS;
use gateward_core::log::{Event, Line};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::sql::d1::{FORGET_SIGNATURE_NONCES, USE_SIGNATURE_NONCE};
use serde::de::IgnoredAny;
use worker::Result;

use super::{number, query, rows, statement};
use crate::app::App;
use crate::limits::D1_CHANGE_MS;
use crate::log;

/// Expired nonces that are deleted when one is used. More than one, so that they do not accumulate.
const MAX_FORGOTTEN: u64 = 10;

/// Uses up a nonce. Returns whether it was unused.
pub async fn use_nonce(
    app: &App,
    tenant: &str,
    key_id: &str,
    nonce: &SignatureNonce,
    now_ms: u64,
) -> std::result::Result<bool, Problem> {
    let used: Result<Vec<IgnoredAny>> = async {
        let values =
            [tenant.into(), key_id.into(), nonce.nonce.as_str().into(), number(nonce.created_ms)];
        // Kept twice as long as a signature is valid, since clocks differ.
        let expired = number(now_ms.saturating_sub(NONCE_MS));
        let values_of_expired = [tenant.into(), expired, number(MAX_FORGOTTEN)];
        let statements = [
            statement(USE_SIGNATURE_NONCE, &values),
            statement(FORGET_SIGNATURE_NONCES, &values_of_expired),
        ];
        let answered = query(&app.env, &statements, D1_CHANGE_MS).await?;
        rows(answered.first().map(Box::as_ref))
    }
    .await;
    used.map(|rows| !rows.is_empty()).map_err(|error| {
        let line = app.line(Event::NonceNotWritten, error);
        log::write(&Line { tenant: Some(tenant), ..line });
        let detail =
            "the database does not answer; nothing was changed; sign the request again and retry";
        Problem::new(ProblemCode::RegistryUnavailable, detail)
    })
}
