//! Tenants, their settings and their webhook.

use gateward_core::problem::ProblemCode::{
    AlreadyBootstrapped, LimitReached, NameTaken, NotFound, StateConflict,
};

use super::super::entry::{CREATED, CREATED_OR_DONE, DONE, Entry};
use crate::credential::IssuedCredential;
use crate::settings::{PatchSettings, SettingsView};
use crate::tenant::{
    BootstrapRequest, CreatedTenant, PatchTenant, Tenant, TenantRequest, TenantRow,
};
use crate::webhook::{IssuedWebhook, Webhook, WebhookRequest};

pub(super) fn bootstrap() -> Entry {
    Entry::new(
        "tenants",
        "bootstrap",
        "Creates the first operator, and its tenant if it does not exist. Or gives a tenant \
         without an administrator a new one.",
    )
    .takes::<BootstrapRequest>()
    .writes::<IssuedCredential>(&CREATED)
    .tagged()
    .refuses(&[AlreadyBootstrapped, NameTaken])
}

pub(super) fn list_tenants() -> Entry {
    Entry::new("tenants", "list_tenants", "Lists tenants.").page::<TenantRow>()
}

pub(super) fn create_tenant() -> Entry {
    Entry::new(
        "tenants",
        "create_tenant",
        "Creates a tenant and its first administrator's credential.",
    )
    .takes::<TenantRequest>()
    .writes::<CreatedTenant>(&CREATED)
    .tagged()
    .refuses(&[NameTaken, LimitReached])
}

pub(super) fn read_tenant() -> Entry {
    Entry::new("tenants", "read_tenant", "Returns a tenant.").answers::<Tenant>().tagged()
}

pub(super) fn patch_tenant() -> Entry {
    Entry::new("tenants", "patch_tenant", "Suspends a tenant, or gives it more lanes.")
        .takes::<PatchTenant>()
        .writes::<Tenant>(&DONE)
        .tagged()
        .matching()
}

pub(super) fn delete_tenant() -> Entry {
    Entry::new(
        "tenants",
        "delete_tenant",
        "Deletes a tenant: nothing of it can authenticate or be called any more.",
    )
    .writes::<Tenant>(&DONE)
    .matching()
    .refuses(&[StateConflict])
}

pub(super) fn read_settings() -> Entry {
    Entry::new("settings", "read_settings", "Returns the tenant's settings.")
        .answers::<SettingsView>()
        .tagged()
}

pub(super) fn patch_settings() -> Entry {
    Entry::new("settings", "patch_settings", "Changes the tenant's settings.")
        .takes::<PatchSettings>()
        .writes::<SettingsView>(&DONE)
        .tagged()
        .matching()
}

pub(super) fn read_webhook() -> Entry {
    Entry::new("webhook", "read_webhook", "Returns the tenant's webhook without its secret.")
        .answers::<Webhook>()
        .tagged()
        .refuses(&[NotFound])
}

pub(super) fn set_webhook() -> Entry {
    Entry::new(
        "webhook",
        "set_webhook",
        "Sets the tenant's webhook; its new secret is shown this once.",
    )
    .takes::<WebhookRequest>()
    .writes::<IssuedWebhook>(&CREATED_OR_DONE)
    .tagged()
    .matching()
}

pub(super) fn delete_webhook() -> Entry {
    Entry::new("webhook", "delete_webhook", "Deletes the webhook: nothing is told any more.")
        .writes::<Webhook>(&DONE)
        .matching()
        .refuses(&[NotFound])
}
