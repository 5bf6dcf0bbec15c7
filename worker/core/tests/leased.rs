//! Limits that lanes share, in the lane, and in random histories with lost and late messages, restarts and wrong
//! clocks.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::rc::Rc;

use crate::support::{self, Gate, Storage, command, read_call, with};
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::json::{self, Json};
use gateward_core::lane::{Answers, CallResult, Lane, LaneSql as _};
use gateward_core::limit::book::{self, At};
use gateward_core::limit::lease::{self, Answer, Ask, Granted, Leased, Need, Returned};
use gateward_core::limit::pool::Pool;
use gateward_core::limit::rate_headers::RateHeaders;
use gateward_core::limit::reservation::{Ending, Reservation, Take};
use gateward_core::limit::usage::{self, Covered, Ledger, Usage};
use gateward_core::limit::window::utc_only;
use gateward_core::limit::{Amount, Book, Limit};
use gateward_core::registry::SharedLimit;
use proptest::prelude::*;
use serde_json::{Value, json};

const START_MS: u64 = 1_800_000_000_000;
const MINUTE_MS: u64 = 60_000;
const LANES: usize = 3;

fn whole(number: u64) -> Amount {
    Amount::whole(number)
}

fn limit(rule: Value) -> Rc<Limit> {
    serde_json::from_value(json!({"limit_id": "l", "rule": rule})).map(Rc::new).unwrap()
}

fn at(now_ms: u64) -> At {
    At { now_ms, offset_s: utc_only }
}

/// What happens to a request to the counter.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    /// The counter never gets it.
    Lost,
    /// The answer is lost.
    AnswerLost,
}

#[derive(Debug, Clone)]
enum Event {
    Call {
        lane: usize,
        amount: u64,
        fate: Fate,
        forwarded: bool,
        passes: bool,
        others: Vec<u64>,
        /// Whether the call waits for the counter of another limit, until [`Event::Resume`].
        waits: bool,
    },
    /// A call that waited is decided.
    Resume {
        call: usize,
    },
    Settle {
        call: usize,
        ending: Ending,
    },
    /// The counter asks a lane to give back.
    Recall {
        lane: usize,
        fate: Fate,
    },
    /// An old request of a lane arrives at the counter once more.
    Late {
        message: usize,
    },
    Restart {
        lane: usize,
    },
    RestartCounter,
    Ahead {
        ms: u64,
    },
    Back {
        ms: u64,
    },
    /// An administrator changes the bound.
    Bound {
        max: u64,
    },
}

enum Message {
    Ask(lease::Terms, Ask),
    Returned(usize, Returned),
}

/// A call that passed and has not ended.
struct Open {
    lane: usize,
    takes: Vec<Take>,
    forwarded: bool,
    number: u64,
    amount: u64,
}

/// A call that was answered by the counter, and waits for another one.
struct Waiting {
    lane: usize,
    amount: u64,
    forwarded: bool,
    answer: Answer,
}

struct World {
    kind: &'static str,
    max: u64,
    revision: u64,
    pool: Pool,
    /// In memory and in storage.
    books: Vec<(Book, Book)>,
    open: Vec<Open>,
    waiting: Vec<Waiting>,
    messages: Vec<Message>,
    now_ms: u64,
    /// What calls used, by window.
    used: HashMap<u64, u64>,
}

impl World {
    fn new(kind: &'static str, max: u64) -> Self {
        Self {
            kind,
            max,
            revision: 0,
            pool: Pool::default(),
            books: vec![(Book::default(), Book::default()); LANES],
            open: Vec::new(),
            waiting: Vec::new(),
            messages: Vec::new(),
            now_ms: START_MS,
            used: HashMap::new(),
        }
    }

    fn limit(&self) -> Rc<Limit> {
        let max = self.max.to_string();
        let rule = match self.kind {
            "concurrency" => json!({"kind": "concurrency", "max": max}),
            "quota" => json!({"kind": "quota", "max": max, "window": "minute"}),
            _ => json!({"kind": "amount", "max": max, "window": "minute", "pointer": "/n"}),
        };
        let limit = json!({"limit_id": "l", "revision": self.revision, "rule": rule});
        serde_json::from_value(limit).map(Rc::new).unwrap()
    }

    fn need(&self, limit: &Limit, amount: u64) -> Need {
        Need {
            counter: limit.counter.clone(),
            subject: "*".to_owned(),
            terms: lease::Terms::of(&limit.rule).unwrap(),
            revision: self.revision,
            amount: whole(amount),
        }
    }

    /// What the lane holds of its lease for calls that wait, with the lease's number.
    fn held(&self, lane: usize) -> (u64, Amount) {
        let counter = self.limit().counter.clone();
        let number = self.books[lane].0.lease(&counter).map_or(0, |lease| lease.number);
        let of_lease = |waiting: &&Waiting| {
            waiting.lane == lane
                && matches!(waiting.answer, Answer::Granted { number: of, .. } if of == number)
        };
        let amounts = self.waiting.iter().filter(of_lease).map(|waiting| whole(waiting.amount));
        (number, amounts.fold(Amount::ZERO, Amount::plus))
    }

    /// What [`Lane::ask`] does.
    fn ask(&mut self, lane: usize, need: &Need, others: &[u64]) -> Ask {
        let (_, held) = self.held(lane);
        let (book, stored) = &mut self.books[lane];
        let changed = |lease: &lease::Lease| !lease.holds(need.revision, 0);
        if book.lease(&need.counter).is_some_and(changed) {
            book.give_back(&need.counter, held);
            *stored = book.clone();
        }
        let lanes = (u16::try_from(lane).unwrap(), u16::try_from(LANES).unwrap());
        let mut needs = vec![need.amount];
        needs.extend(others.iter().map(|other| whole(*other)));
        lease::ask(book.lease(&need.counter), held, lanes, need.revision, needs)
    }

