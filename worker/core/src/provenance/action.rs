//! What an instruction asks for: the actions that its words name, and whether a tool does one of them.
//!
//! Of the user's words, an injected text can choose another action: "look at pull request 34" names the pull request,
//! and the text says to merge it. So a tool that destroys, spends or grants needs a word of the instruction for what it
//! does. If it destroys, makes or changes something, or gives access, the call must also name the [object](objects) of that
//! word: "delete the branch fix-12 in acme/shop" names the repository, too.
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on the words beside one: negations, questions,
//! what is read only, and nouns. It knows no other grammar. A word that is missing in the table makes a call wait. A word
//! in the instruction with another meaning lets it pass.

mod actions;
mod clause;
mod objects;
mod phrases;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod vocabulary;
mod wide;
mod words;

use super::key::ValueKey;
use super::leaves::each_value;
use super::normal::Form;
use super::search::{is_in, split_once};
use crate::json::Json;
use actions::ACTIONS;
use table::{Actions, TABLE, is_phrase, named, noun, of_word, respelled};
use text::of_text;
use vocabulary::{
    BEGINS, CANCELLED, EMPTIES, JOINS, MEMBERS, PIPELINES, RIGHTS, TEAMS, THINGS, WEAK,
};
use words::{
    DESTROYED, ENTITLES, HEAD, MADE, MAX_WORDS, NEW, OBJECT, ORDERED, PLACE, RELATED, USED,
    of_verb, parts, same,
};

/// The hashes of what an instruction asks for: its actions, and the words of its orders. No value has such a hash, because
/// no normal form contains the byte 0xff.
#[must_use]
pub fn stated(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let mut asked = of_text(instruction);
    if asked.words.len() >= MAX_WORDS {
        asked.actions &= !(TABLE.destroys | TABLE.wide | TABLE.grants);
        asked.words.clear();
    }
    let mut stated = hashes(key, asked.actions);
    let mut form = Form::new();
    stated.extend(asked.words.iter().map(|(kind, word)| hash(key, *kind, word, &mut form)));
    stated
}

/// Whether a word joins two orders.
#[must_use]
pub fn joins(word: &str) -> bool {
    is_in(&JOINS, word)
}

/// Whether an order can follow a word.
#[must_use]
pub fn leads(word: &str) -> bool {
    is_in(&BEGINS, word) || joins(word)
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

/// The hash of an order that the table does not know.
#[must_use]
pub fn ordered(key: &ValueKey, verb: &str) -> u64 {
    hash(key, ORDERED, verb, &mut Form::new())
}

/// The hashes of actions.
#[inline(never)]
fn hashes(key: &ValueKey, actions: Actions) -> Vec<u64> {
    let named = ACTIONS.iter().enumerate().filter(|(at, _)| actions & (1 << at) != 0);
    named.map(|(_, (name, _))| tool(key, name)).collect()
}

/// The hash of a tool, as `server/tool`, that a plan names or an approver let the agent call.
#[must_use]
pub fn tool(key: &ValueKey, tool: &str) -> u64 {
    key.of_kind(b"\xff#", tool.as_bytes())
}

/// Whether a run asks for a call of a tool. `mode`: what an argument says that the tool does. `values`: those that the user
/// named. `stated`: whether the instruction, the plan or an approver stated a hash.
#[must_use]
pub fn asks(
    key: &ValueKey,
    (tool, mode): (&str, &str),
    values: &[&Json],
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
    let mut named = Vec::new();
    for value in values {
        each_value(value, &mut |leaf| {
            let text = match leaf {
                Json::Integer(_) | Json::Number(_) => leaf.canonical(),
                _ => leaf.as_str().unwrap_or_default().to_owned(),
            };
            for part in parts(&text) {
                named.push(part.to_owned());
            }
        });
    }
    let call = Call { key, stated, words: &words, values: named, nouns };
    (words.len() > 1 && call.has(USED, name)) || call.is_asked()
}

/// A call of a tool.
struct Call<'a> {
    key: &'a ValueKey,
    stated: &'a dyn Fn(u64) -> bool,
    /// The words of the tool's name, and the same without synonyms.
    words: &'a [String],
    nouns: Vec<String>,
    /// The words of the values that the user named.
    values: Vec<String>,
}

