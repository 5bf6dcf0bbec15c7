//! Every method of both eras, and what happens to it. A method that is not here is rejected.

use super::Era;

/// What happens to a client's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRule {
    /// Policies decide on it as a call of the tool that it names.
    Call,
    /// Policies decide on it as a call of the method itself, which is registered like a tool.
    Action,
    /// Forwarded if the agent may use the server. The list in the response is filtered.
    List(Listed),
    /// Forwarded if the agent may use the resources and prompts that it names.
    Named,
    /// Forwarded if the agent may use the server.
    Pass,
    /// Rejected; the text says why.
    Refuse(&'static str),
}

/// The kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// What happens to a server's request or notification. For responses, see `answer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRule {
    /// Forwarded.
    Pass,
    /// Policies decide on it as a call of the method itself, which is registered like a tool.
    Decide,
    /// Dropped. A request gets an error response.
    Refuse,
}

const NO_TASKS: ClientRule = ClientRule::Refuse("Gateward does not support tasks");

/// Clients' methods, each with its rule in the session revisions and in the stateless one.
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

/// Servers' methods, in both eras. A stateless server sends requests only inside of its results.
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

/// Unknown methods are rejected.
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
    fn a_method_is_known_only_in_its_own_era() {
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
    fn a_method_that_a_server_may_not_send_is_rejected() {
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
