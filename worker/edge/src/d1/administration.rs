//! Reads and writes of the administration.

use gateward_admin::Loaded;
use gateward_core::log::Event;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::sql::administration::{KEPT_ANSWER, Statement, Value};
use js_sys::Array;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsValue;

use super::{query, read, statement, unavailable};
use crate::app::App;
use crate::limits::D1_CHANGE_MS;
use crate::log;

/// The stored response to a request with an idempotency key.
#[derive(Deserialize)]
pub struct KeptAnswer {
    pub fingerprint: String,
    pub epoch: u64,
    pub status: u16,
    pub body: String,
    /// The tenant that the request changed, and the number of its lanes.
    pub changed_tenant: String,
    pub lanes: Option<u16>,
}

/// A record, and the second column of its statement.
#[derive(Deserialize)]
pub struct RecordRow {
    pub record: String,
    pub extra: Option<String>,
}

/// How a commit ended.
pub enum Committed {
    Whole,
    /// Another change was committed first. Nothing was written.
    Overtaken,
}

pub async fn load(app: &App, statement: &Statement) -> std::result::Result<Loaded, Problem> {
    let rows: Vec<Loaded> = rows(app, statement).await?;
    rows.into_iter().next().ok_or_else(unavailable)
}

pub async fn records(
    app: &App,
    statement: &Statement,
) -> std::result::Result<Vec<RecordRow>, Problem> {
    rows(app, statement).await
}

pub async fn kept_answer(
    app: &App,
    tenant: &str,
    key: &str,
) -> std::result::Result<Option<KeptAnswer>, Problem> {
    let rows = read(app, KEPT_ANSWER, &[tenant.into(), key.into()]).await?;
    Ok(rows.into_iter().next())
}

/// Runs the statements in one transaction.
pub async fn commit(
    app: &App,
    statements: &[Statement],
) -> std::result::Result<Committed, Problem> {
    let statements: Vec<Array> =
        statements.iter().map(|one| statement(one.sql, &values(one))).collect();
    let result = query(&app.env, &statements, D1_CHANGE_MS).await.map(drop);
    match result {
        Ok(()) => Ok(Committed::Whole),
        // Another change took this epoch, this idempotency key or this name first.
        Err(error) if error.to_string().contains("UNIQUE constraint failed") => {
            Ok(Committed::Overtaken)
        }
        Err(error) => {
            log::write(&app.line(Event::ChangeNotWritten, error));
            let detail = "it is not known whether the change was written; try again";
            Err(Problem::new(ProblemCode::RegistryUnavailable, detail))
        }
    }
}

async fn rows<T: DeserializeOwned>(
    app: &App,
    statement: &Statement,
) -> std::result::Result<Vec<T>, Problem> {
    read(app, statement.sql, &values(statement)).await
}

fn values(statement: &Statement) -> Vec<JsValue> {
    let value = |value: &Value| match value {
        Value::Null => JsValue::NULL,
        Value::Number(number) => JsValue::from_f64(*number),
        Value::Text(text) => JsValue::from_str(text),
    };
    statement.values.iter().map(value).collect()
}
