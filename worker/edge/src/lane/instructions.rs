//! Instructions in MCP messages that a lane has stored. A harness repeats the instruction with every message
//! of a run; this isolate sends it to the lane only once.

use std::cell::RefCell;

use gateward_core::call::command::GateCommand;
use gateward_core::isolate::recent::Recent;
use sha2::{Digest as _, Sha256};

/// About 100 bytes each, so less than half a megabyte.
const MAX_REMEMBERED: usize = 4_096;

/// After this time, the lane is told again: it may have forgotten the run. Telling it twice is a no-op.
const REPEAT_MS: u64 = 10 * 60_000;

thread_local! {
    static STATED: RefCell<Recent<u64>> = RefCell::new(Recent::new(MAX_REMEMBERED));
}

/// Identifies an instruction: its credential with tenant and agent, its run and its text.
pub fn key(command: &GateCommand, instruction: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    let call = &command.call;
    for part in [&command.tenant, &command.key_id, &call.agent, &call.run_id] {
        // The length keeps different parts from having the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.chain_update(command.secret_hash).chain_update(instruction).finalize().into()
}

pub fn remember(key: [u8; 32], now_ms: u64) {
    STATED.with_borrow_mut(|stated| stated.remember(key, now_ms));
}

/// Whether the lane was told a short while ago.
pub fn is_stated(key: &[u8; 32], now_ms: u64) -> bool {
    STATED.with_borrow(|stated| {
        stated.get(key).is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) < REPEAT_MS)
    })
}
