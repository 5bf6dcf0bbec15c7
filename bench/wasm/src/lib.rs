//! The measured operations in workerd: `GET /<operation>/<of>?n=<times>`, and `GET /` for their
//! list.
//!
//! A worker's clock stands still while it computes. So the client measures the time of a request, and
//! subtracts the time of a request with `n=0`.

#![expect(clippy::disallowed_macros, reason = "the attribute `event` of `worker` uses one")]

use std::cell::RefCell;
use std::collections::HashMap;

use gateward_bench::{Run, find, operations};
use worker::{Context, Env, Request, Response, Result, event};

thread_local! {
    /// The operations that were requested before. Only the first request for an operation prepares it.
    static PREPARED: RefCell<HashMap<String, Run>> = RefCell::default();
}

#[event(fetch)]
async fn fetch(request: Request, _env: Env, _context: Context) -> Result<Response> {
    let path = request.path();
    let path = path.trim_matches('/');
    if path.is_empty() {
        let names = operations().into_iter().map(|it| format!("{}/{}\n", it.name, it.of));
        return Response::ok(names.collect::<String>());
    }
    let query = request.url()?;
    let times = query.query_pairs().find(|(key, _)| key == "n").map(|(_, value)| value.parse());
    let Some(Ok(times)) = times else {
        return Response::error("`n` must be a number", 400);
    };
    match run(path, times) {
        Some(()) => Response::ok(""),
        None => Response::error("there is no such operation", 404),
    }
}

fn run(path: &str, times: u32) -> Option<()> {
    PREPARED.with_borrow_mut(|prepared| {
        if !prepared.contains_key(path) {
            let (name, of) = path.split_once('/')?;
            prepared.insert(path.to_owned(), find(name, of)?.prepare());
        }
        let run = prepared.get(path)?;
        for _ in 0..times {
            run();
        }
        Some(())
    })
}
