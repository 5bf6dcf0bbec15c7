//! How the worker reaches a lane: one hop, by name.

use gateward_core::command::GateCommand;
use gateward_core::problem::{Problem, ProblemCode};
use wasm_bindgen::JsValue;
use worker::{Env, Method, Request, RequestInit, Response, Result, console_error};

/// The binding in wrangler.toml.
const BINDING: &str = "LANES";

/// An address for the runtime; it never leaves it.
const ORIGIN: &str = "https://lane";

/// How a lane answers a command of a version that it does not know: for minutes after a deploy it
/// may run older code than the worker (421 Misdirected Request; no caller sees it).
pub const OTHER_VERSION: u16 = 421;

/// The object that `/readyz` asks: a name that no tenant can have.
const READY_OBJECT: &str = "_ready/0";

/// Step 5. The lane's answer is the caller's, as it is.
pub async fn call(env: &Env, command: &GateCommand) -> std::result::Result<Response, Problem> {
    let name = format!("{}/{}", command.tenant, command.lane);
    let body = js_sys::Uint8Array::from(command.encode().as_slice());
    hop(env, &name, "/call", Some(body.into())).await
}

/// The journal row `seq`, if it is still there.
pub async fn row(
    env: &Env,
    tenant: &str,
    lane: u16,
    seq: u64,
) -> std::result::Result<Option<String>, Problem> {
    let mut response = hop(env, &format!("{tenant}/{lane}"), &format!("/row/{seq}"), None).await?;
    match response.status_code() {
        404 => Ok(None),
        _ => response.text().await.map(Some).map_err(unavailable),
    }
}

/// A JSON array of journal rows from `from` on.
pub async fn rows(
    env: &Env,
    tenant: &str,
    lane: u16,
    from: u64,
) -> std::result::Result<String, Problem> {
    let path = format!("/rows/{from}");
    hop(env, &format!("{tenant}/{lane}"), &path, None).await?.text().await.map_err(unavailable)
}

/// Sequence number and hash of the lane's newest receipt.
pub async fn head(
    env: &Env,
    tenant: &str,
    lane: u16,
) -> std::result::Result<(u64, String), Problem> {
    let mut response = hop(env, &format!("{tenant}/{lane}"), "/head", None).await?;
    let text = response.text().await.map_err(unavailable)?;
    let head = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
    let (seq, hash) = head.ok_or_else(|| unavailable("its head cannot be read"))?;
    Ok((seq, hash.to_owned()))
}

/// Whether a lane's storage answers.
pub async fn ready(env: &Env) -> std::result::Result<(), Problem> {
    hop(env, READY_OBJECT, "/head", None).await.map(drop)
}

async fn hop(
    env: &Env,
    name: &str,
    path: &str,
    body: Option<JsValue>,
) -> std::result::Result<Response, Problem> {
    let response: Result<Response> = async {
        let stub = env.durable_object(BINDING)?.get_by_name(name)?;
        let mut init = RequestInit::new();
        if body.is_some() {
            init.with_method(Method::Post).with_body(body);
        }
        stub.fetch_with_request(Request::new_with_init(&format!("{ORIGIN}{path}"), &init)?).await
    }
    .await;
    match response {
        Ok(response) if response.status_code() == OTHER_VERSION => {
            Err(unavailable("it runs another version than the worker"))
        }
        Ok(response) if response.status_code() == 500 => Err(unavailable("it failed")),
        Ok(response) => Ok(response),
        Err(error) => Err(unavailable(error)),
    }
}

fn unavailable(error: impl std::fmt::Display) -> Problem {
    console_error!("lane unavailable: {error}");
    Problem::new(ProblemCode::LaneUnavailable, "the lane cannot answer now; try again")
}
