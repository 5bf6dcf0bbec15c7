//! The Wasm shell of Gateward: it reads, calls the core, and writes. It decides nothing.
//!
//! A request enters at [`fetch`], and [`router`] finds its handler. A call to decide makes one hop from
//! [`lane::client`] in the worker to [`lane::object`], the Durable Object of the agent's lane.

mod answer;
mod app;
mod authentication;
mod d1;
mod handlers;
mod http;
mod io;
mod lane;
mod limits;
mod log;
mod memory;
mod router;
mod settings;
mod time_zones;
mod upstream;
mod wait;
mod warrants;

use std::panic::AssertUnwindSafe;

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::web_sys::{Request, Response};
use worker::{Context, Env, worker_sys};

/// Every request. It always gets a response: failures become problem details. `worker`'s own macro for this would log
/// errors in another form.
///
/// # Errors
///
/// The runtime cannot create a response.
#[wasm_bindgen]
pub async fn fetch(
    request: Request,
    env: Env,
    context: worker_sys::Context,
) -> Result<Response, JsValue> {
    let answer = router::answer(request, env, Context::new(context));
    AssertUnwindSafe(answer).await.map_err(JsValue::from)
}
