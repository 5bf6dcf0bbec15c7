//! What every handler gets: the environment, the settings, and the request's context.

use std::rc::Rc;

use worker::{Context, Env};

use crate::settings::Settings;

#[derive(Clone)]
pub struct App {
    pub env: Env,
    pub settings: Rc<Settings>,
    pub request_id: String,
    pub context: Rc<Context>,
}
