//! `gateward warrant` and the libraries of Tenuo: each reads what the other minted. And what `inspect` and `verify` print
//! about a chain.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gateward_core::json::{Json, parse};
use gateward_core::warrant::chain::sha256;
use gateward_core::warrant::constraint::{self, Arguments, Constraint};
use gateward_core::warrant::mint::Secret;
use gateward_core::warrant::payload::{Issuing, Payload, Powers, WarrantId};
use gateward_core::warrant::revocation::{MAX_VERSION, RevocationList};
use gateward_core::warrant::text;
use tenuo::constraints::{ConstraintSet, ConstraintValue, Exact, Range, Wildcard};
use tenuo::{Authorizer, SigningKey, Warrant};

const ROOT: u8 = 1;
const AGENT: u8 = 2;
const WORKER: u8 = 3;
const HELPER: u8 = 4;
const GOOD: &str = r#"{"amount":20,"customer":"c-7"}"#;

/// A directory with a file for each key.
struct Keys(PathBuf);

impl Keys {
    fn new(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("gateward-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for number in [ROOT, AGENT, WORKER] {
            fs::write(directory.join(number.to_string()), hex::encode([number; 32])).unwrap();
        }
        Self(directory)
    }

    fn file(&self, number: u8) -> String {
        self.0.join(number.to_string()).display().to_string()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn secret(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn public(number: u8) -> String {
    hex::encode(secret(number).public_key().to_bytes())
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateward")).arg("warrant").args(arguments).output().unwrap()
}

/// What a command prints that must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).unwrap()
}

/// Whether the reference lets the worker call `refund`.
fn passes(stack: &[u8], proof: &str, amount: i64, customer: &str) -> bool {
    let stack = tenuo::wire::decode_stack(stack).unwrap().0;
    let root = secret(ROOT).public_key();
    let authorizer = Authorizer::builder().trusted_root(root).build().unwrap();
    let proof: [u8; 64] = bytes(proof).try_into().unwrap();
    let proof = tenuo::Signature::from_bytes(&proof).unwrap();
    let arguments = HashMap::from([
        ("amount".to_owned(), ConstraintValue::Integer(amount)),
        ("customer".to_owned(), ConstraintValue::String(customer.to_owned())),
    ]);
    authorizer.check_chain(&stack, "refund", &arguments, Some(&proof), &[]).is_ok()
}

#[test]
fn what_is_minted_here_works_there() {
    let keys = Keys::new("here");
    let issued = printed(&[
        "issue",
        "--key",
        &keys.file(ROOT),
        "--holder",
        &public(AGENT),
        "--tools",
        r#"{"refund":{"amount":{"range":{"max":500}},"customer":{"wildcard":null}}}"#,
    ]);
    let chain = printed(&[
        "attenuate",
        "--key",
        &keys.file(AGENT),
        "--warrant",
        &issued,
        "--holder",
        &public(WORKER),
        "--tools",
        r#"{"refund":{"amount":{"range":{"max":50}},"customer":{"exact":"c-7"}}}"#,
    ]);
    let prove = |input: &str| {
        let key = keys.file(WORKER);
        printed(&[
            "prove",
            "--key",
            &key,
            "--warrant",
            &chain,
            "--tool",
            "refund",
            "--input",
            input,
        ])
    };
    let stack = bytes(&chain);
    assert!(passes(&stack, &prove(GOOD), 20, "c-7"));
    assert!(!passes(&stack, &prove(r#"{"amount":51,"customer":"c-7"}"#), 51, "c-7"));
    assert!(!passes(&stack, &prove(r#"{"amount":20,"customer":"c-8"}"#), 20, "c-8"));
    assert!(!passes(&stack, &prove(GOOD), 21, "c-7"), "the proof is of another call");
}

#[test]
fn what_is_minted_there_works_here() {
    let keys = Keys::new("there");
    let mut wide = ConstraintSet::new();
    wide.insert("amount".to_owned(), Range::max(500.0).unwrap());
    wide.insert("customer".to_owned(), Wildcard::new());
    let issued = Warrant::builder()
        .capability("refund", wide)
        .holder(secret(AGENT).public_key())
        .ttl(Duration::from_secs(300))
        .build(&secret(ROOT))
        .unwrap();
    let mut narrow = ConstraintSet::new();
    narrow.insert("amount".to_owned(), Range::max(50.0).unwrap());
    narrow.insert("customer".to_owned(), Exact::new("c-7"));
    let child = issued
        .attenuate()
        .capability("refund", narrow)
        .holder(secret(WORKER).public_key())
        .build(&secret(AGENT))
        .unwrap();
    let stack = tenuo::wire::WarrantStack::new(vec![issued, child.clone()]);
    let chain = STANDARD.encode(tenuo::wire::encode_stack(&stack).unwrap());
    let verify = |amount: i64, customer: &str| {
        let arguments = HashMap::from([
            ("amount".to_owned(), ConstraintValue::Integer(amount)),
            ("customer".to_owned(), ConstraintValue::String(customer.to_owned())),
        ]);
        let proof = child.sign(&secret(WORKER), "refund", &arguments).unwrap();
        let proof = STANDARD.encode(proof.to_bytes());
        let input = serde_json::json!({"amount": amount, "customer": customer}).to_string();
        let root = public(ROOT);
        run(&[
            "verify",
            "--warrant",
            &chain,
            "--proof",
            &proof,
            "--tool",
            "pay/refund",
            "--input",
            &input,
            "--root",
            &root,
        ])
    };
    let good = verify(20, "c-7");
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    for (amount, customer, argument) in [(51, "c-7", "`amount`"), (20, "c-8", "`customer`")] {
        let refused = verify(amount, customer);
        let why = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{why}");
        assert!(why.contains("Link 1") && why.contains(argument), "{why}");
    }
    // And it can be handed on from here.
    let narrower = printed(&[
        "attenuate",
        "--key",
        &keys.file(WORKER),
        "--warrant",
        &chain,
        "--holder",
        &public(AGENT),
        "--tools",
        r#"{"refund":{"amount":{"range":{"max":5}}}}"#,
    ]);
    let shown = printed(&["inspect", &narrower]);
    assert!(shown.contains("amount") && shown.contains("customer"), "{shown}");
}

/// A worker would refuse the list.
#[test]
fn a_list_of_revocations_has_a_version_that_is_accepted() {
    let keys = Keys::new("revoke");
    let revoke = |version: u64| {
        let (version, id) = (version.to_string(), "0f".repeat(16));
        run(&["revoke", "--key", &keys.file(ROOT), "--version", &version, &id])
    };
    let list = revoke(MAX_VERSION);
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    let list = bytes(String::from_utf8(list.stdout).unwrap().trim());
    assert_eq!(RevocationList::read(&list).unwrap().version, MAX_VERSION);
    assert_eq!(revoke(MAX_VERSION + 1).status.code(), Some(2));
}

/// 2020-01-02T03:04:05Z.
const ISSUED_AT_S: u64 = 1_577_934_245;

fn key(number: u8) -> Secret {
    Secret::new([number; 32])
}

fn refund(max: f64, customer: Constraint) -> (String, Arguments) {
    let amount = Constraint::Range(constraint::Range {
        min: None,
        max: Some(max),
        min_inclusive: true,
        max_inclusive: true,
    });
    let constraints = vec![("amount".to_owned(), amount), ("customer".to_owned(), customer)];
    ("refund".to_owned(), Arguments { constraints, allow_unknown: false })
}

fn child(parent: &Payload, number: u8, holder: u8) -> Payload {
    Payload {
        id: WarrantId([number; 16]),
        holder: key(holder).public(),
        issuer: parent.holder,
        depth: parent.depth + 1,
        parent_hash: Some(sha256(&parent.write())),
        ..parent.clone()
    }
}

/// A chain from the root to the helper: the same bytes in each run.
fn three_links() -> [Payload; 3] {
    let customer = || Constraint::Exact(Json::String("c-7".to_owned()));
    let root = Payload {
        id: WarrantId([1; 16]),
        powers: Powers::Execution(vec![
            ("lookup".to_owned(), Arguments::default()),
            refund(500.0, Constraint::Wildcard),
        ]),
        holder: key(AGENT).public(),
        issuer: key(ROOT).public(),
        issued_at_s: ISSUED_AT_S,
        expires_at_s: ISSUED_AT_S + 600,
        max_depth: 3,
        depth: 0,
        parent_hash: None,
        extensions: Vec::new(),
        gates: None,
        approvers: Vec::new(),
        min_approvals: None,
        clearance: Some(30),
    };
    let second = Payload {
        powers: Powers::Execution(vec![refund(50.0, customer())]),
        expires_at_s: ISSUED_AT_S + 300,
        ..child(&root, 2, WORKER)
    };
    let third = Payload {
        powers: Powers::Execution(vec![refund(5.0, customer())]),
        max_depth: 2,
        clearance: Some(20),
        ..child(&second, 3, HELPER)
    };
    [root, second, third]
}

/// Each link is signed by the holder of the one before it, but for a third one.
fn signed(links: &[Payload], third: u8) -> Vec<u8> {
    let issuers = links.iter().zip([ROOT, AGENT, third]);
    let warrants: Vec<_> = issuers.map(|(link, issuer)| key(issuer).issue(link)).collect();
    text::join(&warrants)
}

#[test]
fn inspect_shows_each_link_and_what_it_narrows() {
    let shown = printed(&["inspect", &text::encode(&signed(&three_links(), WORKER))]);
    let expected = "\
depth  id                                kind       issuer             holder             issued_at                 expires_at                clearance  tools
0      01010101010101010101010101010101  execution  8a88e3dd7409f195…  8139770ea87d175f…  2020-01-02T03:04:05.000Z  2020-01-02T03:14:05.000Z  30         lookup, refund
1      02020202020202020202020202020202  execution  8139770ea87d175f…  ed4928c628d1c2c6…  2020-01-02T03:04:05.000Z  2020-01-02T03:09:05.000Z  30         refund
2      03030303030303030303030303030303  execution  ed4928c628d1c2c6…  ca93ac1705187071…  2020-01-02T03:04:05.000Z  2020-01-02T03:09:05.000Z  20         refund

Link 1 against link 0
  tool    name        before                    after
  refund  amount      {\"range\":{\"max\":500}}     {\"range\":{\"max\":50}}
  refund  customer    {\"wildcard\":null}         {\"exact\":\"c-7\"}
  lookup  -           allowed                   refused
  -       expires_at  2020-01-02T03:14:05.000Z  2020-01-02T03:09:05.000Z

Link 2 against link 1
  tool    name       before                after
  refund  amount     {\"range\":{\"max\":50}}  {\"range\":{\"max\":5}}
  -       max_depth  3                     2
  -       clearance  30                    20

Rules and signatures hold. But link 0 is not valid now: it has expired, or was issued in the future.";
    assert_eq!(shown, expected);
}

#[test]
fn inspect_compares_a_warrant_that_calls_with_the_bounds_of_the_one_that_issued_it() {
    let [first, second, _] = three_links();
    let (_, bounds) = refund(500.0, Constraint::Wildcard);
    let issuing =
        Issuing { tools: vec!["refund".to_owned()], max_depth: None, bounds: Some(bounds) };
    let root = Payload { powers: Powers::Issuer(issuing), ..first };
    let child = Payload { powers: second.powers, ..child(&root, 2, WORKER) };
    let shown = printed(&["inspect", &text::encode(&signed(&[root, child], AGENT))]);
    let expected = "\
Link 1 against link 0
  tool    name            before                                                         after
  refund  amount          {\"range\":{\"max\":500}}                                          {\"range\":{\"max\":50}}
  refund  customer        {\"wildcard\":null}                                              {\"exact\":\"c-7\"}
  -       kind            issuer                                                         execution
";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_chain_that_fails_names_the_rule_and_the_link() {
    type Change = fn(&mut Payload);
    let cases: [(&str, Change, u8, u8, &str); 4] = [
        (
            "more than the parent",
            |it| it.powers = Powers::Execution(vec![refund(51.0, Constraint::Wildcard)]),
            WORKER,
            0,
            "warrant_widened: Link 2 of the warrant's chain: its parent is narrower about a tool's arguments.",
        ),
        (
            "longer than the parent",
            |it| it.expires_at_s += 1,
            WORKER,
            0,
            "warrant_widened: Link 2 of the warrant's chain: it expires after its parent.",
        ),
        (
            "signed by another holder",
            |_| {},
            AGENT,
            0,
            "warrant_chain_broken: Link 2 of the warrant's chain: the issuer is not the holder of its parent.",
        ),
        (
            "another signature",
            |_| {},
            WORKER,
            1,
            "warrant_signature_invalid: Link 2 of the warrant's chain: the signature is not the issuer's.",
        ),
    ];
    let input = r#"{"amount":2,"customer":"c-7"}"#;
    for (what, change, last, flipped, expected) in cases {
        let mut links = three_links();
        change(&mut links[2]);
        let mut stack = signed(&links, last);
        *stack.last_mut().unwrap() ^= flipped;
        let chain = text::encode(&stack);
        let call = parse(input.as_bytes()).unwrap();
        let proof = key(HELPER).prove(links[2].id, "refund", &call, ISSUED_AT_S + 60);
        let verified = run(&[
            "verify",
            "--warrant",
            &chain,
            "--proof",
            &text::encode(&proof),
            "--tool",
            "pay/refund",
            "--input",
            input,
            "--root",
            &public(ROOT),
            "--at",
            "2020-01-02T03:05:05Z",
        ]);
        for output in [verified, run(&["inspect", &chain])] {
            assert_eq!(output.status.code(), Some(1), "{what}");
            let why = String::from_utf8(output.stderr).unwrap();
            assert_eq!(why, format!("gateward: {expected}\n"), "{what}");
            let shown = String::from_utf8(output.stdout).unwrap();
            assert!(!shown.contains("hold."), "{what}: {shown}");
        }
    }
}
