//! Random chains, changed at random: what Gateward accepts, the reference implementation accepts too.
//!
//! `GATEWARD_FUZZ_CASES` is the number of cases; `make fuzz` takes more than the tests.

use std::collections::BTreeMap;
use std::thread;

use gateward_core::json::{Json, parse};
use gateward_core::warrant::bounds::DEFAULT_MAX_LINKS;
use gateward_core::warrant::chain::sha256;
use gateward_core::warrant::constraint::fit::{Fit, value_fits};
use gateward_core::warrant::constraint::narrow::is_narrower;
use gateward_core::warrant::constraint::{
    Arguments, Constraint, Pattern, Range, Subpath, UrlPattern, UrlSafe, Work,
};
use gateward_core::warrant::gate::{Condition, Gate, Gates};
use gateward_core::warrant::payload::{Issuing, Payload, Powers, WarrantId};
use gateward_core::warrant::{self, Cache, Call, Presented, Tolerance, text};

use super::differences::Refused;
use super::{NOW_S, reference, secret};

/// Cases of the tests, unless the environment says another number.
const CASES: u64 = 100_000;

/// What a tenant accepts that has no settings of its own.
const TOLERANCE: Tolerance = Tolerance { max_links: DEFAULT_MAX_LINKS, proof_windows: 5 };

/// Links of the longest chain: one more than are accepted.
const LONGEST: usize = DEFAULT_MAX_LINKS + 1;

/// A key that is in no chain.
const STRANGER: u8 = 99;

