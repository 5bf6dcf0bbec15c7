//! Arguments to requests, and mistakes of usage.

mod requests;

use clap::{CommandFactory as _, Parser as _};
use serde_json::json;

use self::requests::requests;
use crate::approval::{Decide, Verdict};
use crate::chain;
use crate::entry::Arguments;
use crate::failure::Failure;
use crate::plan::{Bearer, Plan, SignedRequest};
use crate::request::Request;
use crate::review::{Many, ServerReview};

fn plan(line: &str) -> Result<Plan, Failure> {
    let words = line.split_whitespace();
    Arguments::try_parse_from(["gateward"].into_iter().chain(words))
        .map_err(|error| Failure::Usage(error.to_string()))?
        .command
        .plan()
}

fn request(line: &str) -> Request {
    match plan(line) {
        Ok(Plan::Send { request, .. } | Plan::List { request, .. }) => request,
        Ok(Plan::Issue(issue)) => issue.request,
        Ok(Plan::Grant(grant)) => grant.read(),
        Ok(Plan::ApproveTool { review, .. }) => review.read(),
        Ok(Plan::ApproveTools(_) | Plan::ReviewServer(_) | Plan::Export(_)) => {
            panic!("{line}: many requests")
        }
        Ok(
            Plan::Follow { request, .. }
            | Plan::Register(request)
            | Plan::ShowLimits(request)
            | Plan::ShowDecision(request)
            | Plan::ShowReceipt(request)
            | Plan::ShowApproval(request)
            | Plan::Watch(request),
        ) => request,
        Ok(Plan::ListReceipts { lane, from, limit }) => chain::page(lane, from, limit),
        Ok(Plan::VerifyReceipts(verify)) => chain::ends(verify.lane.unwrap_or(0)),
        Ok(Plan::Decide(decide)) => decide.read(),
        Ok(Plan::Sign(_) | Plan::VerifyExport(_) | Plan::Warrant(_)) => {
            panic!("{line}: it sends nothing")
        }
        Err(failure) => panic!("{line}: {failure}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

/// clap gives such an argument's value to the option too: `webhook set <URL>` sent its request, with the
/// administrator's token, to <URL>.
#[test]
fn no_argument_of_a_command_has_the_id_of_an_option_of_every_command() {
    let root = Arguments::command();
    let everywhere: Vec<_> =
        root.get_arguments().filter(|a| a.is_global_set()).map(|a| a.get_id().clone()).collect();
    assert!(everywhere.iter().any(|id| id == "url"), "{everywhere:?}");
    let mut commands: Vec<_> = root.get_subcommands().collect();
    while let Some(command) = commands.pop() {
        for argument in command.get_arguments() {
            let id = argument.get_id();
            assert!(!everywhere.contains(id), "`{}` has an argument `{id}`", command.get_name());
        }
        commands.extend(command.get_subcommands());
    }
}

#[test]
fn the_usage_line_of_a_mistake_shows_no_optional_option_as_required() {
    for (line, usage) in [
        (
            "server create s --trust trusted --denial result",
            "Usage: gateward server create [OPTIONS] --kind <KIND> <SERVER>",
        ),
        (
            "--url https://gate.example.com --json agent create a --risk-tier low",
            "Usage: gateward agent create [OPTIONS] --environment <ENVIRONMENT> <AGENT>",
        ),
        (
            "group add g --token-file t",
            "Usage: gateward group add [OPTIONS] <--agent <AGENT>|--administrator <NAME>> <GROUP>",
        ),
        ("credential list --nothing", "Usage: gateward credential list [OPTIONS]"),
    ] {
        let words = || line.split_whitespace();
        let error = Arguments::try_parse_from(["gateward"].into_iter().chain(words())).unwrap_err();
        let text = crate::entry::with_whole_usage(error, words()).to_string();
        let found = text.lines().find(|line| line.starts_with("Usage: "));
        assert_eq!(found, Some(usage), "{line}");
    }
}

#[test]
fn every_command_asks_what_the_api_offers() {
    for (line, method_and_target, body) in requests() {
        let request = request(line);
        assert_eq!(format!("{} {}", request.method.as_str(), request.target()), method_and_target);
        assert_eq!(request.body.unwrap_or_default(), body, "{line}");
        assert_eq!(request.if_match, None, "{line}");
    }
}

#[test]
fn a_route_has_a_method_a_path_and_a_tool() {
    let routes = ["GET /repos/{owner}/issues=list_issues", "PUT /a=b=c/{d}=Put.d"];
    let words = routes.iter().flat_map(|route| ["--route", route]);
    let words = ["gateward", "server", "update", "s"].into_iter().chain(words);
    let Ok(Plan::Send { request, .. }) = Arguments::try_parse_from(words).unwrap().command.plan()
    else {
        panic!("no request");
    };
    let expected = json!([
        {"method": "GET", "path": "/repos/{owner}/issues", "tool": "list_issues"},
        {"method": "PUT", "path": "/a=b=c/{d}", "tool": "Put.d"},
    ]);
    assert_eq!(request.body.unwrap()["upstream"]["routes"], expected);
}

#[test]
fn absent_any_and_none_are_three_requests() {
    for (options, expected) in [
        ("--environment e", None),
        ("--any-tool", Some(json!(null))),
        ("--no-tools", Some(json!([]))),
        ("--allowed-tool a/* --allowed-tool b/c", Some(json!(["a/*", "b/c"]))),
    ] {
        let body = request(&format!("agent update a {options}")).body.unwrap();
        assert_eq!(body.get("allowed_tools"), expected.as_ref(), "{options}");
    }
}

#[test]
fn a_change_can_insist_on_a_revision() {
    for line in [
        "tenant update t --lanes 2",
        "tenant delete t",
        "settings set --risk-denials 1",
        "agent update a --no-tools",
        "agent delete a",
        "agent freeze a",
        "credential rotate k",
        "credential revoke k",
        "server update s --kind mcp",
        "server approve s",
        "tool update s/t --risk low",
        "warrant-root update ci --status active",
        "warrant-root delete ci",
        "tool approve s/t --definition-sha256 aa",
    ] {
        assert_eq!(request(&format!("{line} --if-match 12")).if_match, Some(12), "{line}");
    }
}

#[test]
fn what_makes_no_sense_is_a_mistake_of_usage() {
    for line in [
        "",
        "agent",
        "agent update a",
        "agent update a --no-tools --any-tool",
        "agent update a --no-tools --allowed-tool x",
        "settings set --risk-denials none",
        "limit create l --agent a --covers everything --kind rate --capacity 5 --refill-per-s 0.5",
        "agent show ..",
        "settings set",
        "credential create",
        "credential create --agent a --administrator b",
        "credential create --agent a --scope everything",
        "group add g",
        "server create s",
        "server update s --manifest /nowhere/manifest.json",
        "server update s --no-upstream --upstream-url https://example.com",
        "server update s --no-credential --credential-binding UPSTREAM_S",
        "server update s --no-routes --route x",
        "server update s --route /path=tool",
        "server update s --denial silent",
        "tool update s/t --input-schema /nowhere/schema.json",
        "tool create t --mutates true --risk low",
        "tool create s/t --risk low",
        "tool show s/..",
        "tool approve */t",
        "tool approve s/[a]*",
        "tool approve s/*a*b*",
        "tool approve s/* --definition-sha256 aa",
        "tool approve s/* --if-match 3",
        "server review",
        "server review s --apply /nowhere/review.json",
        "ban create planet mars",
        "warrant-root create ci",
        "warrant-root update ci",
        "warrant-root update ci --status gone",
        "warrant-root update ci --description d --no-description",
        "warrant-revocation delete aa",
        "agent update a --public-key aa --no-public-key",
        "tool update s/t --min-clearance 256",
        "settings set --warrant-required maybe",
        "settings set --shield secret",
        "settings set --shield secret=on",
        "settings set --shield sql=off",
        "settings set --shield secret=off,secret=block",
        "settings set --shield secret=off,default",
        "server update s --inspects-results",
        "tool update s/t --shield",
        "tool update s/t --approval-ttl soon",
        "tool update s/t --role /to",
        "tool update s/t --role /to=sink --no-roles",
        "tool update s/t --reach everybody",
        "tenant update t --own-host a.example --no-destinations",
        "approvals list --status open",
        "approvals show ..",
        "approvals approve",
        "approvals approve appr_0_1 --edit [1]",
        "approvals approve appr_0_1 --edit {",
        "approvals approve appr_0_1 --edit @/nowhere/edit.json",
        "approvals reject appr_0_1 --edit {}",
        "limit create l --kind concurrency --max 3",
        "limit create l --agent a --user u --kind concurrency --max 3",
        "limit status --limit l --agent a",
        "limit status --limit l --credential k",
        "agent list --limit 0",
        "agent list --token gwa_x",
        "sign GET",
        "sign GET /v1/agents -H X-Gateward-Run-Id",
        "sign GET /v1/agents -H A:1 -H a:2",
    ] {
        assert!(matches!(plan(line), Err(Failure::Usage(_))), "{line}");
    }
}

#[test]
fn many_tools_are_those_of_one_server_that_match() {
    for (line, glob, reads) in [
        ("tool approve s/*", "s/*", false),
        ("tool approve s/list_* --reads", "s/list_*", true),
        ("tool approve s/a/*/b", "s/a/*/b", false),
    ] {
        let (server, glob) = ("s".to_owned(), glob.parse().unwrap());
        assert_eq!(plan(line), Ok(Plan::ApproveTools(Many { server, glob, reads })), "{line}");
    }
    let review = ServerReview { server: "s".to_owned(), apply: None };
    assert_eq!(plan("server review s"), Ok(Plan::ReviewServer(review)));
}

#[test]
fn a_decision_keeps_what_it_was_given() {
    let approve = |edit| Verdict::Approve { edit };
    for (line, verdict, comment, revision) in [
        ("approve appr_0_1", approve(None), None, None),
        (
            r#"approve appr_0_1 --edit {"amount":5,"note":null} --comment c --if-match 4"#,
            approve(Some(json!({"amount": 5, "note": null}))),
            Some("c".to_owned()),
            Some(4),
        ),
        ("reject appr_0_1 --comment no", Verdict::Reject, Some("no".to_owned()), None),
        ("cancel appr_0_1 --if-match 2", Verdict::Cancel, None, Some(2)),
    ] {
        let approval_id = "appr_0_1".to_owned();
        let expected = Decide { approval_id, verdict, comment, revision };
        assert_eq!(plan(&format!("approvals {line}")), Ok(Plan::Decide(expected)), "{line}");
    }
}

#[test]
fn what_is_signed_is_the_path_and_query_of_the_url_and_every_header() {
    for (line, method, path, query, headers) in [
        (
            "GET https://gate.example.com/v1/agents?limit=2#top",
            "GET",
            "/v1/agents",
            "limit=2",
            None,
        ),
        ("DELETE /v1/bans/b1", "DELETE", "/v1/bans/b1", "", None),
        (
            "PUT https://gate.example.com -H If-Match:\"1\"",
            "PUT",
            "/",
            "",
            Some(("If-Match", "\"1\"")),
        ),
    ] {
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = SignedRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: headers.into_iter().collect(),
            body: Vec::new(),
        };
        assert_eq!(plan(&format!("sign {line}")), Ok(Plan::Sign(expected)), "{line}");
    }
}

#[test]
fn bootstrap_is_opened_by_its_own_secret() {
    let plan = plan("bootstrap --tenant t --secret-file s --token-out t.token").unwrap();
    assert_eq!(plan.bearer(), &Bearer::BootstrapSecret(Some("s".into())));
    let Plan::Issue(issue) = plan else { panic!("{plan:?}") };
    assert_eq!(issue.token_out, Some("t.token".into()));
}
