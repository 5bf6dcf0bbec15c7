//! Step 3: the body becomes one tool call with its digests.
//!
//! These are claims of the caller. The credential determines who is calling, and the registry what the
//! tool does. A field that is present must have its type; unknown fields are ignored.

use std::mem;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bounds::{MAX_BODY_BYTES, MAX_LABEL_BYTES, MAX_REQUEST_ID_BYTES, MAX_RESOURCE_BYTES};
use crate::call::run;
use crate::field::{Environment, parse_time};
use crate::json::{self, Json, write_string};
use crate::name::{is_name, is_tool_name};
use crate::problem::{Problem, ProblemCode};
use crate::trust::SourceTrust;
use crate::warrant::{Carried, carried};

/// What a user's id must be: limits count by it, and their counts are stored under it.
pub(super) const NO_CONTROL_CHARACTERS: &str = "a text without control characters";

/// One call of one tool, as the caller claims it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub agent: String,
    /// `None` if the call names no environment, or a text that cannot be one.
    #[serde(with = "environment_text")]
    pub environment: Option<Environment>,
    pub server: String,
    pub tool: String,
    pub resource: String,
    /// The caller's claim. It can make a read a write, but never a write a read.
    pub mutates_state: bool,
    /// Always [`Json::Object`].
    pub input: Json,
    /// The method and the path of the registered route, for an HTTP request. The lane sets them.
    pub route: Option<(String, String)>,
    pub source_trust: SourceTrust,
    pub contains_sensitive_data: bool,
    pub request_id: Option<String>,
    pub approval_id: Option<String>,
    pub user_id: String,
    pub user_role: String,
    pub run_id: String,
    pub root_trust_level: Option<SourceTrust>,
    pub nonce: Option<String>,
    pub timestamp_ms: Option<i64>,
    pub dry_run: bool,
    /// The SHA-256 that an approval is bound to: see [`Action::hash`].
    pub action_hash: [u8; 32],
    /// The SHA-256 that a request id is bound to. It covers everything that the decision depends on.
    pub fingerprint: [u8; 32],
    /// The numbers in [`Self::input`] that the request's text had with more digits: [`json::rounded`]. Limits do not
    /// count such numbers.
    pub rounded: Vec<f64>,
}

impl ToolCall {
    /// The tool with its server, as grants and policies name it: `server/tool`.
    #[must_use]
    pub fn tool_id(&self) -> String {
        [&self.server, "/", &self.tool].concat()
    }

    /// The call in the run of a run credential.
    ///
    /// # Errors
    ///
    /// `malformed_request`: see [`run::fix`].
    pub fn in_run(mut self, run: &str) -> Result<Self, Problem> {
        run::fix(run, [&self.run_id, &self.user_id, &self.user_role])?;
        run.clone_into(&mut self.run_id);
        self.fingerprint = fingerprint(&self);
        Ok(self)
    }
}

