//! `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-10.

use super::amount::Amount;
use super::book::At;
use super::lease::Lease;
use super::rate_item::push_item;
use super::status::{Left, left};
use super::usage::{Covered, Ledger};
use crate::bucket::RateStatus;

/// The values of both headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateHeaders {
    /// `RateLimit-Policy`: what the limits allow.
    pub policies: String,
    /// `RateLimit`: what is left of them.
    pub states: String,
}

impl RateHeaders {
    /// The rate of an agent's requests. `name`: of the limit that sets it.
    #[must_use]
    pub fn of_requests(name: &str, rate: RateStatus) -> Self {
        let (mut policies, mut states) = (String::new(), String::new());
        push_item(&mut policies, name, ("q", rate.limit.into()), ("w", Some(rate.window_s)));
        push_item(&mut states, name, ("r", rate.remaining.into()), ("t", Some(rate.reset_s)));
        Self { policies, states }
    }

    /// Adds the limits that cover calls of a tool, except for limits without a number.
    pub fn add(
        &mut self,
        ledgers: &[Ledger<'_>],
        tool: &str,
        Covered { reads, writes }: Covered,
        at: At,
    ) {
        // Of the last limit: its id, what is left of it, and where its state begins.
        let mut last: Option<(&str, Option<Amount>, usize)> = None;
        for ledger in ledgers {
            let lasts = |lease: &Lease| at.now_ms < lease.ends_at_ms;
            for limit in ledger.limits.iter().filter(|it| it.covers(tool, reads, writes)) {
                let Some(policy) = &limit.policy else { continue };
                let id = limit.limit_id.as_str();
                // Without a lease that lasts, the lane does not know what is left.
                let is_known =
                    ledger.leased.is_none() || ledger.book.lease(&limit.counter).is_some_and(lasts);
                let Left { remaining, reset_s, .. } = match is_known {
                    true => left(&ledger.book, limit, at),
                    false => Left::default(),
                };
                // A limit of each group may count a call for several groups. Then the one with the least left is told:
                // names must differ.
                match last {
                    Some((same, least, begin)) if same == id => {
                        let is_less = |left| least.is_none_or(|least| left < least);
                        if !remaining.is_some_and(is_less) {
                            continue;
                        }
                        self.states.truncate(begin);
                    }
                    _ => self.policies.extend([", ", policy]),
                }
                last = Some((id, remaining, self.states.len()));
                if let Some(remaining) = remaining {
                    self.states.push_str(", ");
                    push_item(&mut self.states, id, ("r", remaining.floor()), ("t", reset_s));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::*;
    use crate::bucket::{Bucket, Rate};
    use crate::json::Json;
    use crate::limit::lease::{Granted, Leased};
    use crate::limit::usage::{Usage, apply, uses};
    use crate::limit::window::utc_only;
    use crate::limit::{Book, Limit};

    /// 15 January 2027, 08:00.
    const NOW_MS: u64 = 1_800_000_000_000;
    const AT: At = At { now_ms: NOW_MS, offset_s: utc_only };
    const COVERED: Covered = Covered { reads: true, writes: true };

    fn limits(rules: &[serde_json::Value]) -> Vec<Rc<Limit>> {
        let limits = rules.iter().map(|rule| json!({"limit_id": rule["kind"], "rule": rule}));
        serde_json::from_value(limits.collect()).unwrap()
    }

    fn leased() -> Option<Leased> {
        Some(Leased { subject: "*".to_owned(), held: (0, Amount::ZERO), answer: None })
    }

    /// The headers without the request rate.
    fn told(ledgers: &[Ledger<'_>]) -> (String, String) {
        let rate = Rate::new(600, 100.0);
        let mut headers =
            RateHeaders::of_requests("agent", Bucket::full(rate, NOW_MS).status(rate));
        headers.add(ledgers, "s/x", COVERED, AT);
        let rest = |text: String, first: &str| text.strip_prefix(first).unwrap().to_owned();
        (
            rest(headers.policies, r#""agent";q=600;w=6"#),
            rest(headers.states, r#""agent";r=600;t=0"#),
        )
    }

    #[test]
    fn headers_have_each_limit_with_a_number() {
        let max = "999999999999999999";
        for (rule, policy, state) in [
            (json!({"kind": "hours", "hours": ["00:00-24:00"]}), "", ""),
            (json!({"kind": "per_call", "max": "9.99", "pointer": "/n"}), r#"q=9"#, ""),
            (json!({"kind": "rate", "capacity": 3, "refill_per_s": 0.1}), "q=3;w=30", "r=2;t=10"),
            (json!({"kind": "concurrency", "max": "3"}), "q=3", "r=2"),
            (json!({"kind": "quota", "max": "5", "window": "day"}), "q=5;w=86400", "r=4;t=57600"),
            (json!({"kind": "quota", "max": "0", "window": "minute"}), "q=0;w=60", "r=0;t=60"),
            (
                json!({"kind": "amount", "max": "10.5", "window": "hour", "pointer": "/n"}),
                "q=10;w=3600",
                "r=7;t=3600",
            ),
            (
                json!({"kind": "budget", "max": max, "window": "month"}),
                "q=999999999999999;w=2678400",
                "r=999999999999999;t=1440000",
            ),
            (json!({"kind": "quota", "max": "5", "window": "day", "tools": ["t/*"]}), "", ""),
        ] {
            let limits = limits(std::slice::from_ref(&rule));
            let mut ledgers = [Ledger::new("agent/a".into(), &limits, Default::default(), None)];
            let input: Json = crate::json::parse(br#"{"n": 2.75}"#).unwrap();
            let usage = Usage {
                tool: "s/x",
                covered: COVERED,
                input: &input,
                rounded: &[],
                cost: Amount::whole(1),
                forwarded: true,
            };
            let uses = uses(&ledgers, &usage);
            // A quota of zero denies the call.
            let _ = apply(&mut ledgers, &uses, true, AT);
            let id = rule["kind"].as_str().unwrap();
            let item = |text: &str| match text {
                "" => String::new(),
                text => format!(r#", "{id}";{text}"#),
            };
            assert_eq!(told(&ledgers), (item(policy), item(state)), "{rule}");
        }
    }

    #[test]
    fn of_the_counts_of_one_limit_the_least_is_told() {
        let quota = json!({"kind": "quota", "max": "9", "window": "day"});
        let limits = limits(&[quota, json!({"kind": "concurrency", "max": "7"})]);
        let [quota, concurrency] = limits.as_slice() else { panic!("two limits") };
        let book = |limit: &Limit, granted: Option<u64>| {
            let mut book = Book::default();
            if let Some(granted) = granted.map(Amount::whole) {
                let (returned, back, left) = (Amount::ZERO, Amount::ZERO, Amount::ZERO);
                let granted = Granted {
                    number: 1,
                    ends_at_ms: NOW_MS + 1_001,
                    granted,
                    returned,
                    back,
                    left,
                    overdrawn: false,
                    retry_after_s: None,
                };
                book.granted(&limit.counter, 0, &granted);
            }
            book
        };
        for (granted, expected) in [
            (&[None][..], ""),
            (&[Some(4)][..], r#", "quota";r=4;t=2"#),
            (&[Some(4), Some(3), Some(3), Some(5), None][..], r#", "quota";r=3;t=2"#),
            (&[None, Some(3), None][..], r#", "quota";r=3;t=2"#),
        ] {
            let books: Vec<Book> = granted.iter().map(|granted| book(quota, *granted)).collect();
            let last = book(concurrency, Some(1));
            let quotas = books.iter().map(|book| (quota, book));
            let ledgers: Vec<_> = quotas
                .chain([(concurrency, &last)])
                .map(|(limit, book)| {
                    Ledger::new("b".into(), std::slice::from_ref(limit), book, leased())
                })
                .collect();
            let policies = r#", "quota";q=9;w=86400, "concurrency";q=7"#.to_owned();
            let states = format!(r#"{expected}, "concurrency";r=1"#);
            assert_eq!(told(&ledgers), (policies, states), "{granted:?}");
        }
    }
}
