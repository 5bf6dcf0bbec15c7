//! What a tool's definition suggests about its arguments, its reach and its risk, when a server lists it. The
//! tables are also in docs/administration.md.
//!
//! The server wrote the definition, so this is only a proposal to the person who approves the tool. Whatever
//! the tables do not know gets the strictest value: an argument is a sink, and a call reaches others outside
//! of the tenant.

use gateward_core::json::Json;
use gateward_core::policy::bundle::Risk;
use gateward_core::provenance::pointers::{MAX_POINTERS, is_pointer};
use gateward_core::provenance::{ArgumentRoles, Reach, Role};
use std::collections::BTreeMap;

use crate::words::{has, words};

/// The last word of the name of a time or a subject line.
#[rustfmt::skip]
const TIMES: &[&str] = &[
    "begin", "date", "datetime", "day", "deadline", "due", "duration", "end", "hour", "minute",
    "month", "since", "start", "subject", "time", "timestamp", "timezone", "tz", "until", "week",
    "weekday", "year",
];

/// The last word of the name of a text for readers.
#[rustfmt::skip]
const CONTENTS: &[&str] = &[
    "body", "caption", "comment", "content", "description", "detail", "html", "markdown", "message",
    "note", "reason", "remark", "summary", "text",
];

/// The last word of the name of another detail.
#[rustfmt::skip]
const DETAILS: &[&str] = &[
    "category", "color", "colour", "emoji", "format", "height", "icon", "lang", "language", "locale",
    "page", "place", "priority", "severity", "sort", "theme", "venue", "width",
];

/// The last word of the name of a detail of a new thing, or of what a tool reads. In a tool that changes a thing, it can
/// be the whole effect: the limit of a card.
const DETAILS_IF_NEW: &[&str] = &["label", "limit", "location", "size"];

/// A word in the name of a sink. The words decide only about details, choices and flags: an argument that
/// is nothing else is a sink with any name.
#[rustfmt::skip]
const SINKS: &[&str] = &[
    "access", "account", "address", "admin", "amount", "anyone", "assignee", "attendee", "balance",
    "bank", "bcc", "beneficiary", "bic", "branch", "bucket", "budget", "callback", "card", "cc",
    "channel", "chat", "code", "collaborator", "command", "commit", "contact", "cost", "credential",
    "credit", "currency", "customer", "database", "destination", "dir", "directory", "domain",
    "email", "endpoint", "everyone", "fee", "file", "folder", "force", "group", "guest", "host",
    "hostname", "href", "iban", "id", "invitee", "ip", "key", "link", "mail", "member", "notify",
    "org", "organization", "output", "overwrite", "owner", "participant", "password", "path",
    "payee", "payment", "people", "permission", "person", "phone", "price", "privacy", "private",
    "project", "public", "query", "recipient", "ref", "repo", "repository", "reviewer", "role",
    "room", "save", "scope", "script", "secret", "sender", "server", "service", "sha", "share",
    "shared", "site", "spending", "sql", "sum", "swift", "table", "target", "team", "thread", "to",
    "token", "total", "uri", "url", "user", "username", "uuid", "visibility", "webhook", "website",
    "workspace",
];

/// The last word of an argument that gives a new thing its name.
const NAMES: &[&str] = &["filename", "name"];

/// Words in the names of tools that create a thing. Then its name is a detail. In other tools, a name says
/// which existing thing is changed.
const CREATES: &[&str] = &["compose", "create", "draft", "make", "new", "schedule"];

/// The same for titles: a title never names a person.
#[rustfmt::skip]
const ENTITLES: &[&str] = &[
    "add", "compose", "create", "draft", "make", "new", "notify", "post", "schedule", "send",
];

/// Things of the user that nobody else sees.
const OWN: &[&str] = &["alarm", "bookmark", "draft", "label", "note", "reminder", "timer", "todo"];

