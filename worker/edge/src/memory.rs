//! What bodies may hold of this isolate's memory.
//!
//! An isolate has 128 MB for JavaScript and Wasm's linear memory together, and linear memory never
//! shrinks. A worker and its lanes may share an isolate, so each has an account of its own: a lane can
//! take what its worker has let in.

use std::rc::Rc;

use gateward_core::isolate::memory::{Held, Memory};
use gateward_core::problem::Problem;

/// Bytes that the bodies of requests hold in the worker, and the commands made from them in the lanes.
/// Both accounts, full, and the rest (caches, answers, what one call takes while it is decided) stay
/// below 96 MB of linear memory: `tests/integration/memory.test.ts` floods it.
const MAX_BYTES: usize = 24 * 1024 * 1024;

/// Of these, for small bodies alone: some 1,500 calls of 2 KiB go on while large ones are refused.
const RESERVED_BYTES: usize = 6 * 1024 * 1024;

/// What a body may hold at most to count as small.
const SMALL_BYTES: usize = 32 * 1024;

const fn account() -> Memory {
    Memory::new(MAX_BYTES, RESERVED_BYTES, SMALL_BYTES)
}

thread_local! {
    static BODIES: Rc<Memory> = Rc::new(account());
    static COMMANDS: Rc<Memory> = Rc::new(account());
}

/// What a body of a known length holds: once as the runtime has it, and once as Wasm has it.
pub const fn of_body(length: usize) -> usize {
    2 * length
}

/// Counts what a request's body will hold.
///
/// # Errors
///
/// `overloaded`: it does not fit.
pub fn hold_body(length: usize) -> Result<Held, Problem> {
    BODIES.with(|bodies| bodies.hold(of_body(length))).ok_or_else(Problem::overloaded)
}

/// Counts what a lane's command holds; `None` when it does not fit.
pub fn hold_command(bytes: usize) -> Option<Held> {
    COMMANDS.with(|commands| commands.hold(bytes))
}
