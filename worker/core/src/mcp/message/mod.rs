//! What a client POSTs: the body, read as one message or a batch, and checked against the headers.

mod headers;
mod parse;
mod receive;

pub use headers::{Headers, decode, era_of_header};
pub use parse::{Kind, Message};
pub use receive::{MAX_BATCH, MAX_MESSAGE_BYTES, Received, id_of_request, receive};