/// Things that nobody else sees when they are new. Files are not among them: a tool that creates a file may replace a
/// file that a program runs, or put it where others see it.
const OWN_IF_NEW: &[&str] = &["appointment", "calendar", "event"];

/// Words in the names of tools that change the user's things.
#[rustfmt::skip]
const CHANGES: &[&str] = &[
    "add", "append", "archive", "cancel", "clear", "complete", "create", "delete", "edit", "make",
    "mark", "move", "new", "remove", "rename", "reschedule", "save", "schedule", "set", "update",
    "write",
];

/// Words besides a verb and a thing that do not change whom a call reaches.
#[rustfmt::skip]
const FILLERS: &[&str] = &[
    "a", "an", "as", "done", "for", "from", "in", "item", "list", "my", "own", "personal", "the",
    "to",
];

/// Words in a description that say that others learn of a call.
#[rustfmt::skip]
const TELLS: &[&str] = &[
    "broadcast", "email", "emailed", "forward", "invitation", "invite", "invited", "mail",
    "notification", "notified", "notifies", "notify", "post", "posted", "public", "publicly",
    "publish", "published", "send", "sending", "sent", "share", "shared", "sharing",
];

/// Words in the names of tools that destroy, spend, grant, stop a service or cannot be undone.
#[rustfmt::skip]
const HIGH_RISK: &[&str] = &[
    "access", "admin", "approve", "authorize", "book", "buy", "cancel", "charge", "checkout",
    "collaborator", "credential", "delete", "deploy", "destroy", "disable", "donate", "drop",
    "erase", "exec", "execute", "grant", "invite", "kill", "merge", "money", "order", "overwrite",
    "password", "pay", "payment", "permission", "promote", "publish", "purchase", "purge", "refund",
    "remove", "reserve", "reset", "restart", "revoke", "role", "run", "sell", "share", "shell",
    "subscribe", "terminate", "trade", "transaction", "transfer", "truncate", "uninstall", "unlock",
    "visibility", "wipe", "withdraw",
];

/// The same in the names of tools that add: a member gets access. Inviting and removing are high risk by
/// themselves.
const HIGH_RISK_IF_ADDED: &[&str] = &["member"];

/// The first word of the name of a tool that reads. The words after it do not make such a tool high risk.
#[rustfmt::skip]
const READS: &[&str] = &[
    "check", "count", "describe", "fetch", "find", "get", "list", "lookup", "query", "read",
    "search", "show", "view",
];

/// The tables as the docs show them: what the words are, and what follows from them.
pub const TABLES: [(&str, &str, &[&str]); 16] = [
    ("last word of an argument's name", "content", CONTENTS),
    ("last word of an argument's name", "detail", TIMES),
    ("last word of an argument's name, without a word of a sink", "detail", DETAILS),
    ("the same, in a tool that creates or reads", "detail", DETAILS_IF_NEW),
    ("last word of an argument's name, in a tool that creates", "detail", NAMES),
    ("word of a tool that creates", "a name is a detail", CREATES),
    ("word of a tool that creates or sends", "a title is a detail", ENTITLES),
    ("word of a sink", "not a detail", SINKS),
    ("word of a thing of the user", "reach `nobody`", OWN),
    ("word of a thing that is new", "reach `nobody`", OWN_IF_NEW),
    ("word of a tool that changes such a thing", "reach `nobody`", CHANGES),
    ("word beside them in the tool's name", "reach `nobody`", FILLERS),
    ("word of a description", "reach `outside`", TELLS),
    ("word of a tool's name", "risk `high`", HIGH_RISK),
    ("word of a tool's name, with `add`", "risk `high`", HIGH_RISK_IF_ADDED),
    ("first word of the name of a tool that reads", "risk `medium`", READS),
];

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
    let roles = ArgumentRoles(roles.found.into_iter().collect());
    let reach = reach(definition, &name, &roles);
    (roles, reach)
}

