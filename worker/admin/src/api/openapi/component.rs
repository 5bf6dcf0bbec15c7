//! Parts that operations share: problems, headers, parameters and security.

use gateward_core::field::{Label, Name, ToolName};
use gateward_core::problem::ProblemCode::{
    EnvironmentMismatch, JournalFull, RateLimited, RequestIdConflict,
};
use gateward_core::problem::{ProblemBody, ProblemCode};
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Content, KnownFormat, Object, Ref, RefOr, Required, Response, Schema, SchemaFormat, Type,
};

use crate::MAX_IDEMPOTENCY_KEY_BYTES;
use crate::warrant_revocation::WarrantId;

/// Problems that the lane returns after it charged the agent's rate.
pub(super) const CHARGED: [ProblemCode; 4] =
    [EnvironmentMismatch, RequestIdConflict, RateLimited, JournalFull];

/// An answer of this status with one of these codes.
pub(super) fn problem(status: u16, codes: &[ProblemCode]) -> Response {
    let about: Vec<String> =
        codes.iter().map(|code| format!("`{}`: {}.", code.code(), code.title())).collect();
    let mut headers = match status {
        401 => vec!["WWW-Authenticate"],
        429 | 503 => vec!["Retry-After"],
        _ => vec![],
    };
    if codes.iter().any(|code| CHARGED.contains(code)) {
        headers.extend(["RateLimit-Policy", "RateLimit"]);
    }
    let content = Content::new(Some(reference::<ProblemBody<'_>>()));
    let response = Response::builder()
        .description(about.join(" "))
        .content("application/problem+json", content);
    with_headers(response, &headers)
}

pub(super) fn with_headers(response: utoipa::openapi::ResponseBuilder, names: &[&str]) -> Response {
    let reference = |name| Ref::new(format!("#/components/headers/{name}"));
    names
        .iter()
        .fold(response, |response, name| response.header_ref(*name, reference(name)))
        .build()
}

pub(super) fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

/// Makes every field of an object required, except those that an answer may leave out, which are
/// neither required by their type nor nullable.
pub(super) fn require_all(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            let nullable = object.properties.iter().filter(|(_, field)| is_nullable(field));
            object.required.extend(nullable.map(|(name, _)| name.clone()));
            object.required.sort();
            object.required.dedup();
        }
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(require_all),
        _ => {}
    }
}

pub(super) fn is_nullable(schema: &RefOr<Schema>) -> bool {
    let has_null = |schema_type: &SchemaType| match schema_type {
        SchemaType::Type(one) => *one == Type::Null,
        SchemaType::Array(types) => types.contains(&Type::Null),
        SchemaType::AnyValue => false,
    };
    match schema {
        RefOr::T(Schema::Object(object)) => has_null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => has_null(&array.schema_type),
        RefOr::T(Schema::OneOf(one)) => one.items.iter().any(is_nullable),
        _ => false,
    }
}

pub(super) fn time() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    Object::builder().schema_type(Type::String).format(Some(format)).into()
}

pub(super) fn limit(default: u32, most: u32) -> Parameter {
    let schema = Object::builder()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(most))
        .default(Some(json!(default)));
    query("limit", schema.into(), "The largest number of records in the page.")
}

/// A number that must be there.
pub(super) fn required(name: &str, about: &str) -> Parameter {
    let mut number = query(name, Object::with_type(Type::Integer).into(), about);
    number.required = Required::True;
    number
}

pub(super) fn query(name: &str, schema: RefOr<Schema>, about: &str) -> Parameter {
    optional(ParameterIn::Query, name, schema, about)
}

pub(super) fn optional(
    place: ParameterIn,
    name: &str,
    schema: RefOr<Schema>,
    about: &str,
) -> Parameter {
    Parameter::builder()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .schema(Some(schema))
        .description(Some(about))
        .build()
}

/// `None` if it is not known: then a test fails.
pub(super) fn path_parameter(name: &str) -> Option<Parameter> {
    let pattern =
        |pattern: &str| Object::builder().schema_type(Type::String).pattern(Some(pattern)).into();
    let (schema, about) = match name {
        "tenant" => (reference::<Name>(), "The tenant's name."),
        "agent" => (reference::<Name>(), "The agent's name."),
        "group" => (reference::<Name>(), "The group's name."),
        "member" => (reference::<Name>(), "The agent's or the administrator's name."),
        "administrator" => (reference::<Name>(), "The administrator's name."),
        "key_id" => (reference::<Name>(), "The credential's key id."),
        "server" => (reference::<Name>(), "The server's name."),
        "limit_id" => (reference::<Name>(), "The limit's id."),
        "ban_id" => (reference::<Name>(), "The ban's id."),
        "root_id" => (reference::<Name>(), "The root's id."),
        "warrant_id" => {
            let about = "The warrant's id: 32 hex digits, alone or after `tnu_wrt_`, or a UUID with dashes.";
            (reference::<WarrantId>(), about)
        }
        "tool" => (reference::<ToolName>(), "The tool's name, percent-encoded."),
        "run" => (reference::<Label>(), "The run's id, percent-encoded."),
        "kind" => (pattern("^(agents|administrators)$"), "What the member is."),
        "decision_id" => (pattern("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"), "A UUIDv7."),
        "approval_id" => (pattern("^appr_[0-9]+_[0-9]+$"), "The approval's id."),
        "log" => (
            pattern(r"^[a-z0-9][a-z0-9_-]{0,62}\.(head|lane-(0|[1-9][0-9]{0,4}))$"),
            "The log's name: `<tenant>.lane-<number>` or `<tenant>.head`.",
        ),
        "tile" => (
            pattern(r"^(entries|[0-9]{1,2})/(x[0-9]{3}/)*[0-9]{3}(\.p/[1-9][0-9]{0,2})?$"),
            "The level, or `entries`, then the number of the tile, in groups of three digits.",
        ),
        "receipt_id" => (pattern("^rcpt_[0-9]+_[0-9]+$"), "The receipt's id."),
        _ => return None,
    };
    let mut parameter = optional(ParameterIn::Path, name, schema, about);
    parameter.required = Required::True;
    Some(parameter)
}

