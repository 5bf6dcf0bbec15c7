//! What the policies say: the compiled bundle, Cedar's evaluator, and its input.

pub mod bundle;
mod condition;
pub mod decimal;
mod engine;
pub mod expression;
pub mod hierarchy;
pub mod input;
mod request;
pub mod risk;

pub use engine::*;
pub use request::*;