fn cases() -> u64 {
    std::env::var("GATEWARD_FUZZ_CASES").map_or(CASES, |cases| cases.parse().unwrap())
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// True in one of so many cases.
    fn rarely(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn value(&mut self) -> Json {
        let texts = [
            "null",
            "true",
            "1",
            "2",
            "5",
            "5.5",
            "-3",
            "1e300",
            "9007199254740991",
            r#""""#,
            r#""a""#,
            r#""ab""#,
            r#""abc""#,
            r#""b""#,
            r#""/data/x""#,
            r#""/data/../etc""#,
            r#""/data""#,
            r#""/""#,
            r#""data/x""#,
            r#""/data\\x""#,
            r#""10.1.2.3""#,
            r#""10.2.0.1""#,
            r#""::ffff:10.1.2.3""#,
            r#""2001:db8::1""#,
            r#""https://a.example/x""#,
            r#""https://a.example:444/x/y?q""#,
            r#""https://sub.a.example/""#,
            r#""http://127.0.0.1/""#,
            r#""http://10.0.0.1/""#,
            r#""http://192.0.2.1/""#,
            r#""http://169.254.169.254/""#,
            r#""https://u@a.example/x""#,
            r#""HTTPS://A.example/x""#,
            "[]",
            r#"["a"]"#,
            r#"["a","b"]"#,
            r#"["/data/x"]"#,
            "[1,2]",
            r#"{"k":"a"}"#,
            r#"{"k":1,"😀":2,"\uffff":3}"#,
            r#""é""#,
            r#""a*""#,
        ];
        let text = self.one(&texts);
        parse(format!("[{text}]").as_bytes()).map_or(Json::Null, |read| match read {
            Json::Array(mut items) => items.pop().unwrap(),
            other => other,
        })
    }

    fn values(&mut self) -> Vec<Json> {
        (0..self.below(5)).map(|_| self.value()).collect()
    }

    fn constraint(&mut self, depth: usize) -> Constraint {
        let many = |random: &mut Self| {
            (0..=random.below(2)).map(|_| random.constraint(depth + 1)).collect::<Vec<_>>()
        };
        let bound = |random: &mut Self| {
            (!random.rarely(3)).then(|| random.one(&[-3.0, 0.0, 1.0, 2.0, 5.0, 5.5, 10.0]))
        };
        match self.below(if depth < 2 { 19 } else { 14 }) {
            0 | 1 => Constraint::Wildcard,
            2 => Constraint::Exact(self.value()),
            3 => {
                let patterns = [
                    "*",
                    "a*",
                    "ab*",
                    "*c",
                    "*",
                    "a",
                    "a?",
                    "/data/*",
                    "a*c",
                    "[ab]",
                    "**",
                    "/data/**",
                    "https://*",
                    "",
                ];
                Constraint::Pattern(Pattern::new((self.one(&patterns)).to_owned()))
            }
            4 | 5 => Constraint::Range(Range {
                min: bound(self),
                max: bound(self),
                min_inclusive: self.rarely(2),
                max_inclusive: self.rarely(2),
            }),
            6 => Constraint::OneOf(self.values()),
            7 => Constraint::NotOneOf(self.values()),
            8 => Constraint::cidr(self.one(&[
                "10.0.0.0/8",
                "10.1.0.0/16",
                "10.1.2.3",
                "2001:db8::/32",
                "0.0.0.0/0",
            ]))
            .unwrap(),
            9 => {
                let patterns = [
                    "https://a.example",
                    "https://a.example/",
                    "https://a.example/x",
                    "https://a.example/x/*",
                    "*://*.a.example",
                    "https://*.a.example/*",
                    "https://a.example:443",
                    "https://a.example:444",
                    "https://A.example/x*",
                ];
                Constraint::UrlPattern(Box::new(UrlPattern::new(self.one(&patterns)).unwrap()))
            }
            10 => Constraint::Contains(self.values()),
            11 => Constraint::Subset(self.values()),
            12 => Constraint::Subpath(Subpath {
                root: (self.one(&["/", "/data", "/data/x"])).to_owned(),
                case_sensitive: !self.rarely(4),
                allow_equal: !self.rarely(4),
            }),
            13 => {
                let domains = |random: &mut Self| {
                    random.rarely(2).then(|| {
                        vec![(random.one(&["a.example", "*.a.example", "*.example"])).to_owned()]
                    })
                };
                Constraint::UrlSafe(Box::new(UrlSafe {
                    allow_domains: domains(self),
                    deny_domains: domains(self),
                    allow_ports: self.rarely(3).then(|| vec![443]),
                    blocks: std::array::from_fn(|_| !self.rarely(4)),
                    block_internal_tlds: self.rarely(2),
                    ..UrlSafe::default()
                }))
            }
            14 | 15 => Constraint::All(many(self)),
            16 => Constraint::Any(many(self)),
            17 => Constraint::Not(Box::new(self.constraint(depth + 1))),
            _ => Constraint::Unsupported(self.one(&[6, 99]), vec![0xa0]),
        }
    }

    /// How many links a chain has. Each costs signatures, so most chains are short.
    fn length(&mut self) -> usize {
        match self.rarely(16) {
            true => 4 + self.below(LONGEST - 3),
            false => 1 + self.below(3),
        }
    }

    /// Often the same, often of the same type. The greater `calm` is, the more often it is the same.
    fn narrowed(&mut self, constraint: &Constraint, value: &Json, calm: usize) -> Constraint {
        match self.below(6 * calm) {
            0 => self.constraint(0),
            1 => Constraint::Exact(value.clone()),
            2 => match constraint {
                Constraint::All(all) => {
                    let mut all = all.clone();
                    all.push(self.constraint(1));
                    Constraint::All(all)
                }
                Constraint::OneOf(values) => {
                    let mut values = values.clone();
                    values.pop();
                    Constraint::OneOf(values)
                }
                other => other.clone(),
            },
            _ => constraint.clone(),
        }
    }

    fn arguments(&mut self, input: &Json) -> Arguments {
        let mut constraints = BTreeMap::new();
        let Json::Object(fields) = input else { panic!("no object") };
        for (name, value) in fields {
            if self.rarely(8) {
                continue;
            }
            let constraint =
                if self.rarely(3) { Constraint::Exact(value.clone()) } else { self.constraint(0) };
            constraints.insert(name.clone(), constraint);
        }
        if self.rarely(10) {
            constraints.insert("extra".to_owned(), Constraint::Wildcard);
        }
        Arguments { constraints: constraints.into_iter().collect(), allow_unknown: self.rarely(3) }
    }

    fn gates(&mut self, tool: &str) -> Gates {
        let condition = match self.below(4) {
            0 => None,
            1 => Some(Condition::Always),
            2 => Some(Condition::If(self.constraint(1))),
            // The format allows only some types here.
            _ => Some(Condition::Unless(Constraint::OneOf(self.values()))),
        };
        let arguments = condition.map(|condition| vec![("a".to_owned(), condition)]);
        Gates::new(vec![(tool.to_owned(), Gate { arguments, message: None })])
    }

    fn root(&mut self, tool: &str, input: &Json) -> Payload {
        let powers = if self.rarely(5) {
            Powers::Issuer(Issuing {
                tools: vec![(self.one(&[tool, "*", "other"])).to_owned()],
                max_depth: self.rarely(3).then_some(1),
                bounds: self.rarely(2).then(|| self.arguments(input)),
            })
        } else {
            let name = if self.rarely(5) { "*" } else { tool };
            let mut tools = vec![(name.to_owned(), self.arguments(input))];
            if self.rarely(4) {
                tools.push(("other".to_owned(), Arguments::default()));
                tools.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            Powers::Execution(tools)
        };
        let is_gated = self.rarely(6);
        Payload {
            id: WarrantId([1; 16]),
            powers,
            holder: secret(2).public(),
            issuer: secret(1).public(),
            issued_at_s: NOW_S - 60,
            expires_at_s: NOW_S + 60,
            // Not less than the longest chain needs.
            max_depth: 8,
            depth: 0,
            parent_hash: None,
            extensions: Vec::new(),
            gates: is_gated.then(|| self.gates(tool)),
            approvers: if is_gated { vec![secret(5).public()] } else { Vec::new() },
            min_approvals: None,
            clearance: self.rarely(2).then_some(20),
        }
    }

    /// A child as its parent's holder would make it.
    fn child(
        &mut self,
        parent: &Payload,
        at: u8,
        calm: usize,
        (tool, input): (&str, &Json),
    ) -> Payload {
        let Json::Object(fields) = input else { panic!("no object") };
        let mut powers = match &parent.powers {
            Powers::Issuer(issuing) if !self.rarely(4) => {
                let arguments = match &issuing.bounds {
                    Some(bounds) if !self.rarely(4) => bounds.clone(),
                    _ => self.arguments(input),
                };
                Powers::Execution(vec![(tool.to_owned(), arguments)])
            }
            powers => powers.clone(),
        };
        if let Powers::Execution(tools) = &mut powers {
            if self.rarely(8) && tools[0].0 == "*" {
                tools[0].0 = tool.to_owned();
            }
            for (_, arguments) in tools.iter_mut() {
                for (name, constraint) in &mut arguments.constraints {
                    let value = fields.iter().find(|(key, _)| key == name);
                    let value = value.map_or(Json::Null, |(_, value)| value.clone());
                    *constraint = self.narrowed(constraint, &value, calm);
                }
                if self.rarely(10 * calm) {
                    arguments.allow_unknown ^= true;
                }
            }
        }
        Payload {
            id: WarrantId([at + 1; 16]),
            powers,
            holder: secret(at + 2).public(),
            issuer: parent.holder,
            depth: parent.depth + 1,
            parent_hash: Some(sha256(&parent.write())),
            expires_at_s: parent.expires_at_s - u64::try_from(self.below(3)).unwrap(),
            ..parent.clone()
        }
    }

    /// One change of a link.
    fn change(&mut self, link: &mut Payload, (tool, input): (&str, &Json)) {
        let key = secret(u8::try_from(self.below(7)).unwrap() + 1).public();
        match self.below(16) {
            0 => link.id = WarrantId([1; 16]),
            1 => link.holder = key,
            2 => link.issuer = key,
            3 => link.issued_at_s = NOW_S.saturating_add_signed(self.one(&[-90, -1, 29, 31])),
            4 => {
                link.expires_at_s =
                    NOW_S.saturating_add_signed(self.one(&[-1, 0, 1, 90, 90 * 86_400]))
            }
            5 => link.max_depth = self.one(&[0, 1, 4, 9, 64, 65, 255]),
            6 => link.depth = self.one(&[0, 1, 2, 3]),
            7 => link.parent_hash = None,
            8 => link.clearance = self.one(&[None, Some(0), Some(10), Some(255)]),
            9 => link.gates = None,
            10 => link.gates = Some(self.gates(tool)),
            11 => link.approvers = vec![key],
            12 => link.approvers.push(key),
            13 => link.min_approvals = self.one(&[Some(0), Some(1), Some(2), None]),
            14 => link.powers = Powers::Execution(vec![(tool.to_owned(), self.arguments(input))]),
            _ => {
                link.extensions =
                    vec![((self.one(&["x", "tenuo.session_id", "tenuo.new"])).to_owned(), vec![1])]
            }
        }
    }
}

/// One case: a call with what is presented for it.
struct Case {
    tool: &'static str,
    input: Json,
    links: Vec<Payload>,
    presented: Presented,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x1234_5678_9abc_def1));
        let tool = random.one(&["refund", "read", "*", "tenuo:x"]);
        let names = ["a", "b", "c"];
        let fields =
            names.iter().take(random.below(4)).map(|name| ((*name).to_owned(), random.value()));
        let input = Json::Object(fields.collect());
        let length = random.length();
        // A long chain has about as many changes as a short one. Otherwise hardly any would be accepted.
        let calm = length.div_ceil(3);
        let mut links = vec![random.root(tool, &input)];
        for at in 1..u8::try_from(length).unwrap() {
            let parent = links.last().unwrap().clone();
            let child = random.child(&parent, at, calm, (tool, &input));
            links.push(child);
            if random.rarely(4 * calm) {
                random.change(links.last_mut().unwrap(), (tool, &input));
            }
        }
        let mut stack: Vec<_> =
            links.iter().zip(1..).map(|(link, issuer)| secret(issuer).issue(link)).collect();
        if random.rarely(20) {
            let at = random.below(stack.len());
            drop(stack.remove(at));
        }
        let mut stack = match stack.as_slice() {
            [warrant] if random.rarely(2) => warrant.clone(),
            _ => text::join(&stack),
        };
        if random.rarely(5) && !stack.is_empty() {
            let at = random.below(stack.len());
            stack[at] = u8::try_from(random.below(256)).unwrap();
        }
        let leaf = links.last().unwrap();
        let holder =
            if random.rarely(12) { STRANGER } else { u8::try_from(links.len()).unwrap() + 1 };
        let offset = random.one(&[0, 0, 0, -30, 30, 60, -60, 90, -90]);
        let at_s = NOW_S.saturating_add_signed(offset);
        let proof = secret(holder).prove(leaf.id, tool, &input, at_s);
        let mut approvals = Vec::new();
        if leaf.gates.is_some() && !random.rarely(3) {
            let hash = warrant::approval::request_hash(leaf.id, tool, &input, &leaf.holder);
            for by in [5, 5, 6].into_iter().take(random.below(4)) {
                approvals.push(reference::approval(by, hash, NOW_S - 10, NOW_S + 10));
            }
        }
        let presented = Presented { stack, proof: Some(proof.to_vec()), approvals };
        Self { tool, input, links, presented }
    }

    fn judge(&self) -> Result<warrant::Claim, warrant::Refusal> {
        let call = Call {
            server: "pay",
            tool: self.tool,
            input: &self.input,
            now_s: NOW_S,
            agent_key: None,
        };
        warrant::judge(&self.presented, &call, TOLERANCE, &mut Cache::default())
    }

    fn reference(&self) -> Result<(), String> {
        let root = secret(1).public().0;
        reference::allows(root, &self.presented, self.tool, &self.input, NOW_S)
    }
}

