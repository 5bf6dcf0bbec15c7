//! A bound on the memory that request bodies hold in this isolate.
//!
//! An isolate has 128 MB for JavaScript and Wasm's linear memory together, and linear memory never
//! shrinks. A worker and its lanes may share an isolate. Each has a bound of its own, so a lane has
//! memory for the calls that its worker accepted.

use std::rc::Rc;

use gateward_core::isolate::memory::{Held, Memory};
use gateward_core::problem::Problem;

/// Bytes that request bodies may hold in the worker, and bytes that commands may hold in the lanes. With
/// both bounds reached, linear memory stays below 96 MB, including caches, responses and what one call
/// takes while it is decided: `tests/integration/memory.test.ts` floods it.
const MAX_BYTES: usize = 24 * 1024 * 1024;

/// The share of it that only small bodies may use: about 1,500 calls of 2 KiB go on while large bodies
/// are refused.
const RESERVED_BYTES: usize = 6 * 1024 * 1024;

/// A body that holds at most this is small.
const SMALL_BYTES: usize = 32 * 1024;

const fn account() -> Memory {
    Memory::new(MAX_BYTES, RESERVED_BYTES, SMALL_BYTES)
}

thread_local! {
    static BODIES: Rc<Memory> = Rc::new(account());
    static COMMANDS: Rc<Memory> = Rc::new(account());
}

/// Bytes that a body of this length holds: one copy in the runtime, one in Wasm.
pub const fn of_body(length: usize) -> usize {
    2 * length
}

/// Counts the bytes that a request's body will hold.
///
/// # Errors
///
/// `overloaded`: they exceed the bound.
pub fn hold_body(length: usize) -> Result<Held, Problem> {
    BODIES.with(|bodies| bodies.hold(of_body(length))).ok_or_else(Problem::overloaded)
}

/// Counts the bytes that a lane's command holds; `None` when they exceed the bound.
pub fn hold_command(bytes: usize) -> Option<Held> {
    COMMANDS.with(|commands| commands.hold(bytes))
}
