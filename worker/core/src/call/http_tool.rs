//! Which tool an HTTP request calls, and with which input.
//!
//! INVARIANT (one reading): policies decide on the input that the API will read. So a path or query that
//! two readers could read differently is rejected. It is percent-decoded once, and the result must not be
//! decodable again. Some APIs ignore case and decode names repeatedly. So no two names of an input may
//! be equal to such an API, and no path may match a route's literal only without case. The tool's input
//! schema must restrict names such as `a[]` and `a.b`, which APIs read in their own ways.
//!
//! Out of scope: what the method or the tool may do, and the request's upstream.

mod path;

use std::{fmt, mem};

use serde::{Deserialize, Serialize};

pub use self::path::named_segments;
use self::path::{is_shadowed, is_visible, parameter, parameters, segments};
use crate::bounds::{MAX_JSON_DEPTH, MAX_JSON_NODES, MAX_RESOURCE_BYTES};
use crate::json::{Json, Names, utf16_order};
use crate::percent::{decode, fully_decoded};
use crate::registry::upstream::HttpRoute;
use crate::shield::Redaction;

/// The input's field for a body that is not an object.
const BODY: &str = "body";

/// Characters of a name in a message, which is stored.
const MAX_SHOWN_CHARS: usize = 64;

/// A request for a server's API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    pub method: String,
    /// As it was sent, after the server's name. Begins with a slash; has no query.
    pub path: String,
    /// As it was sent, without the question mark.
    pub query: String,
    /// The JSON body, if there is one.
    pub body: Option<Json>,
}

/// The call that a request makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    pub tool: String,
    /// Always [`Json::Object`].
    pub input: Json,
    /// The decoded path.
    pub resource: String,
    /// The path of the route.
    pub route: String,
}

/// Why a request does not call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unresolved {
    /// No route matches, or the path is ambiguous.
    Unmapped(String),
    /// A route matches, but the input is ambiguous or too large.
    InputInvalid(String),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmapped(why) => f.write_str(why),
            Self::InputInvalid(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unresolved {}

/// The part of the request that a field comes from.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Path,
    Query,
    Body,
}

/// Finds the tool that `request` calls, by the first route whose method and path match.
///
/// # Errors
///
/// Says why no route matches, or what is wrong with the input.
pub fn resolve(routes: &[HttpRoute], request: &HttpRequest) -> Result<Resolved, Unresolved> {
    let segments = segments(&request.path).map_err(unmapped)?;
    let resource = format!("/{}", segments.join("/"));
    if resource.len() > MAX_RESOURCE_BYTES {
        return Err(unmapped("the path is too long"));
    }
    let mut matching = routes.iter().filter(|route| route.method == request.method);
    let matching = matching.find_map(|route| Some((route, parameters(&route.path, &segments)?)));
    let Some((route, parameters)) = matching else {
        return Err(unmapped("no route of the server matches the method and path"));
    };
    if routes.iter().any(|other| is_shadowed(&other.path, &route.path, &segments)) {
        return Err(unmapped(
            "the path matches another route if case or a trailing slash is ignored",
        ));
    }
    let field = |(name, value): (&str, &str)| {
        (name.to_owned(), Source::Path, Json::String(value.to_owned()))
    };
    let mut fields: Vec<_> = parameters.into_iter().map(field).collect();
    read_query(&request.query, &mut fields)?;
    match &request.body {
        Some(Json::Object(body)) => {
            let body = body.iter().map(|(name, value)| (name.clone(), Source::Body, value.clone()));
            fields.extend(body);
        }
        Some(other) => fields.push((BODY.to_owned(), Source::Body, other.clone())),
        None => {}
    }
    let input = Json::Object(merge(fields)?);
    if size(&input, MAX_JSON_DEPTH).is_none_or(|nodes| nodes > MAX_JSON_NODES) {
        return Err(Unresolved::InputInvalid(
            "the input has too many or too deeply nested values".to_owned(),
        ));
    }
    if let Some(name) = input.confusable_key_by(&fully_decoded) {
        let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
        let why = format!(
            "`{name}` differs from another name in path, query or body in case or encoding only"
        );
        return Err(Unresolved::InputInvalid(why));
    }
    let (tool, route) = (route.tool.clone(), route.path.clone());
    Ok(Resolved { tool, input, resource, route })
}

