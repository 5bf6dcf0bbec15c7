//! Warrants: the format's vectors, and comparisons with the reference implementation (the crate `tenuo`).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

mod differences;
mod fuzz;
mod networks;
mod random;
mod reference;
mod urls;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gateward_core::decision::ReasonCode;
use gateward_core::json::{Json, parse};
use gateward_core::warrant::chain::{Chain, Envelope, envelopes, sha256};
use gateward_core::warrant::constraint::{
    Arguments, Constraint, Pattern, UrlPattern, UrlSafe, Work,
};
use gateward_core::warrant::gate::{Condition, Gate, Gates};
use gateward_core::warrant::mint::Secret;
use gateward_core::warrant::payload::{Issuing, Payload, Powers, WarrantId};
use gateward_core::warrant::proof::Statement;
use gateward_core::warrant::{
    self, Cache, Call, Claim, NeededApprovals, Presented, Refusal, Tolerance, text,
};
use serde::Deserialize;

const TOLERANCE: Tolerance = Tolerance { max_links: 64, proof_windows: 5 };

/// One published warrant.
#[derive(Deserialize)]
struct Vector {
    payload: String,
    signature: String,
}

impl Vector {
    fn envelope(&self) -> Vec<u8> {
        let payload = hex::decode(&self.payload).unwrap();
        let signature: [u8; 64] = hex::decode(&self.signature).unwrap().try_into().unwrap();
        Envelope { payload: &payload, signature: &signature }.write()
    }
}

fn vectors() -> BTreeMap<String, Vector> {
    serde_json::from_str(include_str!("warrants/vectors.json")).unwrap()
}

#[test]
fn every_vector_that_the_reference_decodes_is_read_and_written_the_same() {
    let mut read = 0;
    for (name, vector) in vectors() {
        let envelope = vector.envelope();
        let Ok(_) = tenuo::wire::decode(&envelope) else {
            // The reference verifies the signature when it decodes.
            assert_eq!(name, "A.14 Forged");
            continue;
        };
        let envelope = envelopes(&envelope).unwrap()[0];
        let payload =
            Payload::read(envelope.payload).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(hex::encode(payload.write()), vector.payload, "{name}");
        assert!(
            payload.issuer.verify(&Envelope::signed(envelope.payload), envelope.signature),
            "{name}"
        );
        read += 1;
    }
    assert_eq!(read, 43);
}

#[test]
fn chains_of_vectors_are_accepted_or_refused_as_they_say() {
    use ReasonCode::{
        WarrantChainBroken as Broken, WarrantSignatureInvalid as Signature,
        WarrantWidened as Widened,
    };
    let vectors = vectors();
    for (names, expected) in [
        (&["A.1"][..], None),
        (&["A.2"], None),
        (&["A.3 Level 0", "A.3 Level 1", "A.3 Level 2"], None),
        (&["A.3 Level 0", "A.3 Level 2"], Some(Broken)),
        (&["A.3 Level 1"], Some(Broken)),
        (&["A.3 Level 0", "A.4 Child"], Some(Broken)),
        (&["A.10 Parent", "A.10 Child"], Some(Broken)),
        (&["A.11 Parent", "A.11 Child"], Some(Widened)),
        (&["A.12 Parent", "A.12 Child"], Some(Broken)),
        (&["A.13 Parent", "A.13 Child"], Some(Widened)),
        (&["A.14 Forged"], Some(Signature)),
        (&["A.14 Valid"], None),
        (&["A.15 Issuer Warrant", "A.15 Invalid Child"], Some(Widened)),
        (&["A.17 Parent", "A.17 Invalid Child"], Some(Widened)),
        (&["A.22 Root", "A.22 Child"], None),
        (&["A.1", "A.1"], Some(Broken)),
    ] {
        let stack: Vec<_> = names.iter().map(|name| vectors[*name].envelope()).collect();
        let stack = text::join(&stack);
        let verified = Chain::verify(&envelopes(&stack).unwrap(), [0; 32], &mut Work::default());
        assert_eq!(verified.as_ref().err().map(|it| it.code), expected, "{names:?} {verified:?}");
    }
}

#[test]
fn published_proofs_are_made_and_verified() {
    #[derive(Deserialize)]
    struct Proofs {
        holder: String,
        cases: Vec<Proof>,
    }
    #[derive(Deserialize)]
    struct Proof {
        name: String,
        tool: String,
        args: serde_json::Value,
        warrant_b64: String,
        timestamp: u64,
        expected_signature_hex: String,
    }
    let proofs: Proofs = serde_json::from_str(include_str!("warrants/proofs.json")).unwrap();
    let holder = Secret::new(hex::decode(&proofs.holder).unwrap().try_into().unwrap());
    for case in proofs.cases {
        let stack = text::stack(&case.warrant_b64).unwrap();
        let leaf = Payload::read(envelopes(&stack).unwrap()[0].payload).unwrap();
        let input = parse(case.args.to_string().as_bytes()).unwrap();
        let proof = holder.prove(leaf.id, &case.tool, &input, case.timestamp);
        assert_eq!(hex::encode(proof), case.expected_signature_hex, "{}", case.name);
        let times = (case.timestamp + 60, 5);
        let verified = Statement::new(leaf.id, &case.tool, &input).verify(
            &leaf.holder,
            &proof,
            times,
            &mut Work::default(),
        );
        assert!(matches!(verified, Ok(Some(_))), "{}", case.name);
    }
}

/// Keys of the tests: root, orchestrator, worker, and others. A key is derived once, because that takes as long as signing.
fn secret(number: u8) -> Secret {
    static SECRETS: LazyLock<Vec<Secret>> =
        LazyLock::new(|| (0..=u8::MAX).map(|number| Secret::new([number; 32])).collect());
    SECRETS[usize::from(number)].clone()
}

