//! The description of the API, generated from the types and the route table. `docs/openapi.json` is
//! this document, written by `cargo run -p gateward-admin --example openapi`; the worker serves that
//! file.

mod component;
mod entry;
mod operations;
mod schema;
#[cfg(test)]
mod tests;

use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::tag::Tag;
use utoipa::openapi::{Components, Info, OpenApi, Paths};

use self::component::{headers_of_answers, headers_of_requests, security_schemes};
use self::entry::Entry;
use self::operations::entry;
use self::schema::PendingLanes;
use gateward_core::problem::ProblemBody;
use gateward_core::route::ROUTES;

const INFO: &str = "What a policy gate for agents' tool calls answers. Every answer has an \
    `X-Request-Id`: the caller's own, if it was 1 to 64 of `[A-Za-z0-9._-]`, else a UUID. Times \
    are RFC 3339 in UTC with milliseconds. Where a list is absent or null, it restricts nothing; \
    an empty list allows nothing.";

/// The tags of operations.
const TAGS: [(&str, &str); 19] = [
    ("worker", "Health and version of the worker."),
    ("calls", "Whether a tool may be called."),
    ("decisions", "What was decided."),
    ("receipts", "The hash-chained record of what was decided."),
    ("logs", "Receipts as transparency logs, in the formats of c2sp.org."),
    ("approvals", "Calls that wait for people."),
    ("audit events", "Events: calls and changes of the registry."),
    ("tenants", "Tenants of the worker, isolated from each other."),
    ("settings", "What holds for all agents of the tenant, unless they have their own."),
    ("webhook", "Where messages about approvals are sent."),
    ("agents", "Who calls tools."),
    ("groups", "Agents, which policies see, and administrators, who approve."),
    (
        "administrators",
        "Who administers and approves: persons, each with any number of credentials.",
    ),
    ("credentials", "What agents and administrators authenticate with."),
    ("servers", "Where tools are."),
    ("tools", "What agents call."),
    ("limits", "How often, how much and when agents and credentials may call."),
    ("bans", "Agents, users, runs and networks whose calls are denied."),
    ("warrants", "Keys that root warrants, and warrants that are revoked."),
];

/// The API in OpenAPI 3.1.
#[must_use]
pub fn document() -> OpenApi {
    let mut components = Components::new();
    let mut paths = Paths::new();
    for (name, parameter) in headers_of_requests() {
        components.parameters.insert(name.to_owned(), parameter.into());
    }
    for (name, header) in headers_of_answers() {
        components.headers.insert(name.to_owned(), header.into());
    }
    for (name, scheme) in security_schemes() {
        components.security_schemes.insert(name.to_owned(), scheme.into());
    }
    for route in ROUTES {
        let Some(method) = method(route.method) else { continue };
        let mut entry = entry(route.operation);
        components.schemas.append(&mut entry.schemas);
        let operation = entry.describe(route, &mut components);
        paths.add_path_operation(route.path, vec![method], operation);
    }
    let mut described =
        Entry::new("", "", "").answers::<ProblemBody<'_>>().answers::<PendingLanes>();
    components.schemas.append(&mut described.schemas);
    let tags = TAGS.map(|(name, about)| Tag::builder().name(name).description(Some(about)).build());
    let info = Info::builder()
        .title("Gateward")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(INFO));
    OpenApi::builder().info(info).tags(Some(tags)).paths(paths).components(Some(components)).build()
}

fn method(name: &str) -> Option<HttpMethod> {
    match name {
        "GET" => Some(HttpMethod::Get),
        "POST" => Some(HttpMethod::Post),
        "PUT" => Some(HttpMethod::Put),
        "PATCH" => Some(HttpMethod::Patch),
        "DELETE" => Some(HttpMethod::Delete),
        _ => None,
    }
}
