//! Random values, constraints and links of chains.

use std::collections::BTreeMap;

use gateward_core::json::{Json, parse};
use gateward_core::warrant::bounds::DEFAULT_MAX_LINKS;
use gateward_core::warrant::chain::sha256;
use gateward_core::warrant::constraint::{
    Arguments, Constraint, Pattern, Range, Subpath, UrlPattern, UrlSafe,
};
use gateward_core::warrant::gate::{Condition, Gate, Gates};
use gateward_core::warrant::payload::{Issuing, Payload, Powers, WarrantId};

use super::{NOW_S, secret};

/// Links of the longest chain: one more than are accepted.
pub const LONGEST: usize = DEFAULT_MAX_LINKS + 1;

/// What a case is about.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The tool as most warrants name it: some with its server.
    pub named: &'a str,
    /// The tool's own name.
    pub own: &'a str,
    pub input: &'a Json,
}

/// Constraints that Gateward does not evaluate, with their bodies: regular expressions, CEL, shell words, and types that
/// nobody knows. And two that neither implementation reads: a number of more than 64 bits, and a network with a number that
/// some read as octal.
const UNSUPPORTED: [(u8, &[u8]); 8] = [
    (5, b"\xa1\x67pattern\x62a*"),
    (5, b"\xa1\x67pattern\x61("),
    (15, b"\xa1\x6aexpression\x64true"),
    (128, b"\xa1\x65allow\x81\x61a"),
    (6, b"\xa0"),
    (99, b"\xa0"),
    (7, b"\xa1\x68excluded\x81\x3b\x80\x00\x00\x00\x00\x00\x00\x00"),
    (8, b"\x6b010.0.0.0/8"),
];