const ROOT: u8 = 1;
const ORCHESTRATOR: u8 = 2;
const WORKER: u8 = 3;
const APPROVER: u8 = 5;
const NOW_S: u64 = 1_800_000_000;

/// A root of the tests: `pay/refund` up to 50 for one customer.
fn root() -> Payload {
    let refund = Arguments {
        constraints: vec![
            ("amount".to_owned(), up_to(50.0)),
            ("customer".to_owned(), Constraint::Exact(Json::String("c-7".to_owned()))),
        ],
        allow_unknown: false,
    };
    Payload {
        id: WarrantId([1; 16]),
        powers: Powers::Execution(vec![("refund".to_owned(), refund)]),
        holder: secret(ORCHESTRATOR).public(),
        issuer: secret(ROOT).public(),
        issued_at_s: NOW_S - 60,
        expires_at_s: NOW_S + 600,
        max_depth: 3,
        depth: 0,
        parent_hash: None,
        extensions: Vec::new(),
        gates: None,
        approvers: Vec::new(),
        min_approvals: None,
        clearance: Some(30),
    }
}

fn up_to(max: f64) -> Constraint {
    Constraint::Range(warrant::constraint::Range {
        min: None,
        max: Some(max),
        min_inclusive: true,
        max_inclusive: true,
    })
}

/// A child of a link for the worker.
fn child(parent: &Payload) -> Payload {
    Payload {
        id: WarrantId([parent.depth + 2; 16]),
        holder: secret(WORKER).public(),
        issuer: parent.holder,
        depth: parent.depth + 1,
        parent_hash: Some(sha256(&parent.write())),
        ..parent.clone()
    }
}

fn input(text: &str) -> Json {
    parse(text.as_bytes()).unwrap()
}

const REFUND: &str = r#"{"amount":20,"customer":"c-7"}"#;

/// Judges a call of `pay/refund` with these links. The holder of the last link signs it.
fn judge(links: &[Payload], holder: u8, arguments: &str) -> Result<Claim, Refusal> {
    judge_with(links, holder, arguments, |_| {}, &mut Cache::default())
}

fn judge_with(
    links: &[Payload],
    holder: u8,
    arguments: &str,
    change: impl FnOnce(&mut Presented),
    cache: &mut Cache,
) -> Result<Claim, Refusal> {
    let issuers = [ROOT, ORCHESTRATOR, WORKER, WORKER];
    let stack: Vec<_> =
        links.iter().zip(issuers).map(|(link, issuer)| secret(issuer).issue(link)).collect();
    let input = input(arguments);
    let proof = secret(holder).prove(links.last().unwrap().id, "refund", &input, NOW_S);
    let mut presented =
        Presented { stack: text::join(&stack), proof: Some(proof.to_vec()), approvals: Vec::new() };
    change(&mut presented);
    let call = Call { server: "pay", tool: "refund", input: &input, now_s: NOW_S, agent_key: None };
    warrant::judge(&presented, &call, TOLERANCE, cache)
}

#[test]
fn a_chain_that_narrows_carries_what_every_link_allows() {
    let root = root();
    let narrower = |amount| {
        let mut child = child(&root);
        let Powers::Execution(tools) = &mut child.powers else { unreachable!() };
        tools[0].1.constraints[0].1 = up_to(amount);
        child
    };
    let claim = judge(&[root.clone(), narrower(20.0)], WORKER, REFUND).unwrap();
    assert_eq!(claim.root, secret(ROOT).public());
    assert_eq!(claim.agent_key, secret(ORCHESTRATOR).public());
    assert_eq!(
        (claim.issuer, claim.holder),
        (secret(ORCHESTRATOR).public(), secret(WORKER).public())
    );
    assert_eq!((claim.ids.len(), claim.clearance), (2, Some(30)));
    assert_eq!((claim.tools, claim.names_server), (vec!["refund".to_owned()], false));
    assert_eq!(claim.expires_at_s, NOW_S + 600);
    for (name, links, holder, arguments, expected) in [
        (
            "more than the leaf",
            vec![root.clone(), narrower(10.0)],
            WORKER,
            REFUND,
            ReasonCode::WarrantArgumentRefused,
        ),
        (
            "wider than the parent",
            vec![root.clone(), narrower(60.0)],
            WORKER,
            REFUND,
            ReasonCode::WarrantWidened,
        ),
        (
            "another customer",
            vec![root.clone()],
            ORCHESTRATOR,
            r#"{"amount":1,"customer":"c-8"}"#,
            ReasonCode::WarrantArgumentRefused,
        ),
        (
            "an argument too many",
            vec![root.clone()],
            ORCHESTRATOR,
            r#"{"amount":1,"customer":"c-7","note":""}"#,
            ReasonCode::WarrantArgumentRefused,
        ),
        (
            "an argument too few",
            vec![root.clone()],
            ORCHESTRATOR,
            r#"{"customer":"c-7"}"#,
            ReasonCode::WarrantArgumentRefused,
        ),
        (
            "another holder's proof",
            vec![root.clone()],
            WORKER,
            REFUND,
            ReasonCode::WarrantProofInvalid,
        ),
    ] {
        assert_eq!(judge(&links, holder, arguments).unwrap_err().code, expected, "{name}");
    }
}