/// What both said about a case.
enum Said {
    /// Both accept it.
    Accepted {
        links: usize,
    },
    BothRefused,
    /// Only Gateward refuses it, for a reason on the list of differences.
    Stricter {
        reason: &'static str,
        links: usize,
    },
    Unlisted {
        reason: String,
        seed: u64,
    },
}

fn compare(seed: u64) -> Said {
    let case = Case::new(seed);
    match (case.judge(), case.reference()) {
        (Ok(claim), Ok(())) => {
            assert!(claim.ids.len() <= DEFAULT_MAX_LINKS, "seed {seed}");
            assert_eq!(claim.root, secret(1).public());
            root_allows(&case, seed);
            Said::Accepted { links: claim.ids.len() }
        }
        (Err(_), Err(_)) => Said::BothRefused,
        (Ok(_), Err(error)) => {
            panic!("seed {seed}: only Gateward accepts it: {error}\n{:?}", case.links)
        }
        (Err(refusal), Ok(())) => {
            match Refused::new(&case.presented, case.tool, &case.input, &refusal).listed() {
                Some(reason) => Said::Stricter { reason, links: case.links.len() },
                None => Said::Unlisted { reason: refusal.reason, seed },
            }
        }
    }
}

#[test]
fn what_gateward_accepts_the_reference_accepts_and_refusals_differ_as_listed() {
    let (mut accepted, mut shared) = (0_u64, 0_u64);
    // Chains that the reference accepts, and Gateward too unless they are too long.
    let mut by_length = [0_u64; LONGEST + 1];
    let mut stricter: BTreeMap<&str, u64> = BTreeMap::new();
    let mut unlisted: BTreeMap<String, u64> = BTreeMap::new();
    for said in in_threads(cases(), compare) {
        match said {
            Said::Accepted { links } => {
                accepted += 1;
                by_length[links] += 1;
            }
            Said::BothRefused => shared += 1,
            Said::Stricter { reason, links } => {
                *stricter.entry(reason).or_default() += 1;
                by_length[LONGEST] += u64::from(links == LONGEST);
            }
            Said::Unlisted { reason, seed } => drop(unlisted.insert(reason, seed)),
        }
    }
    println!("{accepted} accepted, {shared} refused by both, stricter: {stricter:#?}");
    println!("By length: {:?}", &by_length[1..]);
    assert!(unlisted.is_empty(), "only Gateward refuses these seeds: {unlisted:#?}");
    // Otherwise the cases show little.
    assert!(accepted * 20 > cases(), "{accepted}");
    for (length, count) in by_length.iter().enumerate().skip(1) {
        assert!(*count >= cases() / 20_000, "{length} links: {count}");
    }
}

