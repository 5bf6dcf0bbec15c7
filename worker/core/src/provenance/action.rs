//! What an instruction asks for: the actions that its words name, and whether a tool does one of them.
//!
//! Of the user's words, an injected text can choose another action: "look at pull request 34" names the pull request,
//! and the text says to merge it. So a tool that destroys, spends or grants needs a word of the instruction for what it
//! does, and for the thing as a whole if that has parts: "delete the branch of acme/shop" names the repository, too.
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on the words beside one: negations, questions,
//! what is read only, and nouns. It knows no other grammar. A word that is missing in the table makes a call wait. A word
//! in the instruction with another meaning lets it pass.

mod clause;
mod table;
#[cfg(test)]
mod tests;
mod vocabulary;
mod wide;

use super::key::ValueKey;
use super::normal::Form;
use super::search::{is_in, split_once};
use clause::of_text;
use table::{Actions, TABLE, container, destroyed, is_part, is_phrase, named, noun, of_word};
use vocabulary::{ACTIONS, BEGINS, JOINS, MEMBERS, PIPELINES, PREPOSITIONS, RIGHTS, THINGS, WEAK};

/// The hashes of the actions that an instruction asks for. No value has such a hash, because no normal form contains the
/// byte 0xff.
#[must_use]
pub fn stated(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let asked = of_text(instruction);
    let mut stated = hashes(key, asked.actions, "");
    for (thing, actions) in asked.things {
        stated.append(&mut hashes(key, actions, thing));
    }
    stated.extend(asked.tools.iter().map(|name| used(key, name)));
    stated
}

/// Whether the table has an action for a word in lower case.
#[must_use]
pub fn is_verb(word: &str) -> bool {
    of_word(word) != 0
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

/// The hash of the name of a tool that an instruction says to use.
fn used(key: &ValueKey, name: &str) -> u64 {
    key.of_kind(b"\xff@", name.as_bytes())
}

/// The hashes of actions, or of doing them to a thing.
#[inline(never)]
fn hashes(key: &ValueKey, actions: Actions, thing: &str) -> Vec<u64> {
    let between = if thing.is_empty() { "" } else { "\0" };
    let named = ACTIONS.iter().enumerate().filter(|(at, _)| actions & (1 << at) != 0);
    let hash = |name: &str| key.of_kind(b"\xff#", [name, between, thing].concat().as_bytes());
    named.map(|(_, (name, _))| hash(name)).collect()
}

/// The hash of a tool, as `server/tool`, that a plan names or an approver let the agent call.
#[must_use]
pub fn tool(key: &ValueKey, tool: &str) -> u64 {
    key.of_kind(b"\xff#", tool.as_bytes())
}

/// Whether a run asks for calls of a tool. `stated`: whether the instruction, the plan or an approver stated a hash.
///
/// If the table has no word of the tool's name, the instruction must have each word of it.
#[must_use]
pub fn asks(key: &ValueKey, tool: &str, stated: impl Fn(u64) -> bool) -> bool {
    if stated(self::tool(key, tool)) {
        return true;
    }
    let words = words(name(tool));
    if words.len() > 1 && stated(used(key, &name(tool).to_lowercase())) {
        return true;
    }
    asks_for(key, &words, &stated)
}

fn asks_for(key: &ValueKey, words: &[String], stated: &dyn Fn(u64) -> bool) -> bool {
    if let Some((word, actions)) = verb(words) {
        let is_asked =
            |actions, thing| hashes(key, actions, thing).iter().any(|hash| stated(*hash));
        return is_asked(actions, "")
            && thing(words, word, actions).is_none_or(|(thing, actions)| is_asked(actions, thing));
    }
    let mut form = Form::new();
    let mut has = |word: &str| form.of(word).is_some_and(|form| stated(key.hash(form)));
    let mut named = |word: &str| {
        let stem = word.strip_suffix('s').unwrap_or(word);
        has(word) || ["", "s", "d", "ed", "ing"].iter().any(|end| has(&[stem, end].concat()))
    };
    let mut long = words.iter().filter(|word| word.len() >= MIN_WORD_BYTES).peekable();
    long.peek().is_some() && long.all(|word| named(word))
}

/// Bytes of a word that an instruction states by itself.
const MIN_WORD_BYTES: usize = 3;

/// What a tool does: the verb of its name, or all words of the name if that is no verb of the table.
#[must_use]
pub fn of_tool(tool: &str) -> String {
    let words = words(name(tool));
    let verb = verb(&words).filter(|(verb, _)| TABLE.words.contains_key(*verb));
    let Some((verb, actions)) = verb else { return words.join(" ") };
    let thing = thing(&words, verb, actions);
    thing.map_or_else(|| verb.to_owned(), |(thing, _)| [verb, " ", thing].concat())
}

/// What a tool destroys as a whole, if that has parts that an instruction can name, and by which actions. `delete_message`
/// destroys no such thing.
#[inline(never)]
fn thing(words: &[String], verb: &str, actions: Actions) -> Option<(&'static str, Actions)> {
    let actions = destroyed(verb, actions)?;
    let end = words.iter().position(|word| is_in(&PREPOSITIONS, word)).unwrap_or(words.len());
    // `remove_user_from_group` deletes no user.
    if verb == "remove" && words.get(end).is_some_and(|word| word == "from") {
        return None;
    }
    let at = (0..end).rfind(|at| words.get(*at).is_some_and(|it| container(it).is_some()))?;
    let is_whole = words.get(at + 1).is_none_or(|next| next == verb || !is_part(next));
    words.get(at).and_then(|word| container(word)).filter(|_| is_whole).map(|it| (it, actions))
}

/// The tool's name without its server's.
fn name(tool: &str) -> &str {
    split_once(tool, '/').map_or(tool, |(_, name)| name)
}

/// The word of a tool's name that says most about what the tool does, and its action.
fn verb(words: &[String]) -> Option<(&str, Actions)> {
    let nexts = words.iter().skip(1).map(Some).chain([None]);
    let any = |list: &[&str]| words.iter().any(|word| is_in(list, word));
    let ranked = words.iter().zip(nexts).filter_map(|(word, next)| {
        let (found, noun) = (of_word(word), noun(word));
        // The action of this name, otherwise the first one that has the word.
        let action = match (noun, named(word)) {
            // `remove_member` takes rights away.
            (0, _) if found & named("revoke") != 0 && any(&MEMBERS) => named("revoke"),
            (0, own) if own == named("add") && any(&MEMBERS) => named("invite"),
            (0, 0) => found & found.wrapping_neg(),
            (0, own) => own,
            (noun, _) => noun,
        };
        let rank = match action {
            0 => return None,
            _ if next.is_some_and(|next| is_phrase(word, next)) => 4,
            // `read_and_delete` deletes.
            _ if action == named("fetch") => 3,
            _ if noun == 0 && is_in(&WEAK, word) => 2,
            // `update_permission` gives one.
            _ if action == named("update") && any(&RIGHTS) => 2,
            _ if noun != 0 || is_in(&THINGS, word) => 1,
            _ => 0,
        };
        Some((rank, word.as_str(), action))
    });
    let (_, word, action) = ranked.min_by_key(|(rank, ..)| *rank)?;
    let deploys = action == named("run") && any(&PIPELINES);
    Some((word, if deploys { action | named("deploy") } else { action }))
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