#[test]
fn each_rule_is_checked_at_each_link() {
    use ReasonCode::{
        WarrantChainBroken as Broken, WarrantExpired as Expired, WarrantNotYetValid as Early,
        WarrantSignatureInvalid as Signature, WarrantToolMissing as Tool,
        WarrantWidened as Widened,
    };
    type Change = fn(&mut Payload);
    let cases: [(&str, Change, ReasonCode); 16] = [
        ("no parent", |it| it.parent_hash = None, Broken),
        ("another parent", |it| it.parent_hash = Some([0; 32]), Broken),
        ("a depth that is too small", |it| it.depth -= 1, Broken),
        ("a depth that is too large", |it| it.depth += 1, Broken),
        ("a bound of depth that is larger", |it| it.max_depth = 4, Widened),
        ("a later expiry", |it| it.expires_at_s += 1, Widened),
        ("an earlier issue", |it| it.issued_at_s -= 1, Broken),
        ("a higher clearance", |it| it.clearance = Some(31), Widened),
        ("the parent's id", |it| it.id = WarrantId([1; 16]), Broken),
        ("an unlisted argument", |it| tools(it)[0].1.allow_unknown = true, Widened),
        (
            "a constraint more",
            |it| tools(it)[0].1.constraints.push(("x".to_owned(), Constraint::Wildcard)),
            ReasonCode::WarrantArgumentRefused,
        ),
        ("no constraints", |it| tools(it)[0].1.constraints.clear(), Widened),
        ("another tool too", |it| tools(it).push(("x".to_owned(), Arguments::default())), Widened),
        ("every tool", |it| tools(it).insert(0, ("*".to_owned(), Arguments::default())), Widened),
        ("the time is over", |it| it.expires_at_s = NOW_S, Expired),
        ("the time has not come", |it| it.issued_at_s = NOW_S + 31, Early),
    ];
    for ((name, change, expected), changed) in
        cases.into_iter().flat_map(|case| [1, 2].map(|changed| (case, changed)))
    {
        let mut links = vec![root()];
        for at in 1..=2 {
            let mut link = child(links.last().unwrap());
            if at == changed {
                change(&mut link);
            }
            links.push(link);
        }
        let judged = judge(&links, WORKER, REFUND);
        assert_eq!(judged.unwrap_err().code, expected, "{name}, link {changed}");
    }
    let mut links = vec![root()];
    for _ in 0..3 {
        links.push(child(links.last().unwrap()));
    }
    assert!(judge(&links, WORKER, REFUND).is_ok());
    links.push(Payload { max_depth: 4, ..child(links.last().unwrap()) });
    let deeper = Chain::verify(
        &envelopes(&signed(&links, |at| {
            if at == 0 {
                ROOT
            } else if at == 1 {
                ORCHESTRATOR
            } else {
                WORKER
            }
        }))
        .unwrap(),
        [0; 32],
        &mut Work::default(),
    );
    assert_eq!(deeper.unwrap_err().code, Broken, "deeper than allowed");
    let middle = [root(), child(&root()), child(&child(&root()))];
    let stack = signed(&middle, |at| {
        if at == 1 {
            9
        } else if at == 0 {
            ROOT
        } else {
            WORKER
        }
    });
    let forged = Chain::verify(&envelopes(&stack).unwrap(), [0; 32], &mut Work::default());
    let forged = forged.unwrap_err();
    assert!(forged.code == Signature && forged.reason.contains("Link 1"), "{forged:?}");
    let parent = root();
    let by_another = judge_with(
        std::slice::from_ref(&parent),
        WORKER,
        REFUND,
        |it| {
            it.stack = text::join(&[secret(ROOT).issue(&parent), secret(9).issue(&child(&parent))]);
        },
        &mut Cache::default(),
    );
    assert_eq!(by_another.unwrap_err().code, Broken);
    let forged = judge_with(
        &[root()],
        ORCHESTRATOR,
        REFUND,
        |it| {
            let last = it.stack.len() - 1;
            it.stack[last] ^= 1;
        },
        &mut Cache::default(),
    );
    assert_eq!(forged.unwrap_err().code, Signature);
    let mut other = root();
    tools(&mut other)[0].0 = "read".to_owned();
    assert_eq!(judge(&[other], ORCHESTRATOR, REFUND).unwrap_err().code, Tool);
}

/// A link as it is, signed with a key: also with that of somebody else than its issuer.
fn sign(link: &Payload, by: u8) -> Vec<u8> {
    let payload = link.write();
    let signature = secret(by).sign(&Envelope::signed(&payload));
    Envelope { payload: &payload, signature: &signature }.write()
}

/// A stack of such links.
fn signed(links: &[Payload], by: impl Fn(usize) -> u8) -> Vec<u8> {
    let links = links.iter().enumerate().map(|(at, link)| sign(link, by(at)));
    text::join(&links.collect::<Vec<_>>())
}