pub(super) fn parameter(name: &str) -> Ref {
    Ref::new(format!("#/components/parameters/{name}"))
}

pub(super) fn headers_of_requests() -> [(&'static str, Parameter); 6] {
    let header = |name, schema, about| (name, optional(ParameterIn::Header, name, schema, about));
    let key = format!("^[!-~]{{1,{MAX_IDEMPOTENCY_KEY_BYTES}}}$");
    let text = || Object::builder().schema_type(Type::String);
    [
        header(
            "Idempotency-Key",
            text().pattern(Some(key)).into(),
            "The same request again with the same key, within 24 hours, changes nothing and gets \
             the first answer without its secrets.",
        ),
        header(
            "If-Match",
            text().into(),
            "The `ETag` of what was read: if it was changed since, nothing is done.",
        ),
        header(
            "X-Gateward-Approval-Id",
            text().pattern(Some("^appr_[0-9]+_[0-9]+$")).into(),
            "The approval of this change, where members of a protected group must approve it.",
        ),
        header(
            "Signature-Input",
            text().into(),
            "What the request's signature covers (RFC 9421): `@method`, `@path`, `@query`, every \
             `X-Gateward-*` and `Mcp-*` header, `Idempotency-Key`, `If-Match`, and with a body \
             `Content-Digest`; with `created`, `keyid` and, unless it is a GET, `nonce`. Needed if \
             the credential is `signed`.",
        ),
        header(
            "Signature",
            text().into(),
            "The signature: HMAC-SHA-256 under the credential's `signing_key` as text.",
        ),
        header(
            "Content-Digest",
            text().into(),
            "`sha-256` of the body (RFC 9530). Needed if the request is signed and has a body.",
        ),
    ]
}

pub(super) const RATE_LIMIT: &str = "draft-ietf-httpapi-ratelimit-headers-10. A problem has it only if the request \
    was charged to the agent's rate, and an answer to a read only if an agent reads.";

pub(super) const RETRY_AFTER: &str = "Seconds after which trying again makes sense. An approval has it only while \
    it is pending.";

pub(super) fn headers_of_answers() -> [(&'static str, Header); 6] {
    let header = |name, kind, about: &str| {
        let schema: RefOr<Schema> = Object::with_type(kind).into();
        (name, Header::builder().schema(Some(schema)).description(Some(about)).build())
    };
    [
        header("ETag", Type::String, "The record's revision, quoted. A repeated answer has none."),
        header("Idempotency-Replayed", Type::String, "`true`; only if the answer is repeated."),
        header("RateLimit", Type::String, RATE_LIMIT),
        header("RateLimit-Policy", Type::String, RATE_LIMIT),
        header("Retry-After", Type::Integer, RETRY_AFTER),
        header("WWW-Authenticate", Type::String, "RFC 6750"),
    ]
}

pub(super) fn security_schemes() -> [(&'static str, SecurityScheme); 3] {
    let bearer = |name, format: &str, about: &str| {
        let scheme = Http::builder().scheme(HttpAuthScheme::Bearer).bearer_format(format);
        (name, SecurityScheme::Http(scheme.description(Some(about)).build()))
    };
    [
        bearer(
            "agent",
            "gw_<tenant>.<agent>.<lane>.<key>.<secret>.<mac>",
            "An agent's credential. Calls need `tools:read` or `tools:write`, as the tool does. A run \
             credential, which begins with `gwr_`, is accepted for calls, and to read an approval of its \
             run. A call with a warrant can have a locator instead, which begins with `gwl_`.",
        ),
        bearer(
            "administrator",
            "gwa_<tenant>.<key>.<secret>.<mac>",
            "An administrator's credential; each operation names the scope that it needs.",
        ),
        bearer("bootstrap", "text", "The worker's secret `BOOTSTRAP_SECRET`."),
    ]
}

pub(super) fn requirement(scheme: &str, scope: Option<&str>) -> SecurityRequirement {
    SecurityRequirement::new(scheme, scope)
}
