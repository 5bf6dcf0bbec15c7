//! Random chains, as they were made and with changed stacks: what Gateward accepts, the reference implementation accepts
//! too.
//!
//! `GATEWARD_FUZZ_CASES` is the number of cases; `make fuzz` takes more than the tests.

use std::collections::BTreeMap;
use std::thread;

use gateward_core::decision::ReasonCode;
use gateward_core::json::Json;
use gateward_core::warrant::bounds::DEFAULT_MAX_LINKS;
use gateward_core::warrant::constraint::Work;
use gateward_core::warrant::constraint::fit::{Fit, value_fits};
use gateward_core::warrant::constraint::narrow::is_narrower;
use gateward_core::warrant::payload::Payload;
use gateward_core::warrant::proof::Statement;
use gateward_core::warrant::{self, Cache, Call, Presented, Tolerance, text};

use super::differences::{Refused, SERVER, own_name};
use super::random::{Asked, LONGEST, Random};
use super::{NOW_S, reference, secret, sign};

/// Cases of the tests, unless the environment says another number. Each is a chain that is judged as it was made, and once
/// more with a changed stack.
const CASES: u64 = 100_000;

/// What a tenant accepts that has no settings of its own.
const TOLERANCE: Tolerance = Tolerance { max_links: DEFAULT_MAX_LINKS, proof_windows: 5 };

/// The root of the tenant.
const ROOT: u8 = 1;

/// A key that the tenant does not know. It is in no chain, or the root of one.
const STRANGER: u8 = 99;

fn cases() -> u64 {
    std::env::var("GATEWARD_FUZZ_CASES").map_or(CASES, |cases| cases.parse().unwrap())
}

