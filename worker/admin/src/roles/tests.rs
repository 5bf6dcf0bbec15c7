//! The role of each argument, and whom a call reaches.

use super::tables::TABLES;
use super::*;
use gateward_core::json;

pub(super) fn derived(definition: &str) -> (Vec<(String, Role)>, Reach, Risk) {
    let definition = json::parse_definition(definition.as_bytes()).unwrap();
    let (ArgumentRoles(roles), reach) = derive(&definition);
    (roles, reach, risk(&definition).0)
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
        ("payload", Content, Content),
        ("textToAppend", Content, Content),
        ("new_str", Content, Content),
        ("connection_str", Sink, Sink),
        ("reaction", Detail, Detail),
        ("status_expiration", Detail, Detail),
        ("fileContents", Content, Content),
        ("sql_text", Sink, Sink),
        ("scriptContent", Sink, Sink),
        ("content_url", Sink, Sink),
        ("start_time", Detail, Detail),
        ("payment_date", Detail, Detail),
        ("subject", Detail, Sink),
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
        ("choice", r#"{"enum":["a","b"]}"#, "shape", Detail),
        ("number of a text", r#"{"type":"integer"}"#, "comment", Sink),
        (
            "list of texts with formats",
            r#"{"type":"array","items":{"type":"object"}}"#,
            "blocks",
            Content,
        ),
        (
            "the same by reference",
            r##"{"type":"array","items":{"$ref":"#/a"}}"##,
            "children",
            Content,
        ),
        ("list of other objects", r#"{"type":"array","items":{"type":"object"}}"#, "notes", Sink),
        ("choice of a kind", r#"{"enum":["note","event"]}"#, "type", Detail),
        ("choice of a permission", r#"{"enum":["read","write"]}"#, "permission", Sink),
        ("choice of a channel", r#"{"enum":["a","b"]}"#, "channel", Sink),
        ("flag", r#"{"type":"boolean"}"#, "all_day", Detail),
        ("flag that shows something", r#"{"type":["boolean","null"]}"#, "is_public", Sink),
        ("flag with the name of a text", r#"{"type":"boolean"}"#, "public_comment", Sink),
        ("number of a page", r#"{"type":"integer"}"#, "page", Detail),
        ("page, or its name", r#"{"type":["integer","string"]}"#, "page", Sink),
        ("object that can have anything", r#"{"type":"object"}"#, "text", Sink),
        ("the same, or null", r#"{"type":["object","null"]}"#, "text", Sink),
        ("reference", r##"{"$ref":"#/$defs/a"}"##, "text", Sink),
        ("list of texts", r#"{"type":"array","items":{"type":"string"}}"#, "texts", Content),
    ] {
        let properties = format!(r#"{{"{name}":{schema}}}"#);
        assert_eq!(roles("create_x", &properties), [(format!("/{name}"), expected)], "{what}");
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
fn a_choice_or_a_flag_that_is_the_effect_is_no_detail() {
    let flag = r#"{"type":"boolean"}"#;
    for (tool, argument, schema, expected) in [
        ("review_write", "event", r#"{"enum":["APPROVE","COMMENT"]}"#, Role::Sink),
        ("update_pull_request", "state", r#"{"enum":["open","closed"]}"#, Role::Sink),
        ("update_merge_request", "state_event", r#"{"enum":["close","reopen"]}"#, Role::Sink),
        ("label_write", "method", r#"{"enum":["create","update","delete"]}"#, Role::Sink),
        ("issue_write", "method", r#"{"enum":["create","update"]}"#, Role::Detail),
        ("actions_run_trigger", "method", r#"{"enum":["run_workflow"]}"#, Role::Sink),
        ("permissions.create", "type", r#"{"enum":["user","anyone"]}"#, Role::Sink),
        ("share_file", "level", r#"{"enum":["view","edit"]}"#, Role::Sink),
        ("kubectl_delete", "allNamespaces", flag, Role::Sink),
        ("kubectl_rollout", "subCommand", r#"{"enum":["status","undo"]}"#, Role::Sink),
        ("node_management", "operation", r#"{"enum":["cordon","drain"]}"#, Role::Sink),
        ("node_management", "confirmDrain", flag, Role::Sink),
        ("dns_record_write", "action", r#"{"enum":["create","delete"]}"#, Role::Sink),
        ("purge_cache", "purge_everything", flag, Role::Sink),
        ("API-patch-page", "in_trash", flag, Role::Sink),
        ("API-patch-page", "archived", flag, Role::Sink),
        ("delete_messages", "all", flag, Role::Sink),
        ("place_trade", "side", r#"{"enum":["buy","sell"]}"#, Role::Sink),
        ("update_subscription", "deleted", flag, Role::Sink),
        ("update_item", "deleted", flag, Role::Sink),
        ("update_subscription", "proration_behavior", r#"{"enum":["none"]}"#, Role::Sink),
        ("create_user", "is_superuser", flag, Role::Sink),
        ("create_user", "level", r#"{"enum":["user","root"]}"#, Role::Sink),
        ("create_link", "kind", r#"{"enum":["group","anyone"]}"#, Role::Sink),
        ("delete_path", "recursive", flag, Role::Sink),
        ("post_message", "reply_broadcast", flag, Role::Sink),
        ("schedule_payment", "interval", r#"{"enum":["once","monthly"]}"#, Role::Sink),
        ("merge_pull_request", "merge_method", r#"{"enum":["merge","squash"]}"#, Role::Detail),
        ("create_note", "noteable_type", r#"{"enum":["issue"]}"#, Role::Detail),
        ("create_pull_request", "draft", flag, Role::Detail),
        ("create_event", "is_all_day", flag, Role::Detail),
        ("create_event", "type", r#"{"enum":["default","focus"]}"#, Role::Detail),
        ("list_issues", "state", r#"{"enum":["open","closed","all"]}"#, Role::Detail),
        ("list_repos", "kind", r#"{"enum":["all","owner"]}"#, Role::Detail),
        ("update_issue", "confidential", flag, Role::Sink),
        ("modify_db_instance", "publicly_accessible", flag, Role::Sink),
        ("toggle_feature_flag", "enabled", flag, Role::Sink),
        ("update_record", "proxied", flag, Role::Sink),
        ("respond-to-event", "response", r#"{"enum":["accepted","declined"]}"#, Role::Sink),
        ("frobnicate", "kind", r#"{"enum":["a","b"]}"#, Role::Sink),
        ("update_note", "pinned", flag, Role::Detail),
        ("slack_post_message", "mrkdwn", flag, Role::Detail),
        ("add_comment", "internal", flag, Role::Detail),
        ("update_page", "is_minor_edit", flag, Role::Detail),
        ("share_file", "sendNotification", flag, Role::Detail),
        ("share_file", "notify_everyone", flag, Role::Sink),
        ("update-event", "sendUpdates", r#"{"enum":["all","none"]}"#, Role::Detail),
        ("jira_search", "ascending", flag, Role::Detail),
    ] {
        let properties = format!(r#"{{"{argument}":{schema}}}"#);
        assert_eq!(roles(tool, &properties), [(format!("/{argument}"), expected)], "{tool}");
    }
}

#[test]
fn in_a_tool_of_high_risk_names_times_and_texts_can_be_the_effect() {
    for (tool, argument, expected) in [
        ("delete_schedule", "name", Role::Sink),
        ("delete_draft", "name", Role::Sink),
        ("update_schedule", "name", Role::Sink),
        ("schedule_job", "name", Role::Detail),
        ("create_payment", "name", Role::Sink),
        ("make_donation", "name", Role::Sink),
        ("create_order", "name", Role::Sink),
        ("create_order", "title", Role::Sink),
        ("create_invite", "name", Role::Sink),
        ("grant_permission", "subject", Role::Sink),
        ("create_role_binding", "subject", Role::Sink),
        ("grant_access", "until", Role::Sink),
        ("purge_logs", "until", Role::Sink),
        ("delete_data", "start", Role::Sink),
        ("cancel_order", "date", Role::Sink),
        ("slack_delete_message", "timestamp", Role::Sink),
        ("update_message", "timestamp", Role::Sink),
        ("book_hotel", "date", Role::Detail),
        ("send_money", "date", Role::Detail),
        ("send_money", "subject", Role::Detail),
        ("delete_comment", "comment", Role::Sink),
        ("run_query", "text", Role::Sink),
        ("execute_script", "body", Role::Sink),
        ("cancel_order", "reason", Role::Content),
        ("write_file", "content", Role::Content),
        ("create_dns_record", "content", Role::Sink),
        ("create_dns_record", "name", Role::Sink),
        ("create_dns_record", "comment", Role::Content),
        ("create_dns_record", "type", Role::Detail),
        ("create_dns_record", "ttl", Role::Detail),
        ("create_permission", "type", Role::Sink),
        ("lambda_invoke", "payload", Role::Sink),
        ("push_files", "message", Role::Content),
    ] {
        let properties = format!(r#"{{"{argument}":{{"type":"string"}}}}"#);
        assert_eq!(roles(tool, &properties), [(format!("/{argument}"), expected)], "{tool}");
    }
}

#[test]
fn the_tools_of_known_servers_do_ordinary_work() {
    let (text, number) = (r#"{"type":"string"}"#, r#"{"type":"integer"}"#);
    for (tool, argument, schema, expected) in [
        ("create-event", "timeZone", text, Role::Detail),
        ("create-event", "recurrence", text, Role::Detail),
        ("create-event", "colorId", text, Role::Detail),
        ("fetch", "start_index", number, Role::Detail),
        ("fetch", "max_length", number, Role::Detail),
        ("fetch", "max_length", text, Role::Sink),
        ("jira_search", "max_results", number, Role::Detail),
        ("move_page", "page_size", number, Role::Detail),
        ("set_volume", "length", number, Role::Sink),
        ("create_issue", "milestone", number, Role::Detail),
        ("issue_write", "labels", text, Role::Detail),
        ("issue_write", "milestone", number, Role::Detail),
        ("update_issue", "labels", text, Role::Sink),
        ("jira_create_issue", "issue_type", text, Role::Detail),
        ("create_issue", "state", text, Role::Detail),
        ("update_issue", "state", text, Role::Sink),
        ("create_merge_request", "title", text, Role::Detail),
    ] {
        let properties = format!(r#"{{"{argument}":{schema}}}"#);
        assert_eq!(roles(tool, &properties), [(format!("/{argument}"), expected)], "{tool}");
    }
}

#[test]
fn an_argument_beside_another_one_can_be_a_detail() {
    for (tool, arguments, required, argument, expected) in [
        ("issue_write", &["issue_number", "title"][..], "", "title", Role::Detail),
        ("update_pull_request", &["pullNumber", "title"], "", "title", Role::Detail),
        ("update_page", &["title", "body"], "", "title", Role::Sink),
        ("delete_page", &["id", "title"], "", "title", Role::Sink),
        ("create_or_update_file", &["path", "sha"], "", "sha", Role::Detail),
        ("create_branch", &["path", "sha"], "", "sha", Role::Sink),
        ("create_or_update_file", &["repo", "sha"], "", "sha", Role::Sink),
        ("reply_to_thread", &["channel_id", "thread_ts"], "channel_id", "thread_ts", Role::Detail),
        ("send_email", &["to", "threadId"], "to", "threadId", Role::Detail),
        ("send_email", &["to", "inReplyTo"], "to", "inReplyTo", Role::Detail),
        ("send_email", &["to", "inReplyTo"], "inReplyTo", "inReplyTo", Role::Sink),
        ("send_email", &["to", "threadId"], "", "threadId", Role::Sink),
        ("forward_email", &["to", "threadId"], "to", "threadId", Role::Sink),
        ("delete_thread", &["channel", "thread_id"], "channel", "thread_id", Role::Sink),
    ] {
        let properties: Vec<_> = arguments.iter().map(|it| format!(r#""{it}":{{}}"#)).collect();
        let required = if required.is_empty() { String::new() } else { format!("\"{required}\"") };
        let schema =
            format!(r#"{{"properties":{{{}}},"required":[{required}]}}"#, properties.join(","));
        let found = derived(&format!(r#"{{"name":"{tool}","inputSchema":{schema}}}"#)).0;
        let found =
            found.into_iter().find(|(pointer, _)| pointer.strip_prefix('/') == Some(argument));
        assert_eq!(found.unwrap().1, expected, "{tool} {arguments:?} {required}");
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
        ("schedule_draft", r#"{"draft_id":{},"time":{}}"#, "", Outside),
        ("schedule_reminder", r#"{"text":{},"time":{}}"#, "", Nobody),
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
fn the_page_has_the_tables() {
    let page = include_str!("../../../../docs/administration.md");
    let rows = TABLES.map(|(what, follows, words)| {
        assert!(words.is_sorted(), "{what}");
        format!("| {what} | {follows} | {} |", words.join(", "))
    });
    let table = format!("| what | suggests | words |\n|---|---|---|\n{}\n", rows.join("\n"));
    assert!(page.contains(&table), "docs/administration.md needs this table:\n{table}");
}
