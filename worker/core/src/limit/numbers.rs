//! The numbers in a call's arguments.

use super::amount::Amount;
use super::rule::Measured;
use crate::json::Json;

/// The numbers of a call that limits read. Each is read once.
pub struct Numbers<'a> {
    input: &'a Json,
    read: Vec<(&'a Measured, Option<Amount>)>,
}

impl<'a> Numbers<'a> {
    pub const fn new(input: &'a Json) -> Self {
        Self { input, read: Vec::new() }
    }

    /// The number in the arguments that `measured` names. `None` if the arguments do not have it, or if the call has
    /// another currency.
    pub fn of(&mut self, measured: &'a Measured) -> Option<Amount> {
        if let Some((_, amount)) = self.read.iter().find(|(known, _)| *known == measured) {
            return *amount;
        }
        let amount = self.read_amount(measured);
        self.read.push((measured, amount));
        amount
    }

    fn read_amount(&self, Measured { pointer, currency }: &Measured) -> Option<Amount> {
        if let Some(currency) = currency
            && self.input.pointer(&currency.pointer).and_then(Json::as_str) != Some(&currency.is)
        {
            return None;
        }
        Amount::of(self.input.pointer(pointer)?)
    }
}
