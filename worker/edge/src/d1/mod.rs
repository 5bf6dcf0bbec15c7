//! What is read from and written to D1, a module per table or purpose.

pub mod administration;
pub mod approvals;
pub mod audit;
pub mod decisions;
pub mod flush;
pub mod receipts;
pub mod registry;
pub mod retention;
pub mod signatures;
pub mod webhooks;

use gateward_core::problem::{Problem, ProblemCode};
use serde::de::DeserializeOwned;
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, Env, Result, console_error};

/// The binding in wrangler.toml.
const BINDING: &str = "DB";

pub fn database(env: &Env) -> Result<D1Database> {
    env.d1(BINDING)
}

/// A statement with its values.
pub fn prepare(env: &Env, statement: &str, values: &[JsValue]) -> Result<D1PreparedStatement> {
    database(env)?.prepare(statement).bind(values)
}

/// All rows of a reading statement.
async fn read<T: DeserializeOwned>(
    env: &Env,
    statement: &str,
    values: &[JsValue],
) -> std::result::Result<Vec<T>, Problem> {
    let rows: Result<Vec<T>> =
        async { prepare(env, statement, values)?.all().await?.results() }.await;
    rows.map_err(|error| {
        console_error!("D1: {error}");
        Problem::new(ProblemCode::RegistryUnavailable, "the database cannot answer now; try again")
    })
}

/// Numbers cross as doubles; all of ours are below 2^53.
fn number(value: u64) -> JsValue {
    JsValue::from_f64(value as f64)
}
