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
fn a_tool_that_lets_a_caller_choose_to_destroy_has_high_risk() {
    for (tool, argument, values, expected) in [
        ("label_write", "method", r#"["create","delete"]"#, Risk::High),
        ("pull_request_review_write", "event", r#"["APPROVE","COMMENT"]"#, Risk::High),
        ("pull_request_review_write", "method", r#"["create","delete_pending"]"#, Risk::High),
        ("node_management", "operation", r#"["cordon","drain"]"#, Risk::High),
        ("dns_record_write", "action", r#"["create","delete"]"#, Risk::High),
        ("issue_write", "method", r#"["create","update"]"#, Risk::Medium),
        ("issue_write", "state_reason", r#"["duplicate"]"#, Risk::Medium),
        ("create_note", "noteable_type", r#"["merge_request"]"#, Risk::Medium),
        ("update_settings", "merge_method", r#"["merge","squash"]"#, Risk::Medium),
        ("browser_tabs", "action", r#"["list","new","close"]"#, Risk::Medium),
    ] {
        let properties = format!(r#"{{"{argument}":{{"type":"string","enum":{values}}}}}"#);
        let schema = format!(r#"{{"properties":{properties}}}"#);
        let definition = format!(r#"{{"name":"{tool}","inputSchema":{schema}}}"#);
        assert_eq!(derived(&definition).2, expected, "{tool} {argument}");
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
        ("rm", "{}", Risk::High),
        ("make_public", "{}", Risk::High),
        ("close_account", "{}", Risk::High),
        ("close_position", "{}", Risk::High),
        ("get_and_purge_queue", "{}", Risk::High),
        ("find_one_and_delete", "{}", Risk::High),
        ("finalize_invoice", "{}", Risk::High),
        ("kubectl_scale", "{}", Risk::High),
        ("hdel", "{}", Risk::High),
        ("swap_tokens", "{}", Risk::High),
        ("update_subscription", "{}", Risk::High),
        ("create_coupon_policy", "{}", Risk::High),
        ("make_donation", "{}", Risk::High),
        ("put_bucket_policy", "{}", Risk::High),
        ("cleanup", "{}", Risk::High),
        ("write_file", "{}", Risk::High),
        ("put_object", "{}", Risk::High),
        ("replace_page", "{}", Risk::High),
        ("accept_merge_request", "{}", Risk::High),
        ("merge_merge_request", "{}", Risk::High),
        ("approve_merge_request", "{}", Risk::High),
        ("close_issue", "{}", Risk::Medium),
        ("create_merge_request", "{}", Risk::Medium),
        ("create_merge_request_note", "{}", Risk::Medium),
        ("update_merge_request", "{}", Risk::Medium),
        ("write_note", "{}", Risk::Medium),
        ("put_comment", "{}", Risk::Medium),
        ("issue_write", "{}", Risk::Medium),
        ("move_file", "{}", Risk::Medium),
        ("get_roles_and_members", "{}", Risk::Medium),
        ("create_coupon", "{}", Risk::Medium),
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
