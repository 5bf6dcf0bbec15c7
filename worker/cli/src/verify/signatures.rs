//! Verifies the signatures in the head on other threads.
//!
//! A signature takes some 30 µs, and a receipt some 5. A quiet tenant has a checkpoint for each receipt, so without this
//! most of the time would be spent on signatures.
//!
//! INVARIANT (first fault first): every check that was sent is carried out, and of the faults the one with the lowest
//! line counts. So what is found does not depend on the threads.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};

use super::fault::{Fault, Kind};
use super::identity::Identity;

/// Checks that wait. Each has a note of at most 64 KiB, so they take at most 16 MiB; notes of lanes have some 300
/// bytes.
const WAITING_MAX: usize = 256;

/// A signed note that has to be verified.
#[derive(Debug)]
pub struct Check {
    /// The log that must have signed it.
    pub identity: Arc<Identity>,
    pub note: String,
    /// The head's name, and its receipt and line that has the note.
    pub head: String,
    pub receipt: u64,
    pub line: u64,
}

impl Check {
    /// Carries the check out.
    pub fn fault(&self) -> Option<Fault> {
        self.identity.signers(&self.note).err().map(|wrong| self.wrong(wrong))
    }

    /// What is wrong with the note, as a fault where the head has it.
    pub fn wrong(&self, (kind, detail): (Kind, String)) -> Fault {
        let detail = format!("checkpoint of `{}`: {detail}", self.identity.name);
        Fault::new(kind, self.line, detail).of(&self.head).receipt(self.receipt)
    }
}

/// Where checks are sent to.
pub struct Checks<'f> {
    sender: SyncSender<Check>,
    found: &'f Found,
}

/// The first fault.
#[derive(Default)]
struct Found {
    any: AtomicBool,
    first: Mutex<Option<Fault>>,
}

impl Checks<'_> {
    /// Sends a check. Waits while too many others wait.
    pub fn send(&self, check: Check) {
        // There is a receiver as long as there is a sender.
        let _ = self.sender.send(check);
    }

    /// Whether a fault was found. There is no need to send more, but there can be an earlier fault.
    pub fn found(&self) -> bool {
        self.found.any.load(Ordering::Relaxed)
    }
}

impl Found {
    fn add(&self, fault: Fault) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|first| fault.line < first.line) {
            *first = Some(fault);
        }
        self.any.store(true, Ordering::Relaxed);
    }
}

/// Runs `send`, while other threads carry out what it sends. Returns what it returns, and the first fault of the
/// checks.
///
/// # Errors
///
/// The system starts no thread.
pub fn check<T>(send: impl FnOnce(&Checks<'_>) -> T) -> io::Result<(T, Option<Fault>)> {
    let found = Found::default();
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let receiver = Mutex::new(receiver);
    let sent = thread::scope(|scope| {
        // It is dropped at the end of this scope, in every case. Then the threads end.
        let checks = Checks { sender, found: &found };
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            Builder::new().spawn_scoped(scope, || carry_out(&receiver, &found))?;
        }
        Ok::<T, io::Error>(send(&checks))
    })?;
    let first = found.first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((sent, first))
}

fn carry_out(receiver: &Mutex<Receiver<Check>>, found: &Found) {
    let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(check) = next() {
        if let Some(fault) = check.fault() {
            found.add(fault);
        }
    }
}
