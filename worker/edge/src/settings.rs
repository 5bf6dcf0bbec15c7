//! Vars and secrets. They are read once per isolate, since they never change within a deployment.

use std::cell::OnceCell;
use std::rc::Rc;

use gateward_core::credential::token::{self, MIN_MAC_KEY_CHARS, MacKeys};
use gateward_core::gate::config::{Config, connecting_address_header};
use gateward_core::lane::{LogKeys, Witness};
use gateward_core::log::{Event, Line};
use gateward_core::policy::PolicyEngine;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::provenance::ValueKey;
use worker::Env;

use crate::log;
use crate::time_zones::offset_s;

/// The settings of a deployment.
pub struct Settings {
    pub config: Config,
    pub mac_keys: MacKeys,
    pub commit: String,
    /// SHA-256 of the secret that `/v1/bootstrap` asks for; `None` when it is not set.
    pub bootstrap_secret: Option<[u8; 32]>,
    /// Shared by every lane of this isolate, so that each policy is parsed once.
    pub engine: PolicyEngine,
    /// Whether administrators may register `http` URLs and addresses of local networks. For development.
    pub local_targets: bool,
    /// The header in which the platform in front puts the connecting address; `None` when no header can
    /// be trusted.
    pub connecting_address_header: Option<String>,
    /// The keys of the transparency logs; `None` if no log is kept.
    pub log_keys: Option<LogKeys>,
    /// Who cosigns the checkpoints of head logs.
    pub witnesses: Vec<Witness>,
}

thread_local! {
    static SETTINGS: OnceCell<Result<Rc<Settings>, String>> = const { OnceCell::new() };
}

/// The settings; a problem for the caller while they are wrong.
pub fn settings(env: &Env) -> Result<Rc<Settings>, Problem> {
    SETTINGS.with(|cell| cell.get_or_init(|| read(env).map(Rc::new)).clone()).map_err(|message| {
        log::write(&Line::new(Event::Misconfigured, message));
        Problem::new(
            ProblemCode::Misconfigured,
            "a setting of Gateward is missing or invalid; its log says which",
        )
    })
}

fn read(env: &Env) -> Result<Settings, String> {
    let key = var(env, "TOKEN_MAC_KEY").ok_or("secret `TOKEN_MAC_KEY` is not set")?;
    let previous = var(env, "TOKEN_MAC_KEY_PREVIOUS").filter(|key| !key.is_empty());
    let mac_keys = MacKeys::new(&key, previous.as_deref())
        .ok_or("secret `TOKEN_MAC_KEY` or `TOKEN_MAC_KEY_PREVIOUS` is too short")?;
    let bootstrap = var(env, "BOOTSTRAP_SECRET").filter(|secret| !secret.is_empty());
    if bootstrap.as_ref().is_some_and(|secret| secret.len() < MIN_MAC_KEY_CHARS) {
        return Err("secret `BOOTSTRAP_SECRET` is too short".to_owned());
    }
    Ok(Settings {
        bootstrap_secret: bootstrap.map(|secret| token::secret_hash(&secret)),
        config: Config::read(
            (ValueKey::new(mac_keys.value_key()), ValueKey::new(mac_keys.key_id_key())),
            offset_s,
            |name| var(env, name),
        )?,
        mac_keys,
        commit: var(env, "COMMIT").unwrap_or_else(|| "unknown".to_owned()),
        engine: PolicyEngine::new(gateward_policies::bundle()),
        // Any other value, also a misspelled one, allows only public addresses.
        local_targets: var(env, "LOCAL_TARGETS").is_some_and(|value| value == "true"),
        connecting_address_header: connecting_address_header(|name| var(env, name))?,
        log_keys: LogKeys::read(|name| var(env, name))?,
        witnesses: Witness::read(|name| var(env, name))?,
    })
}

/// A var may be a string or, in wrangler.toml, a number.
fn var(env: &Env, name: &str) -> Option<String> {
    let value = js_sys::Reflect::get(env, &name.into()).ok()?;
    value.as_string().or_else(|| value.as_f64().map(|number| number.to_string()))
}