/// Runs all seeds on all processors. The results are in no order.
fn in_threads<T: Send>(seeds: u64, run: fn(u64) -> T) -> Vec<T> {
    let threads = thread::available_parallelism().unwrap().get();
    thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|first| {
                let seeds = (first as u64..seeds).step_by(threads);
                scope.spawn(move || seeds.map(run).collect::<Vec<T>>())
            })
            .collect();
        started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// A call that passes with a chain is one that its root alone allows, also a root that only issues. The reference says
/// so, and not the code that let the call pass.
fn root_allows(case: &Case, seed: u64) {
    let allowed = reference::link_allows(&case.presented, 0, case.tool, &case.input);
    assert_eq!(allowed, Ok(()), "seed {seed}: {:?}", case.links);
}

/// The rules of narrowing themselves: without them, each link's constraints would still be checked.
#[test]
fn what_fits_a_narrower_constraint_fits_the_wider_one() {
    let mut narrower = 0_u64;
    for seed in 0..cases() {
        let mut random = Random(seed);
        let value = random.value();
        let wide = random.constraint(0);
        let narrow = random.narrowed(&wide, &value, 1);
        let work = &mut Work::default();
        if !is_narrower(&wide, &narrow, work).unwrap() {
            continue;
        }
        for _ in 0..8 {
            let value = random.value();
            if value_fits(&narrow, &value, work) == Ok(Fit::Yes) {
                narrower += 1;
                // It may say nothing about the value, which denies the call too.
                let wider = value_fits(&wide, &value, work);
                assert_ne!(wider, Ok(Fit::No), "seed {seed}: {wide:?} {narrow:?} {value:?}");
            }
        }
    }
    assert!(narrower > cases() / 20, "{narrower}");
}