/// Removes the named fields from the query of a request and, at any depth, from its body. Replaces the texts that the
/// shield redacts with markers. `route` is the path of the request's route. Returns false if a named field, or a text to
/// redact, is in the path, because the path cannot be changed.
#[must_use]
pub fn redact(
    request: &mut HttpRequest,
    route: &str,
    fields: &[String],
    redaction: Redaction<'_>,
) -> bool {
    let fields = Names::by(fields, fully_decoded);
    let names = |name: &str| fields.has(name);
    if route.split('/').filter_map(parameter).any(names) {
        return false;
    }
    let named = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        decode(&name.replace('+', " ")).is_some_and(|name| names(&name))
    };
    let kept: Vec<&str> = request.query.split('&').filter(|part| !named(part)).collect();
    request.query = kept.join("&");
    // A body that is not an object is a field itself.
    request.body.take_if(|body| !matches!(body, Json::Object(_)) && names(BODY));
    if let Some(body) = &mut request.body {
        body.remove(&fields);
    }
    !redaction.is_needed() || mark(request, route, redaction)
}

/// Puts markers in place of what the shield redacts. Returns false if it is in the path, in a name of the query, or in a
/// text that cannot be decoded.
fn mark(request: &mut HttpRequest, route: &str, redaction: Redaction<'_>) -> bool {
    let form = |text: &str| decode(&text.replace('+', " "));
    let mut read = redaction.texts();
    // In a path, a plus sign is not a space. A token can contain slashes, so the whole path is searched too,
    // and not only each segment.
    let mut parts = named_segments(&request.path, route).chain([(request.path.as_str(), None)]);
    if !parts.all(|(part, name)| decode(part).is_some_and(|part| read(&part, name).is_none())) {
        return false;
    }
    let mut parts = Vec::new();
    for part in request.query.split('&') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (Some(field), Some(text)) = (form(name), form(value)) else { return false };
        if read(&field, None).is_some() {
            return false;
        }
        parts.push(match read(&text, Some(&field)) {
            Some(marked) => [name, "=", &encoded(&marked)].concat(),
            None => part.to_owned(),
        });
    }
    request.query = parts.join("&");
    if let Some(body) = &mut request.body {
        redaction.value(body, &mut Vec::new());
    }
    true
}

/// A text as the value of a query's field.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn unmapped(why: &str) -> Unresolved {
    Unresolved::Unmapped(why.to_owned())
}

fn read_query(query: &str, fields: &mut Vec<(String, Source, Json)>) -> Result<(), Unresolved> {
    let invalid = |why: &str| Unresolved::InputInvalid(why.to_owned());
    // Some readers also separate fields by semicolons.
    if !is_visible(query) || query.contains(';') {
        return Err(invalid("the query contains a character that must be percent-encoded"));
    }
    let form = |text: &str| decode(&text.replace('+', " "));
    for field in query.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let (Some(name), Some(value)) = (form(name), form(value)) else {
            return Err(invalid("the query is not valid percent-encoded UTF-8"));
        };
        fields.push((name, Source::Query, Json::String(value)));
    }
    Ok(())
}

/// Sorts the fields as [`Json::Object`] requires. Repeated fields of the query become an array.
fn merge(mut fields: Vec<(String, Source, Json)>) -> Result<Vec<(String, Json)>, Unresolved> {
    fields.sort_unstable_by(|(a, ..), (b, ..)| utf16_order(a, b));
    let mut merged: Vec<(String, Json)> = Vec::with_capacity(fields.len());
    let mut last = Source::Path;
    for (name, source, value) in fields {
        match merged.last_mut() {
            Some((known, values)) if *known == name => {
                if source != Source::Query || last != Source::Query {
                    let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
                    let why = format!("`{name}` appears twice in path, query and body");
                    return Err(Unresolved::InputInvalid(why));
                }
                match values {
                    Json::Array(values) => values.push(value),
                    one => *one = Json::Array(vec![mem::replace(one, Json::Null), value]),
                }
            }
            _ => merged.push((name, value)),
        }
        last = source;
    }
    Ok(merged)
}

/// The number of values in `value`; `None` if it nests deeper than `levels`.
fn size(value: &Json, levels: usize) -> Option<usize> {
    let within = || levels.checked_sub(1);
    let add = |levels| move |sum: usize, item: &Json| Some(sum + size(item, levels)?);
    match value {
        Json::Array(items) => items.iter().try_fold(1, add(within()?)),
        Json::Object(fields) => fields.iter().map(|(_, item)| item).try_fold(1, add(within()?)),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests;
