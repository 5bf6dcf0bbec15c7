//! One call through the four parts that look at its arguments or at what the agent did before: limits, shield, provenance
//! and policies. Each part is also measured alone, on the same call, so that its share is known.
//!
//! INVARIANT (open): as in [`limits`](crate::limits), no limit is used up and no state grows.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hint::black_box;

use gateward_core::json::Json;
use gateward_core::limit::Kind;
use gateward_core::limit::usage::Ledger;
use gateward_core::policy::Evaluation;
use gateward_core::provenance::call::Call as Looked;
use gateward_core::provenance::run::{MAX_TRUSTED_VALUES, Observation, RunValues};
use gateward_core::provenance::{
    ArgumentRoles, Destinations, Level, Provenance, Reach, ValueKey, lookup,
};
use gateward_core::shield::{Findings, Shield};
use serde_json::json;

use crate::decide::{Call, NOW_MS, Scenario, TENANT};
use crate::limits::{self, RUNS_PER_MS};
use crate::operation::{GATEWARD, Operation};
use crate::shield;

const KEY: ValueKey = ValueKey::new([7; 16]);

/// Bytes of the arguments: a text with code and names.
const ARGUMENT_BYTES: usize = 2_048;

pub fn operations() -> Vec<Operation> {
    vec![
        part("pipeline_all", |parts| {
            (parts.limits(), parts.shield(), parts.provenance(), parts.policy())
        }),
        part("pipeline_limits", Parts::limits),
        part("pipeline_shield", Parts::shield),
        part("pipeline_provenance", Parts::provenance),
        part("pipeline_policy", Parts::policy),
    ]
}

fn part<T>(name: &'static str, of: fn(&Parts) -> T) -> Operation
where
    T: 'static,
{
    Operation::new(name, GATEWARD, move || {
        let parts = Parts::new();
        parts.assert_passes();
        move || of(&parts)
    })
}

/// A call that writes, and what each part knows of it.
struct Parts {
    input: Json,
    /// Limits of every kind that reads no number from the arguments, and how often they were used.
    ledgers: RefCell<([Ledger<'static>; 1], u64)>,
    shield: Shield,
    roles: ArgumentRoles,
    declared: HashSet<Box<str>>,
    destinations: Destinations,
    /// As many values as a run can hold.
    run: RunValues,
    scenario: Scenario,
}

impl Parts {
    fn new() -> Self {
        let text: serde_json::Value =
            serde_json::from_str(&shield::ordinary(ARGUMENT_BYTES)).unwrap();
        let parameters = json!({"repo": "acme/shop", "title": text["title"], "body": text["body"]});
        let input = shield::parsed(&parameters.to_string());
        let has_no_number = |kind: Kind| !matches!(kind, Kind::PerCall | Kind::Amount);
        let values = |text: String| lookup::hashes(&KEY, &Json::String(text));
        let mut run = RunValues::default();
        run.apply(&Observation {
            key: KEY.fingerprint(),
            stated: values("acme/shop".to_owned()),
            trusted: (0..MAX_TRUSTED_VALUES)
                .flat_map(|at| values(format!("user.{at}@example.com")))
                .collect(),
            ..Observation::default()
        });
        let roles = json!({"/repo": "sink", "/title": "content", "/body": "content"});
        let destinations = json!({"accounts": [], "domains": [], "hosts": ["ci.example"]});
        let call = Call {
            server: "github",
            tool: "create_issue",
            trust: "trusted_internal_signed",
            sensitive: false,
            parameters,
        };
        Self {
            input,
            ledgers: RefCell::new((limits::ledgers_of(|limit| has_no_number(limit.kind)), 0)),
            shield: Shield::new(gateward_policies::bundle().shield),
            roles: serde_json::from_value(roles).unwrap(),
            declared: ["repo", "title", "body"].map(Into::into).into(),
            destinations: serde_json::from_value(destinations).unwrap(),
            run,
            scenario: Scenario::new(&call),
        }
    }

    fn assert_passes(&self) {
        self.limits();
        assert_eq!(self.shield(), Findings::default());
        let provenance = self.provenance();
        let repository = provenance.sinks.iter().find(|sink| sink.sink == "/repo").unwrap();
        assert_eq!(repository.level, Level::Instruction);
        assert!(self.policy().allowed);
    }

    /// Finds the limits that cover the call, checks them, and uses them.
    fn limits(&self) {
        let (ledgers, runs) = &mut *self.ledgers.borrow_mut();
        *runs += 1;
        let uses = limits::uses(ledgers, black_box(&self.input));
        limits::call(ledgers, &uses, NOW_MS + *runs / RUNS_PER_MS);
    }

    fn shield(&self) -> Findings {
        let Self { shield, input, roles, .. } = self;
        shield.inspect(TENANT, &KEY, ("", black_box(input), &Json::Null), Some(roles))
    }

    /// Looks up each destination among the arguments.
    fn provenance(&self) -> Provenance {
        let call = Looked {
            key: &KEY,
            tool: "github/create_issue",
            high_risk: false,
            roles: Some(&self.roles),
            reach: Reach::Outside,
            destinations: &self.destinations,
            run: Some(&self.run),
            input: black_box(&self.input),
            resource: "",
            schema: None,
            declared: Some(&self.declared),
            answers: None,
        };
        call.provenance()
    }

    fn policy(&self) -> Evaluation {
        self.scenario.evaluate()
    }
}
