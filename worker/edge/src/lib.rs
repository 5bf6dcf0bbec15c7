//! The Wasm shell of Gateward: it reads, calls the core, and writes. It makes no decision.
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
mod memory;
mod router;
mod settings;
mod time_zones;
mod upstream;

use worker::worker_sys::web_sys::{Request, Response};
use worker::{Context, Env, Result, event};

/// Every request. It always gets a response: failures become problem details.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
    router::answer(request, env, context).await
}
