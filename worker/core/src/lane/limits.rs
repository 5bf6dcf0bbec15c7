//! What was used of limits: books and reservations, stored and in memory.
//!
//! INVARIANT (one newest book): a book is in memory if a journal row after the state checkpoint has it. Of every other
//! book, `limit_books` has the newest that was stored. So a book is written there only by a checkpoint, or if no row after
//! it has the book.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::storage::{LaneSql, StorageError, Value, first_text, integer, unreadable};
use crate::call::command::GateCommand;
use crate::clock::DAY_MS;
use crate::gate::limits::{MAX_RESERVATIONS, MAX_RESERVATIONS_OF_AGENT, own_limits};
use crate::gate::shared_limits::{self, Leases, Shared, Waits};
use crate::gate::{Books, ReservationSpace};
use crate::limit::book::{self, Writes};
use crate::limit::lease::Answer;
use crate::limit::reservation::{Ending, Reservation};
use crate::limit::usage::Covered;
use crate::limit::{Amount, Book};
use crate::registry::CallRecords;
use crate::sql::lane as sql;

/// Books in memory, besides those that rows after the state checkpoint have. With more, they are dropped, and read again
/// when they are needed. A book takes about 300 bytes.
const MAX_BOOKS: usize = 20_000;

/// Different books in rows after the state checkpoint. A checkpoint writes each of them, in about 28 ms natively.
const MAX_JOURNALLED: usize = 1_000;

/// Bytes of books in rows after the state checkpoint. A start reads all of them, into several times this memory. One call
/// can have books of 38 KB.
const MAX_JOURNALLED_BYTES: usize = 2_000_000;

/// Books that one statement writes at a checkpoint: some 700 KB if they are large. A text has at most 2 MB.
const KEPT_AT_ONCE: usize = 100;

/// What cannot be read, in an error.
const BOOK: &str = "a book of limits";

/// The books that a lane has in memory, and all reservations.
#[derive(Debug, Default)]
pub(super) struct Limits {
    books: HashMap<Rc<str>, Book>,
    /// The names of the books that rows after the state checkpoint have, and about how many bytes all these books have.
    journalled: HashSet<Rc<str>>,
    journalled_bytes: usize,
    /// By decision id.
    pub reservations: HashMap<String, Reservation>,
    /// How many of them are of calls that Gateward forwarded.
    forwarded: usize,
    of_agents: HashMap<String, Own>,
    /// What the lane holds of leases for calls that waited, by the book's name, with the lease's number.
    pub held: HashMap<String, (u64, Amount)>,
}

/// How many reservations one agent has: of calls that asked, and of forwarded calls.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    asked: usize,
    forwarded: usize,
}

impl Own {
    const fn of(&mut self, forwarded: bool) -> &mut usize {
        if forwarded { &mut self.forwarded } else { &mut self.asked }
    }
}

impl Limits {
    /// Reads all reservations, and the newest books in the rows after the state checkpoint.
    pub fn start(storage: &impl LaneSql, checkpoint: u64) -> Result<Self, StorageError> {
        let mut limits = Self::default();
        for row in storage.exec(sql::JOURNAL_BOOKS, &[integer(checkpoint)?])? {
            let [Value::Text(books)] = row.as_slice() else { return Err(unreadable(BOOK)) };
            book::add_older(&mut limits.books, books).ok_or_else(|| unreadable(BOOK))?;
            limits.journalled_bytes += books.len();
        }
        limits.journalled = limits.books.keys().cloned().collect();
        for row in storage.exec(sql::RESERVATIONS, &[])? {
            let [Value::Text(record)] = row.as_slice() else {
                return Err(unreadable("a reservation"));
            };
            let reservation: Reservation =
                serde_json::from_str(record).map_err(|_| unreadable("a reservation"))?;
            limits.insert(reservation);
        }
        Ok(limits)
    }

    /// Loads the books of a call into memory, if it has limits.
    pub fn load(
        &mut self,
        storage: &impl LaneSql,
        records: &CallRecords,
        command: &GateCommand,
    ) -> Result<(), StorageError> {
        let own = own_limits(records, command).into_iter().flatten();
        let mut names: Vec<String> = own.map(|(name, _)| name).collect();
        // Whether the call is a write is not known yet. If some lease is not in memory later, its counter is asked.
        let covered = Covered { reads: true, writes: true };
        names.extend(shared_limits::of_call(records, command, covered).iter().map(Shared::book));
        names.iter().try_for_each(|name| self.load_book(storage, name))
    }

    fn load_book(&mut self, storage: &impl LaneSql, name: &str) -> Result<(), StorageError> {
        if self.books.contains_key(name) {
            return Ok(());
        }
        let rows = storage.exec(sql::BOOK, &[Value::Text(name.to_owned())])?;
        let book = match (rows.is_empty(), first_text(&rows)) {
            (true, _) => Book::default(),
            (false, Some(text)) => Book::parse(text).ok_or_else(|| unreadable(BOOK))?,
            (false, None) => return Err(unreadable(BOOK)),
        };
        self.books.insert(name.into(), book);
        Ok(())
    }

    /// Makes space for the books of one call. A lease that no row has yet is granted again.
    pub fn make_space(&mut self) {
        if self.books.len() > MAX_BOOKS + self.journalled.len() {
            self.books.retain(|name, _| self.journalled.contains(name));
        }
    }

