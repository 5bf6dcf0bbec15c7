//! Telling a tenant's webhook what its lane's outbox holds (`gateward_core::lane`).

use futures_util::future::join_all;
use gateward_core::approval::webhook::Webhook;
use gateward_core::lane::{Delivery, Lane};
use gateward_core::target::Target;
use js_sys::futures::JsFuture;
use wasm_bindgen::JsValue;
use worker::{Date, console_error};

use crate::gate_do::{Failure, GateLane, MAX_BATCHES_PER_ALARM};
use crate::limits::WEBHOOK_MS;
use crate::settings::Settings;
use crate::{d1, io};

impl GateLane {
    /// Tells what is due, a bounded number of messages at once, and gives D1 those that were given
    /// up. Whatever is taken, fails or is cut off here is in the outbox until that is written.
    pub async fn tell_webhook(&self, settings: &Settings) -> Result<(), Failure> {
        let identity = self.with_lane(|lane, _| Ok(lane.identity().cloned()))?;
        let Some((tenant, lane_number)) = identity else { return Ok(()) };
        for _ in 0..MAX_BATCHES_PER_ALARM {
            let dead = self.with_lane(|lane, storage| lane.dead_letters(storage))?;
            let Some(dead) = dead else { break };
            let now_ms = Date::now().as_millis();
            d1::webhooks::write_dead_letters(&self.env, &tenant, lane_number, &dead, now_ms)
                .await?;
            self.with_lane(|_, storage| Lane::dead_lettered(storage, &dead.seqs))?;
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
                    // Not its address, which may be secret.
                    console_error!("webhook of `{tenant}`: {}: {why}", delivery.message.id);
                    false
                }
            };
            let now_ms = Date::now().as_millis();
            self.with_lane(|_, storage| match taken {
                true => Lane::delivered(storage, delivery),
                false => Lane::delivery_failed(storage, delivery, now_ms),
            })
        }));
        told.await.into_iter().collect()
    }
}

/// One attempt.
async fn send(
    settings: &Settings,
    tenant: &str,
    webhook: &Webhook,
    delivery: &Delivery,
) -> Result<(), Failure> {
    // It was checked when it was set, by the rules and settings of then.
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
    // Redirects are among the failures: they would lead past the check.
    match status.map(|status| status.as_f64()) {
        Ok(Some(status)) if (200.0..300.0).contains(&status) => Ok(()),
        Ok(status) => Err(Failure(format!("answered {}", status.unwrap_or_default()))),
        Err(error) => Err(Failure::from(worker::Error::from(error))),
    }
}