#[test]
fn approvers_and_issuers_hand_on_no_more_than_they_have() {
    let of = |parent: &Payload, child: &Payload| {
        let stack = signed(&[parent.clone(), child.clone()], |at| [ROOT, ORCHESTRATOR][at]);
        let links = envelopes(&stack).unwrap();
        Chain::verify(&links, [0; 32], &mut Work::default()).map(drop).map_err(|it| it.code)
    };
    let approvers = vec![secret(APPROVER).public(), secret(6).public()];
    let two = Payload { approvers: approvers.clone(), min_approvals: Some(2), ..root() };
    let next = child(&two);
    for (name, change, expected) in [
        ("as the parent", next.clone(), Ok(())),
        (
            "an approver less",
            Payload { approvers: approvers[..1].to_vec(), min_approvals: Some(1), ..next.clone() },
            Err(ReasonCode::WarrantWidened),
        ),
        (
            "a lower quorum",
            Payload { min_approvals: Some(1), ..next },
            Err(ReasonCode::WarrantWidened),
        ),
    ] {
        assert_eq!(of(&two, &change), expected, "{name}");
    }
    let issuing = |tools: &[&str], max_depth: u32, bounds: Arguments| {
        Powers::Issuer(Issuing {
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            max_depth: Some(max_depth),
            bounds: Some(bounds),
        })
    };
    let calling =
        |max: f64| Powers::Execution(vec![("refund".to_owned(), only("amount", up_to(max)))]);
    let issuer = Payload { powers: issuing(&["refund"], 1, only("amount", up_to(50.0))), ..root() };
    let next = child(&issuer);
    for (name, child, expected) in [
        (
            "issues less",
            Payload { powers: issuing(&["refund"], 1, only("amount", up_to(5.0))), ..next.clone() },
            Ok(()),
        ),
        (
            "issues another tool",
            Payload { powers: issuing(&["read"], 1, only("amount", up_to(5.0))), ..next.clone() },
            Err(ReasonCode::WarrantWidened),
        ),
        (
            "issues deeper",
            Payload { powers: issuing(&["refund"], 2, only("amount", up_to(5.0))), ..next.clone() },
            Err(ReasonCode::WarrantWidened),
        ),
        (
            "issues more",
            Payload {
                powers: issuing(&["refund"], 1, only("amount", up_to(51.0))),
                ..next.clone()
            },
            Err(ReasonCode::WarrantWidened),
        ),
        ("calls", Payload { powers: calling(50.0), ..next.clone() }, Ok(())),
        (
            "calls with more",
            Payload { powers: calling(51.0), ..next.clone() },
            Err(ReasonCode::WarrantWidened),
        ),
        (
            "is for the issuer itself",
            Payload { powers: calling(5.0), holder: secret(ORCHESTRATOR).public(), ..next },
            Err(ReasonCode::WarrantWidened),
        ),
    ] {
        assert_eq!(of(&issuer, &child), expected, "{name}");
    }
}

/// Each at its bound, and one more.
#[test]
fn a_warrant_has_the_bounds_of_the_format() {
    use gateward_core::warrant::bounds as most;
    type Change = fn(&mut Payload, usize);
    let cases: [(&str, usize, Change); 10] = [
        ("tools", most::MAX_TOOLS, |it, count| {
            let tool = |at| (format!("t{at:03}"), Arguments::default());
            it.powers = Powers::Execution((0..count).map(tool).collect());
        }),
        ("constraints", most::MAX_CONSTRAINTS, |it, count| {
            let of = |at| (format!("a{at:03}"), Constraint::Wildcard);
            let constraints = (0..count).map(of).collect();
            tools(it)[0].1 = Arguments { constraints, allow_unknown: false };
        }),
        ("tools to issue", most::MAX_TOOLS, |it, count| {
            let tools = (0..count).map(|at| format!("t{at:03}")).collect();
            it.powers = Powers::Issuer(Issuing { tools, ..Issuing::default() });
        }),
        ("gates", most::MAX_TOOLS, |it, count| {
            let gate = |at| (format!("t{at:03}"), Gate { arguments: None, message: None });
            it.gates = Some(Gates::new((0..count).map(gate).collect()));
        }),
        ("conditions of a gate", most::MAX_CONSTRAINTS, |it, count| {
            let of = |at| (format!("a{at:03}"), Condition::Always);
            let gate = Gate { arguments: Some((0..count).map(of).collect()), message: None };
            it.gates = Some(Gates::new(vec![("refund".to_owned(), gate)]));
        }),
        ("approvers", most::MAX_APPROVERS, |it, count| {
            it.approvers =
                (0..count).map(|at| secret(u8::try_from(at).unwrap()).public()).collect();
        }),
        ("extensions", most::MAX_EXTENSIONS, |it, count| {
            it.extensions = (0..count).map(|at| (format!("x{at:03}"), Vec::new())).collect();
        }),
        ("bytes of an extension", most::MAX_EXTENSION_BYTES, |it, bytes| {
            it.extensions = vec![("x".to_owned(), vec![0; bytes])];
        }),
        ("bytes of an extension's key", most::MAX_EXTENSION_KEY_BYTES, |it, bytes| {
            it.extensions = vec![("x".repeat(bytes), Vec::new())];
        }),
        ("nesting", most::MAX_NESTING, |it, depth| {
            let inner = (0..depth).fold(Constraint::Wildcard, |it, _| Constraint::All(vec![it]));
            tools(it)[0].1 = only("x", inner);
        }),
    ];
    for (name, bound, change) in cases {
        for (amount, expected) in [(bound, true), (bound + 1, false)] {
            let mut payload = root();
            change(&mut payload, amount);
            assert_eq!(Payload::read(&payload.write()).is_ok(), expected, "{name}: {amount}");
        }
    }
    let stack = text::join(&vec![secret(ROOT).issue(&root()); most::MAX_LINKS]);
    assert!(envelopes(&stack).is_ok());
    let stack = text::join(&vec![secret(ROOT).issue(&root()); most::MAX_LINKS + 1]);
    assert!(envelopes(&stack).is_err(), "links");

    // A zero takes one byte.
    let of_bytes = |bytes: usize| {
        let full = (0..7).map(|at| (format!("x{at}"), vec![0; most::MAX_EXTENSION_BYTES]));
        let with = |last: usize| {
            let extensions = full.clone().chain([("x7".to_owned(), vec![0; last])]).collect();
            secret(ROOT).issue(&Payload { extensions, ..root() })
        };
        let empty = with(256).len() - 256;
        with(bytes - empty)
    };
    let largest = of_bytes(most::MAX_WARRANT_BYTES);
    assert_eq!(largest.len(), most::MAX_WARRANT_BYTES);
    assert!(envelopes(&largest).is_ok());
    let stack = text::join(&[largest, of_bytes(most::MAX_WARRANT_BYTES + 1)]);
    let reason = "Link 1 of the warrant's chain: it is too large.";
    assert_eq!(envelopes(&stack).unwrap_err().reason, reason);

    let stack_of = |bytes| text::stack(&text::encode(&vec![0; bytes]));
    assert!(stack_of(most::MAX_STACK_BYTES).is_ok());
    assert!(stack_of(most::MAX_STACK_BYTES + 1).is_err());
}