/// One case: a call with what is presented for it.
#[derive(Clone)]
struct Case {
    /// The tool's own name.
    own: &'static str,
    /// The tool as the last warrant names it. The holder signs this name, and the reference knows no other.
    tool: &'static str,
    input: Json,
    links: Vec<Payload>,
    /// The links in CBOR.
    warrants: Vec<Vec<u8>>,
    presented: Presented,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let named = random.one(&[
            "refund",
            "read",
            "*",
            "tenuo:x",
            "pay/refund",
            "repo/get",
            "pay/repo/get",
        ]);
        let own = own_name(named);
        let names = ["a", "b", "c"];
        let fields =
            names.iter().take(random.below(4)).map(|name| ((*name).to_owned(), random.value()));
        let input = Json::Object(fields.collect());
        let asked = Asked { named, own, input: &input };
        let length = random.length();
        // A long chain has about as many changes as a short one. Otherwise hardly any would be accepted.
        let calm = length.div_ceil(3);
        let key = if random.rarely(20) { STRANGER } else { ROOT };
        let mut links = vec![random.root(key, asked)];
        if random.rarely(6) {
            random.change(&mut links[0], asked);
        }
        for at in 1..u8::try_from(length).unwrap() {
            let parent = links.last().unwrap().clone();
            let child = random.child(&parent, at, calm, asked);
            links.push(child);
            if random.rarely(4 * calm) {
                random.change(links.last_mut().unwrap(), asked);
            }
        }
        // As it is, or with the key of its signer as the issuer.
        let issue: fn(&Payload, u8) -> Vec<u8> =
            if random.rarely(2) { sign } else { |link, by| secret(by).issue(link) };
        let issuers = [key].into_iter().chain(2..);
        let warrants: Vec<_> =
            links.iter().zip(issuers).map(|(link, by)| issue(link, by)).collect();
        let stack = match warrants.as_slice() {
            [warrant] if random.rarely(2) => warrant.clone(),
            _ => text::join(&warrants),
        };
        let leaf = links.last().unwrap();
        let tool = if leaf.named(named).is_some() { named } else { own };
        let holder =
            if random.rarely(12) { STRANGER } else { u8::try_from(links.len()).unwrap() + 1 };
        let offset = random.one(&[0, 0, 0, -30, 30, 60, -60, 90, -90]);
        let at_s = NOW_S.saturating_add_signed(offset);
        let proof = secret(holder).prove(leaf.id, tool, &input, at_s);
        let mut approvals = Vec::new();
        if leaf.gates.is_some() && !random.rarely(3) {
            let hash = Statement::new(leaf.id, tool, &input).request_hash(&leaf.holder);
            for by in [5, 5, 6].into_iter().take(random.below(4)) {
                approvals.push(reference::approval(by, hash, NOW_S - 10, NOW_S + 10));
            }
        }
        let presented = Presented { stack, proof: Some(proof.to_vec()), approvals };
        Self { own, tool, input, links, warrants, presented }
    }

    /// The same call with another stack: a byte is changed, the end is missing, or a link is missing, repeated or in
    /// another place.
    fn mutated(&self, random: &mut Random) -> Self {
        let mut warrants = self.warrants.clone();
        let (one, other) = (random.below(warrants.len()), random.below(warrants.len()));
        let mut stack = self.presented.stack.clone();
        match random.below(8) {
            0 => {
                drop(warrants.remove(one));
                stack = text::join(&warrants);
            }
            1 => {
                warrants.insert(one, self.warrants[other].clone());
                stack = text::join(&warrants);
            }
            2 if one != other => {
                warrants.swap(one, other);
                stack = text::join(&warrants);
            }
            3 => stack.truncate(random.below(stack.len())),
            _ => {
                let at = random.below(stack.len());
                stack[at] ^= u8::try_from(1 + random.below(255)).unwrap();
            }
        }
        assert_ne!(stack, self.presented.stack);
        let presented = Presented { stack, ..self.presented.clone() };
        Self { presented, ..self.clone() }
    }

    /// What the worker says, and what the lane says about the root.
    fn judge(&self) -> Result<warrant::Claim, warrant::Refusal> {
        let call = Call {
            server: SERVER,
            tool: self.own,
            input: &self.input,
            now_s: NOW_S,
            agent_key: None,
        };
        let claim = warrant::judge(&self.presented, &call, TOLERANCE, &mut Cache::default())?;
        match claim.root == secret(ROOT).public() {
            true => Ok(claim),
            false => Err(warrant::Refusal::of(ReasonCode::WarrantUntrusted)),
        }
    }

    fn reference(&self) -> Result<(), String> {
        let root = secret(ROOT).public().0;
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

/// What both said about the case as it was made, and about the same with a changed stack.
fn compare(seed: u64) -> [Said; 2] {
    let mut random = Random(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let made = Case::new(&mut random);
    let mutated = made.mutated(&mut random);
    [made, mutated].map(|case| compare_case(&case, seed))
}

fn compare_case(case: &Case, seed: u64) -> Said {
    match (case.judge(), case.reference()) {
        (Ok(claim), Ok(())) => {
            assert!(claim.ids.len() <= DEFAULT_MAX_LINKS, "seed {seed}");
            root_allows(case, seed);
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
    let (mut accepted, mut shared, mut mutated) = (0_u64, 0_u64, 0_u64);
    // Chains that the reference accepts, and Gateward too unless they are too long.
    let mut by_length = [0_u64; LONGEST + 1];
    let mut stricter: BTreeMap<&str, u64> = BTreeMap::new();
    let mut unlisted: BTreeMap<String, u64> = BTreeMap::new();
    let mut note = |said: Said| match said {
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
    };
    for [of_made, of_mutated] in in_threads(cases(), compare) {
        note(of_made);
        note(of_mutated);
        mutated += 1;
    }
    println!("{accepted} accepted, {shared} refused by both, stricter: {stricter:#?}");
    println!("{mutated} stacks were changed. By length: {:?}", &by_length[1..]);
    assert!(unlisted.is_empty(), "only Gateward refuses these seeds: {unlisted:#?}");
    assert_eq!(mutated, cases());
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
