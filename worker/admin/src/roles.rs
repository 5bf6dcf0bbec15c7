//! What a tool's definition suggests about its arguments, its reach and its risk, when a server lists it.
//!
//! The server wrote the definition, so this is only a proposal to the person who approves the tool. Whatever
//! the tables do not know gets the strictest value: an argument is a sink, and a call reaches others outside
//! of the tenant.

#[cfg(test)]
mod risk_tests;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
mod tool;

use gateward_core::json::{Json, is_pointer};
use gateward_core::policy::bundle::Risk;
use gateward_core::provenance::pointers::MAX_POINTERS;
use gateward_core::provenance::{ArgumentRoles, Reach, Role};
use std::collections::BTreeMap;

use self::schema::{all_forms, choices, forms, has_type, text};
use self::tables::{
    ACTIONS, BLOCKS, COMMANDS, CONTENTS, CREATES, DETAILS, DETAILS_IF_LOW_RISK, DETAILS_IF_NEW,
    DNS, EDITED, EDITS, EFFECTS, ENTITLES, HARMLESS, LABELS, MODES, NAMED, NAMES, NUMBERED,
    NUMBERED_IF_READ, OF_RECORDS, OPENS, OWN, QUIET, RECEIVERS, RUNS, SINKS, TELLS, THREADS, TIMES,
    TITLED,
};
use self::tool::Tool;
use crate::words::{has, has_any, words};

/// JSON Schema's formats of times.
const TIME_FORMATS: [&str; 4] = ["date", "date-time", "duration", "time"];

/// The roles of the arguments, and whom a call reaches. Reads the definition once.
#[must_use]
pub fn derive(definition: &Json) -> (ArgumentRoles, Reach) {
    let tool = Tool::of(definition);
    let mut roles = Roles { tool: &tool, found: BTreeMap::new() };
    if let Some(schema) = definition.get("inputSchema") {
        roles.visit_properties("", schema);
        roles.free_thread(schema);
    }
    roles.name_new_thing();
    roles.free_replaced_hash();
    let roles = ArgumentRoles(roles.found.into_iter().collect());
    let reach = reach(definition, &tool, &roles);
    (roles, reach)
}

/// The risk of a listed tool, and whether it changes something. A person has not looked at it yet, so its risk is at least
/// medium. What its server says comes before what its name says.
#[must_use]
pub fn risk(definition: &Json) -> (Risk, bool) {
    let hint = |name| match definition.get("annotations").and_then(|given| given.get(name)) {
        Some(Json::Bool(hint)) => Some(*hint),
        _ => None,
    };
    let destroys = hint("destructiveHint") == Some(true);
    match hint("readOnlyHint") {
        Some(true) => (Risk::Medium, false),
        said => {
            let tool = Tool::of(definition);
            let risk = if destroys || tool.high_risk { Risk::High } else { Risk::Medium };
            (risk, destroys || said.is_some() || !tool.only_reads(definition))
        }
    }
}

