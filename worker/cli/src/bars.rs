//! Shows to a person what is used of limits, each with a bar. Pure; `run` reads the states.

use gateward_core::limit::{Amount, Covers};
use gateward_core::registry::SubjectKind;
use serde::Deserialize;
use serde_json::{Value, from_str, json};

use crate::failure::Failure;
use crate::table::{self, Field};

const FIELDS: &[Field] = &[
    Field::column("limit_id"),
    Field::column("subject"),
    Field::column("kind"),
    Field::column("bar"),
    Field::column("used").null("-"),
    Field::column("resets").null("-"),
];

/// Cells of a bar.
const CELLS: usize = 20;

/// The answer of `GET /v1/limits/status`. Kinds, windows and what is covered are text, because later versions may have
/// more.
#[derive(Deserialize)]
struct States {
    agent: Option<String>,
    of_agent: Vec<State>,
    of_credential: Vec<State>,
    shared: Vec<Shared>,
}

#[derive(Deserialize)]
struct Shared {
    subject_kind: String,
    subject: String,
    #[serde(flatten)]
    state: State,
}

#[derive(Deserialize)]
struct State {
    limit_id: String,
    /// An older worker does not send it.
    covers: Option<String>,
    kind: String,
    window: Option<String>,
    max: Option<Amount>,
    remaining: Option<Amount>,
    /// Held for calls that have not ended. The used amount includes it.
    reserved: Option<Amount>,
    reset_s: Option<u64>,
}

/// The table. `text` is the API's answer.
pub fn shown(text: &str) -> Result<String, Failure> {
    let states: States = from_str(text)
        .map_err(|_| Failure::other("the answer does not have the states of limits"))?;
    let agent = format!("agent {}", states.agent.unwrap_or_default());
    let of_agent = states.of_agent.iter().map(|state| row(&agent, state));
    let of_credential = states.of_credential.iter().map(|state| row("credential", state));
    let shared = states.shared.iter().map(|Shared { subject_kind, subject, state }| {
        // The answer is about one tenant.
        if subject_kind == SubjectKind::Tenant.as_str() {
            row(subject_kind, state)
        } else {
            row(&format!("{subject_kind} {subject}"), state)
        }
    });
    let rows: Vec<_> = of_agent.chain(of_credential).chain(shared).collect();
    Ok(table::list(FIELDS, &rows))
}

fn row(subject: &str, state: &State) -> Value {
    let used = state.max.zip(state.remaining).map(|(max, left)| (max, max.minus(left)));
    let per = state.window.as_ref().map(|window| format!(" per {window}")).unwrap_or_default();
    // Most limits cover calls.
    let covers = state.covers.as_ref().filter(|covers| *covers != Covers::Calls.as_str());
    let of = covers.map(|covers| format!(" of {covers}")).unwrap_or_default();
    json!({
        "limit_id": state.limit_id,
        "subject": subject,
        "kind": format!("{}{of}", state.kind),
        "bar": used.map(|(max, used)| bar(max, used, state.reserved.unwrap_or_default())),
        "used": used.map(|(max, used)| format!("{used}/{max}{per}")),
        "resets": state.reset_s.map(resets),
    })
}

/// `#` is used, `=` is held by calls in progress, `.` is left. Rounded down, so the bar is full only if nothing
/// is left; but anything above zero has a cell.
fn bar(max: Amount, used: Amount, reserved: Amount) -> String {
    let times = |amount: Amount, n: usize| (0..n).fold(Amount::ZERO, |sum, _| sum.plus(amount));
    let cells = |part: Amount| {
        let whole = (1..=CELLS).filter(|n| times(max, *n) <= times(part, CELLS)).count();
        whole.max(usize::from(part > Amount::ZERO))
    };
    let (ended, all) = (cells(used.minus(reserved)), cells(used));
    let filled = "#".repeat(ended) + &"=".repeat(all.saturating_sub(ended));
    format!("[{filled:.<CELLS$}]")
}

