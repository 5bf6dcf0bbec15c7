//! What an instruction asks for: the actions that its words name, and whether a tool does one of them.
//!
//! Of the user's words, an injected text can choose another action: "look at pull request 34" names the pull request,
//! and the text says to merge it. So a tool that destroys, spends or grants needs an *order* of the instruction for what it
//! does, and the call must be for what this order names: its [object](objects), and no value that the instruction has only
//! elsewhere. "Merge PR 12. What is PR 7 about?" merges 12 only. "Delete the branch fix-12 in acme/shop" deletes no
//! repository.
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on the words beside one: negations, questions,
//! what is read only, and nouns. It knows no other grammar. A word that is missing in the table makes a call wait. A word
//! in the instruction with another meaning lets it pass.

mod actions;
mod clause;
mod lists;
mod objects;
mod phrasal;
mod phrase;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod vocabulary;
mod wide;
mod words;

use super::extract::rights::{READ, is_access, right_of};
use super::key::ValueKey;
use super::leaves::each_value;
use super::normal::Form;
use super::search::{is_in, split_once};
use crate::json::Json;
use actions::ACTIONS;
use lists::{BEGINS, DESCRIBES, DETERMINERS, EMPTIES, JOINS, PREPOSITIONS, THESE, TIMES, WITH};
use table::{Actions, TABLE, is_listed, is_phrase, known, named, noun, of_word, respelled};
use text::of_text;
use vocabulary::{CANCELLED, MEMBERS, PIPELINES, RIGHTS, TEAMS, THINGS, WEAK};
use words::{
    ACTION, AMOUNT, BESIDE, ENTITLES, FILE, HEAD, MAX_ORDERS, OBJECT, PLACE, RIGHT, SOURCE, STATED,
    TAKES, TARGET, UNKNOWN, USED, VERB, is_number, parts, same,
};

/// The hashes of what an instruction asks for: its actions, and the words of its orders. No value has such a hash, because
/// no normal form contains the byte 0xff.
#[must_use]
pub fn stated(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let mut form = Form::new();
    let words = of_text(instruction).whole();
    words.iter().map(|(kind, word)| hash(key, *kind, word, &mut form)).collect()
}

/// Whether a word joins two orders.
#[must_use]
pub fn joins(word: &str) -> bool {
    is_listed(JOINS, word)
}

/// Whether an order can follow a word.
#[must_use]
pub fn leads(word: &str) -> bool {
    is_listed(BEGINS, word) || joins(word)
}

/// The hash of a word. An empty one says that there are such words.
#[inline(never)]
fn hash(key: &ValueKey, kind: [u8; 3], word: &str, form: &mut Form) -> u64 {
    let none: &[u8] = if word.is_empty() { b"" } else { b"\xff" };
    key.of_kind(&kind, form.of(word).unwrap_or(none))
}

/// Whether the table has an action for a word in lower case.
#[must_use]
pub fn is_verb(word: &str) -> bool {
    of_word(word) != 0
}

/// Whether the user ordered something by a verb that the table does not know.
#[must_use]
pub fn is_ordered(key: &ValueKey, verb: &str, stated: &dyn Fn(u64) -> bool) -> bool {
    let call =
        Call { key, stated, words: &[], values: Vec::new(), rights: Vec::new(), nouns: Vec::new() };
    call.orders().any(|order| call.is_one(order, &[VERB], verb))
}

/// The hash of a tool, as `server/tool`, that a plan names or an approver let the agent call.
#[must_use]
pub fn tool(key: &ValueKey, tool: &str) -> u64 {
    key.of_kind(b"\xff#", tool.as_bytes())
}

/// A value of a call that the user named.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The pointer to its argument.
    pub pointer: &'a str,
    pub value: &'a Json,
    /// Whether its argument is the tool's own. The agent could add another one to name what the user's order is for.
    pub declared: bool,
}

/// Whether an argument says where a tool acts. If a tool of high risk has a default for it, the user may have meant another.
#[must_use]
pub fn is_place(pointer: &str) -> bool {
    const PLACES: [&str; 4] = ["branch", "environment", "namespace", "region"];
    words(pointer).iter().any(|word| is_in(&PLACES, word))
}

