//! Leases: a lane's parts of limits that the lanes of its tenant share, and the counter object that grants them.

use super::limits::write_books;
use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, first_text, integer, unreadable};
use crate::clock::DAY_MS;
use crate::limit::book::{At, Writes};
use crate::limit::lease::{self, Answer, Ask, Granted, Need, Returned, Terms, book_name};
use crate::limit::pool::Pool;
use crate::limit::{Amount, Book};
use crate::sql::lane as sql;

/// Unused counts that a counter object deletes at a grant.
const MAX_FORGOTTEN_POOLS: i64 = 10;

/// Counts that are read at once.
const MAX_READ_POOLS: i64 = 100;

/// Days for which an unused count is kept: its window is over, and a clock that was ahead was noticed.
const POOL_DAYS: u64 = 62;

impl Lane {
    /// Makes the request to a counter that meets all of these needs. If the limit was changed, the lane first gives the
    /// lease back. The free part of the lease, as far as the needs can use it, is held for them until
    /// [`Self::release`]. The second value is the amount that is held.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn ask(
        &mut self,
        storage: &impl LaneSql,
        need: &Need,
        needs: Vec<Amount>,
        lanes: (u16, u16),
        now_ms: u64,
    ) -> Result<(Ask, Answer), StorageError> {
        let name = need.book();
        let mut book = self.limits.read(storage, &name)?;
        if book.lease(&need.counter).is_some_and(|lease| !lease.holds(need.revision, 0)) {
            self.give_back(storage, (&need.counter, &need.subject), None, now_ms)?;
            book = self.limits.read(storage, &name)?;
        }
        let lease = book.lease(&need.counter);
        let number = lease.map_or(0, |lease| lease.number);
        let ask = lease::ask(lease, self.held(&name, number), lanes, need.revision, needs);
        // Hold it until the answer comes. Otherwise other calls would use it, and the granted amount would be too
        // small.
        let wanted = ask.needs.iter().copied().fold(Amount::ZERO, Amount::plus);
        let amount = wanted.min(ask.free);
        self.hold_amount(&name, number, amount);
        Ok((ask, Answer::Granted { amount, number, revision: need.revision }))
    }

    fn held(&self, name: &str, number: u64) -> Amount {
        match self.limits.held.get(name) {
            Some((of, held)) if *of == number => *held,
            _ => Amount::ZERO,
        }
    }

    fn hold_amount(&mut self, name: &str, number: u64, amount: Amount) {
        let held = self.held(name, number).plus(amount);
        if held > Amount::ZERO {
            self.limits.held.insert(name.to_owned(), (number, held));
        }
    }

    /// Takes a counter's answer. Returns what each need got, in order. What it got is held for it until
    /// [`Self::release`].
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn take_grant(
        &mut self,
        storage: &impl LaneSql,
        need: &Need,
        needs: &[Amount],
        answer: &Granted,
        now_ms: u64,
    ) -> Result<Vec<Answer>, StorageError> {
        let name = need.book();
        let mut book = self.limits.read(storage, &name)?;
        if let (Terms::Tokens(_), Some(lease)) = (&need.terms, book.lease(&need.counter)) {
            // Older tokens, except for those of calls that wait, must not be used as long as the new ones.
            let held = self.held(&name, lease.number);
            book.give_back(&need.counter, held);
        }
        book.granted(&need.counter, need.revision, answer);
        if answer.back > Amount::ZERO {
            self.settle(storage, only(&name, book.clone()), now_ms)?;
        }
        let (number, revision) = (answer.number, need.revision);
        let available = book.lease(&need.counter).map_or(Amount::ZERO, lease::Lease::available);
        let mut free = available.minus(self.held(&name, number));
        let meet = |amount: &Amount| {
            if *amount <= free {
                free = free.minus(*amount);
                return Answer::Granted { amount: *amount, number, revision };
            }
            let left = answer.left.plus(free);
            Answer::Refused { left, retry_after_s: answer.retry_after_s }
        };
        let answers: Vec<Answer> = needs.iter().map(meet).collect();
        self.limits.take_book(name.clone(), book);
        for answer in &answers {
            if let Answer::Granted { amount, .. } = answer {
                self.hold_amount(&name, number, *amount);
            }
        }
        Ok(answers)
    }

    /// Releases the amount that the lane held for a call, because the call has ended.
    pub fn release(&mut self, name: &str, answer: Answer) {
        let Answer::Granted { amount, number, .. } = answer else { return };
        let Some((of, held)) = self.limits.held.get_mut(name) else { return };
        if *of == number {
            *held = held.minus(amount);
            if *held == Amount::ZERO {
                self.limits.held.remove(name);
            }
        }
    }

    /// Gives back the part of a lease that no call uses or waits for. `heard`: the window's number, and the sum that
    /// the counter granted in that window, including answers that were lost. Returns `None` if there is no lease.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn give_back(
        &mut self,
        storage: &impl LaneSql,
        (counter, subject): (&str, &str),
        heard: Option<(u64, Amount)>,
        now_ms: u64,
    ) -> Result<Option<Returned>, StorageError> {
        let name = book_name(counter, subject);
        let before = self.limits.read(storage, &name)?;
        let mut book = before.clone();
        if let Some((number, granted)) = heard {
            book.heard(&counter.into(), number, granted);
        }
        let number = book.lease(counter).map_or(0, |lease| lease.number);
        let held = self.held(&name, number);
        let Some(returned) = book.give_back(counter, held) else { return Ok(None) };
        if book != before {
            // Stored before the counter hears of it: its memory would not survive.
            self.settle(storage, only(&name, book), now_ms)?;
        }
        Ok(Some(returned))
    }

    /// Grants a lane parts of a limit, in the storage of the limit's counter object. The second value is whether
    /// it got everything. `None`: the limit's time zone is unknown.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn grant(
        &mut self,
        storage: &impl LaneSql,
        subject: &str,
        (terms, ask): (&Terms, &Ask),
        at: At,
    ) -> Result<Option<(Granted, bool)>, StorageError> {
        let mut pool = pool(storage, subject)?;
        let Some(granted) = pool.grant(terms, ask, at) else { return Ok(None) };
        write_pool(storage, subject, &pool, at.now_ms)?;
        self.check_clock(storage, at.now_ms)?;
        // Places of calls in progress have no window that could be over.
        if !matches!(terms, Terms::Slots { .. }) {
            let before = integer((self.steady_ms() / DAY_MS).saturating_sub(POOL_DAYS))?;
            storage.exec(sql::FORGET_BOOKS, &[before, Value::Integer(MAX_FORGOTTEN_POOLS)])?;
        }
        Ok(Some(granted))
    }

    /// What was granted for these subjects; for the first ones if none is named. Subjects, and counts as
    /// [`Pool::parse`] reads them.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn pools(
        storage: &impl LaneSql,
        subjects: &[String],
    ) -> Result<Vec<(String, String)>, StorageError> {
        let subjects = Value::Text(serde_json::json!(subjects).to_string());
        let rows = storage.exec(sql::BOOKS, &[subjects, Value::Integer(MAX_READ_POOLS)])?;
        let pair = |row: Vec<Value>| match <[Value; 2]>::try_from(row) {
            Ok([Value::Text(name), Value::Text(record)]) => Ok((name, record)),
            _ => Err(unreadable("a count of a limit")),
        };
        rows.into_iter().map(pair).collect()
    }

    /// The window's number, and each lane that may have a part of the limit to give back, with the sum of its grants.
    /// The lane `but` is left out.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn holders(
        storage: &impl LaneSql,
        subject: &str,
        but: u16,
    ) -> Result<(u64, Vec<(u16, Amount)>), StorageError> {
        Ok(pool(storage, subject)?.holders(but))
    }

    /// A lane gave back a part of a limit.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn take_back(
        storage: &impl LaneSql,
        subject: &str,
        (lane, returned): (u16, &Returned),
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let mut pool = pool(storage, subject)?;
        pool.take_back(lane, returned);
        write_pool(storage, subject, &pool, now_ms)
    }
}

/// The count of one subject, in the storage of a limit's counter object.
fn pool(storage: &impl LaneSql, subject: &str) -> Result<Pool, StorageError> {
    let rows = storage.exec(sql::BOOK, &[Value::Text(subject.to_owned())])?;
    if rows.is_empty() {
        return Ok(Pool::default());
    }
    let pool = first_text(&rows).and_then(Pool::parse);
    pool.ok_or_else(|| unreadable("a count of a limit"))
}

fn write_pool(
    storage: &impl LaneSql,
    subject: &str,
    pool: &Pool,
    now_ms: u64,
) -> Result<(), StorageError> {
    let books = serde_json::json!([[subject, pool.as_json()]]).to_string();
    write_books(storage, books, None, now_ms)
}

/// The change of one book.
fn only(name: &str, book: Book) -> Writes {
    Writes { books: vec![(name.into(), book)], ..Writes::default() }
}