/// SplitMix64: small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// True in one of so many cases.
    pub fn rarely(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub fn value(&mut self) -> Json {
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
            r#""https://a.example/x/..;/y""#,
            r#""https://a.example/x/%2e%2e%3b/y""#,
            r#""https://a.example/x//../y""#,
            r#""https://sub.a.example/""#,
            r#""http://127.0.0.1/""#,
            r#""http://10.0.0.1/""#,
            r#""http://192.0.2.1/""#,
            r#""http://169.254.169.254/""#,
            r#""https://u@a.example/x""#,
            r#""HTTPS://A.example/x""#,
            r#""http://a.example:443/x""#,
            r#""ws://a.example/""#,
            r#""wss://sub.a.example/x""#,
            r#""ftp://a.example/x""#,
            r#""foo://a.example""#,
            r#""foo://x.a%2eexample/""#,
            r#""ssh://10.0.0.5/""#,
            r#""http://metadata.goog/""#,
            r#""http://localhost.localdomain/""#,
            r#""http://x.lan/""#,
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

    pub fn constraint(&mut self, depth: usize) -> Constraint {
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
                    "*://a.example/*",
                    "*://a.example:80",
                    "ws://a.example:80",
                    "wss://*.a.example:443/x",
                    "ftp://a.example:21",
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
                let others: [&[&str]; 3] = [&["HTTPS"], &["ws", "ftp"], &["foo", "ssh"]];
                let schemes = if self.rarely(2) { self.one(&others) } else { &["http", "https"] };
                Constraint::UrlSafe(Box::new(UrlSafe {
                    schemes: schemes.iter().map(|it| (*it).to_owned()).collect(),
                    allow_domains: domains(self),
                    deny_domains: domains(self),
                    allow_ports: self.rarely(3).then(|| vec![443]),
                    blocks: std::array::from_fn(|_| !self.rarely(4)),
                    block_internal_tlds: self.rarely(2),
                }))
            }
            14 | 15 => Constraint::All(many(self)),
            16 => Constraint::Any(many(self)),
            17 => Constraint::Not(Box::new(self.constraint(depth + 1))),
            _ => {
                let (id, body) = self.one(&UNSUPPORTED);
                Constraint::Unsupported(id, body.to_vec())
            }
        }
    }

    /// How many links a chain has. Each costs signatures, so most chains are short.
    pub fn length(&mut self) -> usize {
        match self.rarely(16) {
            true => 4 + self.below(LONGEST - 3),
            false => 1 + self.below(3),
        }
    }

    /// Often the same, often of the same type. The greater `calm` is, the more often it is the same.
    pub fn narrowed(&mut self, constraint: &Constraint, value: &Json, calm: usize) -> Constraint {
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

    pub fn root(&mut self, key: u8, Asked { named, own, input }: Asked<'_>) -> Payload {
        let powers = if self.rarely(5) {
            Powers::Issuer(Issuing {
                tools: vec![(self.one(&[named, "*", "other"])).to_owned()],
                max_depth: self.rarely(3).then_some(1),
                bounds: self.rarely(2).then(|| self.arguments(input)),
            })
        } else {
            let name = if self.rarely(5) { "*" } else { named };
            let mut tools = vec![(name.to_owned(), self.arguments(input))];
            if self.rarely(4) {
                // The call does not need it, but each link must be narrower about it too.
                let arguments =
                    if self.rarely(2) { Arguments::default() } else { self.arguments(input) };
                tools.push(("other".to_owned(), arguments));
                tools.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            // The tool must not get these rules in place of its own.
            if own.contains('/') && name != "*" && self.rarely(3) {
                tools.insert(0, ("*".to_owned(), Arguments::default()));
            }
            Powers::Execution(tools)
        };
        let is_gated = self.rarely(6);
        Payload {
            id: WarrantId([1; 16]),
            powers,
            holder: secret(2).public(),
            issuer: secret(key).public(),
            issued_at_s: NOW_S - 60,
            expires_at_s: NOW_S + 60,
            // Not less than the longest chain needs.
            max_depth: 8,
            depth: 0,
            parent_hash: None,
            extensions: Vec::new(),
            gates: is_gated.then(|| self.gates(named)),
            approvers: if is_gated { vec![secret(5).public()] } else { Vec::new() },
            min_approvals: None,
            clearance: self.rarely(2).then_some(20),
        }
    }

    /// A child as its parent's holder would make it.
    pub fn child(
        &mut self,
        parent: &Payload,
        at: u8,
        calm: usize,
        Asked { named, own, input }: Asked<'_>,
    ) -> Payload {
        let Json::Object(fields) = input else { panic!("no object") };
        // Where its parent allows both names.
        let name = if self.rarely(4) { own } else { named };
        let mut powers = match &parent.powers {
            Powers::Issuer(issuing) if !self.rarely(4) => {
                let arguments = match &issuing.bounds {
                    Some(bounds) if !self.rarely(4) => bounds.clone(),
                    _ => self.arguments(input),
                };
                Powers::Execution(vec![(name.to_owned(), arguments)])
            }
            powers => powers.clone(),
        };
        if let Powers::Execution(tools) = &mut powers {
            if self.rarely(8) && tools[0].0 == "*" && !tools.iter().any(|(it, _)| it == name) {
                tools[0].0 = name.to_owned();
                tools.sort_by(|(a, _), (b, _)| a.cmp(b));
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
    pub fn change(&mut self, link: &mut Payload, Asked { named, input, .. }: Asked<'_>) {
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
            7 => link.parent_hash = self.one(&[None, Some([0; 32])]),
            8 => link.clearance = self.one(&[None, Some(0), Some(10), Some(255)]),
            9 => link.gates = None,
            10 => link.gates = Some(self.gates(named)),
            11 => link.approvers = vec![key],
            12 => link.approvers.push(key),
            13 => link.min_approvals = self.one(&[Some(0), Some(1), Some(2), None]),
            14 => link.powers = Powers::Execution(vec![(named.to_owned(), self.arguments(input))]),
            _ => {
                link.extensions =
                    vec![((self.one(&["x", "tenuo.session_id", "tenuo.new"])).to_owned(), vec![1])]
            }
        }
    }
}
