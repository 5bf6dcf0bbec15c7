//! An operation while it is described, and the parts that follow from its route.

use gateward_core::problem::ProblemCode;
use gateward_core::problem::ProblemCode::{
    ApprovalRequired, BodyTooLarge, CredentialExpired, Forbidden, IdempotencyKeyReused,
    InputInvalid, Internal, InvalidField, JournalFull, LaneUnavailable, LastAdministrator,
    LimitReached, MalformedRequest, Misconfigured, NonceReplayed, NotFound, Overloaded,
    PreconditionFailed, RateLimited, RegistryUnavailable, SignatureInvalid, SignatureRequired,
    SourceAddressForbidden, StateConflict, TimestampStale, Unauthorized, UnsupportedMediaType,
    UpstreamForbidden, UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable,
};
use gateward_core::route::{Access, Route};
use gateward_core::scope::Scope;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation as Described, Parameter};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    AllOf, Array, Components, Content, Object, Ref, RefOr, Required, Response, Schema, Type,
};

use super::component::{
    limit, parameter, path_parameter, problem, query, reference, require_all, requirement, time,
    with_headers,
};
use super::schema::PendingLanes;
use crate::Resource;
use crate::api::page::{DEFAULT_PAGE, MAX_PAGE};

/// Problems of any request with an agent's or administrator's credential.
pub(super) const CREDENTIAL: [ProblemCode; 9] = [
    Unauthorized,
    CredentialExpired,
    SignatureInvalid,
    SignatureRequired,
    Forbidden,
    SourceAddressForbidden,
    NonceReplayed,
    TimestampStale,
    RegistryUnavailable,
];

/// Problems of any request except a GET: the body is read even if it must be empty.
pub(super) const BODY: [ProblemCode; 3] = [MalformedRequest, BodyTooLarge, Overloaded];

/// Problems of asking a server for its tools.
pub(super) const DISCOVERY: [ProblemCode; 4] =
    [UpstreamForbidden, UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable];

/// Types of requests and answers: requests may leave out members with a default.
pub(super) const IN_REQUESTS: [&str; 2] = ["Upstream", "UpstreamCredential"];

/// A status of success and when it is given.
pub(super) type Success = (&'static str, &'static str);

pub(super) const ANSWERED: Success = ("200", "The answer.");
pub(super) const DONE: [Success; 1] = [("200", "Done; every lane uses the change.")];
pub(super) const CREATED: [Success; 1] = [("201", "Created; every lane uses the change.")];
pub(super) const CREATED_OR_DONE: [Success; 2] =
    [("200", "It existed and is updated; every lane uses the change."), CREATED[0]];
pub(super) const CREATED_OR_KEPT: [Success; 2] =
    [("200", "It existed, and nothing changed."), CREATED[0]];
pub(super) const PENDING: Success = (
    "202",
    "Stored, but not every lane confirmed it. The others use it when they next confirm the registry.",
);

/// An operation while it is described.
pub(super) struct Entry {
    tag: &'static str,
    id: &'static str,
    summary: &'static str,
    query: Vec<Parameter>,
    body: Option<RequestBody>,
    successes: Vec<Success>,
    answer: RefOr<Schema>,
    media_type: &'static str,
    writes: bool,
    tagged: bool,
    matching: bool,
    guarded: bool,
    polled: bool,
    problems: Vec<ProblemCode>,
    pub(super) schemas: BTreeMap<String, RefOr<Schema>>,
}

impl Entry {
    pub(super) fn new(tag: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self {
            tag,
            id,
            summary,
            query: Vec::new(),
            body: None,
            successes: Vec::new(),
            answer: Schema::default().into(),
            media_type: "application/json",
            writes: false,
            tagged: false,
            matching: false,
            guarded: false,
            polled: false,
            problems: vec![Misconfigured, Internal],
            schemas: BTreeMap::new(),
        }
    }

    /// Adds a type and the types that it refers to to the components.
    fn register<T: ToSchema>(&mut self) -> Vec<String> {
        let mut schemas = Vec::new();
        T::schemas(&mut schemas);
        schemas.push((T::name().into_owned(), T::schema()));
        let names = schemas.iter().map(|(name, _)| name.clone()).collect();
        self.schemas.extend(schemas);
        names
    }

    /// A body whose fields are checked by name.
    pub(super) fn takes<T: ToSchema>(self) -> Self {
        self.takes_with::<T>(Required::True).refuses(&[InvalidField])
    }

