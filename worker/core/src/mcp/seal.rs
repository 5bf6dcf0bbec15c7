//! Sealed handles: session ids and `requestState` values of servers, bound to an agent and a server by a
//! MAC. Another agent that learns a handle cannot use it.
//!
//! A `requestState` is also bound to its call. A server may carry out what it wrote into the state, whatever the
//! message says, so another call must not bring this state: limits and policies would judge the wrong call.
//!
//! The form is `<MAC, 32 hexadecimal digits>.<the server's value>`.

use super::error::{INVALID_PARAMS, RpcError, SESSION_NOT_FOUND};
use crate::credential::token::MacKeys;

/// Characters of the MAC and the dot.
const SEAL_CHARS: usize = 33;

/// What is sealed. The kind is part of the MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handle {
    Session,
    RequestState,
}

/// What handles are bound to.
#[derive(Clone, Copy)]
pub struct Seal<'a> {
    pub keys: &'a MacKeys,
    pub tenant: &'a str,
    pub agent: &'a str,
    pub server: &'a str,
    /// The action hash of the call that a `requestState` belongs to; empty if it belongs to no call.
    pub action: &'a [u8],
}

impl Seal<'_> {
    fn message(&self, handle: Handle, text: &str) -> String {
        let (purpose, call) = match handle {
            Handle::Session => ("mcp-session", String::new()),
            Handle::RequestState => {
                ("mcp-request-state", [".", &hex::encode(self.action)].concat())
            }
        };
        // Names and hashes contain neither dots nor colons, so no two handles have the same message.
        format!("{purpose}:{}.{}.{}{call}:{text}", self.tenant, self.agent, self.server)
    }

    #[must_use]
    pub fn seal(&self, handle: Handle, text: &str) -> String {
        let mut sealed = self.keys.seal(&self.message(handle, text));
        sealed.push('.');
        sealed.push_str(text);
        sealed
    }

    /// The server's value, if it was sealed for this agent and server and, if it is a state, for this call.
    ///
    /// # Errors
    ///
    /// The error that the era defines for an unknown session or state.
    pub fn open<'t>(&self, handle: Handle, sealed: &'t str) -> Result<&'t str, RpcError> {
        let opened = sealed
            .split_at_checked(SEAL_CHARS)
            .and_then(|(seal, text)| Some((seal.strip_suffix('.')?, text)))
            .filter(|(seal, text)| self.keys.is_seal(&self.message(handle, text), seal));
        opened.map(|(_, text)| text).ok_or_else(|| match handle {
            Handle::Session => RpcError::new(404, SESSION_NOT_FOUND, "Session not found"),
            Handle::RequestState => RpcError::in_band(
                INVALID_PARAMS,
                "`requestState` does not belong to this call. Repeat the same call with the same arguments, or make \
                 the call without `requestState`.",
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "a-mac-key-for-tests-of-40-characters-000";
    const OTHER_KEY: &str = "another-key-for-tests-of-42-characters-000";

    fn keys(current: &str, previous: Option<&str>) -> MacKeys {
        MacKeys::new(current, previous).unwrap()
    }

    fn seal<'a>(
        keys: &'a MacKeys,
        [tenant, agent, server]: [&'a str; 3],
        action: &'a [u8],
    ) -> Seal<'a> {
        Seal { keys, tenant, agent, server, action }
    }

    #[test]
    fn a_handle_opens_only_for_its_agent_and_server() {
        let keys = keys(KEY, None);
        let seal = |tenant, agent, server| seal(&keys, [tenant, agent, server], &[]);
        let own = seal("t", "a", "s");
        let sealed = own.seal(Handle::Session, "b1.c-2");
        assert_eq!(own.open(Handle::Session, &sealed).unwrap(), "b1.c-2");
        for (seal, handle, text) in [
            (seal("u", "a", "s"), Handle::Session, sealed.as_str()),
            (seal("t", "b", "s"), Handle::Session, &sealed),
            (seal("t", "a", "r"), Handle::Session, &sealed),
            (own, Handle::RequestState, &sealed),
            (own, Handle::Session, "b1.c-2"),
            (own, Handle::Session, ""),
            (own, Handle::Session, &sealed[..sealed.len() - 1]),
            (own, Handle::Session, &sealed.replacen('.', "", 1)),
            (own, Handle::Session, &sealed[2..]),
            (own, Handle::Session, "ääääääääääääääääääääää"),
        ] {
            assert!(seal.open(handle, text).is_err(), "{text}");
        }
    }

    /// A client goes on in its session with other calls.
    #[test]
    fn a_state_opens_only_for_its_call_and_a_session_for_each() {
        let keys = keys(KEY, None);
        let of = |action| seal(&keys, ["t", "a", "s"], action);
        let state = of(&[1; 32]).seal(Handle::RequestState, "x");
        let session = of(&[1; 32]).seal(Handle::Session, "x");
        for (action, opens) in [(&[1; 32][..], true), (&[2; 32], false), (&[], false)] {
            assert_eq!(of(action).open(Handle::RequestState, &state).is_ok(), opens, "{action:?}");
            assert!(of(action).open(Handle::Session, &session).is_ok(), "{action:?}");
        }
    }

    #[test]
    fn the_previous_key_opens_while_keys_are_rotated() {
        let (old, new) = (keys(KEY, None), keys(OTHER_KEY, Some(KEY)));
        let of = |keys| seal(keys, ["t", "a", "s"], &[]);
        let sealed = of(&old).seal(Handle::RequestState, "x");
        assert_eq!(of(&new).open(Handle::RequestState, &sealed).unwrap(), "x");
        let sealed = of(&new).seal(Handle::RequestState, "x");
        let error = of(&old).open(Handle::RequestState, &sealed).unwrap_err();
        assert_eq!((error.status, error.code), (200, INVALID_PARAMS));
        let error = of(&old).open(Handle::Session, &sealed).unwrap_err();
        assert_eq!((error.status, error.code), (404, SESSION_NOT_FOUND));
    }

    /// Clients keep handles across a deploy.
    #[test]
    fn the_form_of_a_sealed_handle_is_unchanged() {
        let keys = keys(KEY, None);
        let seal = seal(&keys, ["acme", "bot", "github"], &[7; 32]);
        assert_eq!(seal.seal(Handle::Session, "s1"), "7eddde2b4874fdbe9a97b2c8f681f8de.s1");
        assert_eq!(seal.seal(Handle::RequestState, "s1"), "440b0f2f65dd7af10b702a559ca2909e.s1");
    }

    /// Older versions did not bind a state to its call. Such a state could be brought by another call.
    #[test]
    fn a_state_that_an_older_version_sealed_opens_for_no_call() {
        let keys = keys(KEY, None);
        let sealed = [&keys.seal("mcp-request-state:t.a.s:x"), ".x"].concat();
        for action in [&[][..], &[1; 32]] {
            let error = seal(&keys, ["t", "a", "s"], action).open(Handle::RequestState, &sealed);
            assert_eq!(error.unwrap_err().code, INVALID_PARAMS);
        }
    }
}
