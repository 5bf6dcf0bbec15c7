//! The role of each argument, whom a call reaches, and how risky the tool is.

use super::tables::TABLES;
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
        ("sql_text", Sink, Sink),
        ("scriptContent", Sink, Sink),
        ("content_url", Sink, Sink),
        ("start_time", Detail, Detail),
        ("payment_date", Detail, Detail),
        ("subject", Detail, Detail),
        ("venue", Detail, Detail),
        ("nights", Detail, Detail),
        ("page", Sink, Sink),
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
        ("commit_title", Detail, Detail),
        ("newTitle", Detail, Detail),
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
        ("number of a page", r#"{"type":"integer"}"#, "page", Detail),
        ("page, or its name", r#"{"type":["integer","string"]}"#, "page", Sink),
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
        ("book_venue", "venue", Role::Sink),
        ("create_order", "size", Role::Sink),
        ("get_orders", "size", Role::Detail),
        ("block_place", "place", Role::Sink),
        ("delete_themes", "theme", Role::Sink),
        ("delete_theme", "themes", Role::Sink),
        ("run_query", "format", Role::Detail),
        ("invite_user", "locale", Role::Detail),
        ("merge_pull_request", "commit_title", Role::Detail),
    ] {
        let properties = format!(r#"{{"{argument}":{{"type":"string"}}}}"#);
        assert_eq!(roles(tool, &properties), [(format!("/{argument}"), expected)], "{tool}");
    }
}

#[test]
fn the_name_of_a_new_thing_is_a_detail_if_another_argument_says_where() {
    for (tool, arguments, expected) in [
        ("create_branch", ["branch", "repo"], [Role::Detail, Role::Sink]),
        ("create_branch", ["branch", "from_branch"], [Role::Detail, Role::Sink]),
        ("create_folder", ["folder", "parent"], [Role::Detail, Role::Sink]),
        ("delete_branch", ["branch", "repo"], [Role::Sink, Role::Sink]),
        ("create_file", ["branch", "repo"], [Role::Sink, Role::Sink]),
        ("create_webhook", ["repo", "webhook"], [Role::Sink, Role::Sink]),
        ("create_branch", ["branch", "text"], [Role::Sink, Role::Content]),
    ] {
        let [first, second] = arguments.map(|it| format!(r#""{it}":{{"type":"string"}}"#));
        let found = roles(tool, &format!("{{{first},{second}}}"));
        let expected: Vec<_> =
            arguments.iter().zip(expected).map(|(it, role)| (format!("/{it}"), role)).collect();
        assert_eq!(found, expected, "{tool}");
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
        ("block_user", "{}", Risk::High),
        ("wire_funds", "{}", Risk::High),
        ("create_api_key", "{}", Risk::High),
        ("issueToken", "{}", Risk::High),
        ("empty_trash", "{}", Risk::High),
        ("stop_instance", "{}", Risk::High),
        ("create_forwarding_rule", "{}", Risk::High),
        ("add_webhook", "{}", Risk::High),
        ("append_blocks", "{}", Risk::Medium),
        ("create_empty_file", "{}", Risk::Medium),
        ("forward_mail", "{}", Risk::Medium),
        ("count_tokens", "{}", Risk::Medium),
        ("press_key", "{}", Risk::Medium),
        ("send_keys", "{}", Risk::Medium),
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
    let page = include_str!("../../../../docs/administration.md");
    let rows = TABLES.map(|(what, follows, words)| {
        assert!(words.is_sorted(), "{what}");
        format!("| {what} | {follows} | {} |", words.join(", "))
    });
    let table = format!("| what | suggests | words |\n|---|---|---|\n{}\n", rows.join("\n"));
    assert!(page.contains(&table), "docs/administration.md needs this table:\n{table}");
}
