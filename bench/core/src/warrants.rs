//! What warrants cost, compared with the reference implementation on the same bytes. The reference runs natively only.

use std::cell::RefCell;
use std::hint::black_box;

use gateward_core::bounds::MAX_BODY_BYTES;
use gateward_core::json::{self, Json};
use gateward_core::warrant::bounds::{DEFAULT_MAX_LINKS, MAX_APPROVERS, MAX_LINKS, PROOF_WINDOW_S};
use gateward_core::warrant::chain::{Chain, envelopes, sha256};
use gateward_core::warrant::constraint::{Arguments, Constraint, Range, Subpath, Work};
use gateward_core::warrant::gate::{Gate, Gates};
use gateward_core::warrant::mint::Secret;
use gateward_core::warrant::payload::{Payload, Powers, WarrantId};
use gateward_core::warrant::proof::Statement;
use gateward_core::warrant::{Cache, Call, Presented, Tolerance, judge, text};

use crate::decide::NOW_MS;
use crate::operation::{GATEWARD, Operation};
use crate::worst_case::{HEADER_BYTES, wide};

const NOW_S: u64 = NOW_MS / 1_000;

const TOLERANCE: Tolerance = Tolerance { max_links: 64, proof_windows: 5 };

pub fn operations() -> Vec<Operation> {
    let mut all = own();
    #[cfg(not(target_arch = "wasm32"))]
    all.extend(reference::operations());
    // Each peer follows the operation that it is compared with.
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn own() -> Vec<Operation> {
    let mut all = vec![
        of("warrant_decode", || {
            let stack = stack(1);
            move || envelopes(black_box(&stack)).map(|read| Payload::read(read[0].payload))
        }),
        of("warrant_issue", || {
            let link = chain(1).remove(0);
            let root = secret(1);
            move || root.issue(black_box(&link))
        }),
        of("warrant_attenuate", || {
            let (stack, links) = (stack(1), chain(2));
            let holder = secret(2);
            move || {
                let read = envelopes(black_box(&stack)).unwrap();
                let parent = Payload::read(read[0].payload).unwrap();
                let hash = Some(sha256(read[0].payload));
                holder.issue(&Payload {
                    parent_hash: hash,
                    depth: parent.depth + 1,
                    ..links[1].clone()
                })
            }
        }),
        of("warrant_authorize", || judged(1, |_| {}, true)),
        of("warrant_authorize_known", || {
            let (presented, input) = presented(1);
            let cache = RefCell::default();
            move || {
                let call = Call {
                    server: "pay",
                    tool: "refund",
                    input: &input,
                    now_s: NOW_S,
                    agent_key: None,
                };
                judge(black_box(&presented), &call, TOLERANCE, &mut cache.borrow_mut()).unwrap()
            }
        }),
        of("warrant_deny_invalid_proof", || {
            judged(1, |it| it.proof = Some(secret(9).sign(b"").to_vec()), false)
        }),
        of("warrant_deny_missing_proof", || judged(1, |it| it.proof = None, false)),
        of("warrant_deny_wrong_tool", || {
            denied("read", r#"{"amount":20,"customer":"c-7"}"#, NOW_S)
        }),
        of("warrant_deny_constraint", || {
            denied("refund", r#"{"amount":51,"customer":"c-7"}"#, NOW_S)
        }),
        of("warrant_deny_expired", || {
            denied("refund", r#"{"amount":20,"customer":"c-7"}"#, NOW_S + 601)
        }),
        of("worst_case_warrant_384_kib", || {
            costliest(DEFAULT_MAX_LINKS, MAX_BODY_BYTES, PATH_BYTES_OF_8_LINKS)
        }),
        of("worst_case_warrant_64_links_384_kib", || {
            costliest(MAX_LINKS, 0, PATH_BYTES_OF_64_LINKS)
        }),
    ];
    for links in [1, 3, 8] {
        all.push(Operation::new(format!("warrant_verify_chain_{links}"), GATEWARD, move || {
            let stack = stack(links);
            move || {
                let read = envelopes(black_box(&stack)).unwrap();
                Chain::verify(&read, [0; 32], &mut Work::default()).unwrap()
            }
        }));
    }
    all
}

fn of<F, T>(name: &'static str, prepare: impl Fn() -> F + 'static) -> Operation
where
    F: Fn() -> T + 'static,
{
    Operation::new(name, GATEWARD, prepare)
}

fn secret(number: u8) -> Secret {
    Secret::new([number; 32])
}

/// Links that each narrow the amount.
pub fn chain(links: u8) -> Vec<Payload> {
    let refund = |max: f64| Arguments {
        constraints: vec![
            (
                "amount".to_owned(),
                Constraint::Range(Range {
                    min: None,
                    max: Some(max),
                    min_inclusive: true,
                    max_inclusive: true,
                }),
            ),
            ("customer".to_owned(), Constraint::Exact(Json::String("c-7".to_owned()))),
        ],
        allow_unknown: false,
    };
    let mut chain: Vec<Payload> = Vec::new();
    for at in 0..links {
        chain.push(Payload {
            id: WarrantId([at + 1; 16]),
            powers: Powers::Execution(vec![(
                "refund".to_owned(),
                refund(f64::from(50 - i16::from(at))),
            )]),
            holder: secret(at + 2).public(),
            issuer: secret(at + 1).public(),
            issued_at_s: NOW_S - 60,
            expires_at_s: NOW_S + 600,
            max_depth: 8,
            depth: at,
            parent_hash: chain.last().map(|parent| sha256(&parent.write())),
            extensions: Vec::new(),
            gates: None,
            approvers: Vec::new(),
            min_approvals: None,
            clearance: None,
        });
    }
    chain
}

pub fn stack(links: u8) -> Vec<u8> {
    let signed: Vec<_> =
        chain(links).iter().zip(1..).map(|(link, issuer)| secret(issuer).issue(link)).collect();
    text::join(&signed)
}

/// What the holder of a chain presents with `refund`, and its arguments.
pub fn presented(links: u8) -> (Presented, Json) {
    let input = json::parse(br#"{"amount":20,"customer":"c-7"}"#).unwrap();
    let id = chain(links).last().unwrap().id;
    let proof = secret(links + 1).prove(id, "refund", &input, NOW_S);
    let presented =
        Presented { stack: stack(links), proof: Some(proof.to_vec()), approvals: Vec::new() };
    (presented, input)
}

/// From the bytes to the answer, without a cache.
fn judged(links: u8, change: impl Fn(&mut Presented), passes: bool) -> impl Fn() -> bool {
    let (mut presented, input) = presented(links);
    change(&mut presented);
    let run = move || {
        let call =
            Call { server: "pay", tool: "refund", input: &input, now_s: NOW_S, agent_key: None };
        judge(black_box(&presented), &call, TOLERANCE, &mut Cache::default()).is_ok()
    };
    assert_eq!(run(), passes);
    run
}

fn denied(tool: &'static str, input: &str, now_s: u64) -> impl Fn() -> bool {
    let (presented, _) = presented(1);
    let input = json::parse(input.as_bytes()).unwrap();
    let run = move || {
        let call = Call { server: "pay", tool, input: &input, now_s, agent_key: None };
        judge(black_box(&presented), &call, TOLERANCE, &mut Cache::default()).is_ok()
    };
    assert!(!run());
    run
}

/// Bytes that all links together read of the path of the worst case: what the signatures leave of the steps. Its components
/// have one letter, which is not ASCII, and case does not count. No other steps of comparison take longer.
const PATH_BYTES_OF_8_LINKS: usize = 225_000;
const PATH_BYTES_OF_64_LINKS: usize = 34_000;

/// The bytes of [`PATH_BYTES_OF_8_LINKS`] and so on are within this of the most that is accepted.
const PATH_BYTES_MARGIN: usize = 30_000;

/// Bytes of a filling extension.
const FILLING_BYTES: usize = 8_000;

/// The call to `/v1/authorize` that costs the most, from a caller with a locator: the worker verifies all of its links.
///
/// The headers have the greatest length, the most approvals are verified, and the proof is verified in each window, and each
/// time all arguments are hashed. It takes almost all steps.
fn costliest(links: usize, body_bytes: usize, path_bytes: usize) -> impl Fn() -> bool {
    let with = |more| worst_case(links, body_bytes, path_bytes + more);
    let run = with(0);
    assert!(run() && !with(PATH_BYTES_MARGIN)());
    run
}

fn worst_case(count: usize, body_bytes: usize, path_bytes: usize) -> impl Fn() -> bool {
    let path = "/É".repeat(path_bytes / count / "/É".len());
    // Beside 64 links, large arguments take too many steps. The rest of the body says something else.
    let others = match body_bytes {
        0 => r#"{"other":1}"#.to_owned(),
        _ => wide(body_bytes - 1_000 - path.len()),
    };
    let others = others.strip_prefix('{').unwrap();
    // UTF-16 orders the second and the third key otherwise than bytes do, so all keys are sorted anew.
    let input = format!("{{\"path\":\"{path}\",\"😀\":1,\"\u{ffff}\":1,{others}");
    let input = json::parse(input.as_bytes()).unwrap();
    let approver = |number: usize| secret(100 + u8::try_from(number).unwrap());
    let links = |filling: usize| {
        let mut links = chain(u8::try_from(count).unwrap());
        let mut parent_hash = None;
        for link in &mut links {
            let root = "/".to_owned();
            let below = Subpath { root, case_sensitive: false, allow_equal: true };
            let arguments = Arguments {
                constraints: vec![("path".to_owned(), Constraint::Subpath(below))],
                allow_unknown: true,
            };
            let gate = Gate { arguments: None, message: None };
            link.powers = Powers::Execution(vec![("refund".to_owned(), arguments)]);
            link.approvers = (0..MAX_APPROVERS).map(|number| approver(number).public()).collect();
            link.gates = Some(Gates::new(vec![("refund".to_owned(), gate)]));
            let fillings = vec![0; filling];
            let fillings = fillings.chunks(FILLING_BYTES).enumerate();
            link.extensions =
                fillings.map(|(at, bytes)| (format!("x{at}"), bytes.to_vec())).collect();
            link.max_depth = 64;
            link.parent_hash = parent_hash;
            parent_hash = Some(sha256(&link.write()));
        }
        links
    };
    let signed = |links: &[Payload]| {
        let warrants: Vec<_> =
            links.iter().zip((1..).map(secret)).map(|(link, by)| by.issue(link)).collect();
        text::join(&warrants)
    };

    let leaf = links(0).pop().unwrap();
    let hash = Statement::new(leaf.id, "refund", &input).request_hash(&leaf.holder);
    let approvals: Vec<_> = (0..MAX_APPROVERS)
        .map(|number| approver(number).approve(hash, NOW_S - 1, NOW_S + 60))
        .collect();
    // Headers are base64, and there are some short ones.
    let most = (HEADER_BYTES - 2_048) * 3 / 4 - approvals.iter().map(Vec::len).sum::<usize>();
    let stack = signed(&links((most - signed(&links(0)).len()) / count - 32));
    assert!((most * 9 / 10..=most).contains(&stack.len()), "{} of {most}", stack.len());

    let holder = secret(u8::try_from(count).unwrap() + 1);
    // In the window that is tried last.
    let proof = holder.prove(leaf.id, "refund", &input, NOW_S + 2 * PROOF_WINDOW_S);
    let presented = Presented { stack, proof: Some(proof.to_vec()), approvals };
    let agent_key = Some(secret(2).public());
    move || {
        let call = Call { server: "pay", tool: "refund", input: &input, now_s: NOW_S, agent_key };
        let judged = judge(black_box(&presented), &call, TOLERANCE, &mut Cache::default());
        judged.is_ok_and(|claim| claim.refusal.is_none())
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod reference {
    //! The crate `tenuo`, from the same bytes.

    use std::collections::HashMap;
    use std::hint::black_box;
    use std::time::Duration;

    use tenuo::constraints::{ConstraintSet, ConstraintValue, Exact, Range};
    use tenuo::{Authorizer, Signature, SigningKey, Warrant};

    use super::{NOW_S, presented, secret, stack};
    use crate::operation::Operation;

    const TENUO: &str = "tenuo";

    pub fn operations() -> Vec<Operation> {
        let mut all = vec![
            Operation::new("warrant_decode", TENUO, || {
                let stack = stack(1);
                move || tenuo::wire::decode_stack(black_box(&stack)).unwrap()
            }),
            Operation::new("warrant_issue", TENUO, || {
                let key = SigningKey::from_bytes(&[1; 32]);
                move || issued(black_box(&key))
            }),
            Operation::new("warrant_attenuate", TENUO, || {
                let (root, holder) =
                    (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
                // It reads the clock, so the parent is issued now.
                let stack = tenuo::wire::encode(&issued(&root)).unwrap();
                move || {
                    let parent = tenuo::wire::decode(black_box(&stack)).unwrap();
                    let child = parent.attenuate().capability("refund", refund(49.0));
                    child
                        .holder(SigningKey::from_bytes(&[3; 32]).public_key())
                        .build(&holder)
                        .unwrap()
                }
            }),
            Operation::new("warrant_authorize", TENUO, || {
                checked("refund", 20, Some(2), NOW_S, true)
            }),
            Operation::new("warrant_deny_invalid_proof", TENUO, || {
                checked("refund", 20, Some(9), NOW_S, false)
            }),
            Operation::new("warrant_deny_missing_proof", TENUO, || {
                checked("refund", 20, None, NOW_S, false)
            }),
            Operation::new("warrant_deny_wrong_tool", TENUO, || {
                checked("read", 20, Some(2), NOW_S, false)
            }),
            Operation::new("warrant_deny_constraint", TENUO, || {
                checked("refund", 51, Some(2), NOW_S, false)
            }),
            Operation::new("warrant_deny_expired", TENUO, || {
                checked("refund", 20, Some(2), NOW_S + 601, false)
            }),
        ];
        for links in [1, 3, 8] {
            all.push(Operation::new(format!("warrant_verify_chain_{links}"), TENUO, move || {
                let stack = stack(links);
                let authorizer = authorizer();
                move || {
                    let read = tenuo::wire::decode_stack(black_box(&stack)).unwrap();
                    authorizer.verify_chain_as_of(&read.0, at(NOW_S)).unwrap()
                }
            }));
        }
        all
    }

    fn refund(max: f64) -> ConstraintSet {
        let mut set = ConstraintSet::new();
        set.insert("amount".to_owned(), Range::max(max).unwrap());
        set.insert("customer".to_owned(), Exact::new("c-7"));
        set
    }

    fn issued(key: &SigningKey) -> Warrant {
        let holder = SigningKey::from_bytes(&[2; 32]).public_key();
        let warrant = Warrant::builder().capability("refund", refund(50.0)).holder(holder);
        warrant.ttl(Duration::from_secs(600)).build(key).unwrap()
    }

    fn at(now_s: u64) -> i64 {
        i64::try_from(now_s).unwrap()
    }

    fn authorizer() -> Authorizer {
        let root = SigningKey::from_bytes(&[1; 32]).public_key();
        Authorizer::builder().trusted_root(root).build().unwrap()
    }

    /// From the bytes to the answer. `signer` makes the proof.
    fn checked(
        tool: &'static str,
        amount: i64,
        signer: Option<u8>,
        now_s: u64,
        passes: bool,
    ) -> impl Fn() -> bool {
        let (presented, input) = presented(1);
        let proof = match signer {
            Some(2) => presented.proof.clone(),
            Some(other) => Some(secret(other).sign(b"").to_vec()),
            None => None,
        };
        drop(input);
        let proof = proof.map(|proof| Signature::from_bytes(&proof.try_into().unwrap()).unwrap());
        let arguments = HashMap::from([
            ("amount".to_owned(), ConstraintValue::Integer(amount)),
            ("customer".to_owned(), ConstraintValue::String("c-7".to_owned())),
        ]);
        let authorizer = authorizer();
        let run = move || {
            let Ok(read) = tenuo::wire::decode_stack(black_box(&presented.stack)) else {
                return false;
            };
            authorizer
                .check_chain_with_pop_args_as_of(
                    &read.0,
                    tool,
                    &arguments,
                    &arguments,
                    proof.as_ref(),
                    &[],
                    at(now_s),
                )
                .is_ok()
        };
        assert_eq!(run(), passes);
        run
    }
}
