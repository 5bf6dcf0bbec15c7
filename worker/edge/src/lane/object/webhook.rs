//! Sends the messages of the lane's outbox (`core/lane/outbox.rs`) to the tenant's webhook.

use futures_util::future::join_all;
use gateward_core::approval::webhook::Webhook;
use gateward_core::lane::{Delivery, Lane};
use gateward_core::log::Event;
use gateward_core::metrics::Series;
use gateward_core::target::Target;

use super::state::{Failure, GateLane};
use crate::limits::WEBHOOK_MS;
use crate::settings::Settings;
use crate::wait::settled;
use crate::{d1, io};

impl GateLane {
    /// Sends a bounded number of due messages concurrently, and writes rows for those that were given up. A message stays
    /// in the outbox until its delivery, its failure or its dead letter is written.
    pub(super) async fn send_to_webhook(&self, settings: &Settings) -> Result<(), Failure> {
        let identity = self.with_lane(|lane, _| Ok(lane.identity().cloned()))?;
        let Some((tenant, _)) = identity else { return Ok(()) };
        let now_ms = io::now_ms();
        let buried = self
            .with_lane(|lane, storage| lane.write_dead_letters(storage, &settings.config, now_ms));
        let (due, newest) = self.with_lane(|lane, storage| {
            Ok((lane.due_deliveries(storage, now_ms)?, lane.head().seq))
        })?;
        if due.is_empty() {
            return buried;
        }
        let Some(webhook) = d1::webhooks::of_tenant(&self.env, &tenant).await? else {
            return self.with_lane(|_, storage| Lane::forget_deliveries(storage, newest));
        };
        let told = join_all(due.iter().map(|delivery| async {
            let failed = match send(settings, &tenant, &webhook, delivery).await {
                Ok(()) => None,
                Err((status, Failure(why))) => {
                    // The line does not name the webhook's address, because the address may be secret.
                    self.log(
                        Event::WebhookNotDelivered,
                        &format!("`{}`: {why}", delivery.message.id),
                    );
                    Some(status)
                }
            };
            let now_ms = io::now_ms();
            self.with_lane(|lane, storage| {
                lane.tally(Series::WebhookAttempt { delivered: failed.is_none() }, 1);
                match failed {
                    None => Lane::delivered(storage, delivery),
                    Some(status) => Lane::delivery_failed(storage, delivery, status, now_ms),
                }
            })
        }));
        told.await.into_iter().chain([buried]).collect()
    }
}

/// One attempt to deliver a message. An error has the receiver's status, 0 if it did not answer.
async fn send(
    settings: &Settings,
    tenant: &str,
    webhook: &Webhook,
    delivery: &Delivery,
) -> Result<(), (u16, Failure)> {
    // Checked again: the rules or settings may have changed since the address was set.
    let target = Target::parse(&webhook.url, settings.local_targets);
    let target = target.map_err(|must| (0, Failure(format!("its address {must}"))))?;
    let message = &delivery.message;
    let mut fields = String::from("content-type\napplication/json\nuser-agent\ngateward\n");
    let now_ms = io::now_ms();
    for (name, value) in message.headers(&settings.mac_keys, (tenant, &webhook.salt), now_ms) {
        fields.extend([name, "\n", &value, "\n"]);
    }
    let status = settled(io::send(target.as_str(), &fields, &message.body, WEBHOOK_MS)).await;
    // A redirect is a failure, since its target was not checked.
    match status.map(|status| status.as_f64().unwrap_or_default() as u16) {
        Ok(200..300) => Ok(()),
        Ok(status) => Err((status, Failure(format!("answered {status}")))),
        Err(error) => Err((0, Failure::from(worker::Error::from(error)))),
    }
}