/// Roles of the arguments of one tool.
struct Roles<'a> {
    tool: &'a Tool,
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
        let Some(thing) = self.tool.words.last().filter(|thing| has(NAMED, thing)) else { return };
        let is_name = |pointer: &str| pointer.strip_prefix('/') == Some(thing);
        let is_sink = |(pointer, role): (&String, &Role)| !is_name(pointer) && *role == Role::Sink;
        if self.tool.creates && !self.tool.high_risk && self.found.iter().any(is_sink) {
            self.make_detail(|pointer| is_name(pointer));
        }
    }

    /// Makes the thread of a message a detail, if a call must say who gets the message.
    fn free_thread(&mut self, schema: &Json) {
        let is_thread = |pointer: &str| THREADS.contains(&words(pointer).join(" ").as_str());
        let names_receiver = |name: &Json| {
            let name = name.as_str().unwrap_or_default();
            let is_sink = self.found.get(&format!("/{name}")) == Some(&Role::Sink);
            is_sink && !is_thread(name) && has_any(RECEIVERS, &words(name))
        };
        let is_addressed = match schema.get("required") {
            Some(Json::Array(names)) => names.iter().any(names_receiver),
            _ => false,
        };
        // What is forwarded can be a thread.
        if is_addressed && self.tool.does(ENTITLES) && !self.tool.does(&["forward"]) {
            self.make_detail(is_thread);
        }
    }

    /// Makes the hash of the file that is replaced a detail: the tool compares it with the file at the path.
    fn free_replaced_hash(&mut self) {
        let writes = self.tool.does(CREATES) || self.tool.does(EDITS);
        if writes && self.tool.does(&["file"]) && self.found.get("/path") == Some(&Role::Sink) {
            self.make_detail(|pointer| pointer == "/sha");
        }
    }

    fn make_detail(&mut self, which: impl Fn(&str) -> bool) {
        let found = self.found.iter_mut().filter(|(pointer, _)| which(pointer));
        found.for_each(|(_, role)| *role = Role::Detail);
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
fn role(tool: &Tool, name: &str, schema: &Json) -> Role {
    let formats = || all_forms(schema).map(|form| text(form, "format"));
    let kind_is = |kind| has_type(schema, kind);
    let words = words(name);
    // The contents of an object without known members, or of a reference, are not known.
    let opaque = kind_is("object") || all_forms(schema).any(|form| form.get("$ref").is_some());
    if opaque && kind_is("array") && is_content(tool, &words, BLOCKS) {
        return Role::Content;
    }
    if opaque || formats().any(super::egress::is_address_format) {
        return Role::Sink;
    }
    let is_number = (kind_is("integer") || kind_is("number")) && !kind_is("string");
    let is_flag = kind_is("boolean");
    let is_choice = is_flag || all_forms(schema).any(|form| form.get("enum").is_some());
    let is_time = formats().any(|format| TIME_FORMATS.contains(&format));
    if is_time && (!tool.high_risk || tool.only_buys) {
        Role::Detail
    } else if !(is_number || is_flag) && is_content(tool, &words, CONTENTS) {
        Role::Content
    } else if is_detail(tool, &words, is_number)
        || (is_flag
            && has_any(QUIET, &words)
            && !has_any(EFFECTS, &words)
            && !has_any(OPENS, &words))
        || (is_choice && is_free_choice(tool, &words, schema))
    {
        Role::Detail
    } else {
        Role::Sink
    }
}

/// The last two words of a name.
fn ending(words: &[String]) -> String {
    words.get(words.len().saturating_sub(2)..).unwrap_or_default().join(" ")
}

/// Whether an argument of this name is a text for readers, by the last word of its name.
fn is_content(tool: &Tool, words: &[String], contents: &[&str]) -> bool {
    let Some((last, before)) = words.split_last() else { return false };
    let is_effect = tool.does(RUNS)
        || (tool.high_risk && tool.is_named_after(last))
        || (last == "content" && tool.does(DNS));
    let is_text = has(contents, last) || EDITED.contains(&ending(words).as_str());
    is_text && !has_any(COMMANDS, before) && !is_effect
}

/// Whether an argument of this name is a detail.
fn is_detail(tool: &Tool, words: &[String], is_number: bool) -> bool {
    let Some((last, before)) = words.split_last() else { return false };
    let free = !tool.high_risk;
    let is_of_low_risk = || {
        let is_new = tool.creates || tool.reads;
        has(DETAILS_IF_LOW_RISK, last)
            || (is_new && has(DETAILS_IF_NEW, last))
            || ((is_new || tool.writes) && has(LABELS, last))
            || (is_number && has(NUMBERED, last))
            || (is_number && tool.reads && has(NUMBERED_IF_READ, last))
    };
    let is_plain =
        (has(DETAILS, last) && (free || !tool.is_named_after(last))) || (free && is_of_low_risk());
    let is_name = || {
        let is_part = |word: &String| word != "file" && has(SINKS, word);
        has(NAMES, last) && tool.creates && !tool.does(DNS) && !before.iter().any(is_part)
    };
    let is_title = match last.as_str() {
        "title" => (free && tool.entitles()) || before.last().is_some_and(|word| has(TITLED, word)),
        "subject" => (free && tool.entitles()) || tool.only_buys,
        _ => false,
    };
    HARMLESS.contains(&ending(words).as_str())
        || (!free && tool.does(DNS) && has(OF_RECORDS, last))
        || (has(TIMES, last) && (free || tool.only_buys))
        || (is_plain && !has_any(SINKS, before))
        || (free && is_name())
        || is_title
}

/// Whether a choice or a flag is no effect of its own.
fn is_free_choice(tool: &Tool, words: &[String], schema: &Json) -> bool {
    if tool.high_risk || has_any(SINKS, words) {
        return false;
    }
    let opens = |value| has_any(OPENS, &crate::words::words(value));
    let is_action = |value| tool::begins(&crate::words::words(value), ACTIONS);
    match words.last().is_some_and(|last| has(MODES, last)) {
        _ if tool.reads => true,
        true => choices(schema).next().is_some() && choices(schema).all(is_action),
        false => tool.adds && !has_any(EFFECTS, words) && !choices(schema).any(opens),
    }
}

/// Whom a call reaches: nobody only if every word of the tool's name is known, no argument can name
/// somebody, and the description does not say that others learn of it.
fn reach(definition: &Json, tool: &Tool, roles: &ArgumentRoles) -> Reach {
    if !tool.own {
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
