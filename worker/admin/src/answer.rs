//! The answer to a request of the administration.

use gateward_core::problem::Problem;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::refusal::internal;

/// The body of an answer, an object, and the record's revision.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerBody {
    pub body: Map<String, Json>,
    pub revision: Option<u64>,
}

impl AnswerBody {
    pub(super) fn of(view: &impl Serialize, revision: Option<u64>) -> Result<Self, Problem> {
        match serde_json::to_value(view) {
            Ok(Json::Object(body)) => Ok(Self { body, revision }),
            _ => Err(internal("the answer could not be written")),
        }
    }
}