/// Whether a run asks for a call of a tool. `mode`: what an argument says that the tool does. `stated`: whether the
/// instruction, the plan or an approver stated a hash.
#[must_use]
pub fn asks(
    key: &ValueKey,
    (tool, mode): (&str, &str),
    named: &[Named<'_>],
    stated: &dyn Fn(u64) -> bool,
) -> bool {
    if mode.is_empty() && stated(self::tool(key, tool)) {
        return true;
    }
    let name = name(tool);
    let mut words = words(name);
    let mut nouns: Vec<String> = words.iter().map(|word| same(word).to_owned()).collect();
    if !mode.is_empty() {
        words = self::words(mode);
        nouns.extend(words.iter().map(|word| same(word).to_owned()));
        words.truncate(1);
    }
    let (mut values, mut rights) = (Vec::new(), Vec::new());
    for Named { pointer, value, declared } in named {
        // In `delete_namespace`, the namespace is no place.
        let own = self::words(pointer);
        let has_rights = own.iter().any(|word| is_access(word));
        let is_source = own.iter().any(|word| is_in(&FROM, word));
        let is_own = || own.iter().any(|word| nouns.iter().any(|it| it == word));
        let is_where = own.iter().any(|word| is_in(&WHERE, word));
        let can_be_object = *declared && (!is_where || is_own());
        each_value(value, &mut |leaf| {
            let text = match leaf {
                Json::Integer(_) | Json::Number(_) => leaf.canonical(),
                _ => leaf.as_str().unwrap_or_default().to_owned(),
            };
            if has_rights && let Some(right) = right_of(&text.to_lowercase()) {
                rights.push(right);
                return;
            }
            values.push(Value { text, can_be_object, is_source });
        });
    }
    let call = Call { key, stated, words: &words, values, rights, nouns };
    (words.len() > 1 && call.has(USED, name)) || call.is_asked()
}

/// Words in the names of arguments that say where or of what kind something is, and never what an order is for.
const WHERE: [&str; 6] = ["environment", "kind", "namespace", "region", "selector", "type"];

/// Words in the names of arguments for what something comes from: the account that pays, or a file that is moved.
#[rustfmt::skip]
const FROM: [&str; 9] =
    ["debit", "debtor", "from", "old", "payer", "secondary", "sender", "source", "src"];

/// Actions for which a place is enough: an account is after `to`, a mailing list after `from`.
#[rustfmt::skip]
const OF_PLACES: [&str; 10] = [
    "book", "buy", "charge", "checkout", "pay", "refund", "sell", "trade", "unsubscribe", "withdraw",
];

/// A value that the user named, by what its argument can be.
struct Value {
    text: String,
    /// Whether the argument can be for the object of an order.
    can_be_object: bool,
    /// Whether it says what something comes from.
    is_source: bool,
}

/// A call of a tool.
struct Call<'a> {
    key: &'a ValueKey,
    stated: &'a dyn Fn(u64) -> bool,
    /// The words of the tool's name, and the same without synonyms.
    words: &'a [String],
    nouns: Vec<String>,
    /// The values that the user named.
    values: Vec<Value>,
    /// The rights among them.
    rights: Vec<&'static str>,
}

