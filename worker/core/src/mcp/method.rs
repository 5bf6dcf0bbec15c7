//! Every method of both eras, and what becomes of each. What is not here is refused.

use super::Era;

/// What becomes of a message that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRule {
    /// Decided as a call of the tool that it names.
    Call,
    /// Decided as a call of this method: an action of its own, registered like a tool.
    Action,
    /// Passed if the agent may use the server; what the answer lists is filtered.
    List(Listed),
    /// Passed if the agent could use what it names.
    Named,
    /// Passed if the agent may use the server.
    Pass,
    /// Refused by name; the text says why.
    Refuse(&'static str),
}

/// What a list lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// What becomes of a message that a server sends; its answers to requests are another matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRule {
    Pass,
    /// Passed if policy allows the server to ask: an action of its own, registered like a tool.
    Decide,
    /// Dropped; whoever asked is told so.
    Refuse,
}

const NO_TASKS: ClientRule = ClientRule::Refuse("tasks do not pass through Gateward");

/// What clients send: method, in session revisions, in stateless ones.
#[rustfmt::skip]
const FROM_CLIENT: &[(&str, Option<ClientRule>, Option<ClientRule>)] = &[
    ("tools/call",               Some(ClientRule::Call), Some(ClientRule::Call)),
    ("tools/list",               Some(ClientRule::List(Listed::Tools)), Some(ClientRule::List(Listed::Tools))),
    ("resources/read",           Some(ClientRule::Action), Some(ClientRule::Action)),
    ("resources/list",           Some(ClientRule::List(Listed::Resources)), Some(ClientRule::List(Listed::Resources))),
    ("resources/templates/list", Some(ClientRule::List(Listed::Templates)), Some(ClientRule::List(Listed::Templates))),
    ("resources/subscribe",      Some(ClientRule::Named), None),
    ("resources/unsubscribe",    Some(ClientRule::Pass), None),
    ("prompts/get",              Some(ClientRule::Action), Some(ClientRule::Action)),
    ("prompts/list",             Some(ClientRule::List(Listed::Prompts)), Some(ClientRule::List(Listed::Prompts))),
    ("completion/complete",      Some(ClientRule::Named), Some(ClientRule::Named)),
    ("subscriptions/listen",     None, Some(ClientRule::Named)),
    ("server/discover",          None, Some(ClientRule::Pass)),
    ("initialize",               Some(ClientRule::Pass), None),
    ("ping",                     Some(ClientRule::Pass), None),
    ("logging/setLevel",         Some(ClientRule::Pass), None),
    ("notifications/initialized",        Some(ClientRule::Pass), None),
    ("notifications/cancelled",          Some(ClientRule::Pass), None),
    ("notifications/progress",           Some(ClientRule::Pass), None),
    ("notifications/roots/list_changed", Some(ClientRule::Pass), None),
    ("notifications/tasks/status",       Some(NO_TASKS), None),
    ("tasks/get",                Some(NO_TASKS), Some(NO_TASKS)),
    ("tasks/update",             None, Some(NO_TASKS)),
    ("tasks/cancel",             Some(NO_TASKS), Some(NO_TASKS)),
    ("tasks/list",               Some(NO_TASKS), None),
    ("tasks/result",             Some(NO_TASKS), None),
];

/// What servers send, in either era; a stateless one asks in its results alone.
#[rustfmt::skip]
const FROM_SERVER: &[(&str, ServerRule)] = &[
    ("sampling/createMessage", ServerRule::Decide),
    ("elicitation/create",     ServerRule::Decide),
    ("roots/list",             ServerRule::Decide),
    ("ping",                   ServerRule::Pass),
    ("notifications/progress",                   ServerRule::Pass),
    ("notifications/message",                    ServerRule::Pass),
    ("notifications/cancelled",                  ServerRule::Pass),
    ("notifications/resources/updated",          ServerRule::Pass),
    ("notifications/resources/list_changed",     ServerRule::Pass),
    ("notifications/tools/list_changed",         ServerRule::Pass),
    ("notifications/prompts/list_changed",       ServerRule::Pass),
    ("notifications/subscriptions/acknowledged", ServerRule::Pass),
    ("notifications/elicitation/complete",       ServerRule::Pass),
];

/// `None` when the era has no such method.
#[must_use]
pub fn from_client(method: &str, era: Era) -> Option<ClientRule> {
    let (_, session, stateless) = FROM_CLIENT.iter().find(|(name, ..)| *name == method)?;
    match era {
        Era::Session => *session,
        Era::Stateless => *stateless,
    }
}

/// A method that is not known is refused.
#[must_use]
pub fn from_server(method: &str) -> ServerRule {
    let known = FROM_SERVER.iter().find(|(name, _)| *name == method);
    known.map_or(ServerRule::Refuse, |(_, rule)| *rule)
}

impl Listed {
    /// The field of the result that holds the list.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_known_in_its_own_era_alone() {
        for (method, session, stateless) in [
            ("tools/call", true, true),
            ("initialize", true, false),
            ("ping", true, false),
            ("resources/subscribe", true, false),
            ("server/discover", false, true),
            ("subscriptions/listen", false, true),
            ("Tools/Call", false, false),
            ("sampling/createMessage", false, false),
        ] {
            assert_eq!(from_client(method, Era::Session).is_some(), session, "{method}");
            assert_eq!(from_client(method, Era::Stateless).is_some(), stateless, "{method}");
        }
    }

    #[test]
    fn what_a_server_may_not_send_is_refused() {
        for (method, expected) in [
            ("notifications/progress", ServerRule::Pass),
            ("sampling/createMessage", ServerRule::Decide),
            ("tasks/get", ServerRule::Refuse),
            ("notifications/tasks/status", ServerRule::Refuse),
            ("tools/call", ServerRule::Refuse),
        ] {
            assert_eq!(from_server(method), expected, "{method}");
        }
    }
}
