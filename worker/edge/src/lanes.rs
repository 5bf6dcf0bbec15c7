//! How the worker reaches a lane: one hop, by name.

use gateward_core::command::GateCommand;
use gateward_core::problem::{Problem, ProblemCode};
use js_sys::futures::JsFuture;
use wasm_bindgen::{JsCast as _, JsValue};
use worker::worker_sys::web_sys::Response;
use worker::{Env, console_error};

use crate::io;

/// The binding in wrangler.toml.
const BINDING: &str = "LANES";

/// An address for the runtime; it never leaves it.
pub const ORIGIN: &str = "https://lane";

/// How a lane answers a command of a version that it does not know: for minutes after a deploy it
/// may run older code than the worker (421 Misdirected Request; no caller sees it).
pub const OTHER_VERSION: u16 = 421;

/// The object that `/readyz` asks: a name that no tenant can have.
const READY_OBJECT: &str = "_ready/0";

/// Step 5. The lane's answer is the caller's, as it is.
pub async fn call(env: &Env, command: &GateCommand) -> std::result::Result<Response, Problem> {
    let name = format!("{}/{}", command.tenant, command.lane);
    hop(env, &name, "/call", Some(&command.encode())).await
}

/// The journal row `seq`, if it is still there.
pub async fn row(
    env: &Env,
    tenant: &str,
    lane: u16,
    seq: u64,
) -> std::result::Result<Option<String>, Problem> {
    let response = hop(env, &format!("{tenant}/{lane}"), &format!("/row/{seq}"), None).await?;
    if response.status() == 404 { Ok(None) } else { text(&response).await.map(Some) }
}

/// A JSON array of journal rows from `from` on.
pub async fn rows(
    env: &Env,
    tenant: &str,
    lane: u16,
    from: u64,
) -> std::result::Result<String, Problem> {
    let path = format!("/rows/{from}");
    text(&hop(env, &format!("{tenant}/{lane}"), &path, None).await?).await
}

/// Sequence number and hash of the lane's newest receipt.
pub async fn head(
    env: &Env,
    tenant: &str,
    lane: u16,
) -> std::result::Result<(u64, String), Problem> {
    let response = hop(env, &format!("{tenant}/{lane}"), "/head", None).await?;
    let text = text(&response).await?;
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
    body: Option<&[u8]>,
) -> std::result::Result<Response, Problem> {
    let url = format!("{ORIGIN}{path}");
    let response: std::result::Result<Response, JsValue> = async {
        let promise = match body {
            Some(body) => io::post(env, BINDING, name, &url, body)?,
            None => io::get(env, BINDING, name, &url)?,
        };
        JsFuture::from(promise).await?.dyn_into()
    }
    .await;
    match response {
        Ok(response) if response.status() == OTHER_VERSION => {
            Err(unavailable("it runs another version than the worker"))
        }
        Ok(response) if response.status() == 500 => Err(unavailable("it failed")),
        Ok(response) => Ok(response),
        Err(error) => Err(unavailable(worker::Error::from(error))),
    }
}

async fn text(response: &Response) -> std::result::Result<String, Problem> {
    let text: std::result::Result<JsValue, JsValue> =
        async { JsFuture::from(response.text()?).await }.await;
    let text = text.map_err(|error| unavailable(worker::Error::from(error)))?;
    text.as_string().ok_or_else(|| unavailable("its answer is no text"))
}

fn unavailable(error: impl std::fmt::Display) -> Problem {
    console_error!("lane unavailable: {error}");
    Problem::new(ProblemCode::LaneUnavailable, "the lane cannot answer now; try again")
}