/// The two largest units of a time from now.
fn resets(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("in {s} s"),
        (0, 0, min, s) => format!("in {min} min {s} s"),
        (0, h, min, _) => format!("in {h} h {min} min"),
        (d, h, _, _) => format!("in {d} d {h} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_shown_with_its_subject_and_a_bar() {
        let answer = r#"{
            "agent": "billing",
            "of_agent": [
                {"limit_id": "all", "covers": "requests", "kind": "rate", "window": null,
                    "max": "100", "remaining": "75", "reserved": null, "reset_s": 3},
                {"limit_id": "refunds", "covers": "calls", "kind": "amount", "window": "day",
                    "max": "1000", "remaining": "200", "reserved": "50.5", "reset_s": 11520},
                {"limit_id": "office", "kind": "hours", "window": null, "max": null,
                    "remaining": null, "reserved": null, "reset_s": null}
            ],
            "of_credential": [
                {"limit_id": "three", "kind": "concurrency", "window": null, "max": "3",
                    "remaining": "2", "reserved": "1", "reset_s": null}
            ],
            "shared": [
                {"subject_kind": "tenant", "subject": "acme", "limit_id": "all", "kind": "quota",
                    "window": "month", "max": "100000", "remaining": "100000", "reserved": "0",
                    "reset_s": 90000},
                {"subject_kind": "group", "subject": "ops", "limit_id": "one", "kind": "per_call",
                    "window": null, "max": "5", "remaining": null, "reserved": null,
                    "reset_s": null},
                {"subject_kind": "user", "subject": "a\u001b", "limit_id": "r", "kind": "rate",
                    "window": null, "max": "5", "remaining": "0", "reserved": null, "reset_s": 2}
            ]
        }"#;
        let expected = "\
limit_id  subject        kind              bar                     used                resets
all       agent billing  rate of requests  [#####...............]  25/100              in 3 s
refunds   agent billing  amount            [##############==....]  800/1000 per day    in 3 h 12 min
office    agent billing  hours                                     -                   -
three     credential     concurrency       [======..............]  1/3                 -
all       tenant         quota             [....................]  0/100000 per month  in 1 d 1 h
one       group ops      per_call                                  -                   -
r         user a\\u{1b}   rate              [####################]  5/5                 in 2 s";
        assert_eq!(shown(answer).unwrap(), expected);
    }

    #[test]
    fn an_answer_without_limits_is_an_empty_table() {
        let answer = json!({"agent": null, "of_agent": [], "of_credential": [], "shared": []});
        let expected = "limit_id  subject  kind  bar  used  resets";
        assert_eq!(shown(&answer.to_string()).unwrap(), expected);
    }

    #[test]
    fn what_is_no_state_of_limits_is_a_failure() {
        let with = |max: &str| {
            json!({"agent": "a", "of_credential": [], "shared": [], "of_agent": [
                {"limit_id": "l", "kind": "quota", "max": max, "remaining": "0"},
            ]})
        };
        assert!(shown(&with("1").to_string()).is_ok());
        for answer in [json!([]), json!({}), with("-1"), with("1e3"), with("1000000000000000000")] {
            assert!(shown(&answer.to_string()).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_bar_is_never_emptier_or_fuller_than_its_limit() {
        for (what, max, used, reserved, expected) in [
            ("nothing used", "1000", "0", "0", "[....................]"),
            ("a part", "1000", "800", "0", "[################....]"),
            ("a decimal part", "0.3", "0.06", "0", "[####................]"),
            ("next to nothing", "1000", "0.000000001", "0", "[#...................]"),
            ("next to all", "1000", "999.999999999", "0", "[###################.]"),
            ("all", "1000", "1000", "0", "[####################]"),
            ("no bound above zero", "0", "0", "0", "[####################]"),
            ("a part is held", "1000", "800", "300", "[##########======....]"),
            ("all that is used is held", "3", "1", "1", "[======..............]"),
            ("little is held", "1000", "1000", "0.5", "[###################=]"),
            ("next to nothing is held", "1000", "0.1", "0.1", "[=...................]"),
            ("more is held than a lowered bound", "2", "2", "5", "[====================]"),
            (
                "largest amounts",
                "999999999999999999.999999999",
                "500000000000000000",
                "0",
                "[##########..........]",
            ),
        ] {
            let [max, used, reserved] = [max, used, reserved].map(|text| text.parse().unwrap());
            assert_eq!(bar(max, used, reserved), expected, "{what}");
        }
    }

    #[test]
    fn a_time_has_its_two_largest_units() {
        for (seconds, expected) in [
            (0, "in 0 s"),
            (59, "in 59 s"),
            (60, "in 1 min 0 s"),
            (3_599, "in 59 min 59 s"),
            (11_520, "in 3 h 12 min"),
            (86_399, "in 23 h 59 min"),
            (86_400, "in 1 d 0 h"),
            (u64::MAX, "in 213503982334601 d 7 h"),
        ] {
            assert_eq!(resets(seconds), expected);
        }
    }
}
