//! `gateward warrant` and the libraries of Tenuo: each reads what the other minted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests only")]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gateward_core::warrant::revocation::{MAX_VERSION, RevocationList};
use tenuo::constraints::{ConstraintSet, ConstraintValue, Exact, Range, Wildcard};
use tenuo::{Authorizer, SigningKey, Warrant};

const ROOT: u8 = 1;
const AGENT: u8 = 2;
const WORKER: u8 = 3;
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
