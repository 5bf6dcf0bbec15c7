use super::*;
use Scope::{Agent, Run};

const PERIOD_MS: u64 = 10_000;

/// The servers that taint a call, separated by commas.
fn servers(taint: &Taint, scope: Scope<'_>, now_ms: u64) -> String {
    taint.of(scope, PERIOD_MS, now_ms).map_or(String::new(), |found| found.servers.join(","))
}

#[test]
fn taint_lasts_for_the_period_after_the_last_text() {
    let mut taint = Taint::default();
    assert!(taint.add(Agent, "web", None, PERIOD_MS, 1_000));
    assert!(!taint.add(Agent, "web", None, PERIOD_MS, 5_000), "it was tainted before");
    // A clock that is set back shortens no mark.
    taint.add(Agent, "web", None, PERIOD_MS, 2_000);
    for (now_ms, expected) in [(5_000, "web"), (14_999, "web"), (15_000, "")] {
        assert_eq!(servers(&taint, Agent, now_ms), expected, "{now_ms}");
    }
    let found = taint.of(Agent, PERIOD_MS, 6_000).unwrap();
    assert_eq!((found.since_ms, found.at_ms), (1_000, 5_000));
    assert!(taint.add(Agent, "web", None, PERIOD_MS, 15_000), "what has ended begins anew");
    assert_eq!(taint.of(Agent, PERIOD_MS, 15_000).unwrap().since_ms, 15_000);
}

#[test]
fn a_run_keeps_its_taint_to_itself_only_among_assigned_runs() {
    let mut taint = Taint::default();
    taint.add(Run("a"), "web", None, PERIOD_MS, 0);
    for (scope, expected) in [(Run("a"), "web"), (Run("b"), ""), (Agent, "web")] {
        assert_eq!(servers(&taint, scope, 1), expected, "{scope:?}");
    }
    taint.add(Agent, "mail", None, PERIOD_MS, 0);
    for (scope, expected) in [(Run("a"), "mail,web"), (Run("b"), "mail"), (Agent, "mail,web")] {
        assert_eq!(servers(&taint, scope, 1), expected, "{scope:?}");
    }
}

#[test]
fn a_merged_run_stays_tainted_and_taints_no_run_that_begins_later() {
    let mut taint = Taint::default();
    for run in 0..MAX_TAINTED_RUNS as u64 {
        taint.add(Run(&run.to_string()), "web", None, PERIOD_MS, run);
    }
    taint.add(Run("another"), "mail", None, PERIOD_MS, 100);
    for (run, expected) in [("0", "web"), ("1", "web"), ("another", "mail"), ("new", "")] {
        assert_eq!(servers(&taint, Run(run), 101), expected, "{run}");
    }
    assert_eq!(servers(&taint, Agent, 101), "web,mail");
    assert_eq!(servers(&taint, Run("0"), PERIOD_MS - 1), "web");
    assert_eq!(servers(&taint, Run("0"), PERIOD_MS), "", "it ends like the rest");
    assert_eq!(servers(&taint, Run("another"), PERIOD_MS), "mail");
    // More text in a merged run.
    taint.add(Run("0"), "mail", None, PERIOD_MS, 200);
    assert_eq!(servers(&taint, Run("0"), PERIOD_MS + 1), "mail");
}

#[test]
fn merged_runs_are_bounded_and_end() {
    let name = |run: u64| run.to_string();
    let mut taint = Taint::default();
    for run in 0..5_000_u64 {
        taint.add(Run(&name(run)), "web", None, PERIOD_MS, 10 * run);
        assert!(taint.merged.len() <= MAX_SHARED_MARKS);
    }
    assert!(serde_json::to_string(&taint).unwrap().len() < 5_000);
    let now_ms = 10 * 4_999;
    for run in 4_001..5_000 {
        assert_eq!(servers(&taint, Run(&name(run)), now_ms), "web", "{run}");
    }
    let tainted = |runs: std::ops::Range<u64>| {
        runs.filter(|run| !servers(&taint, Run(&name(*run)), now_ms).is_empty()).count()
    };
    // A mark lasts a period after the last of up to 500 runs that share it.
    assert!(tainted(0..3_000) < 300, "ended");
    assert!(tainted(10_000..11_000) < 100, "never tainted");
    assert_eq!(taint.of(Agent, PERIOD_MS, now_ms + PERIOD_MS), None);
    let mut taint = Taint::default();
    for run in 0..=MAX_TAINTED_RUNS as u64 {
        taint.add(Run(&name(run)), "web", None, PERIOD_MS, 1_000_000_000);
    }
    assert!(taint.repair_clock(1_000));
    assert_eq!((taint.merged[0].from_ms, taint.merged[0].mark.at_ms), (1_000, 1_000));
}

#[test]
fn a_mark_names_the_newest_servers() {
    let mut taint = Taint::default();
    for server in ["a", "b", "c", "d", "a", "e"] {
        taint.add(Agent, server, None, PERIOD_MS, 1);
    }
    assert_eq!(servers(&taint, Agent, 2), "c,d,a,e");
}

