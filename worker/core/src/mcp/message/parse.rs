//! One JSON-RPC message.

use crate::json::raw::RawObject;
use crate::json::{self, Json};
use crate::mcp::envelope::{self, META_VERSION};
use crate::mcp::error::{INVALID_PARAMS, INVALID_REQUEST, RpcError};

/// The parameters of a call that are its tool, its arguments or its resource.
const JUDGED: [&str; 3] = ["arguments", "name", "uri"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Response,
}

/// One JSON-RPC message of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub kind: Kind,
    /// The id's JSON text in canonical form; empty for a notification.
    pub id: String,
    /// Empty for a response.
    pub method: String,
    /// [`Json::Null`] when the message has no parameters.
    pub params: Json,
    /// The `Mcp-Param-*` headers of a stateless call: the rest of the name in lower case, and the decoded
    /// value. The tool's schema says which argument each header repeats.
    pub parameters: Vec<(String, String)>,
    /// The message as it was received.
    pub text: String,
}

impl Message {
    /// What the message tells the server: its parameters, result or error. For a call, without the parameters in
    /// `JUDGED`. [`Json::Null`] if nothing is left.
    #[must_use]
    pub fn beside(&self, is_call: bool) -> Json {
        let (name, said) = match self.kind {
            Kind::Response => {
                let message = RawObject::parse(&self.text).unwrap_or_default();
                let name = if message.get("error").is_some() { "error" } else { "result" };
                let said = message.get(name).and_then(|text| json::parse(text.as_bytes()).ok());
                (name, said.unwrap_or(Json::Null))
            }
            _ => ("params", self.params.clone()),
        };
        let said = match said {
            Json::Object(mut members) => {
                members.retain(|(name, _)| !(is_call && JUDGED.contains(&name.as_str())));
                if members.is_empty() {
                    return Json::Null;
                }
                Json::Object(members)
            }
            Json::Null => return Json::Null,
            other => other,
        };
        Json::Object(vec![(name.to_owned(), said)])
    }

    /// Reads one message: JSON-RPC 2.0 with the restrictions of MCP.
    pub(super) fn parse(document: Json, text: String) -> Result<Self, RpcError> {
        let refuse = |message: &str| RpcError::new(400, INVALID_REQUEST, message);
        let Json::Object(fields) = document else {
            return Err(refuse("the body must be one JSON-RPC message"));
        };
        let (mut version, mut id, mut method, mut params) = (None, None, None, Json::Null);
        let (mut result, mut error) = (false, false);
        for (key, value) in fields {
            match key.as_str() {
                "jsonrpc" => version = Some(value),
                "id" => id = Some(value),
                "method" => method = Some(value),
                "params" => params = value,
                "result" => result = true,
                "error" => error = true,
                // Some servers read `Method` as `method`: see `envelope`.
                _ => return Err(refuse("the message has a member that JSON-RPC does not define")),
            }
        }
        let id = match id {
            None => None,
            Some(id @ (Json::String(_) | Json::Integer(_))) => Some(id.canonical()),
            Some(_) => return Err(refuse("`id` must be a string or an integer")),
        };
        let refuse = |message: &str| refuse(message).with_id(id.as_deref());
        if version.as_ref().and_then(Json::as_str) != Some("2.0") {
            return Err(refuse("`jsonrpc` must be \"2.0\""));
        }
        let (kind, method) = match (method, result || error) {
            (Some(Json::String(method)), false) => {
                (if id.is_some() { Kind::Request } else { Kind::Notification }, method)
            }
            (None, true) if id.is_some() && result != error => (Kind::Response, String::new()),
            _ => return Err(refuse("the message must be a request, a notification or a response")),
        };
        let invalid =
            |message: &str| Err(RpcError::new(400, INVALID_PARAMS, message).with_id(id.as_deref()));
        if !matches!(params, Json::Object(_) | Json::Null) {
            return invalid("`params` must be an object");
        }
        let confusable = || {
            let raw = RawObject::parse(&text)?.object("params")?;
            envelope::confusable_within("params", &raw)
        };
        if kind != Kind::Response
            && let Some(key) = params.confusable_key().map(str::to_owned).or_else(confusable)
        {
            let detail =
                ["`", &key, "` must not differ from another parameter in case only"].concat();
            return invalid(&detail);
        }
        let id = id.unwrap_or_default();
        Ok(Self { kind, id, method, params, parameters: Vec::new(), text })
    }

    /// The id, if this is a request.
    #[must_use]
    pub fn id_if_request(&self) -> Option<&str> {
        (self.kind == Kind::Request).then_some(self.id.as_str())
    }

    /// The protocol revision in `_meta`, of whatever type.
    pub(super) fn version(&self) -> Option<&Json> {
        self.params.get("_meta")?.get(META_VERSION)
    }
}
