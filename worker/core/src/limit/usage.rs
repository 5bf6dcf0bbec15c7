//! What a call uses of its limits: what that is, whether the limits allow it, and using it.

use std::rc::Rc;

use super::amount::Amount;
use super::book::{At, Book};
use super::definition::Kind;
use super::lease::{Leased, Need};
use super::record::Limit;
use super::reservation::{Source, Take};
use super::rule::{Measured, Rule};
use super::violation::Violation;
use crate::json::Json;

/// Which limits cover a call: those of reads, those of writes, or both if only its caller says that it writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Covered {
    pub reads: bool,
    pub writes: bool,
}

/// A call, as far as limits read it.
#[derive(Debug, Clone, Copy)]
pub struct Usage<'a> {
    /// `server/tool`.
    pub tool: &'a str,
    pub covered: Covered,
    pub input: &'a Json,
    /// The numbers in it that the request's text had with more digits ([`crate::json::rounded`]).
    pub rounded: &'a [f64],
    /// What the tool costs.
    pub cost: Amount,
    /// Whether Gateward forwards it, and so sees how it ends.
    pub forwarded: bool,
}

/// The limits of one subject, with its book.
#[derive(Debug, Clone, Default)]
pub struct Ledger<'a> {
    /// The book's name in the lane's storage.
    pub name: Rc<str>,
    pub limits: &'a [Rc<Limit>],
    /// The book before the call.
    pub stored: &'a Book,
    /// The book as it is if the call passes.
    pub book: Book,
    /// Present if the book holds the lease of one limit that lanes share.
    pub leased: Option<Leased>,
}

impl<'a> Ledger<'a> {
    #[must_use]
    pub fn new(
        name: Rc<str>,
        limits: &'a [Rc<Limit>],
        stored: &'a Book,
        leased: Option<Leased>,
    ) -> Self {
        Self { name, limits, stored, book: stored.clone(), leased }
    }
}

/// What a call uses of one limit that covers it.
#[derive(Debug, Clone)]
pub struct Use<'a> {
    /// Which of the call's ledgers has the limit.
    ledger: usize,
    limit: &'a Limit,
    /// `None` if the arguments do not have the number that the limit needs.
    amount: Option<Amount>,
}

impl Use<'_> {
    /// Whether an outcome changes anything.
    #[must_use]
    pub fn is_open(&self, forwarded: bool) -> bool {
        let is_none = self.amount.is_none_or(|amount| amount == Amount::ZERO);
        match self.source() {
            _ if is_none => false,
            None | Some(Source::Call) => false,
            Some(Source::Progress) => forwarded,
            Some(Source::Cost | Source::Argument) => true,
        }
    }

    /// `None` if the limit is not used up, or is used when it is checked.
    const fn source(&self) -> Option<Source> {
        match self.limit.kind {
            Kind::Hours | Kind::PerCall | Kind::Rate => None,
            Kind::Concurrency => Some(Source::Progress),
            Kind::Quota => Some(Source::Call),
            Kind::Amount => Some(Source::Argument),
            Kind::Budget => Some(Source::Cost),
        }
    }
}

/// What a call uses of the limits that cover it, in the order of [`Kind::ALL`].
#[must_use]
pub fn uses<'a>(ledgers: &[Ledger<'a>], usage: &Usage<'_>) -> Vec<Use<'a>> {
    let mut uses = Vec::with_capacity(ledgers.iter().map(|ledger| ledger.limits.len()).sum());
    let Covered { reads, writes } = usage.covered;
    for (at, ledger) in ledgers.iter().enumerate() {
        for limit in ledger.limits.iter().filter(|it| it.covers(usage.tool, reads, writes)) {
            let amount = match &limit.rule {
                Rule::Concurrency { .. } if !usage.forwarded => continue,
                Rule::PerCall { measured, .. } | Rule::Amount { measured, .. } => {
                    number(&uses, measured, usage)
                }
                Rule::Budget { .. } => Some(usage.cost),
                Rule::Hours { .. }
                | Rule::Rate(_)
                | Rule::Concurrency { .. }
                | Rule::Quota { .. } => Some(Amount::whole(1)),
            };
            let is_before = |it: &Use<'_>| it.limit.kind as u8 <= limit.kind as u8;
            let next = uses.iter().rposition(is_before).map_or(0, |last| last + 1);
            uses.insert(next, Use { ledger: at, limit, amount });
        }
    }
    uses
}