    pub(super) fn takes_with<T: ToSchema>(mut self, required: Required) -> Self {
        self.register::<T>();
        let content = Content::new(Some(reference::<T>()));
        let body = RequestBody::builder().content("application/json", content);
        self.body = Some(body.required(Some(required)).build());
        self.refuses(&[InputInvalid, UnsupportedMediaType])
    }

    pub(super) fn answers<T: ToSchema>(mut self) -> Self {
        // Answers have every field.
        for name in self.register::<T>() {
            if !IN_REQUESTS.contains(&name.as_str()) {
                self.schemas.get_mut(&name).into_iter().for_each(require_all);
            }
        }
        self.answers_with(reference::<T>())
    }

    /// Something that is not a record of the registry was created.
    pub(super) fn creates<T: ToSchema>(self, about: &'static str) -> Self {
        let mut entry = self.answers::<T>();
        entry.successes = vec![("201", about)];
        entry
    }

    pub(super) fn answers_with(mut self, schema: RefOr<Schema>) -> Self {
        self.answer = schema;
        self.successes = vec![ANSWERED];
        self
    }

    /// An answer that is not JSON.
    pub(super) fn answers_text(self, media_type: &'static str) -> Self {
        Self { media_type, ..self.answers_with(Object::with_type(Type::String).into()) }
    }

    /// An answer of bytes.
    pub(super) fn answers_bytes(self) -> Self {
        self.answers_text("application/octet-stream")
    }

    /// A change of the registry, answered with the changed record.
    pub(super) fn writes<T: ToSchema>(self, successes: &[Success]) -> Self {
        let mut entry = self.answers::<T>();
        entry.successes = successes.to_vec();
        entry.writes = true;
        entry
    }

