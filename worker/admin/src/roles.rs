//! What a tool's definition suggests about its arguments, its reach and its risk, when a server lists it.
//!
//! The server wrote the definition, so this is only a proposal to the person who approves the tool. Whatever
//! the tables do not know gets the strictest value: an argument is a sink, and a call reaches others outside
//! of the tenant.

mod tables;
#[cfg(test)]
mod tests;

use gateward_core::json::{Json, is_pointer};
use gateward_core::policy::bundle::Risk;
use gateward_core::provenance::pointers::MAX_POINTERS;
use gateward_core::provenance::{ArgumentRoles, Reach, Role};
use std::collections::BTreeMap;

use self::tables::{
    ADDS, CHANGES, COMMANDS, CONTENTS, CREATES, DETAILS, DETAILS_IF_LOW_RISK, DETAILS_IF_NEW,
    ENTITLES, FILLERS, HIGH_RISK, HIGH_RISK_IF_ADDED, HIGH_RISK_IF_FIRST, NAMED, NAMES, NUMBERED,
    OWN, OWN_IF_NEW, READS, SINKS, TELLS, TIMES, TITLED,
};
use crate::words::{has, words};

/// JSON Schema's formats of times.
const TIME_FORMATS: [&str; 4] = ["date", "date-time", "duration", "time"];

/// The roles of the arguments, and whom a call reaches. Reads the definition once.
#[must_use]
pub fn derive(definition: &Json) -> (ArgumentRoles, Reach) {
    let name = words(text(definition, "name"));
    let mut roles = Roles { tool: &name, found: BTreeMap::new() };
    if let Some(schema) = definition.get("inputSchema") {
        roles.visit_properties("", schema);
    }
    roles.name_new_thing();
    let roles = ArgumentRoles(roles.found.into_iter().collect());
    let reach = reach(definition, &name, &roles);
    (roles, reach)
}

/// The risk of a listed tool: a person has not looked at it yet, so it is at least medium.
#[must_use]
pub fn risk(definition: &Json) -> Risk {
    let hint = |name| definition.get("annotations").and_then(|given| given.get(name));
    if hint("readOnlyHint") == Some(&Json::Bool(true)) {
        Risk::Medium
    } else if hint("destructiveHint") == Some(&Json::Bool(true))
        || is_high_risk(&words(text(definition, "name")))
    {
        Risk::High
    } else {
        Risk::Medium
    }
}

/// Whether the words of a tool's name say that it destroys, spends or grants.
fn is_high_risk(name: &[String]) -> bool {
    let begins = |words| name.first().is_some_and(|word| has(words, word));
    let adds = name.iter().any(|word| has(ADDS, word));
    let is_high = |word: &String| has(HIGH_RISK, word) || (adds && has(HIGH_RISK_IF_ADDED, word));
    !begins(READS) && (begins(HIGH_RISK_IF_FIRST) || name.iter().any(is_high))
}

fn text<'a>(json: &'a Json, member: &str) -> &'a str {
    json.get(member).and_then(Json::as_str).unwrap_or_default()
}

/// A schema with its alternatives: `anyOf` is how an optional argument is often written.
fn forms(schema: &Json) -> impl Iterator<Item = &Json> {
    let alternatives =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| match schema.get(keyword) {
            Some(Json::Array(forms)) => Some(forms),
            _ => None,
        });
    std::iter::once(schema).chain(alternatives.flatten())
}

/// A schema with its alternatives, and the alternatives of its items.
fn all_forms(schema: &Json) -> impl Iterator<Item = &Json> {
    let items = forms(schema).filter_map(|form| form.get("items")).flat_map(forms);
    forms(schema).chain(items)
}

/// Roles of the arguments of one tool.
struct Roles<'a> {
    /// The words of its name.
    tool: &'a [String],
    found: BTreeMap<String, Role>,
}

impl Roles<'_> {
    /// Visits the arguments in an object with this pointer. Returns whether the schema names some. Recursion
    /// ends at the depth that [`gateward_core::json::parse`] allows.
    fn visit_properties(&mut self, pointer: &str, schema: &Json) -> bool {
        let mut named = false;
        for form in forms(schema) {
            if let Some(Json::Object(properties)) = form.get("properties") {
                named |= !properties.is_empty();
                for (name, schema) in properties {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    self.visit(&format!("{pointer}/{step}"), name, schema);
                }
            }
        }
        named
    }

    /// Makes the name of the thing that the tool creates a detail, if another argument says where it is created.
    fn name_new_thing(&mut self) {
        let Some(thing) = self.tool.last().filter(|thing| has(NAMED, thing)) else { return };
        let is_name = |pointer: &str| pointer.strip_prefix('/') == Some(thing);
        let is_sink = |(pointer, role): (&String, &Role)| !is_name(pointer) && *role == Role::Sink;
        let creates = self.tool.iter().any(|word| has(CREATES, word));
        if creates && !is_high_risk(self.tool) && self.found.iter().any(is_sink) {
            self.found.get_mut(&format!("/{thing}")).into_iter().for_each(|it| *it = Role::Detail);
        }
    }

    fn visit(&mut self, pointer: &str, name: &str, schema: &Json) {
        // An argument without a role is a sink. `*` would stand for every item.
        if self.found.len() == MAX_POINTERS || !is_pointer(pointer) || name == "*" {
            return;
        }
        let mut inside = self.visit_properties(pointer, schema);
        for items in forms(schema).filter_map(|form| form.get("items")) {
            inside |= self.visit_properties(&format!("{pointer}/*"), items);
        }
        if !inside && self.found.len() < MAX_POINTERS {
            let role = role(self.tool, name, schema);
            // Two alternatives can have arguments of one name.
            let known = self.found.entry(pointer.to_owned()).or_insert(role);
            *known = (*known).min(role);
        }
    }
}