/// The number in the arguments that a limit measures. It is read once, even if several limits measure it.
fn number(uses: &[Use<'_>], measured: &Measured, usage: &Usage<'_>) -> Option<Amount> {
    let known = uses.iter().find(|it| it.limit.rule.measured() == Some(measured));
    known.map_or_else(|| measured.read(usage.input, usage.rounded), |it| it.amount)
}

/// Checks the limits of a call and uses them, in the order of its [`uses`]. Returns what the call's lane must ask for
/// before the call can be decided. `reserves`: the call is forwarded, and [`super::book::settle`] follows. If the call
/// does not pass, [`revert`] must follow.
///
/// # Errors
///
/// The first limit that the call violates.
pub fn apply(
    ledgers: &mut [Ledger<'_>],
    uses: &[Use<'_>],
    reserves: bool,
    at: At,
) -> Result<Vec<Need>, Box<Violation>> {
    let mut needs = Vec::new();
    for Use { ledger, limit, amount } in uses {
        let Some(Ledger { book, leased, .. }) = ledgers.get_mut(*ledger) else { continue };
        let amount = || amount.ok_or_else(|| Violation::unreadable(limit));
        match (&limit.rule, leased) {
            (Rule::Hours { .. }, _) => check_hours(limit, at)?,
            (Rule::PerCall { max, .. }, _) => check_per_call(limit, *max, amount()?)?,
            (rule, Some(leased)) => {
                let reserves = reserves && !matches!(rule, Rule::Rate(_) | Rule::Quota { .. });
                book.take_lease(limit, leased, (amount()?, reserves), at, &mut needs)?;
            }
            (Rule::Rate(rate), None) => book.charge(limit, *rate, at.now_ms)?,
            (Rule::Concurrency { max }, None) => book.open_one(limit, *max)?,
            // A quota is never given back.
            (Rule::Quota { max, calendar }, None) => {
                book.add(limit, *max, (amount()?, false), calendar, at)?;
            }
            (Rule::Amount { max, calendar, .. } | Rule::Budget { max, calendar }, None) => {
                book.add(limit, *max, (amount()?, reserves), calendar, at)?;
            }
        }
    }
    for ledger in ledgers {
        ledger.book.forget_all_but(ledger.limits);
    }
    Ok(needs)
}

/// Undoes [`apply`], except that the request rate stays used.
pub fn revert(ledgers: &mut [Ledger<'_>]) {
    for Ledger { limits, book, stored, .. } in ledgers {
        book.revert(stored, limits);
    }
}

fn check_hours(limit: &Limit, at: At) -> Result<(), Box<Violation>> {
    match limit.is_open(at.now_ms, at.offset_s) {
        Some(true) => Ok(()),
        Some(false) => Err(Violation::closed(limit, at.now_ms, at.offset_s)),
        None => Err(Violation::unreadable(limit)),
    }
}

fn check_per_call(limit: &Limit, max: Amount, amount: Amount) -> Result<(), Box<Violation>> {
    match amount <= max {
        true => Ok(()),
        false => Err(Violation::above(limit, max, amount, None)),
    }
}

/// What an outcome can change of what [`apply`] used.
#[must_use]
pub fn takes(ledgers: &[Ledger<'_>], uses: &[Use<'_>], forwarded: bool) -> Vec<Take> {
    let take = |it: &Use<'_>| {
        let Ledger { name, book, .. } = ledgers.get(it.ledger)?;
        Some(Take {
            book: Rc::clone(name),
            counter: Rc::clone(&it.limit.counter),
            number: book.number(&it.limit.counter),
            window: it.limit.rule.calendar().map(|calendar| calendar.window),
            amount: it.amount?,
            unclear: it.limit.unclear,
            source: it.source()?,
        })
    };
    uses.iter().filter(|it| it.is_open(forwarded)).filter_map(take).collect()
}