impl Call<'_> {
    #[inline(never)]
    fn has(&self, kind: [u8; 3], word: &str) -> bool {
        (self.stated)(hash(self.key, kind, word, &mut Form::new()))
    }

    /// Whether an order has a word of one of the kinds.
    #[inline(never)]
    fn is_one(&self, order: u8, kinds: &[u8], word: &str) -> bool {
        kinds.iter().any(|kind| self.has([0xff, *kind, order], word))
    }

    /// Whether a value of the call is of a kind in an order.
    #[inline(never)]
    fn any(&self, order: u8, kind: u8) -> bool {
        self.values.iter().filter(|it| it.can_be_object || kind != OBJECT).any(|it| {
            let mut words = parts(&it.text);
            words.push(&it.text);
            words.into_iter().any(|word| self.is_one(order, &[kind], word))
        })
    }

    fn does(&self, order: u8, actions: Actions) -> bool {
        let named = ACTIONS.iter().enumerate().filter(|(at, _)| actions & (1 << at) != 0);
        named.into_iter().any(|(_, (name, _))| self.is_one(order, &[ACTION], name))
    }

    /// Whether a value is one of an order, or of a statement such as "the IBAN is DE44". A value that the instruction has in no
    /// other place is one, too, such as 2500 cents of 25 euros.
    #[inline(never)]
    fn is_of(&self, order: u8, value: &Value) -> bool {
        let Value { text, is_source, .. } = value;
        let (text, is_source) = (text.as_str(), *is_source);
        // "The invoice was 980 EUR, transfer 700 EUR."
        let has_own = is_number(text) && self.is_one(order, &[AMOUNT], "");
        let is_known = |word: &str| {
            self.is_one(order, &[OBJECT, PLACE, BESIDE], word)
                || (is_source && self.is_one(order, &[SOURCE], word))
                || (!has_own && self.is_one(STATED, &[BESIDE], word))
        };
        let lists = BEGINS | DESCRIBES | DETERMINERS | JOINS | PREPOSITIONS | THESE | TIMES | WITH;
        // A date of a range ("3 to 5 May") is in no word. Times are no destinations.
        let is_date = Form::new().of(text).is_some_and(is_date);
        let is_of_other = has_own && self.is_one(STATED, &[BESIDE], text);
        // "Move a.md to b.md" moves no b.md.
        if is_source && self.is_one(order, &[TARGET], text) {
            return false;
        }
        is_date
            || is_known(text)
            || (!is_of_other
                && parts(text).into_iter().all(|it| {
                    // "Luigi's", "@anna", "-t".
                    let bare = it.trim_matches(|letter: char| !letter.is_alphanumeric());
                    let bare = bare.strip_suffix("'s").unwrap_or(bare);
                    is_known(it)
                        || is_known(bare)
                        || !self.is_said(it)
                        || is_listed(lists, &bare.to_lowercase())
                }))
    }

    /// The orders of the instruction.
    fn orders(&self) -> impl Iterator<Item = u8> {
        // "" says that there is an order of this number.
        (0..MAX_ORDERS).take_while(|it| self.is_one(*it, &[ACTION], ""))
    }

    fn is_asked(&self) -> bool {
        let verb = verb(self.words);
        self.orders().any(|order| {
            let is_one = |kind| self.is_one(order, &[kind], "");
            let is_of = || self.values.iter().all(|value| self.is_of(order, value));
            self.is_done(order, verb)
                && (is_one(UNKNOWN)
                    || (is_of() && self.has_rights(order) && self.is_brought(order)))
        })
    }

    /// Whether the order grants the rights of the call. If it grants none, another order for the same can do it: "add Anna to
    /// acme/shop, and give her write access".
    fn has_rights(&self, order: u8) -> bool {
        let has = |order: u8, right: &str| self.is_one(order, &[RIGHT], right);
        let is_same = |it: u8| self.is_one(it, &[OBJECT], "") || self.any(it, OBJECT);
        let is_of_other =
            |right: &str| self.orders().any(|it| it != order && has(it, right) && is_same(it));
        self.rights.iter().all(|right| {
            *right == READ
                || has(order, right)
                || (!has(order, "") && (has(STATED, right) || is_of_other(right)))
        })
    }

    /// Whether the call has the number to which an order brings something: "it had a limit of 5000, set it to 500". Cents of
    /// euros are in no instruction.
    fn is_brought(&self, order: u8) -> bool {
        let mut numbers = self.values.iter().filter(|it| is_number(&it.text)).peekable();
        let is_own =
            |it: &Value| self.is_one(order, &[TARGET], &it.text) || !self.is_said(&it.text);
        numbers.peek().is_none() || !self.is_one(order, &[TARGET], "") || numbers.any(is_own)
    }

    /// Whether the instruction has a word.
    fn is_said(&self, word: &str) -> bool {
        Form::new().of(word).is_some_and(|form| (self.stated)(self.key.hash(form)))
    }

    /// Whether an order is for what the tool does and for what the call names. Without a value that the user named, only the
    /// action counts.
    fn is_done(&self, order: u8, verb: Option<(u8, &str, Actions)>) -> bool {
        let is_one = |kind: u8, word: &str| self.is_one(order, &[kind], word);
        let is_open = is_one(OBJECT, "");
        let is_any = self.values.is_empty();
        let is_object = || is_any || is_open || self.any(order, OBJECT);
        let is_noun = || self.nouns.iter().any(|it| is_one(HEAD, it));
        let is_made = || is_object() || is_noun() || self.any(order, FILE);
        let is_related = || {
            is_object()
                && (is_any
                    || !is_one(PLACE, "")
                    || self.any(order, PLACE)
                    || self.nouns.iter().any(|it| is_one(PLACE, it)))
        };
        let is_inside = || {
            let is_place = |word: &str| is_one(PLACE, word);
            self.values.iter().all(|value| parts(&value.text).iter().all(|it| is_place(it)))
        };
        let is_destroyed = || {
            !is_one(TAKES, "")
                && (is_any || is_noun() || self.any(order, OBJECT) || (is_open && !is_inside()))
        };
        if verb.is_none_or(|(rank, ..)| rank == NOUN) {
            // `finalize_invoice`, `kubectl_scale`.
            let last = self.words.last().filter(|_| verb.is_none());
            let mut ends = self.words.first().into_iter().chain(last);
            let is_new = |it: &str| of_word(it) == 0 && is_one(VERB, it);
            if ends.any(|it| is_new(it) || respelled(it).is_some_and(|it| is_new(&it))) && is_made()
            {
                return true;
            }
            // `create_access_key`.
            let create = named("create");
            let creates = self.words.iter().any(|word| named(word) == create);
            if creates && self.does(order, create) && is_noun() {
                return true;
            }
        }
        let Some((_, word, actions)) = verb else { return false };
        let of = |some: Actions| self.does(order, actions & some);
        let is_of_place = of(OF_PLACES.iter().fold(0, |all, name| all | named(name)));
        (of(!(TABLE.destroys | TABLE.wide | TABLE.grants))
            && (is_object()
                || is_noun()
                || (is_of_place && (self.any(order, PLACE) || self.any(STATED, BESIDE)))))
            || (of(TABLE.destroys)
                && (is_listed(EMPTIES, word)
                    || is_destroyed()
                    || (is_one(TAKES, "") && is_related())))
            || (of(TABLE.wide) && is_made())
            || (of(TABLE.grants)
                && (is_related()
                    || (is_one(ENTITLES, "") && (is_object() || self.any(order, PLACE)))))
    }
}