    /// A book, from memory or storage.
    pub fn read(&mut self, storage: &impl LaneSql, name: &str) -> Result<Book, StorageError> {
        self.load_book(storage, name)?;
        Ok(self.books.get(name).cloned().unwrap_or_default())
    }

    /// The books of a call, if they are in memory.
    pub fn books<'a>(
        &'a self,
        records: &CallRecords,
        command: &GateCommand,
        answers: &'a [(String, Answer)],
    ) -> Books<'a> {
        let asked = self.reservations.len() - self.forwarded;
        let own = self.of_agents.get(&command.call.agent).copied().unwrap_or_default();
        let has_space = |own, all| own < MAX_RESERVATIONS_OF_AGENT && all < MAX_RESERVATIONS;
        let space = ReservationSpace {
            forwarded: has_space(own.forwarded, self.forwarded),
            asked: has_space(own.asked, asked),
        };
        if self.books.is_empty() && answers.is_empty() {
            return Books { space, ..Books::NONE };
        }
        let [agent, credential] = own_limits(records, command).map(|own| {
            let book = own.and_then(|(name, _)| self.books.get(&*name));
            book.unwrap_or_default()
        });
        Books {
            agent,
            credential,
            space,
            leases: Some(Leases { books: &self.books, waits: Waits { held: &self.held, answers } }),
        }
    }

    /// Updates a book in memory that was changed without a journal row.
    pub fn take_book(&mut self, name: String, book: Book) {
        self.books.insert(name.into(), book);
    }

    /// Takes what a journal row has.
    pub fn take_journalled(&mut self, writes: Writes) {
        self.journalled.extend(writes.books.iter().map(|(name, _)| Rc::clone(name)));
        self.journalled_bytes += writes.books.iter().map(|(_, book)| book.bytes()).sum::<usize>();
        self.take(writes);
    }

    /// Whether a row after the state checkpoint has one of these books.
    pub fn are_journalled(&self, books: &[(Rc<str>, Book)]) -> bool {
        books.iter().any(|(name, _)| self.journalled.contains(name))
    }

    /// Whether rows after the state checkpoint have so many books that a checkpoint is due.
    pub fn are_many(&self) -> bool {
        self.journalled.len() >= MAX_JOURNALLED || self.journalled_bytes >= MAX_JOURNALLED_BYTES
    }

    /// Copies the books that rows after the state checkpoint have to `limit_books`.
    pub fn keep_books(&self, storage: &impl LaneSql, now_ms: u64) -> Result<(), StorageError> {
        let newest = |name: &Rc<str>| Some((Rc::clone(name), self.books.get(name)?.clone()));
        let names: Vec<_> = self.journalled.iter().collect();
        for names in names.chunks(KEPT_AT_ONCE) {
            let books: Option<Vec<_>> = names.iter().copied().map(newest).collect();
            let books = book::as_json(&books.ok_or_else(|| unreadable(BOOK))?);
            write_books(storage, books, None, now_ms)?;
        }
        Ok(())
    }

    /// The state checkpoint is at the newest row.
    pub fn kept(&mut self) {
        self.journalled.clear();
        self.journalled_bytes = 0;
    }

    /// Takes what was written.
    pub fn take(&mut self, Writes { books, reservation, settles }: Writes) {
        self.books.extend(books);
        if let Some(reservation) = reservation {
            self.insert(reservation);
        }
        if let Some(ended) = settles.and_then(|id| self.reservations.remove(&id)) {
            self.forwarded -= usize::from(ended.forwarded);
            if let Some(own) = self.of_agents.get_mut(&ended.agent) {
                *own.of(ended.forwarded) -= 1;
                if own.asked + own.forwarded == 0 {
                    self.of_agents.remove(&ended.agent);
                }
            }
        }
    }

    fn insert(&mut self, reservation: Reservation) {
        self.forwarded += usize::from(reservation.forwarded);
        *self.of_agents.entry(reservation.agent.clone()).or_default().of(reservation.forwarded) +=
            1;
        self.reservations.insert(reservation.decision_id.clone(), reservation);
    }

    /// The changes to write so that the reservation ends in this way. This changes nothing itself.
    pub fn writes_to_settle(
        &mut self,
        storage: &impl LaneSql,
        reservation: &Reservation,
        ending: Ending,
    ) -> Result<Writes, StorageError> {
        let mut names: Vec<&Rc<str>> = reservation.takes.iter().map(|take| &take.book).collect();
        names.sort_unstable();
        names.dedup();
        let mut books = Vec::new();
        for name in names {
            let mut book = self.read(storage, name)?;
            book::settle((name, &mut book), reservation, ending);
            books.push((Rc::clone(name), book));
        }
        let settles = Some(reservation.decision_id.clone());
        Ok(Writes { books, reservation: None, settles })
    }
}

/// Writes books for which there is no row: names and records as a JSON array. `settles`: the decision whose reservation
/// ends.
pub(super) fn write_books(
    storage: &impl LaneSql,
    books: String,
    settles: Option<String>,
    now_ms: u64,
) -> Result<(), StorageError> {
    let settles = settles.map_or(Value::Null, Value::Text);
    storage.exec(sql::SETTLE, &[integer(now_ms / DAY_MS)?, Value::Text(books), settles]).map(drop)
}