/// The role of one argument.
fn role(tool: &[String], name: &str, schema: &Json) -> Role {
    let formats = || all_forms(schema).map(|form| text(form, "format"));
    let kind_is = |kind: &str| {
        all_forms(schema).any(|form| match form.get("type") {
            Some(Json::Array(kinds)) => kinds.iter().any(|one| one.as_str() == Some(kind)),
            one => one.and_then(Json::as_str) == Some(kind),
        })
    };
    // The contents of an object without known members, or of a reference, are not known.
    let opaque = kind_is("object") || all_forms(schema).any(|form| form.get("$ref").is_some());
    if opaque || formats().any(super::egress::is_address_format) {
        return Role::Sink;
    }
    if formats().any(|format| TIME_FORMATS.contains(&format)) {
        return Role::Detail;
    }
    let words = words(name);
    let Some((last, before)) = words.split_last() else { return Role::Sink };
    let does = |verbs| tool.iter().any(|word| has(verbs, word));
    let reads = || tool.first().is_some_and(|word| has(READS, word));
    let is_sink = |word: &String| has(SINKS, word);
    let is_number = || kind_is("integer") || kind_is("number");
    let is_of_low_risk = || {
        has(DETAILS_IF_LOW_RISK, last)
            || (has(DETAILS_IF_NEW, last) && (does(CREATES) || reads()))
            || (has(NUMBERED, last) && is_number() && !kind_is("string"))
    };
    // Of two words, one can be the plural.
    let is_effect =
        || tool.iter().any(|word| has(&[word.as_str()], last) || has(&[last.as_str()], word));
    let is_detail = match is_high_risk(tool) {
        true => has(DETAILS, last) && !is_effect(),
        false => has(DETAILS, last) || is_of_low_risk(),
    };
    let is_title = |word: &String| has(TITLED, word);
    let choice = all_forms(schema).any(|form| form.get("enum").is_some()) || kind_is("boolean");
    if has(CONTENTS, last) && !before.iter().any(|word| has(COMMANDS, word)) {
        Role::Content
    } else if has(TIMES, last)
        || (is_detail && !before.iter().any(is_sink))
        || (has(NAMES, last) && does(CREATES) && before.iter().all(|w| w == "file" || !is_sink(w)))
        || (last == "title" && (does(ENTITLES) || before.last().is_some_and(is_title)))
        || (choice && !words.iter().any(is_sink))
    {
        Role::Detail
    } else {
        Role::Sink
    }
}

/// Whom a call reaches: nobody only if every word of the tool's name is known, no argument can name
/// somebody, and the description does not say that others learn of it.
fn reach(definition: &Json, name: &[String], roles: &ArgumentRoles) -> Reach {
    let creates = name.iter().any(|word| has(CREATES, word) || word == "add");
    let is_thing = |word: &String| has(OWN, word) || (creates && has(OWN_IF_NEW, word));
    let is_verb = |word: &String| has(CHANGES, word) || has(CREATES, word);
    let known = |word: &String| is_verb(word) || is_thing(word) || has(FILLERS, word);
    if !name.iter().any(is_verb) || !name.iter().any(is_thing) || !name.iter().all(known) {
        return Reach::Outside;
    }
    // The id of a thing of the user, such as `id` or `note_id`, does not name a person.
    let own_id = |argument: &str| {
        let words = words(argument);
        let id = words.split_last().filter(|(last, _)| *last == "id");
        id.is_some_and(|(_, things)| things.iter().all(|word| has(OWN, word)))
    };
    let names_somebody = |(pointer, role): &(String, Role)| {
        *role == Role::Sink && !own_id(pointer.trim_start_matches('/'))
    };
    let tells = || words(text(definition, "description")).iter().any(|word| has(TELLS, word));
    if roles.0.iter().any(names_somebody) {
        Reach::BySinks
    } else if tells() || roles.0.len() == MAX_POINTERS {
        Reach::Outside
    } else {
        Reach::Nobody
    }
}