fn tools(payload: &mut Payload) -> &mut Vec<(String, Arguments)> {
    match &mut payload.powers {
        Powers::Execution(tools) => tools,
        Powers::Issuer(_) => panic!("it issues"),
    }
}

#[test]
fn a_tool_is_named_with_its_server_or_without() {
    for (name, expected) in [
        ("refund", Some(false)),
        ("*", Some(false)),
        ("pay/refund", Some(true)),
        ("other/refund", None),
    ] {
        let mut payload = root();
        tools(&mut payload)[0].0 = name.to_owned();
        let input = input(REFUND);
        // The holder signs the name that the warrant has.
        let signed = if name == "pay/refund" { name } else { "refund" };
        let proof = secret(ORCHESTRATOR).prove(payload.id, signed, &input, NOW_S);
        let judged = judge_with(
            &[payload],
            ORCHESTRATOR,
            REFUND,
            |it| {
                it.proof = Some(proof.to_vec());
            },
            &mut Cache::default(),
        );
        assert_eq!(judged.ok().map(|it| it.names_server), expected, "{name}");
    }
}

#[test]
fn a_gate_needs_the_approvals_of_enough_approvers() {
    let approver = secret(APPROVER);
    let gated = Payload {
        gates: Some(Gates::new(vec![(
            "refund".to_owned(),
            Gate { arguments: None, message: None },
        )])),
        approvers: vec![approver.public(), secret(6).public()],
        min_approvals: Some(1),
        ..root()
    };
    let hash = Statement::new(gated.id, "refund", &input(REFUND)).request_hash(&gated.holder);
    let approve = |by: u8, hash: [u8; 32], from_s: u64, to_s: u64| {
        reference::approval(by, hash, from_s, to_s)
    };
    let good = approve(APPROVER, hash, NOW_S - 5, NOW_S + 60);
    let judged = |approvals: Vec<Vec<u8>>| {
        judge_with(
            std::slice::from_ref(&gated),
            ORCHESTRATOR,
            REFUND,
            |it| it.approvals = approvals,
            &mut Cache::default(),
        )
    };
    let needed = |got: usize, need: usize| {
        Some(Box::new(NeededApprovals { request_hash: hex::encode(hash), got, need }))
    };
    assert!(judged(vec![good.clone()]).is_ok());
    assert!(judged(vec![approver.approve(hash, NOW_S - 5, NOW_S + 60)]).is_ok(), "made here");
    assert!(judged(vec![vec![0], good.clone()]).is_ok(), "what does not count is ignored");
    let mut wrong = good.clone();
    *wrong.last_mut().unwrap() ^= 1;
    let other = approve(6, hash, NOW_S - 5, NOW_S + 60);
    assert!(judged(vec![wrong.clone(), other]).is_ok(), "another approver's");
    for (name, approvals) in [
        ("none", vec![]),
        ("of somebody else", vec![approve(7, hash, NOW_S, NOW_S + 60)]),
        ("of another call", vec![approve(APPROVER, [1; 32], NOW_S, NOW_S + 60)]),
        ("which has expired", vec![approve(APPROVER, hash, NOW_S - 60, NOW_S)]),
        ("of the future", vec![approve(APPROVER, hash, NOW_S + 31, NOW_S + 60)]),
        ("a second one of the same approver", vec![wrong, good.clone()]),
    ] {
        let refusal = judged(approvals).unwrap_err();
        assert_eq!(refusal.code, ReasonCode::WarrantApprovalMissing, "{name}");
        assert!(refusal.reason.contains(&hex::encode(hash)), "{name}");
        assert_eq!(refusal.approvals, needed(0, 1), "{name}");
    }
    let both = Payload { min_approvals: Some(2), ..gated.clone() };
    let twice = judge_with(
        &[both],
        ORCHESTRATOR,
        REFUND,
        |it| it.approvals = vec![good.clone(), good],
        &mut Cache::default(),
    );
    let twice = twice.unwrap_err();
    assert_eq!(twice.code, ReasonCode::WarrantApprovalMissing, "one approver counts once");
    assert_eq!(twice.approvals, needed(1, 2));
}

#[test]
fn a_gate_holds_under_every_name_of_the_tool() {
    let gate = |tool: &str| {
        Some(Gates::new(vec![(tool.to_owned(), Gate { arguments: None, message: None })]))
    };
    for tool in ["refund", "pay/refund", "*"] {
        let mut root =
            Payload { gates: gate(tool), approvers: vec![secret(APPROVER).public()], ..root() };
        tools(&mut root)[0].0 = "*".to_owned();
        let mut child = child(&root);
        tools(&mut child)[0].0 = "refund".to_owned();
        let judged = judge(&[root.clone(), child.clone()], WORKER, REFUND);
        assert_eq!(judged.unwrap_err().code, ReasonCode::WarrantApprovalMissing, "{tool}");
        child.gates = None;
        let judged = judge(&[root, child], WORKER, REFUND);
        assert_eq!(judged.unwrap_err().code, ReasonCode::WarrantWidened, "{tool}");
    }
}