    /// A page of records.
    pub(super) fn page<R: Resource>(self) -> Self
    where
        R::View: ToSchema,
    {
        let entry = self.in_pages().answers::<R::View>();
        let cursor = Object::builder()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("Where the next page begins; null on the last."));
        let page = Object::builder()
            .property(R::PLURAL, Array::new(reference::<R::View>()))
            .property("next_cursor", cursor)
            .required(R::PLURAL)
            .required("next_cursor");
        entry.answers_with(page.into())
    }

    pub(super) fn in_pages(self) -> Self {
        let text = Object::with_type(Type::String).into();
        self.with(limit(DEFAULT_PAGE, MAX_PAGE)).filtered(
            "cursor",
            text,
            "The `next_cursor` of the previous page.",
        )
    }

    /// It can remove the last administrator, if the request confirms it.
    pub(super) fn last(self) -> Self {
        let about = "Whether it may leave the tenant without an administrator who has \
            `registry:write`, or the worker without one who has `tenants:admin`.";
        self.filtered("last", Object::with_type(Type::Boolean).into(), about)
            .refuses(&[LastAdministrator])
    }

    pub(super) fn within_times(self) -> Self {
        self.filtered("from", time(), "Only from this time on.").filtered(
            "to",
            time(),
            "Only before this time.",
        )
    }

    pub(super) fn filtered(self, name: &str, schema: RefOr<Schema>, about: &str) -> Self {
        self.with(query(name, schema, about))
    }

    pub(super) fn with(mut self, parameter: Parameter) -> Self {
        self.query.push(parameter);
        self.refuses(&[MalformedRequest])
    }

    /// The answer carries the record's revision as an `ETag`.
    pub(super) fn tagged(mut self) -> Self {
        self.tagged = true;
        self
    }

    /// The answer has `Retry-After`.
    pub(super) fn polled(mut self) -> Self {
        self.polled = true;
        self
    }

    /// `If-Match` is checked.
    pub(super) fn matching(mut self) -> Self {
        self.matching = true;
        self.refuses(&[PreconditionFailed])
    }

    /// The record has no revision: `If-Match` fails unless it is `*`.
    pub(super) fn unrevised(self) -> Self {
        self.refuses(&[PreconditionFailed])
    }

    /// Members of a protected group may have to approve it.
    pub(super) fn guarded(mut self) -> Self {
        self.guarded = true;
        self.refuses(&[ApprovalRequired, StateConflict, LimitReached, JournalFull, LaneUnavailable])
    }

    pub(super) fn refuses(mut self, problems: &[ProblemCode]) -> Self {
        self.problems.extend_from_slice(problems);
        self
    }

    /// The operation, with the parts that follow from its route. Adds shared answers to the
    /// components.
    pub(super) fn describe(mut self, route: &Route, components: &mut Components) -> Described {
        self.add_problems(route);
        let (request_headers, headers) = (self.request_headers(route), self.answer_headers(route));
        let mut operation = Described::builder()
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .tag(self.tag)
            .request_body(self.body)
            .securities(Some(securities(route.access)));
        for name in route.path.split(['{', '}']).skip(1).step_by(2) {
            if let Some(described) = path_parameter(name) {
                components.parameters.insert(name.to_owned(), described.into());
                operation = operation.parameter_ref(parameter(name));
            }
        }
        for parameter in self.query {
            operation = operation.parameter(parameter);
        }
        for name in request_headers {
            operation = operation.parameter_ref(parameter(name));
        }
        let answer = |(status, about): Success, schema: RefOr<Schema>| {
            let content = Content::new(Some(schema));
            let response = Response::builder().description(about).content(self.media_type, content);
            (status, with_headers(response, &headers))
        };
        for success in self.successes {
            let (status, response) = answer(success, self.answer.clone());
            operation = operation.response(status, response);
        }
        if self.writes {
            let both = AllOf::builder().item(self.answer).item(reference::<PendingLanes>());
            let (status, response) = answer(PENDING, both.into());
            operation = operation.response(status, response);
        }
        let mut problems: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
        for code in ProblemCode::ALL.iter().copied().filter(|code| self.problems.contains(code)) {
            problems.entry(code.status()).or_default().push(code);
        }
        for (status, codes) in problems {
            let names: Vec<&str> = codes.iter().map(|code| code.code()).collect();
            let name = names.join(".");
            let response = || problem(status, &codes);
            components.responses.entry(name.clone()).or_insert_with(|| response().into());
            operation = operation.response(status.to_string(), Ref::from_response_name(name));
        }
        operation.build()
    }

    fn is_idempotent(&self, route: &Route) -> bool {
        self.writes && route.method == "POST"
    }

    /// Adds the problems that follow from the route.
    fn add_problems(&mut self, route: &Route) {
        if route.path.contains('{') {
            self.problems.push(NotFound);
            // Other ids are looked up as they are.
            if !["approvals", "decisions", "receipts", "logs"].contains(&self.tag) {
                self.problems.push(InvalidField);
            }
        }
        if route.method != "GET" {
            self.problems.extend(BODY);
        }
        if self.is_idempotent(route) {
            self.problems.push(IdempotencyKeyReused);
        }
        match route.access {
            Access::Open => {}
            Access::Bootstrap => self.problems.extend([Unauthorized, RegistryUnavailable]),
            Access::Call | Access::Reader(_) | Access::Administrator(_) | Access::Log => {
                self.problems.extend(CREDENTIAL);
            }
        }
        if let Access::Reader(_) = route.access {
            // An agent's read counts as one request of its rate. Its lane charges it.
            self.problems.extend([RateLimited, LaneUnavailable]);
        }
    }

    /// The headers that a request can have.
    fn request_headers(&self, route: &Route) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.is_idempotent(route) {
            names.push("Idempotency-Key");
        }
        if self.matching {
            names.push("If-Match");
        }
        if self.guarded {
            names.push("X-Gateward-Approval-Id");
        }
        match route.access {
            Access::Open | Access::Bootstrap => {}
            Access::Call | Access::Reader(_) | Access::Administrator(_) | Access::Log => {
                names.extend(["Signature-Input", "Signature", "Content-Digest"]);
            }
        }
        names
    }

    /// The headers that an answer can have.
    fn answer_headers(&self, route: &Route) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.tagged {
            names.push("ETag");
        }
        if self.polled {
            names.push("Retry-After");
        }
        if self.is_idempotent(route) {
            names.push("Idempotency-Replayed");
        }
        if matches!(route.access, Access::Call | Access::Reader(_)) {
            names.extend(["RateLimit-Policy", "RateLimit"]);
        }
        names
    }
}

/// The credentials of which a request needs one.
fn securities(access: Access) -> Vec<SecurityRequirement> {
    match access {
        Access::Open => vec![],
        Access::Bootstrap => vec![requirement("bootstrap", None)],
        Access::Call => vec![requirement("agent", None)],
        Access::Reader(scope) => {
            vec![requirement("agent", None), requirement("administrator", Some(scope.as_str()))]
        }
        Access::Administrator(scope) => {
            vec![requirement("administrator", Some(scope.as_str()))]
        }
        Access::Log => {
            let needed = requirement("administrator", Some(Scope::AuditRead.as_str()));
            vec![needed, SecurityRequirement::default()]
        }
    }
}
