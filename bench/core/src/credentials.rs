//! What checking a credential costs, beside a hash: its secret, its record and its scopes.

use std::hint::black_box;

use gateward_core::call::command::GateCommand;
use gateward_core::credential::token;
use gateward_core::lane::RegistryCache;
use gateward_core::policy::PolicyEngine;
use gateward_core::registry::{CredentialRecord, CredentialStatus};
use gateward_core::scope::Scope;
use sha2_portable::{Digest as _, Sha256};

use crate::decide::{self, Call, NOW_MS, SECRET};
use crate::operation::{GATEWARD, Operation};

/// Credentials in the lane's cache. It holds 10,000 at most.
const KEYS: [usize; 4] = [1, 10, 100, 10_000];

/// How long records are used. The cache is filled at the time of the call.
const TTL_MS: u64 = 1_000;

/// What the reference hashes.
const TEXT: &str = "0123456789abcdef0123456789abcdef";
const _: () = assert!(TEXT.len() == 32);

pub fn operations() -> Vec<Operation> {
    let mut operations = vec![
        Operation::new("scope_lookup", GATEWARD, || {
            let engine = PolicyEngine::new(gateward_policies::bundle());
            let credential = decide::loaded(&engine, &Call::read(), SECRET).credential.unwrap();
            assert_eq!(credential.scopes, [Scope::ToolsRead, Scope::ToolsWrite]);
            let run = move || has_scope(black_box(&*credential), black_box(true));
            assert!(run());
            run
        }),
        Operation::new("hash_token_32b", GATEWARD, || {
            assert_eq!(token::secret_hash(SECRET), portable_hash(SECRET));
            || token::secret_hash(black_box(SECRET))
        }),
        // The reference: the report compares the others with it.
        Operation::new("sha256_32b_portable", GATEWARD, || {
            assert_eq!(portable_hash(TEXT), token::secret_hash(TEXT));
            || portable_hash(black_box(TEXT))
        }),
    ];
    operations.extend(KEYS.map(credential_verify));
    operations
}

fn portable_hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// As `gate::resolve` checks it, which is not public.
fn has_scope(credential: &CredentialRecord, writes: bool) -> bool {
    let group = if writes { "write" } else { "read" };
    Scope::of_action_group(group).is_some_and(|scope| credential.scopes.contains(&scope))
}

/// What a lane does with a call's credential. The hash of the secret comes with the call.
fn credential_verify(keys: usize) -> Operation {
    Operation::new(format!("credential_verify_{keys}_keys"), GATEWARD, move || {
        let (cache, command) = (cache_of(keys), call_with(keys / 2));
        for at in [0, keys - 1] {
            assert!(is_valid(&cache, &call_with(at)), "{at} of {keys}");
        }
        assert!(!is_valid(&cache, &call_with(keys)), "an unknown key");
        let secret_hash = token::secret_hash(&secret(keys));
        let wrong = GateCommand { secret_hash, ..command.clone() };
        assert!(!is_valid(&cache, &wrong), "a wrong secret");
        let run = move || is_valid(black_box(&cache), black_box(&command));
        assert!(run());
        run
    })
}

/// Gets the call's records as the lane does, then compares as `gate::identity` does, which is not public.
fn is_valid(cache: &RegistryCache, command: &GateCommand) -> bool {
    let Some((records, true)) = cache.records(command, NOW_MS, TTL_MS) else { return false };
    let Some(credential) = &records.credential else { return false };
    token::hash_matches(&command.secret_hash, &credential.secret_sha256)
        && credential.status == CredentialStatus::Active
        && credential.agent.as_deref() == Some(command.call.agent.as_str())
        && records.agent.as_ref().is_some_and(|agent| agent.lane == command.lane)
        && credential.expires_at_ms.is_none_or(|at_ms| NOW_MS < at_ms)
}

/// A lane's cache with this many credentials of one agent.
fn cache_of(keys: usize) -> RegistryCache {
    let engine = PolicyEngine::new(gateward_policies::bundle());
    let mut cache = RegistryCache::default();
    for at in 0..keys {
        let loaded = decide::loaded(&engine, &Call::read(), &secret(at));
        assert!(cache.accept(&call_with(at), loaded, NOW_MS));
    }
    cache
}

/// A call with one of the credentials.
fn call_with(at: usize) -> GateCommand {
    let secret_hash = token::secret_hash(&secret(at));
    GateCommand { key_id: format!("k{at}"), secret_hash, ..Call::read().command() }
}

/// The length is that of a secret.
fn secret(at: usize) -> String {
    format!("{at:043}")
}