#[test]
fn a_young_mark_is_not_written_again() {
    let mut taint = Taint::default();
    taint.add(Run("a"), "web", None, PERIOD_MS, 1_000);
    for (scope, server, now_ms, expected) in [
        (Run("a"), "web", 1_001, true),
        (Run("a"), "mail", 1_001, false),
        (Run("b"), "web", 1_001, false),
        (Agent, "web", 1_001, false),
        (Run("a"), "web", 1_000 + MARK_INTERVAL_MS, false),
    ] {
        let fresh = taint.is_fresh(scope, server, 86_400_000, now_ms);
        assert_eq!(fresh, expected, "{scope:?} {server}");
    }
    // With a period of a minute, at most three seconds are lost.
    for (now_ms, expected) in [(3_999, true), (4_000, false)] {
        assert_eq!(taint.is_fresh(Run("a"), "web", 60_000, now_ms), expected, "{now_ms}");
    }
}

fn call(server: &str, tool: &str, decision_id: &str) -> Option<TaintingCall> {
    let [decision_id, server, tool] = [decision_id, server, tool].map(str::to_owned);
    Some(TaintingCall { decision_id, server, tool })
}

#[test]
fn the_newest_call_explains_a_mark_whatever_came_between_and_in_whichever_order() {
    let mut taint = Taint::default();
    taint.add(Run("a"), "web", call("web", "get", "d1"), PERIOD_MS, 1_000);
    taint.add(Run("a"), "web", None, PERIOD_MS, 2_000);
    taint.add(Agent, "mail", call("mail", "read", "d3"), PERIOD_MS, 3_000);
    // The answer of an older call.
    taint.add(Agent, "mail", call("mail", "list", "d2"), PERIOD_MS, 4_000);
    for (scope, now_ms, since_ms, last_ms, servers, by) in [
        (Run("a"), 5_000, 1_000, 4_000, &["mail", "web"][..], call("mail", "read", "d3")),
        (Run("b"), 5_000, 3_000, 4_000, &["mail"], call("mail", "read", "d3")),
        (Agent, 12_000, 3_000, 4_000, &["mail"], call("mail", "read", "d3")),
    ] {
        let found = taint.explain(scope, PERIOD_MS, now_ms).unwrap();
        assert_eq!(found.servers, servers, "{scope:?}");
        assert_eq!(found.call, by, "{scope:?}");
        let times = [since_ms, last_ms, last_ms + PERIOD_MS].map(id::rfc3339);
        assert_eq!([found.since, found.last_at, found.ends_at], times, "{scope:?}");
    }
    assert_eq!(taint.explain(Agent, PERIOD_MS, 14_000), None, "all have ended");
}

#[test]
fn an_explanation_names_servers_call_times_and_the_way_out() {
    let until = "This taint ends at 1970-01-01T00:00:11.000Z if no more such text comes, or when \
        an administrator runs `gateward agent untaint coder`.";
    let since = "Since 1970-01-01T00:00:01.000Z this";
    for (scope, servers, by, expected) in [
        (
            Agent,
            &["web"][..],
            call("web", "get", "d1"),
            "agent may have read untrusted text of the server `web`; the latest call that may have returned it was `web/get` (decision d1).",
        ),
        (Run("a"), &["web"], None, "run may have read untrusted text of the server `web`."),
        (
            Agent,
            &["web", "mail"],
            None,
            "agent may have read untrusted text of the servers `web`, `mail`.",
        ),
    ] {
        let mut taint = Taint::default();
        for server in servers {
            taint.add(scope, server, by.clone(), PERIOD_MS, 1_000);
        }
        let found = taint.explain(scope, PERIOD_MS, 1_000).unwrap();
        let expected = format!("{since} {expected} {until}");
        assert_eq!(found.sentences(scope, "coder"), expected);
    }
}

/// An agent's state outlives deploys.
#[test]
fn the_stored_form_stays() {
    let mut taint = Taint::default();
    taint.add(Agent, "mail", None, PERIOD_MS, 1);
    taint.add(Run("a"), "web", call("web", "get", "d1"), PERIOD_MS, 2);
    // The agent's mark as it was written before calls were recorded.
    let text = r#"{"agent":{"since_ms":1,"at_ms":1,"servers":["mail"]},"runs":[{"run":"ca978112ca1bbdca","since_ms":2,"at_ms":2,"servers":["web"],"call":{"decision_id":"d1","server":"web","tool":"get"}}]}"#;
    assert_eq!(serde_json::to_string(&taint).unwrap(), text);
    assert_eq!(serde_json::from_str::<Taint>(text).unwrap(), taint);
    for run in 1..=MAX_TAINTED_RUNS {
        taint.add(Run(&format!("r{run}")), "web", None, PERIOD_MS, 3);
    }
    let text = serde_json::to_string(&taint).unwrap();
    assert_eq!(serde_json::from_str::<Taint>(&text).unwrap(), taint);
    let merged = r#""merged":[{"from_ms":3,"since_ms":2,"at_ms":2,"servers":["web"],"call":{"decision_id":"d1","server":"web","tool":"get"},"runs":""#;
    assert!(text.contains(merged), "{text}");
    assert!(taint.merged[0].runs.may_have("ca978112ca1bbdca"));
}
