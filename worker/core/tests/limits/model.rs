//! The model of one limit in a book: a list of what each call holds.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::rc::Rc;

use gateward_core::limit::reservation::Ending;
use gateward_core::limit::{Kind, Limit};

pub const BERLIN: &str = "Europe/Berlin";

/// In 2026, the clocks of Berlin are put forward and back then: 29 March and 25 October, 01:00 UTC.
pub const CHANGES_MS: [u64; 2] = [1_774_746_000_000, 1_792_890_000_000];

pub const MINUTE_MS: u64 = 60_000;
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
pub const DAY_MS: u64 = 24 * HOUR_MS;

pub fn zones(zone: &str, now_ms: u64) -> Option<i32> {
    match zone {
        "UTC" => Some(0),
        BERLIN => {
            let is_summer = (CHANGES_MS[0]..CHANGES_MS[1]).contains(&now_ms);
            Some(if is_summer { 7_200 } else { 3_600 })
        }
        _ => None,
    }
}

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub amount: u64,
    pub cost: u64,
    pub forwarded: bool,
}

/// Windows must be minutes, hours or days.
pub struct Model {
    pub limit: Rc<Limit>,
    /// The newest window in which something was used, and what each call holds of it.
    number: u64,
    held: Vec<(String, u64)>,
}

impl Model {
    pub fn new(limit: &Rc<Limit>) -> Self {
        Self { limit: Rc::clone(limit), number: 0, held: Vec::new() }
    }

    fn number(&self, now_ms: u64) -> u64 {
        let Some(calendar) = self.limit.rule.calendar() else { return 0 };
        let offset_s = zones(&calendar.time_zone, now_ms).unwrap();
        (now_ms / 1_000).saturating_add_signed(offset_s.into()) / calendar.window.longest_s()
    }

    /// `None` if the call does not count.
    fn needs(&self, call: Call) -> Option<u64> {
        match self.limit.kind {
            Kind::Concurrency => call.forwarded.then_some(1),
            Kind::Quota => Some(1),
            Kind::Budget => Some(call.cost),
            _ => Some(call.amount),
        }
    }

    /// What is used of the newest window.
    pub fn sum(&self) -> u64 {
        self.held.iter().map(|(_, amount)| amount).sum()
    }

    pub fn used(&self, now_ms: u64) -> u64 {
        if self.number(now_ms) > self.number { 0 } else { self.sum() }
    }

    pub fn max(&self) -> u64 {
        self.limit.rule.max().unwrap().as_whole().unwrap()
    }

    pub fn denies(&self, call: Call, now_ms: u64) -> bool {
        self.needs(call).is_some_and(|needs| self.used(now_ms) + needs > self.max())
    }

    pub fn take(&mut self, id: &str, call: Call, now_ms: u64) {
        let Some(needs) = self.needs(call) else { return };
        if self.number(now_ms) > self.number {
            self.number = self.number(now_ms);
            self.held.clear();
        }
        self.held.push((id.to_owned(), needs));
    }

    pub fn settle(&mut self, id: &str, ending: Ending) {
        for (_, amount) in self.held.iter_mut().filter(|(of, _)| of == id) {
            *amount = match (self.limit.kind, ending) {
                (Kind::Quota, _) => *amount,
                (Kind::Concurrency, _) | (_, Ending::Failed) => 0,
                (Kind::Amount, Ending::Succeeded(Some(actual))) => {
                    actual.as_whole().unwrap().min(*amount)
                }
                (_, Ending::Succeeded(_) | Ending::Unclear) => *amount,
            };
        }
    }
}
