//! The Wasm shell of Gateward: it reads, calls the core, and writes. No decision is made here.
//!
//! A request enters at [`fetch`], finds its handler in [`router`], and, if it is a call to be
//! decided, takes one hop to its lane in [`gate_do`].

mod authentication;
mod d1;
mod discovery;
mod failed_authentications;
mod gate_do;
mod handlers;
mod http;
mod io;
mod lane_sql;
mod lanes;
mod limits;
mod memory;
mod relay;
mod router;
mod settings;
mod terminal_refusals;
mod webhook;

use worker::worker_sys::web_sys::{Request, Response};
use worker::{Context, Env, Result, event};

/// Every request. It always has an answer: what fails becomes problem details.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    router::answer(request, env, context).await
}
