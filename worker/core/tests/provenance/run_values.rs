//! The levels of a run's values, without a lane.

use std::collections::HashMap;

use gateward_core::provenance::lookup::Known as _;
use gateward_core::provenance::run::{
    MAX_MARKED_VALUES, MAX_OBSERVATIONS, MAX_TRUSTED_VALUES, Observation, RunValues, Source,
};
use gateward_core::provenance::{Level, Observed};
use proptest::prelude::*;

#[test]
fn a_run_that_is_full_lets_the_agent_choose_nothing() {
    let mut run = RunValues::default();
    let row = Observation { key: 1, sent: vec![1], ..Observation::default() };
    for _ in 0..MAX_OBSERVATIONS - 2 {
        assert!(run.holds_choices());
        run.apply(&row);
    }
    assert!(run.holds_choices());
    run.apply(&row);
    assert!(!run.holds_choices(), "the last row only closes the run");
}

#[test]
fn a_new_key_forgets_what_was_known_and_raises_nothing() {
    let mut run = RunValues::default();
    let observed = |key: u32, trusted: &[u64], untrusted: &[u64]| Observed {
        key,
        trusted: trusted.to_vec(),
        untrusted: untrusted.to_vec(),
        incomplete: false,
    };
    let source = || Source { decision_id: String::new(), tool: "a/b".to_owned() };
    for (observed, expected) in [
        (observed(1, &[10], &[11]), Some(Level::Trusted)),
        (observed(2, &[10], &[]), None),
        (observed(2, &[10], &[]), None),
    ] {
        if let Some(observation) = run.of_result(&observed, source()) {
            run.apply(&observation);
        }
        assert_eq!(run.get(10).map(|found| found.level), expected);
    }
}

#[test]
fn overflow_lowers_and_never_raises() {
    let source = || Source { decision_id: String::new(), tool: "a/b".to_owned() };
    let result = |trusted: std::ops::Range<u64>, untrusted: std::ops::Range<u64>| Observed {
        key: 1,
        trusted: trusted.collect(),
        untrusted: untrusted.collect(),
        incomplete: false,
    };
    let mut run = RunValues::default();
    let add = |run: &mut RunValues, observed: &Observed| {
        if let Some(observation) = run.of_result(observed, source()) {
            run.apply(&observation);
        }
    };
    add(&mut run, &result(0..MAX_TRUSTED_VALUES as u64 + 5, 0..0));
    let level = |run: &RunValues, hash| run.get(hash).map(|found| found.level);
    assert_eq!(level(&run, 0), Some(Level::Trusted));
    assert_eq!(level(&run, MAX_TRUSTED_VALUES as u64), None, "left out");
    let marks = 1_000_000..1_000_000 + MAX_MARKED_VALUES as u64 + 5;
    add(&mut run, &result(0..0, marks.clone()));
    let missing = marks.end - 1;
    assert_eq!(level(&run, missing), None, "not marked");
    add(&mut run, &result(missing..missing + 1, 0..0));
    assert_eq!(level(&run, missing), None, "a mark is missing, so that nothing is raised any more");
}

/// One event of a run in the model.
#[derive(Debug, Clone)]
enum Event {
    Result { trusted: Vec<u64>, untrusted: Vec<u64>, incomplete: bool },
    Call { sent: Vec<u64> },
    State(Vec<u64>),
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let few = || proptest::collection::vec(0_u64..12, 0..4);
    let event = prop_oneof![
        4 => (few(), few(), proptest::bool::weighted(0.05)).prop_map(|(trusted, untrusted, incomplete)| {
            Event::Result { trusted, untrusted, incomplete }
        }),
        2 => few().prop_map(|sent| Event::Call { sent }),
        1 => few().prop_map(Event::State),
        1 => Just(Event::Restart),
    ];
    proptest::collection::vec(event, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// A value has the level that it had first; only a statement changes it. Rows that are applied again after
    /// a restart give the same.
    #[test]
    fn a_value_is_raised_only_by_a_statement(events in events()) {
        let (mut run, mut rows) = (RunValues::default(), Vec::new());
        let mut model: HashMap<u64, Level> = HashMap::new();
        let mut closed = false;
        for event in events {
            let observation = match &event {
                Event::Result { trusted, untrusted, incomplete } => {
                    closed |= incomplete;
                    for hash in trusted.iter().filter(|_| !closed) {
                        model.entry(*hash).or_insert(Level::Trusted);
                    }
                    for hash in untrusted {
                        model.entry(*hash).or_insert(Level::Untrusted);
                    }
                    let (trusted, untrusted) = (trusted.clone(), untrusted.clone());
                    let observed = Observed { key: 1, trusted, untrusted, incomplete: *incomplete };
                    let source = Source { decision_id: String::new(), tool: "a/b".to_owned() };
                    run.of_result(&observed, source)
                }
                Event::Call { sent } => {
                    for hash in sent {
                        model.entry(*hash).or_insert(Level::Nowhere);
                    }
                    run.of_call(1, (sent.clone(), false), Default::default())
                }
                Event::State(stated) => {
                    model.extend(stated.iter().map(|hash| (*hash, Level::Instruction)));
                    run.of_statement(1, stated.clone(), Default::default())
                }
                Event::Restart => {
                    run = RunValues::default();
                    rows.iter().for_each(|row: &String| {
                        run.apply(&serde_json::from_str(row).unwrap());
                    });
                    None
                }
            };
            if let Some(observation) = observation {
                run.apply(&observation);
                rows.push(observation.encode());
            }
            for hash in 0..12 {
                let found = run.get(hash).map(|found| found.level);
                prop_assert_eq!(found, model.get(&hash).copied(), "{} after {:?}", hash, event);
            }
        }
    }

    /// If a value was seen in an untrusted result, or was sent, no later result raises it. Results come in any order,
    /// and can be repeated or lost.
    #[test]
    fn later_results_never_raise(
        before in events(), after in proptest::collection::vec(any::<proptest::sample::Index>(), 0..40),
        later in events(),
    ) {
        let mut run = RunValues::default();
        let add = |run: &mut RunValues, event: &Event| {
            let source = Source { decision_id: String::new(), tool: "a/b".to_owned() };
            let observation = match event.clone() {
                Event::Result { trusted, untrusted, incomplete } => {
                    run.of_result(&Observed { key: 1, trusted, untrusted, incomplete }, source)
                }
                Event::Call { sent } => run.of_call(1, (sent, false), Default::default()),
                _ => None,
            };
            if let Some(observation) = observation {
                run.apply(&observation);
            }
        };
        before.iter().for_each(|event| add(&mut run, event));
        let low: Vec<u64> = (0..12)
            .filter(|hash| run.get(*hash).is_some_and(|found| found.level <= Level::Untrusted))
            .collect();
        for index in after {
            add(&mut run, index.get(&later));
            for hash in &low {
                prop_assert!(run.get(*hash).is_some_and(|found| found.level <= Level::Untrusted));
            }
        }
    }
}