/// Reads the body of `POST /v1/authorize` for a credential of `tenant`: the call, and its warrant.
///
/// # Errors
///
/// `body_too_large`, `input_invalid` or `malformed_request`. The detail says where.
pub fn parse(body: &[u8], tenant: &str) -> Result<(ToolCall, Option<Carried>), Problem> {
    if body.len() > MAX_BODY_BYTES {
        let detail = format!("the body must have at most {MAX_BODY_BYTES} bytes");
        return Err(Problem::new(ProblemCode::BodyTooLarge, detail));
    }
    let mut document = json::parse(body)?;
    let root = Section::root(&document)?;
    let agent = root.section("agent")?;
    let tool_call = root.section("tool_call")?;
    let context = root.section("context")?;
    let user = root.optional_section("user")?;
    let trace = root.optional_section("trace")?;

    let server = tool_call.text("tool", MAX_RESOURCE_BYTES)?;
    let server = server.strip_prefix("mcp:").unwrap_or(server);
    if !is_name(server) {
        return Err(tool_call.malformed("tool", "a server's name: `[a-z0-9][a-z0-9_-]{0,62}`"));
    }
    let tool = tool_call.text("action", MAX_RESOURCE_BYTES)?;
    if !is_tool_name(tool) {
        return Err(tool_call.malformed("action", "a tool's name: 1 to 128 of `[A-Za-z0-9_./-]`"));
    }
    let input = tool_call.required("parameters")?;
    if !matches!(input, Json::Object(_)) {
        return Err(tool_call.malformed("parameters", "an object"));
    }

    let user_id = user.optional_text("id", MAX_LABEL_BYTES)?.unwrap_or("");
    if user_id.contains(char::is_control) {
        return Err(user.malformed("id", NO_CONTROL_CHARACTERS));
    }
    let (nonce, timestamp_ms) = nonce_and_timestamp(&root)?;
    for (field, value) in [("request_id", root.field("request_id")), ("nonce", root.field("nonce"))]
    {
        if value.and_then(Json::as_str) == Some("") {
            return Err(root.malformed(field, "not empty"));
        }
    }

    let mut call = ToolCall {
        agent: agent.text("id", MAX_LABEL_BYTES)?.to_owned(),
        environment: Environment::parse(agent.text("environment", MAX_LABEL_BYTES)?).ok(),
        server: server.to_owned(),
        tool: tool.to_owned(),
        resource: tool_call.optional_text("resource", MAX_RESOURCE_BYTES)?.unwrap_or("").to_owned(),
        mutates_state: tool_call.flag("mutates_state")?,
        input: Json::Null,
        route: None,
        source_trust: SourceTrust::from_claim(context.text("source_trust", MAX_LABEL_BYTES)?),
        contains_sensitive_data: context.flag("contains_sensitive_data")?,
        request_id: root.optional_text("request_id", MAX_REQUEST_ID_BYTES)?.map(str::to_owned),
        approval_id: root.optional_text("approval_id", MAX_REQUEST_ID_BYTES)?.map(str::to_owned),
        user_id: user_id.to_owned(),
        user_role: user.optional_text("role", MAX_LABEL_BYTES)?.unwrap_or("").to_owned(),
        run_id: trace.optional_text("run_id", MAX_LABEL_BYTES)?.unwrap_or("").to_owned(),
        root_trust_level: trace
            .optional_text("root_trust_level", MAX_LABEL_BYTES)?
            .map(SourceTrust::from_claim),
        nonce: nonce.map(str::to_owned),
        timestamp_ms,
        dry_run: root.optional_flag("dry_run")?,
        action_hash: [0; 32],
        fingerprint: [0; 32],
        rounded: json::rounded(body),
    };
    // The other fields of the trace are not used, but must be valid too.
    trace.optional_text("trace_id", MAX_LABEL_BYTES)?;
    trace.optional_text("parent_run_id", MAX_LABEL_BYTES)?;
    let warrant = Carried::in_member(document.get(carried::BODY));
    // The arguments are moved, not copied: they are most of a large body.
    let input = document.get_mut("tool_call").and_then(|call| call.get_mut("parameters"));
    call.input = input.map_or(Json::Object(Vec::new()), |input| mem::replace(input, Json::Null));
    drop(document);
    complete(&mut call, tenant);
    Ok((call, warrant))
}

/// The nonce of a body, and its time in milliseconds since the Unix epoch. A nonce requires a time.
fn nonce_and_timestamp<'a>(root: &Section<'a>) -> Result<(Option<&'a str>, Option<i64>), Problem> {
    let nonce = root.optional_text("nonce", MAX_REQUEST_ID_BYTES)?;
    let timestamp_ms = match root.optional_text("timestamp", MAX_LABEL_BYTES)? {
        None => None,
        Some(text) => match parse_time(text).and_then(|ms| i64::try_from(ms).ok()) {
            None => return Err(root.malformed("timestamp", "an RFC 3339 time")),
            time => time,
        },
    };
    if nonce.is_some() && timestamp_ms.is_none() {
        return Err(root.malformed("timestamp", "present if there is a nonce"));
    }
    Ok((nonce, timestamp_ms))
}

/// Computes a call's digests.
pub fn complete(call: &mut ToolCall, tenant: &str) {
    call.action_hash = Action::of(call, tenant).hash();
    call.fingerprint = fingerprint(call);
}

/// Everything that an action hash covers. An approval is for exactly this.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    pub tenant: &'a str,
    pub agent: &'a str,
    pub server: &'a str,
    pub tool: &'a str,
    pub resource: &'a str,
    pub input: &'a Json,
    /// Method and path of the registered route.
    pub route: Option<(&'a str, &'a str)>,
    /// The user and the run, if a harness assigned them; empty otherwise. Claims of other callers about
    /// them are shown to approvers but not covered, since clients reconnect.
    pub user: &'a str,
    pub run: &'a str,
}

impl<'a> Action<'a> {
    /// The action of a call, without user and run.
    #[must_use]
    pub fn of(call: &'a ToolCall, tenant: &'a str) -> Self {
        Self {
            tenant,
            agent: &call.agent,
            server: &call.server,
            tool: &call.tool,
            resource: &call.resource,
            input: &call.input,
            route: call.route.as_ref().map(|(method, path)| (method.as_str(), path.as_str())),
            user: "",
            run: "",
        }
    }

