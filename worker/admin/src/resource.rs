//! Records of one kind, as answers show them: one at a time and in pages.

use gateward_core::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::answer::AnswerBody;
use crate::refusal::internal;

/// A record as D1 stores it. An unreadable record fails the request.
pub fn read_record<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|_| internal("a record of the registry cannot be read"))
}

/// A kind of record that is read one at a time and in pages.
pub trait Resource: DeserializeOwned {
    /// Its name in a sentence.
    const SINGULAR: &'static str;
    /// The list's name in a page.
    const PLURAL: &'static str;
    type View: Serialize;

    /// The cursor of the page after this record.
    fn cursor(&self) -> String;
    fn view(&self, now_ms: u64) -> Self::View;
    fn revision(&self) -> Option<u64>;
}

/// A page of records, with the cursor of the next page if this one is full.
///
/// # Errors
///
/// `internal` when a record cannot be read.
pub fn page<R: Resource>(rows: &[String], limit: u32, now_ms: u64) -> Result<Json, Problem> {
    let records: Vec<R> = rows.iter().map(|row| read_record(row)).collect::<Result<_, _>>()?;
    let full = records.len() >= limit as usize;
    let next_cursor = records.last().filter(|_| full).map(R::cursor);
    let views: Vec<R::View> = records.iter().map(|record| record.view(now_ms)).collect();
    Ok(json!({ R::PLURAL: views, "next_cursor": next_cursor }))
}

/// One record.
///
/// # Errors
///
/// `not_found`, or `internal` when it cannot be read.
pub fn one<R: Resource>(row: Option<&str>, now_ms: u64) -> Result<AnswerBody, Problem> {
    let record: R =
        row.map(read_record).transpose()?.ok_or_else(|| Problem::not_found(R::SINGULAR))?;
    view(&record, now_ms)
}

/// A record in an answer.
///
/// # Errors
///
/// `internal` when it cannot be written.
pub fn view<R: Resource>(record: &R, now_ms: u64) -> Result<AnswerBody, Problem> {
    AnswerBody::of(&record.view(now_ms), record.revision())
}
