//! What carries out a plan, with the parts that `run` and `review` share.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

use crate::client::{Client, Response};
use crate::failure::{Failure, PENDING};
use crate::page::Page;
use crate::request::Request;
use crate::table::escaped;

/// The API's largest page.
pub const PAGE_ROWS_MAX: u32 = 200;
pub struct Runner {
    pub client: Client,
    pub json: bool,
}

impl Runner {
    /// One page of a list.
    pub fn page(
        &self,
        request: &Request,
        cursor: Option<&str>,
        rows: u32,
        plural: &str,
    ) -> Result<Page, Failure> {
        let mut request = request.clone();
        if cursor.is_some() {
            request.query.retain(|(name, _)| *name != "cursor");
        }
        let limit = rows.clamp(1, PAGE_ROWS_MAX).to_string();
        let request = request.parameter("limit", Some(&limit)).parameter("cursor", cursor);
        Page::parse(&self.client.send(&request)?.text, plural)
    }
}

/// 202: the change is committed, but lanes that could not be reached use older records for a while.
pub fn pending(answer: &Response) -> Result<u8, Failure> {
    if answer.status != 202 {
        return Ok(0);
    }
    let body = answer.value()?;
    let lanes = body.get("pending_lanes").and_then(Value::as_array);
    let lanes: Vec<_> = lanes.into_iter().flatten().map(|lane| lane.to_string()).collect();
    eprintln!(
        "gateward: the change is committed, but these lanes have not confirmed it: {}. A lane decides \
         for a share of the agents, and uses the older records until it is told of the change again, \
         or asks the database, which takes seconds. To check, run the same command again: it exits \
         with 0 once all lanes have the change",
        lanes.join(", ")
    );
    Ok(PENDING)
}

/// Prints a line or lines. The API's own JSON has text from strangers, which must not control a terminal. A file or a
/// program gets it as it is: receipts are hashed byte by byte.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { Cow::Owned(escaped(text)) } else { Cow::Borrowed(text) };
    writeln!(stdout, "{text}").map_err(|error| Failure::Other(format!("standard output: {error}")))
}
