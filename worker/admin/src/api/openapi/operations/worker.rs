//! The worker: health, version, description and metrics.

use gateward_core::metrics::CONTENT_TYPE;
use gateward_core::problem::ProblemCode::{LaneUnavailable, RegistryUnavailable};
use utoipa::openapi::{Object, Type};

use super::super::entry::Entry;
use crate::api::health::{Health, Version};

pub(super) fn check_health() -> Entry {
    Entry::new("worker", "check_health", "Returns whether the worker runs.").answers::<Health>()
}

pub(super) fn check_readiness() -> Entry {
    Entry::new("worker", "check_readiness", "Returns whether D1 and a lane's storage answer.")
        .answers::<Health>()
        .refuses(&[RegistryUnavailable, LaneUnavailable])
}

pub(super) fn read_version() -> Entry {
    Entry::new("worker", "read_version", "Returns what is deployed.").answers::<Version<'_>>()
}

pub(super) fn read_openapi() -> Entry {
    Entry::new("worker", "read_openapi", "Returns this document.")
        .answers_with(Object::with_type(Type::Object).into())
}

pub(super) fn read_metrics() -> Entry {
    Entry::new(
        "worker",
        "read_metrics",
        "Returns the metrics of the tenant, and those of all tenants to an operator, in \
             Prometheus's text format.",
    )
    .answers_text(CONTENT_TYPE)
}
