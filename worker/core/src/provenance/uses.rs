//! What a value is used for, by the name of its argument: an amount of money, a quantity, a right or a command.

use super::action::Named;
use super::call::Call;
use super::leaves::each_leaf;
use super::lookup::{Found, NOWHERE};
use super::normal::Form;
use super::search::is_word;
use super::sinks::Argument;
use super::{Level, Role, action, extract};
use crate::json::Json;
use crate::json::raw::RawObject;

/// Words in the names of arguments that are amounts of money, and quantities of something else.
const AMOUNTS: &str = "amount betrag budget cost costs fee price sum total";
const QUANTITIES: &str = "adults children copies count guests instances nodes passengers people persons qty quantity replicas \
    seats shares size units";

/// Words in the names of commands, and of other texts that a tool of high risk runs. A part of the user's text does more
/// than the whole: `DELETE FROM t` of `DELETE FROM t WHERE id = 7`.
const COMMANDS: &str = "argv cmd command program script shell sql";
const QUERIES: &str = "jql manifest patch query statement where";

/// Rights by themselves, in an argument with any name.
const ANYONE: &str = "anyone everyone";

/// The last words of the names of arguments that say what a tool does. `merge_method` says only how.
const MODES: &str = "action command event method mode op operation";

impl Call<'_> {
    /// The arguments that say what the tool does, if its name does not and the schema lists their values: `method` with
    /// `rerun_failed_jobs`.
    pub(super) fn modes<'a, 'v>(&self, arguments: &'a [Argument<'v>]) -> Vec<&'a Argument<'v>> {
        if !self.high_risk || !action::is_open(self.tool) {
            return Vec::new();
        }
        let is_mode = |argument: &&Argument<'_>| {
            let names = action::words(&argument.pointer);
            let last = names.last().map_or("", String::as_str);
            // The event of a webhook is what happens.
            let is_review = || action::words(self.tool).iter().any(|word| word == "review");
            argument.role == Role::Sink
                && is_word(MODES, last)
                && names.first().is_none_or(|first| first != "merge")
                && (last != "event" || is_review())
                && argument.value.as_str().is_some_and(|value| {
                    let is_said = |hash: u64| self.is_said(Some(hash));
                    let is_new = |verb: &String| action::is_ordered(self.key, verb, &is_said);
                    let names = action::words(value);
                    let is_verb = names.first().is_some_and(|it| action::is_verb(it) || is_new(it));
                    is_verb && self.is_listed(argument, value)
                })
        };
        arguments.iter().filter(is_mode).collect()
    }

    /// Whether the instruction asks for what the tool does to these values, which the user named. If arguments say what it
    /// does, each of them must be asked for, but not `create` beside `approve`.
    pub(super) fn asks(&self, modes: &[&Argument<'_>], named: &[Named<'_>]) -> bool {
        let is_said = |hash: u64| self.is_said(Some(hash));
        let text = |mode: &Argument<'_>| mode.value.as_str().unwrap_or_default().to_owned();
        let texts: Vec<String> = modes.iter().map(|mode| text(mode)).collect();
        let is_mode = |it: &Named<'_>| modes.iter().any(|mode| mode.pointer == it.pointer);
        let named: Vec<Named<'_>> = named.iter().copied().filter(|it| !is_mode(it)).collect();
        let asks = |mode: &str| action::asks(self.key, (self.tool, mode), &named, &is_said);
        let all_weak = texts.iter().all(|mode| action::is_weak(mode));
        let mut strong = texts.iter().filter(|mode| all_weak || !action::is_weak(mode));
        if texts.is_empty() { asks("") } else { strong.all(|mode| asks(mode)) }
    }

    /// Whether an argument says what holds if it is left out: the calendar `primary`, or `me` as the user.
    pub(super) fn is_usual(&self, argument: &Argument<'_>) -> bool {
        let usual = matches!(argument.pointer.as_str(), "/calendarId" | "/calendar_id")
            && argument.value.as_str() == Some("primary");
        usual || (argument.pointer == "/userId" && argument.value.as_str() == Some("me"))
    }

    /// Whether the tool takes no argument, and the call has none.
    pub(super) fn takes_nothing(&self) -> bool {
        let properties = self.schema.and_then(RawObject::parse).map(|it| it.object("properties"));
        self.high_risk
            && properties.is_some_and(|it| it.is_none_or(|it| it.names().next().is_none()))
            && matches!(self.input, Json::Object(fields) if fields.is_empty())
    }

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
                let counted = extract::counted(self.key, form.as_bytes());
                found(counted, Some(extract::money(self.key, form.as_bytes())));
            } else if (is_access || is_word(ANYONE, form))
                && let Some((hash, is_more)) = extract::right(self.key, form)
            {
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
        is_done && self.is_listed(argument, state)
    }

    /// Whether the schema lists a value of an argument.
    fn is_listed(&self, argument: &Argument<'_>, value: &str) -> bool {
        let listed = ["\"", value, "\""].concat();
        self.property(argument).is_some_and(|it| {
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
