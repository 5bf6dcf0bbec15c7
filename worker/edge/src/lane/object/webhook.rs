//! Sends the messages of the lane's outbox (`core/lane/outbox.rs`) to the tenant's webhook.

use futures_util::future::join_all;
use gateward_core::approval::webhook::Webhook;
use gateward_core::lane::{Delivery, Lane};
use gateward_core::log::Event;
use gateward_core::metrics::Series;
use gateward_core::target::Target;
use js_sys::futures::JsFuture;
use wasm_bindgen::JsValue;
use worker::Date;

use super::alarm::MAX_BATCHES_PER_ALARM;
use super::state::{Failure, GateLane};
use crate::limits::WEBHOOK_MS;
use crate::settings::Settings;
use crate::{d1, io};

impl GateLane {
    /// Sends a bounded number of due messages concurrently, and writes the ones that were given up to D1 as
    /// dead letters. A message stays in the outbox until its delivery, its failure or its dead letter is
    /// written.
    pub(super) async fn send_to_webhook(&self, settings: &Settings) -> Result<(), Failure> {
        let identity = self.with_lane(|lane, _| Ok(lane.identity().cloned()))?;
        let Some((tenant, lane_number)) = identity else { return Ok(()) };
        for _ in 0..MAX_BATCHES_PER_ALARM {
            let dead = self.with_lane(|lane, storage| lane.dead_letters(storage))?;
            let Some(dead) = dead else { break };
            let now_ms = Date::now().as_millis();
            d1::webhooks::write_dead_letters(&self.env, &tenant, lane_number, &dead, now_ms)
                .await?;
            self.with_lane(|lane, storage| {
                Lane::dead_lettered(storage, &dead.seqs)?;
                lane.tally(Series::DeadLetter, dead.seqs.len() as u64);
                Ok(())
            })?;
        }
        let now_ms = Date::now().as_millis();
        let (due, newest) = self.with_lane(|lane, storage| {
            Ok((lane.due_deliveries(storage, now_ms)?, lane.head().seq))
        })?;
        if due.is_empty() {
            return Ok(());
        }
        let webhook = d1::webhooks::of_tenant(&self.env, &tenant).await;
        let Some(webhook) = webhook.map_err(|problem| Failure(problem.detail))? else {
            return self.with_lane(|_, storage| Lane::forget_deliveries(storage, newest));
        };
        let told = join_all(due.iter().map(|delivery| async {
            let taken = match send(settings, &tenant, &webhook, delivery).await {
                Ok(()) => true,
                Err(Failure(why)) => {
                    // Without its address, which may be secret.
                    self.log(
                        Event::WebhookNotDelivered,
                        &format!("`{}`: {why}", delivery.message.id),
                    );
                    false
                }
            };
            let now_ms = Date::now().as_millis();
            self.with_lane(|lane, storage| {
                lane.tally(Series::WebhookAttempt { delivered: taken }, 1);
                match taken {
                    true => Lane::delivered(storage, delivery),
                    false => Lane::delivery_failed(storage, delivery, now_ms),
                }
            })
        }));
        told.await.into_iter().collect()
    }
}

/// One attempt to deliver a message.
async fn send(
    settings: &Settings,
    tenant: &str,
    webhook: &Webhook,
    delivery: &Delivery,
) -> Result<(), Failure> {
    // Checked again: the rules or settings may have changed since the address was set.
    let target = Target::parse(&webhook.url, settings.local_targets);
    let target = target.map_err(|must| Failure(format!("its address {must}")))?;
    let message = &delivery.message;
    let mut fields = String::from("content-type\napplication/json\nuser-agent\ngateward\n");
    let now_ms = Date::now().as_millis();
    for (name, value) in message.headers(&settings.mac_keys, (tenant, &webhook.salt), now_ms) {
        fields.extend([name, "\n", &value, "\n"]);
    }
    let status: Result<JsValue, JsValue> = async {
        let answer = io::send(target.as_str(), &fields, &message.body, WEBHOOK_MS)?;
        JsFuture::from(answer).await
    }
    .await;
    // A redirect is a failure, since its target was not checked.
    match status.map(|status| status.as_f64()) {
        Ok(Some(status)) if (200.0..300.0).contains(&status) => Ok(()),
        Ok(status) => Err(Failure(format!("answered {}", status.unwrap_or_default()))),
        Err(error) => Err(Failure::from(worker::Error::from(error))),
    }
}
