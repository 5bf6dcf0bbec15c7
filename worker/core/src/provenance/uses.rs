//! What a value is used for, by the name of its argument: an amount of money, a quantity, a right or a command.

use super::call::Call;
use super::leaves::each_leaf;
use super::lookup::{Found, NOWHERE};
use super::normal::Form;
use super::search::is_word;
use super::sinks::Argument;
use super::{Level, action, extract};
use crate::json::Json;
use crate::json::raw::RawObject;

/// Words in the names of arguments that are amounts of money, and quantities of something else.
const AMOUNTS: &str = "amount betrag budget cost costs fee price sum total";
const QUANTITIES: &str = "count qty quantity replicas shares size units";

/// Words in the names of commands, and of other texts that a tool of high risk runs. A part of the user's text does more
/// than the whole: `DELETE FROM t` of `DELETE FROM t WHERE id = 7`.
const COMMANDS: &str = "argv cmd command program script shell sql";
const QUERIES: &str = "jql manifest patch query statement where";

impl Call<'_> {
    /// Where the value of an argument was found, if its [use](Self::each_use) is considered. The instruction can name a value only
    /// for another use, or name it for this one in another form.
    pub(super) fn used(&self, argument: &Argument<'_>, found: Found) -> Found {
        let is_one = !matches!(argument.value, Json::Array(_) | Json::Object(_));
        let (mut is_named, mut is_other) = (is_one && self.is_state(argument), false);
        self.each_use(argument, &mut |hash, if_said| {
            let is_said = self.is_said(Some(hash));
            is_named |= is_one && is_said;
            is_other |= !is_said && if_said.is_none_or(|hash| self.is_said(Some(hash)));
        });
        match found.level {
            Level::Instruction if is_other => NOWHERE,
            Level::Instruction => found,
            _ if is_named && !is_other => Found { level: Level::Instruction, source: None },
            _ => found,
        }
    }

    /// Calls `found` with a hash for each value in an argument of such a name: whether the instruction names the value for
    /// this use. The second hash says when the instruction must do so: if it has that one, or always.
    // Inlined into each caller, it takes much more code.
    #[inline(never)]
    pub(super) fn each_use(
        &self,
        argument: &Argument<'_>,
        found: &mut dyn FnMut(u64, Option<u64>),
    ) {
        let names = action::words(&argument.pointer);
        let any = |list: &str| names.iter().any(|name| is_word(list, name));
        let (is_money, is_quantity) = (any(AMOUNTS), any(QUANTITIES));
        let is_access = names.iter().any(|name| extract::is_access(name));
        // A postal code is no program.
        let is_code = || matches!(names.as_slice(), [only] if only == "code");
        let is_command = any(COMMANDS) || (self.high_risk && (any(QUERIES) || is_code()));
        // A filter of one word can be true for all.
        let min_words = if any("where") { 1 } else { 2 };
        if is_command && let Json::Array(items) = argument.value {
            let words: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            if words.len() >= min_words {
                return found(extract::delimited(self.key, &words.join(" ")), None);
            }
        }
        let (mut form, mut units) = (Form::new(), Form::new());
        each_leaf(argument.value, &mut |leaf| {
            let text = leaf.as_str().unwrap_or_default();
            if is_command && text.split_whitespace().count() >= min_words {
                return found(extract::delimited(self.key, text), None);
            }
            let form =
                form.of_json(leaf).and_then(|form| str::from_utf8(form).ok()).unwrap_or_default();
            let is_number =
                !form.is_empty() && form.bytes().all(|it| it.is_ascii_digit() || it == b'.');
            if is_money && is_number {
                // 2500 cents are 25 euros.
                let whole = form
                    .len()
                    .checked_sub(2)
                    .filter(|_| !form.contains('.') && self.is_in_cents(argument));
                let whole = whole.and_then(|at| form.split_at_checked(at));
                let amount =
                    whole.and_then(|(whole, cents)| units.of(&[whole, ".", cents].concat()));
                let amount = amount.unwrap_or(form.as_bytes());
                found(extract::money(self.key, amount), Some(extract::money(self.key, b"")));
            } else if is_quantity && is_number {
                let counted = self.key.of_kind(b"\xff+", form.as_bytes());
                found(counted, Some(extract::money(self.key, form.as_bytes())));
            } else if is_access && let Some((hash, is_more)) = extract::right(self.key, form) {
                found(hash, (!is_more).then_some(hash));
            }
        });
    }

    fn is_in_cents(&self, argument: &Argument<'_>) -> bool {
        let property = self.property(argument);
        property.is_some_and(|it| it.contains("in cents") && !it.contains("not in cents"))
    }

    /// Whether an argument is the state in which the instruction's verb leaves a thing, if the schema lists it: `closed`
    /// after "close". A tool of high risk does more than that.
    fn is_state(&self, argument: &Argument<'_>) -> bool {
        let Some(state) = argument.value.as_str().filter(|_| !self.high_risk) else { return false };
        let has = |stem: &str| self.is_said(Form::new().of(stem).map(|form| self.key.hash(form)));
        let is_done = ["d", "ed"].iter().any(|end| state.strip_suffix(*end).is_some_and(has));
        let listed = ["\"", state, "\""].concat();
        is_done
            && self.property(argument).is_some_and(|it| {
                it.split_once("\"enum\"").is_some_and(|(_, names)| names.contains(&listed))
            })
    }

    /// What the tool's schema says about an argument.
    pub(super) fn property(&self, argument: &Argument<'_>) -> Option<String> {
        let name = argument.pointer.strip_prefix('/')?;
        let properties = RawObject::parse(self.schema?)?.object("properties")?;
        properties.get(name).map(str::to_owned)
    }

    /// The amount that a call leaves out, although the instruction has amounts of money: to refund 5 EUR of an order is not to
    /// refund all of it. With the hash that says that an approver let the agent do so.
    pub(super) fn amount_left_out(&self) -> Option<(&str, u64)> {
        if !self.high_risk || !self.is_said(Some(extract::money(self.key, b""))) {
            return None;
        }
        let amount = self.declared()?.iter().filter(|name| is_amount(name)).min()?;
        let Json::Object(fields) = self.input else { return None };
        // Not `amount_currency`, nor a number in the metadata.
        let is_given = fields.iter().any(|(name, value)| {
            let is_number = match value {
                Json::String(text) => text.contains(|letter: char| letter.is_ascii_digit()),
                other => !matches!(other, Json::Null | Json::Bool(_)),
            };
            is_amount(name) && is_number
        });
        (!is_given).then(|| (&**amount, self.key.of_kind(b"\xff-", amount.as_bytes())))
    }
}

/// Whether a word is in the name of an argument that is an amount which a tool can have a default for.
fn is_amount(name: &str) -> bool {
    action::words(name).iter().any(|word| matches!(word.as_str(), "amount" | "betrag" | "sum"))
}