    fn grant(&mut self, lane: usize, need: &Need, others: &[u64], fate: Fate) -> Option<Granted> {
        let ask = self.ask(lane, need, others);
        self.messages.push(Message::Ask(need.terms.clone(), ask.clone()));
        if fate == Fate::Lost {
            return None;
        }
        let granted = self.pool.grant(&need.terms, &ask, at(self.now_ms)).unwrap().0;
        (fate == Fate::Answered).then_some(granted)
    }

    /// What [`Lane::take_grant`] does.
    fn take(&mut self, lane: usize, need: &Need, granted: &Granted) {
        let (book, stored) = &mut self.books[lane];
        book.granted(&need.counter, need.revision, granted);
        if granted.back > Amount::ZERO {
            *stored = book.clone();
        }
    }

    /// `others`: calls for which the lane asks together with this one, and which other steps then deny.
    fn call(
        &mut self,
        (lane, amount, fate): (usize, u64, Fate),
        (forwarded, passes, waits): (bool, bool, bool),
        others: &[u64],
        mut answer: Option<Answer>,
    ) {
        let resumed = answer.is_some();
        let limit = self.limit();
        let limits = [Rc::clone(&limit)];
        let input: Json = json::parse(format!(r#"{{"n":{amount}}}"#).as_bytes()).unwrap();
        let usage = Usage {
            tool: "s/x",
            covered: Covered { reads: true, writes: true },
            input: &input,
            rounded: &[],
            cost: whole(1),
            forwarded,
        };
        loop {
            let leased = Leased { subject: "*".to_owned(), held: self.held(lane), answer };
            let book = self.books[lane].0.clone();
            let mut ledgers = [Ledger::new("lease".into(), &limits, &book, Some(leased))];
            let uses = usage::uses(&ledgers, &usage);
            let applied = usage::apply(&mut ledgers, &uses, forwarded, at(self.now_ms));
            let Ok(needs) = applied else { return };
            if let [need] = needs.as_slice() {
                if resumed {
                    // The limit was changed while it waited, or another window began. Then it would ask again.
                    return;
                }
                assert!(answer.is_none(), "a call asks once");
                let granted = self.grant(lane, need, others, fate);
                answer = Some(Answer::Unavailable);
                if let Some(granted) = granted {
                    self.take(lane, need, &granted);
                    let available = self.books[lane].0.lease(&need.counter).unwrap().available();
                    let available = available.minus(self.held(lane).1);
                    let left = granted.left;
                    // A call is refused only if other lanes have the rest.
                    assert!(need.amount <= available || need.amount > available.plus(left));
                    answer = Some(match need.amount <= available {
                        true => Answer::Granted {
                            amount: need.amount,
                            number: granted.number,
                            revision: need.revision,
                        },
                        false => Answer::Refused { left, retry_after_s: None },
                    });
                }
                if let (true, Some(answer)) = (waits, answer) {
                    self.waiting.push(Waiting { lane, amount, forwarded, answer });
                    return;
                }
                continue;
            }
            // Of calls that are not forwarded, none is in progress.
            if !passes || uses.is_empty() {
                return;
            }
            let takes = usage::takes(&ledgers, &uses, forwarded);
            let [Ledger { book, .. }] = ledgers;
            self.books[lane] = (book.clone(), book);
            let Some(lease) = self.books[lane].0.lease(&limit.counter) else { return };
            let number = lease.number;
            let used = self.used.entry(number).or_default();
            *used += amount;
            // The calls that passed never exceed the bound, whatever the lanes believe.
            assert!(*used <= self.max);
            self.open.push(Open { lane, takes, forwarded, number, amount });
            return;
        }
    }

    fn resume(&mut self, call: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let Waiting { lane, amount, forwarded, answer } =
            self.waiting.swap_remove(call % self.waiting.len());
        let used = self.open.len();
        self.call((lane, amount, Fate::Lost), (forwarded, true, false), &[], Some(answer));
        let lease = self.books[lane].0.lease(&self.limit().counter);
        if let (Answer::Granted { number, revision, .. }, Some(lease)) = (answer, lease)
            && (number, revision) == (lease.number, self.revision)
        {
            assert_eq!(self.open.len(), used + 1, "what it was granted stayed its own");
        }
    }

    fn settle(&mut self, call: usize, ending: Ending) {
        if self.open.is_empty() {
            return;
        }
        let ended = self.open.swap_remove(call % self.open.len());
        let reservation = Reservation {
            decision_id: String::new(),
            ends_at_ms: 0,
            agent: "bot".to_owned(),
            credential: "k1".to_owned(),
            forwarded: ended.forwarded,
            takes: ended.takes,
        };
        let counter = self.limit().counter.clone();
        let (book, stored) = &mut self.books[ended.lane];
        let number = book.lease(&counter).map(|lease| lease.number);
        book::settle(("lease", book), &reservation, ending);
        *stored = book.clone();
        if number != Some(ended.number) {
            return;
        }
        let back = match (self.kind, ending) {
            ("concurrency", _) => ended.amount,
            ("quota", _) => 0,
            (_, Ending::Failed) => ended.amount,
            (_, Ending::Succeeded(Some(actual))) => {
                ended.amount - actual.as_whole().unwrap().min(ended.amount)
            }
            _ => 0,
        };
        *self.used.get_mut(&ended.number).unwrap() -= back;
    }

    fn recall(&mut self, lane: usize, fate: Fate) {
        let counter = self.limit().counter.clone();
        if fate == Fate::Lost {
            return;
        }
        let lane_number = u16::try_from(lane).unwrap();
        let (number, holders) = self.pool.holders(u16::MAX);
        let held = self.held(lane);
        let granted = holders.iter().find(|(holder, _)| *holder == lane_number);
        let (book, stored) = &mut self.books[lane];
        if let Some((_, granted)) = granted {
            book.heard(&counter, number, *granted);
        }
        let kept = match book.lease(&counter) {
            Some(lease) if lease.number == held.0 => held.1,
            _ => Amount::ZERO,
        };
        let Some(returned) = book.give_back(&counter, kept) else { return };
        *stored = book.clone();
        if fate == Fate::Answered {
            self.pool.take_back(u16::try_from(lane).unwrap(), &returned);
        }
        self.messages.push(Message::Returned(lane, returned));
    }

    fn late(&mut self, message: usize) {
        if self.messages.is_empty() {
            return;
        }
        match &self.messages[message % self.messages.len()] {
            Message::Ask(terms, ask) => drop(self.pool.grant(terms, ask, at(self.now_ms))),
            Message::Returned(lane, returned) => {
                self.pool.take_back(u16::try_from(*lane).unwrap(), returned);
            }
        }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Call { lane, amount, fate, forwarded, passes, ref others, waits } => {
                let amount = if self.kind == "amount" { amount } else { 1 };
                self.call((lane, amount, fate), (forwarded, passes, waits), others, None);
            }
            Event::Resume { call } => self.resume(call),
            Event::Settle { call, ending } => self.settle(call, ending),
            Event::Recall { lane, fate } => self.recall(lane, fate),
            Event::Late { message } => self.late(message),
            Event::Restart { lane } => {
                let stored = serde_json::to_string(&self.books[lane].1).unwrap();
                self.books[lane].0 = Book::parse(&stored).unwrap();
                self.waiting.retain(|waiting| waiting.lane != lane);
            }
            Event::RestartCounter => {
                let stored = serde_json::to_string(&self.pool).unwrap();
                self.pool = Pool::parse(&stored).unwrap();
            }
            Event::Ahead { ms } => self.now_ms += ms,
            Event::Back { ms } => self.now_ms -= ms,
            Event::Bound { max } => {
                self.max = max;
                self.revision += 1;
            }
        }
    }

    /// All lanes give back what they do not use, as if another lane needed it.
    fn come_to_rest(&mut self) {
        let need = self.need(&self.limit(), 0);
        while !self.waiting.is_empty() {
            self.resume(0);
        }
        // Begins the present window.
        self.grant(0, &need, &[], Fate::Answered);
        for lane in 0..LANES {
            self.recall(lane, Fate::Answered);
        }
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Answered),
        1 => Just(Fate::Lost),
        1 => Just(Fate::AnswerLost),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let ending = prop_oneof![
        Just(Ending::Failed),
        Just(Ending::Unclear),
        Just(Ending::Succeeded(None)),
        (0..9_u64).prop_map(|spent| Ending::Succeeded(Some(whole(spent)))),
    ];
    prop_oneof![
        12 => (0..LANES, 1..9_u64, fate(), any::<bool>(), prop::bool::weighted(0.8), prop::collection::vec(1..9_u64, 0..3), prop::bool::weighted(0.3))
            .prop_map(|(lane, amount, fate, forwarded, passes, others, waits)| Event::Call {
                lane, amount, fate, forwarded, passes, others, waits
            }),
        4 => any::<prop::sample::Index>().prop_map(|call| Event::Resume { call: call.index(1 << 16) }),
        6 => (any::<prop::sample::Index>(), ending)
            .prop_map(|(call, ending)| Event::Settle { call: call.index(1 << 16), ending }),
        3 => (0..LANES, fate()).prop_map(|(lane, fate)| Event::Recall { lane, fate }),
        2 => any::<prop::sample::Index>()
            .prop_map(|message| Event::Late { message: message.index(1 << 16) }),
        2 => (0..LANES).prop_map(|lane| Event::Restart { lane }),
        1 => Just(Event::RestartCounter),
        1 => (0..2 * MINUTE_MS).prop_map(|ms| Event::Ahead { ms }),
        1 => (0..2 * MINUTE_MS).prop_map(|ms| Event::Back { ms }),
        1 => (0..40_u64).prop_map(|max| Event::Bound { max }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn lanes_never_use_more_than_the_bound_and_lose_nothing_for_good(
        kind in prop::sample::select(vec!["quota", "amount", "concurrency"]),
        max in 0..40_u64,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut world = World::new(kind, max);
        for event in &events {
            world.happen(event);
        }
        world.come_to_rest();
        let number = world.pool.holders(u16::MAX).0;
        // The part that no call uses is available again.
        let used = world.used.get(&number).copied().unwrap_or_default();
        prop_assert_eq!(world.pool.left(whole(world.max)), whole(world.max.saturating_sub(used)));
    }
}

fn shared(subject_kind: &str, subject: &str, rule: Value) -> SharedLimit {
    let limit = json!({"limit_id": "l", "rule": rule});
    let record = json!({"subject_kind": subject_kind, "subject": subject, "limit": limit});
    serde_json::from_value(record).unwrap()
}

fn quota(max: u64) -> Value {
    json!({"kind": "quota", "max": max.to_string(), "window": "day"})
}

fn gates(limits: &[SharedLimit]) -> [Gate; 2] {
    let mut gates = [Gate::new(), Gate::new()];
    for (number, gate) in gates.iter_mut().enumerate() {
        gate.tenant_mut().shared_limits = limits.into();
        gate.number = u16::try_from(number).unwrap();
    }
    gates[1].counters = Rc::clone(&gates[0].counters);
    gates
}

fn asked() -> GateCommand {
    command(&with(read_call(), json!({"tool_call": {"parameters": {"n": 3}}})))
}

fn answer(gate: &Gate, command: &GateCommand) -> (u16, Value) {
    let reply = gate.try_call(command).unwrap();
    (reply.status, serde_json::from_str(&reply.body).unwrap())
}

#[test]
fn a_quota_of_three_is_three_in_two_lanes() {
    let gates = gates(&[shared("tenant", "*", quota(3))]);
    let passed: Vec<bool> =
        (0..6).map(|call| answer(&gates[call % 2], &asked()).1["decision"] == "allow").collect();
    assert_eq!(passed, [true, true, true, false, false, false]);
    let (_, denial) = answer(&gates[0], &asked());
    assert_eq!(denial["reason_code"], "quota_exhausted");
    assert_eq!(denial["violated_limits"][0]["remaining"], "0");
}

/// The agent is in so many groups that each limit of every group counts its call.
#[test]
fn more_shared_limits_than_a_call_can_count_for_deny_it() {
    for own in [false, true] {
        for (groups, expected) in [(32, "policy_allow"), (33, "limit_unavailable")] {
            let limits = [shared("group", "*", quota(3)), shared("group", "*", quota(4))];
            let [mut gate, _] = gates(&limits);
            let agent = gate.agent_mut();
            agent.groups = (0..groups).map(|at| format!("g{at}")).collect();
            if own {
                agent.limits = support::daily(10);
            }
            let (_, told) = answer(&gate, &asked());
            assert_eq!(told["reason_code"], expected, "{groups} {own}");
            let violated = &told["violated_limits"][0];
            let (limit_id, why) = (&violated["limit_id"], &violated["why"]);
            match expected {
                "policy_allow" => assert_eq!(*violated, Value::Null),
                _ => assert_eq!((limit_id, why), (&json!("l"), &json!("unavailable"))),
            }
            // Trying again does not help.
            assert_eq!(violated["retry_after_s"], Value::Null);
            gate.records.tool = support::tool(false, true);
            assert_eq!(answer(&gate, &asked()).1["decision"], "quarantine", "{groups} {own}");
        }
    }
}

/// The agent is in as many groups as it can be. Another limit of each group does not cover its call, or counts nothing.
#[test]
fn limits_that_do_not_count_a_call_are_not_too_many_for_it() {
    let more = |member: &str, value: Value| {
        let mut rule = quota(9);
        rule[member] = value;
        rule
    };
    for other in [
        more("tools", json!(["other/*"])),
        more("access", json!("write")),
        json!({"kind": "per_call", "max": "3", "pointer": "/n"}),
    ] {
        // The other limit comes first: leases that the lane does not read then are asked of their counters.
        let limits = [("a", &other), ("b", &quota(2))].map(|(id, rule)| -> SharedLimit {
            let limit = json!({"limit_id": id, "rule": rule});
            let record = json!({"subject_kind": "group", "subject": "*", "limit": limit});
            serde_json::from_value(record).unwrap()
        });
        let [mut gate, _] = gates(&limits);
        let agent = gate.agent_mut();
        agent.groups = (0..64).map(|at| format!("g{at}")).collect();
        for expected in ["policy_allow", "policy_allow", "quota_exhausted"] {
            gate.evict();
            assert_eq!(answer(&gate, &asked()).1["reason_code"], expected, "{other}");
        }
    }
}

/// Attack: many calls at once, of an agent that may make one, lease what other lanes need.
#[test]
fn a_call_is_charged_once_and_before_it_asks_a_counter() {
    let mut gates = gates(&[shared("tenant", "*", quota(400))]);
    gates[0].agent_mut().request_rate = support::rate(1, 0.01);
    let gate = &gates[0];
    let call = |leases: &[(String, Answer)]| {
        let called = gate.on_lane(|lane, storage| {
            let answers = Answers { leases, windows: None };
            let policies = (&*gate.engine, &gate.config);
            lane.call(storage, policies, &asked(), &gate.records, answers, gate.now_ms.get())
        });
        match called.unwrap() {
            CallResult::NotLeased(needs) => Err(needs),
            other => Ok(matches!(other, CallResult::Decided(reply) if reply.status == 200)),
        }
    };
    let needs = call(&[]).unwrap_err();
    assert_eq!(call(&[]), Ok(false), "the second call is over the rate");
    let leased = [(needs[0].book(), gate.lease(&needs[0]).unwrap())];
    assert_eq!(call(&leased), Ok(true));
}

/// A call waits for two counters. The lane must not lose what the first one granted to it, whatever it is granted for
/// other calls meanwhile.
#[test]
fn what_was_granted_to_a_call_that_waits_stays_its_own() {
    let rate = json!({"kind": "rate", "capacity": 2, "refill_per_s": 0.001});
    for other in [rate.clone(), quota(2)] {
        let limits = [("a", &rate), ("b", &other)].map(|(id, rule)| -> SharedLimit {
            let limit = json!({"limit_id": id, "rule": rule});
            let record = json!({"subject_kind": "tenant", "subject": "*", "limit": limit});
            serde_json::from_value(record).unwrap()
        });
        let [gate, _] = gates(&limits);
        let call = |leases: &[(String, Answer)]| {
            let called = gate.on_lane(|lane, storage| {
                let answers = Answers { leases, windows: None };
                let policies = (&*gate.engine, &gate.config);
                lane.call(storage, policies, &asked(), &gate.records, answers, gate.now_ms.get())
            });
            match called.unwrap() {
                CallResult::Decided(reply) => {
                    Ok((reply.status, reply.body.contains("policy_allow")))
                }
                CallResult::NotLeased(needs) => Err(needs),
                CallResult::NotCounted(_) => panic!("there is no window"),
            }
        };
        let lease = |need: &Need| (need.book(), gate.lease(need).unwrap());
        let needs = call(&[]).unwrap_err();
        let mut first = vec![lease(&needs[0])];
        let second: Vec<_> = call(&[]).unwrap_err().iter().map(lease).collect();
        first.push(lease(&needs[1]));
        for granted in [&first, &second] {
            assert_eq!(call(granted), Ok((200, true)), "{other}");
            let release = |lane: &mut Lane, _: &Storage| {
                granted.iter().for_each(|(name, answer)| lane.release(name, *answer));
                Ok(())
            };
            gate.on_lane(release).unwrap();
        }
        let third = [lease(&call(&[]).unwrap_err()[0])];
        assert_eq!(call(&third), Ok((429, false)), "{other}");
    }
}

/// Otherwise they could be used as long as later ones, and would pile up.
#[test]
fn later_tokens_replace_those_that_no_call_waits_for() {
    let rate = limit(json!({"kind": "rate", "capacity": 40, "refill_per_s": 40}));
    let [gate, _] = gates(&[]);
    let need = Need {
        counter: Rc::clone(&rate.counter),
        subject: "*".to_owned(),
        terms: lease::Terms::of(&rate.rule).unwrap(),
        revision: 0,
        amount: whole(1),
    };
    let free = [(); 3].map(|()| {
        assert!(matches!(gate.lease(&need), Ok(Answer::Granted { .. })));
        let now_ms = gate.now_ms.get();
        gate.now_ms.set(now_ms + 900);
        let ask = |lane: &mut Lane, storage: &Storage| {
            lane.ask(storage, &need, Vec::new(), (0, 2), now_ms)
        };
        gate.on_lane(ask).unwrap().0.free
    });
    assert_eq!(free, [whole(9); 3]);
}

/// Attack: an agent asks again and again for more than there is, so that its lane gathers what others need.
#[test]
fn a_lane_whose_calls_do_not_fit_gathers_nothing() {
    let rule = json!({"kind": "amount", "max": "1000", "window": "day", "pointer": "/n"});
    let gates = gates(&[shared("tenant", "*", rule)]);
    let pay = |n: u64| command(&with(read_call(), json!({"tool_call": {"parameters": {"n": n}}})));
    let code = |lane: usize, n| answer(&gates[lane], &pay(n)).1["reason_code"].clone();
    for n in [5_000, 1_001] {
        assert_eq!(code(0, n), "amount_exhausted");
        assert_eq!(gates[0].asks.get(), 0, "no counter could grant it");
    }
    assert_eq!(code(0, 900), "policy_allow");
    for _ in 0..5 {
        assert_eq!(code(0, 900), "amount_exhausted");
    }
    // The first grant brought half of what was left.
    assert_eq!(code(1, 50), "policy_allow");
}

#[test]
fn a_lease_that_is_present_is_used_without_asking_and_survives_a_start() {
    let gates = gates(&[shared("tenant", "*", quota(400))]);
    for _ in 0..20 {
        assert_eq!(answer(&gates[0], &asked()).1["decision"], "allow");
        gates[0].evict();
    }
    // The first answer brought a quarter of what was left.
    assert_eq!(gates[0].asks.get(), 1);
}

#[test]
fn a_count_of_far_ahead_is_moved_to_now_with_all_that_was_granted() {
    let terms = lease::Terms::of(&limit(quota(10)).rule).unwrap();
    let ask = |needs| lease::ask(None, Amount::ZERO, (0, 1), 0, vec![whole(needs)]);
    let mut pool = Pool::default();
    // The calls ask at once for everything that is left, so that nothing is granted in advance.
    let ahead_ms = START_MS + 40 * 24 * 60 * MINUTE_MS;
    assert_eq!(pool.grant(&terms, &ask(10), at(ahead_ms)).unwrap().0.granted, whole(10));
    let (granted, all) = pool.grant(&terms, &ask(1), at(START_MS)).unwrap();
    assert_eq!((granted.granted, granted.left, all), (whole(0), whole(0), false));
    let (granted, _) = pool.grant(&terms, &ask(10), at(START_MS + 24 * 60 * MINUTE_MS)).unwrap();
    assert_eq!(granted.granted, whole(10));
}

#[test]
fn nobody_knows_when_a_count_of_a_later_window_than_now_ends() {
    let limit = limit(quota(10));
    let terms = lease::Terms::of(&limit.rule).unwrap();
    let mut pool = Pool::default();
    let ahead_ms = START_MS + 3 * 24 * 60 * MINUTE_MS;
    for (lane, now_ms, is_known) in [(0, ahead_ms, true), (1, START_MS, false), (1, ahead_ms, true)]
    {
        let ask = lease::ask(None, Amount::ZERO, (lane, 1), 0, vec![whole(10)]);
        let (granted, all) = pool.grant(&terms, &ask, at(now_ms)).unwrap();
        assert_eq!((granted.retry_after_s.is_some(), all), (is_known, lane == 0), "{now_ms}");
        assert_eq!(pool.status(&limit, at(now_ms)).reset_s.is_some(), is_known, "{now_ms}");
    }
}

#[test]
fn a_lane_that_forgot_its_lease_is_not_granted_it_twice() {
    let terms = lease::Terms::Slots { max: whole(10) };
    let ask = |lane, needs| lease::ask(None, Amount::ZERO, (lane, 2), 0, vec![whole(needs)]);
    let mut pool = Pool::default();
    pool.grant(&terms, &ask(0, 10), at(START_MS)).unwrap();
    pool.take_back(0, &Returned { number: 0, returned: whole(10) });
    assert!(pool.grant(&terms, &ask(1, 10), at(START_MS)).unwrap().1);
    let (granted, all) = pool.grant(&terms, &ask(0, 1), at(START_MS)).unwrap();
    let lease = lease::granted(None, 0, &granted);
    assert_eq!((all, lease.available()), (false, whole(0)));
}

/// The example of docs/operations.md ("What a lane holds back"): the lane does not answer when it is asked to give back.
#[test]
fn a_lane_that_cannot_start_keeps_125_of_1000_a_day_until_midnight() {
    const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
    let terms = lease::Terms::of(&limit(quota(1_000)).rule).unwrap();
    let ask = |lane, needs| lease::ask(None, Amount::ZERO, (lane, 4), 0, vec![whole(needs)]);
    let mut pool = Pool::default();
    assert_eq!(pool.grant(&terms, &ask(0, 1), at(START_MS)).unwrap().0.granted, whole(125));
    let last_ms = START_MS - START_MS % DAY_MS + DAY_MS - 1;
    for (now_ms, needs, fits) in [
        (START_MS, 876, false),
        (START_MS, 875, true),
        (last_ms, 1, false),
        (last_ms + 1, 1_000, true),
    ] {
        let lane = u16::from(now_ms > START_MS) + 1;
        assert_eq!(pool.grant(&terms, &ask(lane, needs), at(now_ms)).unwrap().1, fits, "{needs}");
    }
}

#[test]
fn a_lane_that_cannot_start_keeps_its_places_until_it_gives_them_back() {
    let terms = lease::Terms::Slots { max: whole(2) };
    let ask = |lane, needs| lease::ask(None, Amount::ZERO, (lane, 4), 0, vec![whole(needs)]);
    let mut pool = Pool::default();
    pool.grant(&terms, &ask(0, 1), at(START_MS)).unwrap();
    let much_later = at(START_MS + 400 * 24 * 60 * MINUTE_MS);
    assert!(!pool.grant(&terms, &ask(1, 2), much_later).unwrap().1);
    pool.take_back(0, &Returned { number: 0, returned: whole(1) });
    assert!(pool.grant(&terms, &ask(1, 2), much_later).unwrap().1);
}

#[test]
fn a_lane_that_knows_an_older_bound_is_granted_nothing() {
    let rate = limit(json!({"kind": "rate", "capacity": 9, "refill_per_s": 9}));
    let ask = |revision| lease::ask(None, Amount::ZERO, (0, 2), revision, vec![whole(1)]);
    for terms in [lease::Terms::Slots { max: whole(10) }, lease::Terms::of(&rate.rule).unwrap()] {
        let mut pool = Pool::default();
        assert!(pool.grant(&terms, &ask(7), at(START_MS)).unwrap().1);
        let (before, _) = pool.grant(&terms, &ask(7), at(START_MS)).unwrap();
        let (granted, all) = pool.grant(&terms, &ask(6), at(START_MS + 1_000)).unwrap();
        assert_eq!((granted.overdrawn, all), (true, false), "{terms:?}");
        assert_eq!(granted.granted.minus(before.granted), whole(0), "{terms:?}");
    }
}

/// Attack: calls of two lanes fail in turn, so that the sum of what each was granted grows without end.
#[test]
fn the_sum_of_a_lanes_grants_stays_an_amount_that_can_be_stored() {
    let max = whole(900_000_000_000_000_000);
    let terms = lease::Terms::Slots { max };
    let ask = lease::ask(None, Amount::ZERO, (0, 2), 0, vec![max]);
    let mut pool = Pool::default();
    let mut grants = Vec::new();
    for _ in 0..2 {
        let (granted, all) = pool.grant(&terms, &ask, at(START_MS)).unwrap();
        grants.push(all);
        pool.take_back(0, &Returned { number: 0, returned: granted.granted });
        assert!(Pool::parse(&serde_json::to_string(&pool).unwrap()).is_some());
    }
    assert_eq!(grants, [true, false]);
}

#[test]
fn a_call_that_is_denied_anyway_and_a_dry_run_ask_no_counter() {
    let mut gates = gates(&[shared("tenant", "*", quota(3))]);
    let dry = command(&with(read_call(), json!({"dry_run": true})));
    assert_eq!(answer(&gates[0], &dry).1["decision"], "allow");
    gates[0].credential_mut().scopes.clear();
    assert_eq!(answer(&gates[0], &asked()).1["reason_code"], "scope_missing");
    let denied =
        command(&with(read_call(), json!({"context": {"source_trust": "untrusted_external"}})));
    gates[1].records.tool = support::tool(true, false);
    assert_eq!(answer(&gates[1], &denied).1["decision"], "deny");
    assert_eq!((gates[0].asks.get(), gates[1].asks.get()), (0, 0));
}

#[test]
fn a_grant_that_a_lane_lost_can_be_called_back() {
    let gates = gates(&[shared("tenant", "*", quota(1))]);
    let need = {
        let limit = &gates[0].records.tenant.as_ref().unwrap().shared_limits[0].limit;
        let (terms, counter) = (lease::Terms::of(&limit.rule).unwrap(), Rc::clone(&limit.counter));
        Need { counter, subject: "*".to_owned(), terms, revision: 0, amount: whole(1) }
    };
    // The lane is evicted before a call used it.
    assert!(matches!(gates[0].lease(&need), Ok(Answer::Granted { .. })));
    gates[0].evict();
    assert_eq!(answer(&gates[1], &asked()).1["decision"], "deny");
    let now_ms = gates[0].now_ms.get();
    {
        let counters = gates[0].counters.borrow();
        let counter = &counters[&*need.counter];
        let (number, lanes) = Lane::holders(counter, "*", 1).unwrap();
        let heard = Some((number, lanes[0].1));
        let give = |lane: &mut Lane, storage: &Storage| {
            lane.give_back(storage, (&need.counter, "*"), heard, now_ms)
        };
        let returned = gates[0].on_lane(give).unwrap().unwrap();
        Lane::take_back(counter, "*", (0, &returned), now_ms).unwrap();
    }
    assert_eq!(answer(&gates[1], &asked()).1["decision"], "allow");
}

#[test]
fn an_answer_says_what_is_left_only_with_a_lease() {
    let mut gates = gates(&[shared("tenant", "*", quota(3))]);
    let told = |gate: &Gate, call: &GateCommand| {
        let reply = gate.try_call(call).unwrap();
        let RateHeaders { policies, states } = reply.rate_headers.unwrap();
        [policies, states].map(|text| text.split_once(", ").map_or("", |(_, rest)| rest).to_owned())
    };
    gates[0].records.tool = support::tool(true, false);
    let denied =
        command(&with(read_call(), json!({"context": {"source_trust": "untrusted_external"}})));
    let policy = r#""l";q=3;w=86400"#;
    assert_eq!(told(&gates[0], &denied), [policy, ""]);
    assert_eq!(told(&gates[1], &asked()), [policy, r#""l";r=2;t=46400"#]);
    // The lease ended with the day.
    gates[1].now_ms.set(gates[1].now_ms.get() + 24 * 60 * MINUTE_MS);
    gates[1].records.tool = support::tool(true, false);
    assert_eq!(told(&gates[1], &denied), [policy, ""]);
}

/// Attack: an agent uses up the tenant's limit, so that other agents seem to misbehave.
#[test]
fn a_shared_limit_that_is_used_up_raises_no_risk() {
    let per_call = json!({"kind": "per_call", "max": "1", "pointer": "/n"});
    for (rule, away, raises) in
        [(quota(0), false, false), (quota(9), true, false), (per_call, false, true)]
    {
        let mut gates = gates(&[shared("tenant", "*", rule)]);
        gates[0].tenant_mut().settings.risk_denials = Some(1);
        gates[0].counter_away.set(away);
        for _ in 0..4 {
            assert_eq!(answer(&gates[0], &asked()).1["decision"], "deny");
        }
        let (tenant, now_ms) = (gates[0].records.tenant.as_ref().unwrap(), gates[0].now_ms.get());
        let held =
            gates[0].on_lane(|lane, storage| lane.containment(storage, "coder", tenant, now_ms));
        assert_eq!(held.unwrap().risk_steps > 0, raises, "{away}");
    }
}

#[test]
fn a_call_without_a_counter_is_denied() {
    let gates = gates(&[shared("tenant", "*", quota(3))]);
    gates[0].counter_away.set(true);
    let (status, denial) = answer(&gates[0], &asked());
    assert_eq!((status, &denial["reason_code"]), (200, &json!("limit_unavailable")));
    gates[0].counter_away.set(false);
    assert_eq!(answer(&gates[0], &asked()).1["decision"], "allow");
}

#[test]
fn a_lowered_bound_holds_for_the_next_decision_of_a_lane_with_a_lease() {
    let mut gates = gates(&[shared("tenant", "*", quota(400))]);
    for _ in 0..5 {
        assert_eq!(answer(&gates[0], &asked()).1["decision"], "allow");
    }
    let mut revision = 0;
    let mut set = |gate: &mut Gate, max: u64| {
        revision += 1;
        let tenant = gate.tenant_mut();
        let limit = json!({"limit_id": "l", "revision": revision, "rule": quota(max)});
        let record = json!({"subject_kind": "tenant", "subject": "*", "limit": limit});
        tenant.shared_limits = [serde_json::from_value(record).unwrap()].into();
    };
    set(&mut gates[0], 4);
    assert_eq!(answer(&gates[0], &asked()).1["reason_code"], "quota_exhausted");
    set(&mut gates[0], 6);
    assert_eq!(answer(&gates[0], &asked()).1["decision"], "allow");
    assert_eq!(answer(&gates[0], &asked()).1["decision"], "deny");
}

#[test]
fn a_limit_counts_for_the_subject_that_it_names() {
    let harness = |gate: &mut Gate, assigns: bool| {
        gate.credential_mut().assigns_runs = assigns;
    };
    // Kind, subject, whether the credential is a harness's, and whether the limit of zero denies.
    for (kind, subject, assigns, denies) in [
        ("tenant", "*", false, true),
        ("group", "release", false, true),
        ("group", "*", false, true),
        ("group", "other", false, false),
        ("tool", "notes/list", false, true),
        ("tool", "notes/*", false, true),
        ("tool", "notes/other", false, false),
        ("server", "no*", false, true),
        ("server", "mail", false, false),
        ("user", "ada", true, true),
        ("user", "*", true, true),
        ("user", "eve", true, false),
        ("user", "ada", false, false),
    ] {
        let mut gates = gates(&[shared(kind, subject, quota(0))]);
        gates[0].agent_mut().groups = vec!["release".to_owned()];
        harness(&mut gates[0], assigns);
        let call = command(&with(read_call(), json!({"user": {"id": "ada", "role": "r"}})));
        let denied = answer(&gates[0], &call).1["reason_code"] == "quota_exhausted";
        assert_eq!(denied, denies, "{kind} {subject} {assigns}");
    }
}

#[test]
fn a_users_id_has_no_control_characters() {
    for (id, valid) in [("ada", true), ("a\u{0}da", false), ("ada\n", false)] {
        let body = with(read_call(), json!({"user": {"id": id}})).to_string();
        let parsed = gateward_core::call::parse(body.as_bytes(), support::TENANT);
        assert_eq!(parsed.is_ok(), valid, "{id:?}");
    }
}

#[test]
fn subjects_are_counted_apart() {
    let mut gates = gates(&[shared("user", "*", quota(1))]);
    gates[0].credential_mut().assigns_runs = true;
    let of = |user: &str| command(&with(read_call(), json!({"user": {"id": user, "role": "r"}})));
    for (user, decision) in [("ada", "allow"), ("ada", "deny"), ("eve", "allow"), ("eve", "deny")] {
        assert_eq!(answer(&gates[0], &of(user)).1["decision"], decision, "{user}");
    }
}

#[test]
fn a_shared_rate_is_429_with_the_seconds_to_wait() {
    let rule = json!({"kind": "rate", "capacity": 2, "refill_per_s": 0.1});
    let gates = gates(&[shared("tenant", "*", rule)]);
    for (gate, left) in gates.iter().zip([1, 0]) {
        let reply = gate.try_call(&asked()).unwrap();
        // The lane does not know when the counter's bucket is full.
        let states = reply.rate_headers.unwrap().states;
        assert_eq!(reply.status, 200);
        assert!(states.ends_with(&format!(r#", "l";r={left}"#)), "{states}");
    }
    let reply = gates[0].try_call(&asked()).unwrap();
    assert_eq!((reply.status, reply.retry_after_s), (429, Some(10)));
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(body["violated_limits"][0]["remaining"], "0");
}

#[test]
fn places_of_calls_in_progress_are_shared() {
    let rule = json!({"kind": "concurrency", "max": "1"});
    let mut gates = gates(&[shared("tenant", "*", rule.clone())]);
    for gate in &mut gates {
        let server = json!({"kind": "mcp", "trust": "trusted", "status": "active", "upstream": {
            "url": "https://api.example.com/", "whole_timeout_ms": 10_000}});
        gate.records.server = Some(serde_json::from_value(server).unwrap());
    }
    let mut forwarded = asked();
    forwarded.call.environment = None;
    forwarded.purpose = Purpose::Forward;
    forwarded.forwarded = true;
    assert_eq!(answer(&gates[0], &forwarded).0, 200);
    assert_eq!(answer(&gates[1], &forwarded).0, 429);
    // The counter knows what is left, but not what calls in progress hold.
    let counters = gates[0].counters.borrow();
    let pools = Lane::pools(counters.values().next().unwrap(), &[]).unwrap();
    let state = Pool::parse(&pools[0].1).unwrap().status(&limit(rule), at(gates[0].now_ms.get()));
    assert_eq!((state.remaining, state.reserved), (Some(Amount::ZERO), None));
}

#[test]
fn a_call_writes_one_row_for_any_number_of_shared_limits() {
    for count in 0..4_usize {
        let limits: Vec<_> = (0..count)
            .map(|number| {
                let limit = json!({"limit_id": format!("l{number}"), "rule": quota(9)});
                let record = json!({"subject_kind": "tenant", "subject": "*", "limit": limit});
                serde_json::from_value(record).unwrap()
            })
            .collect();
        let gates = gates(&limits);
        answer(&gates[0], &asked());
        let rows = |statement| gates[0].storage.exec(statement, &[]).unwrap().len();
        assert_eq!((rows("SELECT 1 FROM journal"), rows("SELECT 1 FROM limit_books")), (1, 0));
        let books = "SELECT 1 FROM journal, json_each(books)";
        assert_eq!(rows(books), count);
    }
}

#[test]
fn what_a_lane_gives_back_another_can_use() {
    let gates = gates(&[shared("tenant", "*", quota(8))]);
    assert_eq!(answer(&gates[0], &asked()).1["decision"], "allow");
    // The first lane was granted one part for its call, and one in advance.
    let counter = gates[0].counters.borrow().keys().next().unwrap().clone();
    let now_ms = gates[0].now_ms.get();
    let give_back = || {
        let (number, lanes) = Lane::holders(&gates[0].counters.borrow()[&counter], "*", 1).unwrap();
        let heard =
            lanes.iter().find(|(lane, _)| *lane == 0).map(|(_, granted)| (number, *granted));
        let give = |lane: &mut Lane, storage: &Storage| {
            lane.give_back(storage, (&counter, "*"), heard, now_ms)
        };
        gates[0].on_lane(give).unwrap()
    };
    for _ in 0..6 {
        assert_eq!(answer(&gates[1], &asked()).1["decision"], "allow");
    }
    assert_eq!(answer(&gates[1], &asked()).1["decision"], "deny");
    let returned = give_back().unwrap();
    {
        let counters = gates[0].counters.borrow();
        Lane::take_back(&counters[&counter], "*", (0, &returned), now_ms).unwrap();
    }
    assert_eq!(answer(&gates[1], &asked()).1["decision"], "allow");
    assert_eq!(answer(&gates[1], &asked()).1["decision"], "deny");
}
