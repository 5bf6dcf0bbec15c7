//! Counts of failed authentications in `audit_events`. The worker writes them, because such a request does
//! not wake a lane.

use gateward_core::lane::audit::AuditCount;
use gateward_core::sql::d1::COUNT_FAILED_AUTHENTICATION;
use worker::{Env, Result};

use super::{number, query, statement};
use crate::limits::D1_BACKGROUND_MS;

/// Adds to the count of a source in a window.
pub async fn count_failed_authentication(env: &Env, count: &AuditCount) -> Result<()> {
    let values = [
        count.event_id.as_str().into(),
        number(count.at_ms),
        count.source.as_str().into(),
        count.kind.into(),
        number(count.added),
    ];
    let count = statement(COUNT_FAILED_AUTHENTICATION, &values);
    query(env, &[count], D1_BACKGROUND_MS).await.map(drop)
}
