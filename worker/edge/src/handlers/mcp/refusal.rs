//! How a request that is not forwarded is answered.

use gateward_core::mcp::error::RpcError;
use gateward_core::mcp::{Era, denial};
use gateward_core::problem::Problem;

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::http::{AUTHENTICATE, Head, RateFields, Request};
use crate::lane::client::Refused;

/// HTTP methods of the endpoint.
const METHODS: [&str; 3] = ["POST", "GET", "DELETE"];

/// The media type of JSON-RPC messages.
pub const JSON: &str = "application/json";

/// The answer to a request that is not forwarded.
pub struct Refusal {
    pub status: u16,
    /// A JSON-RPC message; empty for none.
    pub body: String,
    pub rate: RateFields,
    pub retry_after_s: Option<u32>,
}

impl Refusal {
    pub fn new(era: Era, error: &RpcError) -> Self {
        let rate = RateFields::default();
        Self { status: error.http_status(era), body: error.body(era), rate, retry_after_s: None }
    }

    pub fn problem(app: &App, era: Era, id: Option<&str>, problem: &Problem) -> Self {
        let error = denial::problem(problem, &app.request_id).with_id(id);
        Self { retry_after_s: problem.retry_after_s, ..Self::new(era, &error) }
    }

    pub fn refused(app: &App, era: Era, id: Option<&str>, refused: Refused) -> Self {
        Self { rate: refused.rate, ..Self::problem(app, era, id, &refused.problem) }
    }

    pub fn respond(&self, app: &App, request: &Request, era: Era) -> Answered {
        let head = head(app, request, era, self.status);
        let mut head = head.retry_after(self.retry_after_s.map(u64::from));
        if self.status == 401 {
            head = head.field("www-authenticate", AUTHENTICATE);
        }
        whole(self.rate.add_to(head).with(&self.body))
    }
}

/// The head of a JSON response. One that refuses the HTTP method lists those that the era allows.
pub fn head(app: &App, request: &Request, era: Era, status: u16) -> Head {
    let head = Head::bare(status)
        .field("content-type", JSON)
        .field("cache-control", "no-store")
        .field("x-request-id", &app.request_id);
    if status != 405 {
        return head;
    }
    let served = METHODS.into_iter().filter(|method| *method == "POST" || era == Era::Session);
    let others: Vec<&str> = served.filter(|method| *method != request.method).collect();
    head.field("allow", others.join(", "))
}