impl Call<'_> {
    #[inline(never)]
    fn has(&self, kind: [u8; 3], word: &str) -> bool {
        (self.stated)(hash(self.key, kind, word, &mut Form::new()))
    }

    #[inline(never)]
    fn any(&self, kind: u8, (class, verb): (u8, &str), words: &[String]) -> bool {
        words.iter().any(|word| self.has([0xff, kind, class], &of_verb(verb, word)))
    }

    fn does(&self, actions: Actions) -> bool {
        hashes(self.key, actions).iter().any(|hash| (self.stated)(*hash))
    }

    /// Whether the orders of a class, or those with an unknown verb, are for what the call names. If the user
    /// named no value of the call, it waits anyway, unless its only sinks are links in a content.
    #[inline(never)]
    fn fits(&self, class: u8, verb: &str) -> bool {
        let is_object = || self.any(OBJECT, (class, verb), &self.values);
        let is_open = || self.has([0xff, OBJECT, class], &of_verb(verb, ""));
        let is_noun = || self.any(HEAD, (class, verb), &self.nouns);
        let is_place = |words: &[String]| self.any(PLACE, (class, ""), words);
        let is_inside = || self.values.iter().all(|value| self.has([0xff, PLACE, class], value));
        self.values.is_empty()
            || match class {
                DESTROYED => is_object() || is_noun() || (is_open() && !is_inside()),
                RELATED => {
                    (is_object() || is_open())
                        && (!self.has([0xff, PLACE, class], "")
                            || is_place(&self.values)
                            || is_place(&self.nouns))
                }
                _ => is_object() || is_open() || is_noun(),
            }
    }

    fn is_asked(&self) -> bool {
        let verb = verb(self.words);
        if verb.is_none_or(|(rank, ..)| rank == NOUN) {
            // `finalize_invoice`, `kubectl_scale`.
            let last = self.words.last().filter(|_| verb.is_none());
            let mut ends = self.words.first().into_iter().chain(last);
            let is_new = |it: &str| of_word(it) == 0 && self.has(ORDERED, it) && self.fits(NEW, it);
            if ends.any(|it| is_new(it) || respelled(it).is_some_and(|it| is_new(&it))) {
                return true;
            }
            // `create_access_key`.
            let create = named("create");
            if self.words.iter().any(|word| named(word) == create)
                && self.does(create)
                && self.any(HEAD, (MADE, ""), &self.nouns)
            {
                return true;
            }
        }
        let Some((_, word, actions)) = verb else { return false };
        let of = |some: Actions| self.does(actions & some);
        of(!(TABLE.destroys | TABLE.wide | TABLE.grants))
            || (of(TABLE.destroys)
                && (is_in(&EMPTIES, word) || self.fits(DESTROYED, "") || self.fits(RELATED, "")))
            || (of(TABLE.wide) && self.fits(MADE, ""))
            || (of(TABLE.grants)
                && ((self.stated)(self.key.of_kind(&ENTITLES, b"")) || self.fits(RELATED, "")))
    }
}

/// Whether a tool's name leaves open what the tool does: `label_write`, `node_management`.
#[must_use]
pub fn is_open(tool: &str) -> bool {
    let open = named("create") | named("overwrite") | named("run") | named("update");
    verb(&words(name(tool))).is_none_or(|(rank, _, action)| rank >= NOUN || action & !open == 0)
}

/// Whether the first word of what an argument says does not say what the tool does: `create` beside `approve`.
#[must_use]
pub fn is_weak(mode: &str) -> bool {
    words(mode).first().is_none_or(|word| is_in(&WEAK, word))
}

/// What a tool does: the verb of its name, or all words of the name if that is no verb of the table.
#[must_use]
pub fn of_tool(tool: &str) -> String {
    let words = words(name(tool));
    let verb = verb(&words).filter(|(_, verb, _)| TABLE.words.contains_key(*verb));
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
    let (rank, word, action) = ranked.min_by_key(|(rank, ..)| *rank)?;
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