#[test]
fn a_tool_with_a_slash_in_its_name_is_named_with_its_server() {
    let (own, full, any) = ("github/get", "evil/github/get", "*");
    // The tools of each link, and the name that the holder signs.
    for (links, signed, expected) in [
        (&[&[own][..]][..], own, false),
        (&[&[full]], full, true),
        (&[&[any]], own, true),
        // The rules of the tool's own name may be narrower than those of `*`.
        (&[&[any, own]], own, false),
        (&[&[any, full]], full, true),
        (&[&[any, full, own]], full, true),
        (&[&[any, own], &[full]], full, false),
        (&[&[any], &[full]], full, true),
    ] {
        let mut payloads: Vec<Payload> = Vec::new();
        for names in links {
            let mut payload = payloads.last().map_or_else(root, child);
            let named = names.iter().map(|name| ((*name).to_owned(), Arguments::default()));
            *tools(&mut payload) = named.collect();
            payloads.push(payload);
        }
        let input = input("{}");
        let holder = [ORCHESTRATOR, WORKER][links.len() - 1];
        let proof = secret(holder).prove(payloads.last().unwrap().id, signed, &input, NOW_S);
        let stack = self::signed(&payloads, |at| [ROOT, ORCHESTRATOR][at]);
        let presented = Presented { stack, proof: Some(proof.to_vec()), approvals: Vec::new() };
        let call = Call {
            server: "evil",
            tool: "github/get",
            input: &input,
            now_s: NOW_S,
            agent_key: None,
        };
        match warrant::judge(&presented, &call, TOLERANCE, &mut Cache::default()) {
            Ok(_) => assert!(expected, "{links:?}"),
            Err(refusal) => {
                assert!(!expected, "{links:?} {refusal:?}");
                let reason = "it does not name the tool `github/get` with its server.";
                assert!(refusal.reason.contains(reason), "{links:?} {refusal:?}");
            }
        }
    }
}

#[test]
fn a_refusal_without_cryptography_comes_first_and_says_so() {
    let too_much = r#"{"amount":51,"customer":"c-7"}"#;
    let link = |reason: &str| ["Link 0 of the warrant's chain: ", reason].concat();
    let change = |change: fn(&mut Payload)| {
        let mut root = root();
        change(&mut root);
        root
    };
    let late = change(|it| it.expires_at_s = NOW_S);
    let other = change(|it| tools(it)[0].0 = "charge".to_owned());
    let missing = "The call has a warrant, but no proof that the caller holds it.".to_owned();
    for (root, arguments, is_proved, expected) in [
        (root(), too_much, true, link("it does not allow this value of `amount`.")),
        (other, REFUND, true, link("it does not name the tool `refund`.")),
        (late, REFUND, true, link("it has expired.")),
        (root(), REFUND, false, missing),
    ] {
        // The signature is wrong too, but that is not looked at.
        let change = |it: &mut Presented| {
            forge(it);
            it.proof = it.proof.take().filter(|_| is_proved);
        };
        let refused = judge_with(&[root], ORCHESTRATOR, arguments, change, &mut Cache::default());
        assert_eq!(
            refused.unwrap_err().reason,
            [&expected, " No signature was verified."].concat()
        );
    }
}

fn forge(presented: &mut Presented) {
    *presented.stack.last_mut().unwrap() ^= 1;
}

#[test]
fn a_known_chain_pays_for_its_proof_only() {
    let mut cache = Cache::default();
    for _ in 0..2 {
        assert!(judge_with(&[root()], ORCHESTRATOR, REFUND, |_| {}, &mut cache).is_ok());
    }
    // Other bytes are another chain.
    let forged = judge_with(&[root()], ORCHESTRATOR, REFUND, forge, &mut cache).unwrap_err();
    assert_eq!(forged.code, ReasonCode::WarrantSignatureInvalid);
    assert!(!forged.reason.contains("No signature"), "{}", forged.reason);
}