/// Whether a tool's name leaves open what the tool does: `label_write`, `node_management`.
#[must_use]
pub fn is_open(tool: &str) -> bool {
    let open = named("create") | named("overwrite") | named("run") | named("update");
    verb(&words(name(tool))).is_none_or(|(rank, _, action)| rank >= NOUN || action & !open == 0)
}

/// Whether an argument's value names no particular action by its first word: `create`, but not `approve`.
#[must_use]
pub fn is_weak(mode: &str) -> bool {
    words(mode).first().is_none_or(|word| is_in(&WEAK, word))
}

/// Whether a normal form is a date.
fn is_date(form: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    form.len() == 10 && form.iter().enumerate().all(fits)
}

/// What a tool does: the verb of its name, or all words of the name if that is no verb of the table.
#[must_use]
pub fn of_tool(tool: &str) -> String {
    let words = words(name(tool));
    let verb = verb(&words).filter(|(_, verb, _)| known(verb) != 0);
    verb.map_or_else(|| words.join(" "), |(_, verb, _)| verb.to_owned())
}

/// The tool's name without its server's.
fn name(tool: &str) -> &str {
    split_once(tool, '/').map_or(tool, |(_, name)| name)
}

/// The rank of a word that is a thing.
const NOUN: u8 = 2;

/// The word of a tool's name that says most about what the tool does, with its rank and its action.
fn verb(words: &[String]) -> Option<(u8, &str, Actions)> {
    let nexts = words.iter().skip(1).map(Some).chain([None]);
    let any = |list: &[&str]| words.iter().any(|word| is_in(list, word));
    let ranked = words.iter().zip(nexts).filter_map(|(word, next)| {
        let (found, noun) = (of_word(word), noun(word));
        // The action of this name, otherwise the first one that has the word.
        let action = match (noun, named(word)) {
            // `remove_member` takes rights away.
            (0, _) if found & named("revoke") != 0 && any(&MEMBERS) => named("revoke"),
            (0, own) if own == named("add") && (any(&MEMBERS) || any(&TEAMS)) => named("invite"),
            (0, 0) if found & named("role") != 0 && any(&RIGHTS) => named("role"),
            (0, 0) => found & found.wrapping_neg(),
            (0, own) => own,
            (noun, _) => noun,
        };
        let rank = match action {
            0 => return None,
            _ if next.is_some_and(|next| is_phrase(word, next)) => 5,
            // `read_and_delete` deletes.
            _ if action == named("fetch") => 4,
            _ if noun == 0 && is_in(&WEAK, word) => 3,
            // `update_permission` gives one.
            _ if action == named("update") && any(&RIGHTS) => 3,
            _ if noun != 0 || is_in(&THINGS, word) => NOUN,
            _ => 0,
        };
        Some((rank, word.as_str(), action))
    });
    // `call_aws`, but `schedule_call` schedules.
    let called = || {
        let first = words.first().filter(|it| *it == "call")?;
        Some((NOUN, first.as_str(), named("run")))
    };
    let (rank, word, action) = ranked.min_by_key(|(rank, ..)| *rank).or_else(called)?;
    let also = match action {
        run if run == named("run") && any(&PIPELINES) => named("deploy"),
        // `remove_user_from_group`.
        delete if delete == named("delete") && any(&["group", "groups", "team"]) => named("revoke"),
        // `delete_event`.
        delete if delete == named("delete") && any(&CANCELLED) => named("cancel"),
        // `write_query`.
        _ if any(&["query", "sql"]) => named("run"),
        // `create_or_update_file`.
        _ if any(&["or"]) && any(&["create"]) => named("create"),
        _ => 0,
    };
    Some((rank, word, action | also))
}

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut begins, mut after_lower) = (true, false);
    for character in name.chars() {
        let is_part = character.is_alphanumeric();
        begins |= !is_part || (after_lower && character.is_uppercase());
        if is_part && std::mem::take(&mut begins) {
            words.push(String::new());
        }
        if is_part && let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    words
}
