//! Lanes: the worker's side of a hop (`client`), requests to the objects that count for several lanes
//! (`shared_counts`), and the Durable Object at the other end of both (`object`).

pub mod client;
pub mod instructions;
pub mod object;
pub mod refusals;
pub mod shared_counts;
mod sql;