/// For a caller without a credential, chain and proof come first: a refusal of the call is one of the caller's.
#[test]
fn a_holder_who_proved_a_call_is_known_also_if_the_warrant_does_not_carry_it() {
    let (root, wrong) = (root(), r#"{"amount":51,"customer":"c-7"}"#);
    let child = child(&root);
    let of = |agent_key: u8, signed_by: u8, arguments: &str, proved: &str| {
        let stack = text::join(&[secret(ROOT).issue(&root), secret(ORCHESTRATOR).issue(&child)]);
        let proof = secret(signed_by).prove(child.id, "refund", &input(proved), NOW_S);
        let presented = Presented { stack, proof: Some(proof.to_vec()), approvals: Vec::new() };
        let call = Call {
            server: "pay",
            tool: "refund",
            input: &input(arguments),
            now_s: NOW_S,
            agent_key: Some(secret(agent_key).public()),
        };
        warrant::judge(&presented, &call, TOLERANCE, &mut Cache::default())
    };
    assert_eq!(of(ORCHESTRATOR, WORKER, REFUND, REFUND).unwrap().refusal, None);
    let refused = of(ORCHESTRATOR, WORKER, wrong, wrong).unwrap();
    assert_eq!(refused.refusal.unwrap().code, ReasonCode::WarrantArgumentRefused);
    for (what, judged, expected) in [
        ("another agent", of(WORKER, WORKER, REFUND, REFUND), ReasonCode::WarrantHolderUnknown),
        ("no holder", of(ORCHESTRATOR, 9, wrong, wrong), ReasonCode::WarrantProofInvalid),
        ("another call", of(ORCHESTRATOR, WORKER, wrong, REFUND), ReasonCode::WarrantProofInvalid),
    ] {
        assert_eq!(judged.unwrap_err().code, expected, "{what}");
    }
}

/// Somebody who has only a locator can sign a chain with a root of their own, and send a call of the greatest length. So what
/// they did not sign is not compared, nor is a call that they did not prove.
#[test]
fn what_nobody_signed_or_proved_is_not_compared() {
    // Comparing the links takes 640,000 steps, and comparing the call with each of them 100,000.
    let numbers = (0..800).map(|number| Json::Integer(number + 1)).collect();
    let any_text = Constraint::Pattern(Pattern::new("*".to_owned()));
    let mut root = root();
    tools(&mut root)[0].1 = Arguments {
        constraints: vec![
            ("number".to_owned(), Constraint::OneOf(numbers)),
            ("text".to_owned(), any_text),
        ],
        allow_unknown: false,
    };
    let mut narrow = child(&root);
    // The same list would not be compared value by value.
    let Constraint::OneOf(numbers) = &mut tools(&mut narrow)[0].1.constraints[0].1 else {
        unreachable!()
    };
    numbers.pop();
    let mut wider = narrow.clone();
    tools(&mut wider)[0].1.allow_unknown = true;
    let text = "x".repeat(100_000);
    let input = input(&format!(r#"{{"number":1,"text":"{text}"}}"#));
    let mut cache = Cache::default();
    let mut judged = |child: &Payload, child_by: u8, proved_by: u8| {
        let stack = text::join(&[secret(ROOT).issue(&root), sign(child, child_by)]);
        let proof = secret(proved_by).prove(child.id, "refund", &input, NOW_S);
        let presented = Presented { stack, proof: Some(proof.to_vec()), approvals: Vec::new() };
        let agent_key = Some(secret(ORCHESTRATOR).public());
        let call = Call { server: "pay", tool: "refund", input: &input, now_s: NOW_S, agent_key };
        warrant::judge(&presented, &call, TOLERANCE, &mut cache)
    };
    for (what, child, child_by, proved_by, expected) in [
        ("a link that is not signed", &wider, 9, WORKER, ReasonCode::WarrantSignatureInvalid),
        ("one that is", &wider, ORCHESTRATOR, WORKER, ReasonCode::WarrantWidened),
        // If the call came first, too few steps would be left for the chain.
        ("a call without a proof", &narrow, ORCHESTRATOR, 9, ReasonCode::WarrantProofInvalid),
    ] {
        assert_eq!(judged(child, child_by, proved_by).unwrap_err().code, expected, "{what}");
    }
    // The chain is in the cache the second time, and takes as many steps.
    for _ in 0..2 {
        let refusal = judged(&narrow, ORCHESTRATOR, WORKER).unwrap().refusal.unwrap();
        assert_eq!(refusal.code, ReasonCode::WarrantUnsupported);
        assert!(refusal.reason.contains("too much work to evaluate"), "{refusal:?}");
    }
}

#[test]
fn a_long_list_that_is_handed_on_costs_little() {
    let numbers: Vec<Json> = (0..2_000).map(Json::Integer).collect();
    let mut root = root();
    tools(&mut root)[0].1 = only("x", Constraint::OneOf(numbers));
    let same = child(&root);
    assert!(judge(&[root.clone(), same.clone()], WORKER, r#"{"x":7}"#).is_ok());
    let mut shorter = same;
    let Constraint::OneOf(numbers) = &mut tools(&mut shorter)[0].1.constraints[0].1 else {
        unreachable!()
    };
    numbers.pop();
    let refusal = judge(&[root, shorter], WORKER, r#"{"x":7}"#).unwrap_err();
    assert_eq!(refusal.code, ReasonCode::WarrantUnsupported);
}

/// Regular expressions, CEL and shell words are never evaluated, nor are types that nobody knows.
#[test]
fn a_constraint_that_is_not_evaluated_always_denies() {
    let types: [(&str, u8, &[u8]); 5] = [
        ("a regular expression", 5, b"\xa1\x67pattern\x62a*"),
        ("one that is not valid", 5, b"\xa1\x67pattern\x61("),
        ("CEL", 15, b"\xa1\x6aexpression\x64true"),
        ("shell words", 128, b"\xa1\x65allow\x81\x61a"),
        ("an unknown type", 99, b"\xa0"),
    ];
    let a = || Constraint::Exact(Json::String("a".to_owned()));
    for (what, id, body) in types {
        let it = || Constraint::Unsupported(id, body.to_vec());
        for constraint in [
            it(),
            Constraint::Not(Box::new(it())),
            Constraint::Any(vec![a(), it()]),
            Constraint::All(vec![a(), it()]),
        ] {
            let mut root = root();
            tools(&mut root)[0].1 = only("x", constraint);
            let refusal = judge(&[root], ORCHESTRATOR, r#"{"x":"a"}"#).unwrap_err();
            assert_eq!(refusal.code, ReasonCode::WarrantUnsupported, "{what}: {refusal:?}");
        }
        let mut wide = root();
        tools(&mut wide)[0].1 = only("x", it());
        let mut narrow = child(&wide);
        tools(&mut narrow)[0].1 = only("x", a());
        let refusal = judge(&[wide, narrow], WORKER, r#"{"x":"a"}"#).unwrap_err();
        assert_eq!(refusal.code, ReasonCode::WarrantWidened, "{what}: {refusal:?}");

        // About another tool than the call's, a link keeps it as it is. To the reference, an unknown type is not even narrower
        // than itself.
        let mut with_other = root();
        tools(&mut with_other).push(("send".to_owned(), only("x", it())));
        let kept = child(&with_other);
        let judged = judge(&[with_other, kept], WORKER, REFUND);
        assert_eq!(judged.is_ok(), id != 99, "{what}: {judged:?}");
    }
}

/// No argument has such a number, but neither implementation reads the warrant.
#[test]
fn a_whole_number_below_those_of_64_bits_is_not_read() {
    for (number, expected) in [("3b7fffffffffffffff", true), ("3b8000000000000000", false)] {
        // `not_one_of` the number.
        let body = [b"\xa1\x68excluded\x81".to_vec(), hex::decode(number).unwrap()].concat();
        let mut root = root();
        tools(&mut root)[0].1 = only("x", Constraint::Unsupported(7, body));
        let warrant = secret(ROOT).issue(&root);
        assert_eq!(Payload::read(&root.write()).is_ok(), expected, "{number}");
        assert_eq!(tenuo::wire::decode(&warrant).is_ok(), expected, "{number}");
    }
}

/// Each comparison is paid for by its size, also of what the parent says.
#[test]
fn a_child_that_takes_too_much_to_compare_is_refused() {
    let long = "x".repeat(50_000);
    let url = format!("https://a.example/{}", "x".repeat(1_900));
    let pattern = |text: &str| Constraint::Pattern(Pattern::new(text.to_owned()));
    let url_pattern = |text: &str| Constraint::UrlPattern(Box::new(UrlPattern::new(text).unwrap()));
    let safe = |list: &[String]| {
        let list = Some(list.to_vec());
        Constraint::UrlSafe(Box::new(UrlSafe {
            allow_domains: list.clone(),
            deny_domains: list,
            ..UrlSafe::default()
        }))
    };
    let domains: Vec<String> = (0..256).map(|at| format!("d{at}.example")).collect();
    let others = [&domains[..255], &["other.example".to_owned()]].concat();
    let exact = |text: &str| Constraint::Exact(Json::String(text.to_owned()));
    let network = |text: &str| Constraint::cidr(text).unwrap();
    let list =
        |at: i64| Json::Array((0..60).map(|_| Json::Null).chain([Json::Integer(at)]).collect());
    let lists = |from: i64| Constraint::OneOf((0..200).map(|at| list(from + at)).collect());
    for (what, wide, narrow) in [
        ("patterns", vec![pattern(&long), pattern("*")], vec![pattern("a"); 5_000]),
        (
            "patterns that cannot be evaluated",
            vec![pattern(&format!("{long}[")), pattern("*")],
            vec![exact("a"); 5_000],
        ),
        (
            "URLs",
            vec![url_pattern(&url), url_pattern("*://a.example")],
            vec![url_pattern("https://a.example/y"); 1_000],
        ),
        (
            "domains",
            [vec![safe(&others); 4], vec![safe(&domains)]].concat(),
            vec![safe(&domains); 8],
        ),
        ("lists", vec![lists(1_000), lists(0)], vec![lists(0)]),
        (
            "addresses",
            [vec![network("10.0.0.0/8"); 399], vec![network("::/0")]].concat(),
            vec![exact("1:2:3:4:5:6:7:8"); 200],
        ),
    ] {
        let mut root = root();
        tools(&mut root)[0].1 = only("x", Constraint::Any(wide));
        let mut child = child(&root);
        tools(&mut child)[0].1 = only("x", Constraint::Any(narrow));
        let stack = text::join(&[secret(ROOT).issue(&root), secret(ORCHESTRATOR).issue(&child)]);
        let links = envelopes(&stack).unwrap();
        let refusal = Chain::verify(&links, sha256(&stack), &mut Work::default()).unwrap_err();
        assert!(
            refusal.code == ReasonCode::WarrantUnsupported
                && refusal.reason.contains("too much work"),
            "{what}: {refusal:?}"
        );
    }
}

fn only(name: &str, constraint: Constraint) -> Arguments {
    Arguments { constraints: vec![(name.to_owned(), constraint)], allow_unknown: false }
}

#[test]
fn every_text_form_of_a_stack_is_read() {
    let warrant = secret(ROOT).issue(&root());
    let stack = text::join(std::slice::from_ref(&warrant));
    let reference = tenuo::wire::decode(&warrant).unwrap();
    let standard = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(&warrant)
    };
    for (name, form, expected) in [
        ("base64url", text::encode(&warrant), &warrant),
        (
            "base64 with padding and lines",
            format!(" {}\n{}", &standard[..40], &standard[40..]),
            &warrant,
        ),
        ("the reference's text", tenuo::wire::encode_base64(&reference).unwrap(), &warrant),
        ("PEM", tenuo::wire::encode_pem(&reference).unwrap(), &warrant),
        ("a stack", text::encode(&stack), &stack),
        ("a stack in PEM", text::pem(&stack), &stack),
    ] {
        assert_eq!(text::stack(&form).as_ref(), Ok(expected), "{name}");
    }
    let pem = tenuo::wire::encode_pem(&reference).unwrap();
    assert_eq!(
        text::stack(&[pem.clone(), pem.clone()].concat()),
        Ok(text::join(&[warrant.clone(), warrant]))
    );
    let read = tenuo::wire::decode_pem_chain(&text::pem(&stack)).unwrap();
    assert_eq!(read.0.len(), 1, "the reference reads our PEM");
    for wrong in ["", "!", "a", "-----BEGIN TENUO WARRANT-----\nAAAA"] {
        assert!(
            text::stack(wrong).is_err() || envelopes(&text::stack(wrong).unwrap()).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_revocation_list_is_the_issuers() {
    let issuer = tenuo::SigningKey::from_bytes(&[ROOT; 32]);
    let list = tenuo::revocation::SignedRevocationList::builder()
        .revoke("tnu_wrt_01010101010101010101010101010101")
        .version(7)
        .build(&issuer)
        .unwrap();
    let bytes = list.to_bytes().unwrap();
    let read = warrant::revocation::RevocationList::read(&bytes).unwrap();
    assert_eq!((read.version, read.issuer), (7, secret(ROOT).public()));
    assert_eq!(read.revoked, [WarrantId([1; 16])]);
    let own = secret(ROOT).revoke(&read.revoked, 7, &read.issued_at);
    assert_eq!(own, bytes, "the same list, made here");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(warrant::revocation::RevocationList::read(&changed).is_err(), "byte {at}");
    }
}
