//! Lanes: the worker's side of a hop (`client`), and the Durable Object at its other end (`object`).

pub mod client;
pub mod instructions;
pub mod object;
pub mod refusals;
mod sql;
