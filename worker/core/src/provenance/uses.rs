//! What a value is used for, by the name of its argument: an amount of money, or a right.

use super::key::ValueKey;
use super::leaves::each_leaf;
use super::normal::Form;
use super::search::is_in;
use super::sinks::Argument;
use super::{action, extract};

/// Words in the names of arguments that are amounts of money.
const AMOUNTS: [&str; 9] =
    ["amount", "betrag", "budget", "cost", "costs", "fee", "price", "sum", "total"];

/// Calls `found` with the hash of each amount of money and of each right in an argument of such a name, and with whether
/// it is an amount.
pub fn each_use(key: &ValueKey, argument: &Argument<'_>, found: &mut dyn FnMut(bool, u64)) {
    let names = action::words(&argument.pointer);
    let is_money = names.iter().any(|name| is_in(&AMOUNTS, name));
    let is_access = names.iter().any(|name| extract::is_access(name));
    let mut form = Form::new();
    each_leaf(argument.value, &mut |leaf| {
        let form = form.of_json(leaf).unwrap_or_default();
        let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        if is_money && !form.is_empty() && form.iter().all(is_number) {
            found(true, extract::money(key, form));
        } else if is_access && let Ok(word) = str::from_utf8(form) {
            extract::right(key, word).into_iter().for_each(|right| found(false, right));
        }
    });
}