    /// SHA-256 of `{"agent","input","resource","server","tenant","tool"}` in RFC 8785 form, with
    /// `method` and `route` for an HTTP request, and with `run` and `user` where they are covered.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        let mut text = String::from("{\"agent\":");
        write_string(self.agent, &mut text);
        text.push_str(",\"input\":");
        self.input.write_canonical(&mut text);
        let covered = |value: &'a str| Some(value).filter(|value| !value.is_empty());
        for (key, value) in [
            (",\"method\":", self.route.map(|(method, _)| method)),
            (",\"resource\":", Some(self.resource)),
            (",\"route\":", self.route.map(|(_, path)| path)),
            (",\"run\":", covered(self.run)),
            (",\"server\":", Some(self.server)),
            (",\"tenant\":", Some(self.tenant)),
            (",\"tool\":", Some(self.tool)),
            (",\"user\":", covered(self.user)),
        ] {
            if let Some(value) = value {
                text.push_str(key);
                write_string(value, &mut text);
            }
        }
        text.push('}');
        Sha256::digest(text.as_bytes()).into()
    }
}

/// SHA-256 over the action hash and the other inputs of the decision. Each part is a JSON string or an integer, and ends
/// with a NUL. JSON strings escape NULs, so different parts never have the same bytes.
fn fingerprint(call: &ToolCall) -> [u8; 32] {
    let mut text = String::new();
    for part in [
        call.environment.as_deref().unwrap_or_default(),
        call.source_trust.as_str(),
        call.root_trust_level.map_or("-", SourceTrust::as_str),
        if call.mutates_state { "writes" } else { "reads" },
        if call.contains_sensitive_data { "sensitive" } else { "plain" },
        call.approval_id.as_deref().unwrap_or(""),
        &call.user_id,
        &call.user_role,
        &call.run_id,
    ] {
        write_string(part, &mut text);
        text.push('\0');
    }
    for number in &call.rounded {
        text.push_str(&number.to_bits().to_string());
        text.push('\0');
    }
    Sha256::new().chain_update(call.action_hash).chain_update(text.as_bytes()).finalize().into()
}

/// An environment in the command to the lane: its text, or an empty text for none.
mod environment_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Environment;

    pub fn serialize<S: Serializer>(
        environment: &Option<Environment>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(environment.as_deref().unwrap_or_default())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Environment>, D::Error> {
        Ok(Environment::parse(&String::deserialize(deserializer)?).ok())
    }
}

/// An object of the body and its path, which error messages contain.
struct Section<'a> {
    path: &'static str,
    value: Option<&'a Json>,
}

impl<'a> Section<'a> {
    fn root(document: &'a Json) -> Result<Self, Problem> {
        let root = Section { path: "", value: Some(document) };
        match document {
            Json::Object(_) => Ok(root),
            other => Err(Problem::new(
                ProblemCode::MalformedRequest,
                format!("the body must be an object, not {}", other.kind()),
            )),
        }
    }

    fn malformed(&self, field: &str, expected: &str) -> Problem {
        let dot = if self.path.is_empty() { "" } else { "." };
        let detail = format!("`{}{dot}{field}` must be {expected}", self.path);
        Problem::new(ProblemCode::MalformedRequest, detail)
    }

    /// `null` counts as absent.
    fn field(&self, field: &str) -> Option<&'a Json> {
        self.value?.get(field).filter(|value| !matches!(value, Json::Null))
    }

    fn required(&self, field: &str) -> Result<&'a Json, Problem> {
        self.field(field).ok_or_else(|| self.malformed(field, "present"))
    }

    fn section(&self, field: &'static str) -> Result<Section<'a>, Problem> {
        self.required(field)?;
        self.optional_section(field)
    }

    fn optional_section(&self, field: &'static str) -> Result<Section<'a>, Problem> {
        match self.field(field) {
            value @ (None | Some(Json::Object(_))) => Ok(Section { path: field, value }),
            Some(_) => Err(self.malformed(field, "an object")),
        }
    }

    fn text(&self, field: &str, max_bytes: usize) -> Result<&'a str, Problem> {
        self.required(field)?;
        Ok(self.optional_text(field, max_bytes)?.unwrap_or(""))
    }

    fn optional_text(&self, field: &str, max_bytes: usize) -> Result<Option<&'a str>, Problem> {
        match self.field(field) {
            None => Ok(None),
            Some(Json::String(text)) if text.len() <= max_bytes => Ok(Some(text)),
            Some(_) => {
                Err(self.malformed(field, &format!("a string of at most {max_bytes} bytes")))
            }
        }
    }

    fn flag(&self, field: &str) -> Result<bool, Problem> {
        self.required(field)?;
        self.optional_flag(field)
    }

    fn optional_flag(&self, field: &str) -> Result<bool, Problem> {
        match self.field(field) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(_) => Err(self.malformed(field, "true or false")),
        }
    }
}
