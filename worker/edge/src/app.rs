//! What every handler gets: the environment, the settings, and the request's context.

use std::fmt::Display;
use std::rc::Rc;

use gateward_core::log::{Event, Line};
use gateward_core::trace::TraceContext;
use worker::{Context, Env};

use crate::settings::Settings;

#[derive(Clone)]
pub struct App {
    pub env: Env,
    pub settings: Rc<Settings>,
    pub request_id: String,
    /// The caller's trace, if the caller sent one.
    pub trace: Option<Rc<TraceContext>>,
    pub context: Rc<Context>,
}

impl App {
    /// A line of the log about this request.
    pub fn line(&self, event: Event, detail: impl Display) -> Line<'_> {
        Line {
            request_id: Some(&self.request_id),
            trace_id: self.trace.as_ref().map(|trace| trace.trace_id),
            ..Line::new(event, detail)
        }
    }
}