/// The risk of a listed tool: a person has not looked at it yet, so it is at least medium.
#[must_use]
pub fn risk(definition: &Json) -> Risk {
    let hint = |name| definition.get("annotations").and_then(|given| given.get(name));
    let name = words(text(definition, "name"));
    let reads = || name.first().is_some_and(|word| has(READS, word));
    let adds = name.iter().any(|word| word == "add");
    let is_high = |word: &String| has(HIGH_RISK, word) || (adds && has(HIGH_RISK_IF_ADDED, word));
    if hint("readOnlyHint") == Some(&Json::Bool(true)) {
        Risk::Medium
    } else if hint("destructiveHint") == Some(&Json::Bool(true))
        || (!reads() && name.iter().any(is_high))
    {
        Risk::High
    } else {
        Risk::Medium
    }
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
    let is_detail = has(DETAILS, last) || (has(DETAILS_IF_NEW, last) && (does(CREATES) || reads()));
    let choice = all_forms(schema).any(|form| form.get("enum").is_some()) || kind_is("boolean");
    if has(CONTENTS, last) {
        Role::Content
    } else if has(TIMES, last)
        || (is_detail && !before.iter().any(is_sink))
        || (has(NAMES, last) && does(CREATES) && before.iter().all(|w| w == "file" || !is_sink(w)))
        || (last == "title" && does(ENTITLES))
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

#[cfg(test)]
mod tests {
    use super::*;
    use gateward_core::json;

    fn derived(definition: &str) -> (Vec<(String, Role)>, Reach, Risk) {
        let definition = json::parse_definition(definition.as_bytes()).unwrap();
        let (ArgumentRoles(roles), reach) = derive(&definition);
        (roles, reach, risk(&definition))
    }

    /// The roles of the arguments of a tool, in the order of their pointers.
    fn roles(tool: &str, properties: &str) -> Vec<(String, Role)> {
        let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
        derived(&format!(r#"{{"name":"{tool}","inputSchema":{schema}}}"#)).0
    }

    #[test]
    fn an_argument_has_the_role_that_its_name_suggests() {
        use Role::{Content, Detail, Sink};
        for (name, in_create, in_update) in [
            ("to", Sink, Sink),
            ("recipients", Sink, Sink),
            ("replyTo", Sink, Sink),
            ("amount", Sink, Sink),
            ("file_id", Sink, Sink),
            ("path", Sink, Sink),
            ("anything", Sink, Sink),
            ("", Sink, Sink),
            ("body", Content, Content),
            ("email_body", Content, Content),
            ("fileContents", Content, Content),
            ("content_url", Sink, Sink),
            ("start_time", Detail, Detail),
            ("payment_date", Detail, Detail),
            ("subject", Detail, Detail),
            ("venue", Detail, Detail),
            ("location", Detail, Sink),
            ("daily_limit", Detail, Sink),
            ("labels", Detail, Sink),
            ("type", Sink, Sink),
            ("output_location", Sink, Sink),
            ("spending_limit", Sink, Sink),
            ("name", Detail, Sink),
            ("file_name", Detail, Sink),
            ("recipient_name", Sink, Sink),
            ("title", Detail, Sink),
        ] {
            let properties = format!(r#"{{"{name}":{{"type":"string"}}}}"#);
            let expected = |role| vec![(format!("/{name}"), role)];
            assert_eq!(roles("create_x", &properties), expected(in_create), "{name}");
            assert_eq!(roles("update_x", &properties), expected(in_update), "{name}");
        }
    }

    #[test]
    fn an_argument_has_the_role_that_its_schema_suggests() {
        use Role::{Content, Detail, Sink};
        for (what, schema, name, expected) in [
            ("address in a text", r#"{"type":"string","format":"email"}"#, "note", Sink),
            ("URL in a list", r#"{"items":{"format":"URI"}}"#, "text", Sink),
            ("time", r#"{"format":"date-time"}"#, "at", Detail),
            (
                "time that may be left out",
                r#"{"anyOf":[{"format":"date"},{"type":"null"}]}"#,
                "at",
                Detail,
            ),
            ("choice", r#"{"enum":["a","b"]}"#, "mode", Detail),
            ("choice of a kind", r#"{"enum":["note","event"]}"#, "type", Detail),
            ("choice of a permission", r#"{"enum":["read","write"]}"#, "permission", Sink),
            ("choice of a channel", r#"{"enum":["a","b"]}"#, "channel", Sink),
            ("flag", r#"{"type":"boolean"}"#, "all_day", Detail),
            ("flag that shows something", r#"{"type":["boolean","null"]}"#, "is_public", Sink),
            ("object that can have anything", r#"{"type":"object"}"#, "text", Sink),
            ("the same, or null", r#"{"type":["object","null"]}"#, "text", Sink),
            ("reference", r##"{"$ref":"#/$defs/a"}"##, "text", Sink),
            ("list of texts", r#"{"type":"array","items":{"type":"string"}}"#, "texts", Content),
        ] {
            let properties = format!(r#"{{"{name}":{schema}}}"#);
            assert_eq!(roles("x", &properties), [(format!("/{name}"), expected)], "{what}");
        }
    }

    #[test]
    fn an_argument_that_is_the_effect_is_no_detail() {
        for (tool, argument, expected) in [
            ("set_card_limit", "limit", Role::Sink),
            ("resize_volume", "size", Role::Sink),
            ("add_label", "label", Role::Sink),
            ("update_user", "kind", Role::Sink),
            ("create_issue", "label", Role::Detail),
            ("create_volume", "size", Role::Detail),
            ("search_mail", "limit", Role::Detail),
            ("list_issues", "label", Role::Detail),
        ] {
            let properties = format!(r#"{{"{argument}":{{"type":"string"}}}}"#);
            assert_eq!(roles(tool, &properties), [(format!("/{argument}"), expected)], "{tool}");
        }
    }

    #[test]
    fn arguments_inside_of_others_have_pointers() {
        let properties = r#"{"mail":{"anyOf":[{"type":"object","properties":{"to":{},"a/b~c":{},"text":{}}},
                {"properties":{"text":{"format":"uri"}}}]},
            "files":{"type":"array","items":{"properties":{"path":{},"content":{}}}},
            "*":{},"odd\n":{}}"#;
        let expected = [
            ("/files/*/content", Role::Content),
            ("/files/*/path", Role::Sink),
            ("/mail/a~1b~0c", Role::Sink),
            ("/mail/text", Role::Sink),
            ("/mail/to", Role::Sink),
        ];
        assert_eq!(roles("x", properties), expected.map(|(name, role)| (name.to_owned(), role)));
    }

    #[test]
    fn roles_are_bounded_and_can_be_registered() {
        let many: Vec<_> = (0..200).map(|n| format!(r#""text_{n}":{{}}"#)).collect();
        let found = ArgumentRoles(roles("x", &format!("{{{}}}", many.join(","))));
        assert_eq!(found.0.len(), MAX_POINTERS);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<ArgumentRoles>(&text).unwrap(), found);
    }

    #[test]
    fn a_call_reaches_nobody_only_if_all_of_it_is_known() {
        use Reach::{BySinks, Nobody, Outside};
        for (tool, properties, description, expected) in [
            ("create_note", r#"{"title":{},"body":{}}"#, "Creates a note.", Nobody),
            ("update_note", r#"{"note_id":{},"body":{}}"#, "", Nobody),
            ("delete-reminder", r#"{"id":{}}"#, "", Nobody),
            ("addLabel", r#"{"label":{}}"#, "", BySinks),
            ("create_label", r#"{"name":{}}"#, "", Nobody),
            ("add_label", r#"{"owner":{},"repo":{},"label":{}}"#, "", BySinks),
            ("create_note", r#"{"body":{}}"#, "Sends it to the team.", Outside),
            ("create_draft", r#"{"to":{},"body":{}}"#, "Saves a draft.", BySinks),
            ("create_calendar_event", r#"{"title":{},"start":{}}"#, "", Nobody),
            ("create_calendar_event", r#"{"title":{},"attendees":{}}"#, "Invites them.", BySinks),
            ("cancel_calendar_event", r#"{"event_id":{}}"#, "", Outside),
            ("create_file", r#"{"filename":{},"content":{}}"#, "", Outside),
            ("create_file", r#"{"path":{},"content":{}}"#, "", Outside),
            ("create_folder", r#"{"name":{}}"#, "", Outside),
            ("create_document", r#"{"title":{},"content":{}}"#, "", Outside),
            ("delete_file", r#"{"id":{}}"#, "", Outside),
            ("send_note", r#"{"body":{}}"#, "", Outside),
            ("create_issue_note", r#"{"body":{}}"#, "", Outside),
            ("create_note_and_share", r#"{"body":{}}"#, "", Outside),
            ("note", r#"{"body":{}}"#, "", Outside),
            ("frobnicate", "{}", "", Outside),
            ("", "{}", "", Outside),
        ] {
            let definition = format!(
                r#"{{"name":"{tool}","description":"{description}","inputSchema":{{"properties":{properties}}}}}"#
            );
            assert_eq!(derived(&definition).1, expected, "{tool} {properties} {description}");
        }
    }

    #[test]
    fn a_tool_that_destroys_spends_or_grants_has_high_risk() {
        for (tool, annotations, expected) in [
            ("delete_file", "{}", Risk::High),
            ("transferFunds", "{}", Risk::High),
            ("merge_pull_request", "{}", Risk::High),
            ("update_password", "{}", Risk::High),
            ("invite_member", "{}", Risk::High),
            ("add_team_members", "{}", Risk::High),
            ("add_collaborator", "{}", Risk::High),
            ("share_calendar", "{}", Risk::High),
            ("set_repo_visibility", "{}", Risk::High),
            ("publishPage", "{}", Risk::High),
            ("unlock_door", "{}", Risk::High),
            ("disable_alert", "{}", Risk::High),
            ("restart_service", "{}", Risk::High),
            ("add_label", "{}", Risk::Medium),
            ("message_member", "{}", Risk::Medium),
            ("list_members", "{}", Risk::Medium),
            ("get_access_log", "{}", Risk::Medium),
            ("send_mail", "{}", Risk::Medium),
            ("create_event", "{}", Risk::Medium),
            ("add_attendee", "{}", Risk::Medium),
            ("create_note", "{}", Risk::Medium),
            ("list_orders", "{}", Risk::Medium),
            ("get_role", "{}", Risk::Medium),
            ("edit_page", r#"{"destructiveHint":true}"#, Risk::High),
            ("get_role", r#"{"destructiveHint":true}"#, Risk::High),
            ("delete_file", r#"{"destructiveHint":false}"#, Risk::High),
            ("delete_file", r#"{"readOnlyHint":true}"#, Risk::Medium),
        ] {
            let definition = format!(r#"{{"name":"{tool}","annotations":{annotations}}}"#);
            assert_eq!(derived(&definition).2, expected, "{tool} {annotations}");
        }
    }

    #[test]
    fn the_page_has_the_tables() {
        let page = include_str!("../../../docs/administration.md");
        let rows = TABLES.map(|(what, follows, words)| {
            assert!(words.is_sorted(), "{what}");
            format!("| {what} | {follows} | {} |", words.join(", "))
        });
        let table = format!("| what | suggests | words |\n|---|---|---|\n{}\n", rows.join("\n"));
        assert!(page.contains(&table), "docs/administration.md needs this table:\n{table}");
    }
}
