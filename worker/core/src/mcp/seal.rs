//! Sealed handles: session ids and `requestState` values of servers, bound to an agent and a server by a
//! MAC. Another agent that learns a handle cannot use it.
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

/// The agent and server that handles are bound to.
#[derive(Clone, Copy)]
pub struct Seal<'a> {
    pub keys: &'a MacKeys,
    pub tenant: &'a str,
    pub agent: &'a str,
    pub server: &'a str,
}

impl Seal<'_> {
    fn message(&self, handle: Handle, text: &str) -> String {
        let purpose = match handle {
            Handle::Session => "mcp-session",
            Handle::RequestState => "mcp-request-state",
        };
        // Names contain neither dots nor colons, so no two handles have the same message.
        format!("{purpose}:{}.{}.{}:{text}", self.tenant, self.agent, self.server)
    }

    #[must_use]
    pub fn seal(&self, handle: Handle, text: &str) -> String {
        let mut sealed = self.keys.seal(&self.message(handle, text));
        sealed.push('.');
        sealed.push_str(text);
        sealed
    }

    /// The server's value, if it was sealed for this agent and server.
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
            Handle::RequestState => {
                RpcError::in_band(INVALID_PARAMS, "Invalid or expired requestState")
            }
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

    #[test]
    fn a_handle_opens_only_for_its_agent_and_server() {
        let keys = keys(KEY, None);
        let seal = |tenant, agent, server| Seal { keys: &keys, tenant, agent, server };
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

    #[test]
    fn the_previous_key_opens_while_keys_are_rotated() {
        let (old, new) = (keys(KEY, None), keys(OTHER_KEY, Some(KEY)));
        let of = |keys| Seal { keys, tenant: "t", agent: "a", server: "s" };
        let sealed = of(&old).seal(Handle::RequestState, "x");
        assert_eq!(of(&new).open(Handle::RequestState, &sealed).unwrap(), "x");
        let sealed = of(&new).seal(Handle::RequestState, "x");
        let error = of(&old).open(Handle::RequestState, &sealed).unwrap_err();
        assert_eq!((error.status, error.code), (200, INVALID_PARAMS));
        let error = of(&old).open(Handle::Session, &sealed).unwrap_err();
        assert_eq!((error.status, error.code), (404, SESSION_NOT_FOUND));
    }

    /// Clients keep session ids across a deploy.
    #[test]
    fn the_form_of_a_sealed_handle_is_unchanged() {
        let keys = keys(KEY, None);
        let seal = Seal { keys: &keys, tenant: "acme", agent: "bot", server: "github" };
        assert_eq!(seal.seal(Handle::Session, "s1"), "7eddde2b4874fdbe9a97b2c8f681f8de.s1");
    }
}
