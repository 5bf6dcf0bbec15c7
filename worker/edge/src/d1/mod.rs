//! Reads and writes of D1, one module per table or purpose.

pub mod administration;
pub mod approvals;
pub mod audit;
pub mod decisions;
pub mod flush;
pub mod limits;
pub mod logs;
pub mod metrics;
pub mod receipts;
pub mod registry;
pub mod retention;
pub mod signatures;
pub mod webhooks;

use gateward_core::log::{Event, of_json};
use gateward_core::problem::{Problem, ProblemCode};
use js_sys::Array;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wasm_bindgen::JsValue;
use worker::{Env, Error, Result};

use crate::app::App;
use crate::limits::D1_READ_MS;
use crate::wait::settled;
use crate::{io, log};

/// The binding in wrangler.toml.
const BINDING: &str = "DB";

/// A statement with its values, in the form of `io.js`.
fn statement(sql: &str, values: &[JsValue]) -> Array {
    let mut statement = Array::of1(&sql.into());
    statement.extend(values.iter().cloned());
    statement
}

/// Runs one statement, or several in one transaction; returns the rows of each.
async fn query(env: &Env, statements: &[Array], limit_ms: u32) -> Result<Vec<Box<RawValue>>> {
    let statements: Array = statements.iter().collect();
    let answered = settled(io::query(env, BINDING, &statements, limit_ms)).await?;
    serde_json::from_str(&answered.as_string().unwrap_or_default()).map_err(unreadable)
}

/// The rows of one statement.
fn rows<T: DeserializeOwned>(rows: Option<&RawValue>) -> Result<Vec<T>> {
    serde_json::from_str(rows.map_or("", RawValue::get)).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::RustError(format!("D1's answer cannot be read: {}", of_json(&error)))
}

/// All rows of a statement that reads. The caller logs an error.
async fn read_within<T: DeserializeOwned>(
    env: &Env,
    sql: &str,
    values: &[JsValue],
    limit_ms: u32,
) -> Result<Vec<T>> {
    let answered = query(env, &[statement(sql, values)], limit_ms).await?;
    rows(answered.first().map(Box::as_ref))
}

/// The same for a request whose caller waits. An error is logged.
async fn read<T: DeserializeOwned>(
    app: &App,
    sql: &str,
    values: &[JsValue],
) -> std::result::Result<Vec<T>, Problem> {
    let read = read_within(&app.env, sql, values, D1_READ_MS).await;
    read.map_err(|error| failed(app, error))
}

/// Runs statements that read, in one round trip, and reads their rows.
async fn read_all<T>(
    app: &App,
    statements: &[Array],
    rows: impl FnOnce(&[Box<RawValue>]) -> Result<T>,
) -> std::result::Result<T, Problem> {
    let read = query(&app.env, statements, D1_READ_MS).await.and_then(|answered| rows(&answered));
    read.map_err(|error| failed(app, error))
}

/// Logs a failed read, and returns the problem for the caller.
pub fn failed(app: &App, error: Error) -> Problem {
    log::write(&app.line(Event::DatabaseFailed, error));
    unavailable()
}

/// The problem for a failed read. If the read was part of a change, nothing was changed.
pub fn unavailable() -> Problem {
    let detail = "the database does not answer; nothing was changed; try again";
    Problem::new(ProblemCode::RegistryUnavailable, detail)
}

/// Numbers become doubles in JavaScript. This is exact: all of them are below 2^53.
fn number(value: u64) -> JsValue {
    JsValue::from_f64(value as f64)
}
