//! How risky a tool is, and whether it changes something.

use super::tests::derived;
use super::*;
use gateward_core::json;

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
fn a_tool_that_takes_a_command_or_changes_a_domain_has_high_risk() {
    let (text, texts) = (r#"{"type":"string"}"#, r#"{"type":"array","items":{"type":"string"}}"#);
    for (tool, argument, schema, expected) in [
        ("call_aws", "cli_command", text, Risk::High),
        ("create_container", "command", texts, Risk::High),
        ("schedule_job", "script", "{}", Risk::High),
        ("query", "sql", text, Risk::High),
        ("get_rows", "sql", text, Risk::High),
        ("add_record", "ttl", text, Risk::High),
        ("add_record", "zone_id", text, Risk::High),
        ("update_page", "command", r#"{"enum":["append","insert"]}"#, Risk::Medium),
        ("watch_job", "script", r#"{"type":"boolean"}"#, Risk::Medium),
        ("search_code", "query", text, Risk::Medium),
        ("update_address", "postal_code", text, Risk::Medium),
        ("get_record", "zone_id", text, Risk::Medium),
        ("add_record", "table", text, Risk::Medium),
        ("create_cache", "ttl", text, Risk::Medium),
    ] {
        let schema = format!(r#"{{"properties":{{"{argument}":{schema}}}}}"#);
        let definition = format!(r#"{{"name":"{tool}","inputSchema":{schema}}}"#);
        assert_eq!(derived(&definition).2, expected, "{tool} {argument}");
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
        ("kubectl_apply", "{}", Risk::High),
        ("terraform_apply", "{}", Risk::High),
        ("apply_migration", "{}", Risk::High),
        ("bash", "{}", Risk::High),
        ("open_terminal", "{}", Risk::High),
        ("lambda_invoke", "{}", Risk::High),
        ("ec2_stop_instances", "{}", Risk::High),
        ("ec2_reboot_instances", "{}", Risk::High),
        ("disarm_alarm", "{}", Risk::High),
        ("open_garage", "{}", Risk::High),
        ("enable_user", "{}", Risk::High),
        ("unban_member", "{}", Risk::High),
        ("unblock_user", "{}", Risk::High),
        ("create_user", "{}", Risk::High),
        ("add_user_to_group", "{}", Risk::High),
        ("create_filter", "{}", Risk::High),
        ("create_discount", "{}", Risk::High),
        ("add_beneficiary", "{}", Risk::High),
        ("renew_domain", "{}", Risk::High),
        ("reject_leave_request", "{}", Risk::High),
        ("update_salary", "{}", Risk::High),
        ("change_card_limit", "{}", Risk::High),
        ("set_nameservers", "{}", Risk::High),
        ("update_dns_record", "{}", Risk::High),
        ("push_files", "{}", Risk::High),
        ("s3_put_object", "{}", Risk::High),
        ("create_or_update_file", "{}", Risk::High),
        ("send_marketing_email", "{}", Risk::High),
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
        ("create_record", "{}", Risk::Medium),
        ("create_file", "{}", Risk::Medium),
        ("update_user", "{}", Risk::Medium),
        ("open_issue", "{}", Risk::Medium),
        ("send_push_notification", "{}", Risk::Medium),
        ("query_docs", "{}", Risk::Medium),
        ("understand_page", "{}", Risk::Medium),
        ("slack_get_role", "{}", Risk::Medium),
        ("run_get_role", "{}", Risk::High),
        ("move_file", "{}", Risk::Medium),
        ("get_roles_and_members", "{}", Risk::Medium),
        ("get_users_and_roles", "{}", Risk::Medium),
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
fn a_tool_only_reads_if_its_name_says_so_and_nothing_says_more() {
    for (tool, rest, reads) in [
        ("list_issues", "", true),
        ("search_emails", "", true),
        ("get_file_contents", "", true),
        ("slack_get_channel_history", "", true),
        ("kubectl_get", "", true),
        ("show_note", "", true),
        ("list_orders", "", true),
        ("list_workflow_runs", "", true),
        ("get_order", "", false),
        ("get_and_purge_queue", "", false),
        ("get_or_create_page", "", false),
        ("find_and_modify", "", false),
        ("find_replace", "", false),
        ("list_add", "", false),
        ("mark_get", "", false),
        ("check_item", "", false),
        ("fetch", "", false),
        ("query", "", false),
        ("web_search", "", false),
        ("search", r#","description":"Searches the web.""#, false),
        (
            "list_items",
            r#","inputSchema":{"properties":{"action":{"enum":["list","add"]}}}"#,
            false,
        ),
        ("list_items", r#","inputSchema":{"properties":{"action":{"enum":["list"]}}}"#, true),
        ("read_rows", r#","inputSchema":{"properties":{"sql":{"type":"string"}}}"#, false),
        ("search_code", r#","inputSchema":{"properties":{"query":{"type":"string"}}}"#, true),
        ("list_issues", r#","annotations":{"readOnlyHint":false}"#, false),
        ("list_issues", r#","annotations":{"destructiveHint":true}"#, false),
        ("list_issues", r#","annotations":{"destructiveHint":false}"#, true),
        ("list_issues", r#","annotations":{"readOnlyHint":"true"}"#, true),
        ("delete_file", r#","annotations":{"readOnlyHint":true}"#, true),
        ("frobnicate", "", false),
        ("", "", false),
    ] {
        let definition = format!(r#"{{"name":"{tool}"{rest}}}"#);
        let definition = json::parse_definition(definition.as_bytes()).unwrap();
        assert_eq!(!risk(&definition).1, reads, "{tool}{rest}");
    }
}
