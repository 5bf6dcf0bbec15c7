//! `GET /metrics`.

use gateward_core::log::Event;
use gateward_core::metrics::CONTENT_TYPE;

use crate::answer::{Answered, internal, whole};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1;
use crate::http::Head;
use crate::io;
use crate::log;

/// The metrics of the caller's tenant; of all tenants for an operator. No lane is asked.
pub async fn scrape(app: &App, caller: &Caller) -> Answered {
    let now_ms = io::now_ms();
    let tenant = (!caller.is_operator()).then_some(caller.tenant.as_str());
    let scrape = d1::metrics::scrape(app, tenant, now_ms).await?;
    let text = scrape.render(now_ms).map_err(|error| {
        log::write(&app.line(Event::MetricsUnavailable, &error));
        internal("the metrics cannot be read")
    })?;
    whole(Head::of_type(200, CONTENT_TYPE, &app.request_id).with(&text))
}
