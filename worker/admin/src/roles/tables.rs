//! The words that suggest roles, reach and risk. The tables are also in docs/administration.md.

/// The last word of the name of a time or a subject line.
#[rustfmt::skip]
pub(super) const TIMES: &[&str] = &[
    "begin", "date", "datetime", "day", "deadline", "due", "duration", "end", "hour", "minute",
    "month", "night", "seconds", "since", "start", "subject", "time", "timestamp", "timezone", "tz",
    "until", "week", "weekday", "year",
];

/// The last word of the name of a text for readers.
#[rustfmt::skip]
pub(super) const CONTENTS: &[&str] = &[
    "body", "caption", "comment", "content", "description", "detail", "html", "markdown", "message",
    "note", "reason", "remark", "summary", "text",
];

/// A word before them in the name of an argument that is run: a sink.
pub(super) const COMMANDS: &[&str] = &["code", "command", "query", "script", "shell", "sql"];

/// The last word of the name of another detail. In a tool of high risk that has the word in its name, such an argument is
/// what is destroyed, so it is a sink there: `delete_theme`.
#[rustfmt::skip]
pub(super) const DETAILS: &[&str] = &[
    "color", "colour", "emoji", "format", "height", "icon", "lang", "language", "locale", "sort",
    "theme", "width",
];

/// The same, but in each tool of high risk, such an argument can be what is paid for or destroyed.
pub(super) const DETAILS_IF_LOW_RISK: &[&str] =
    &["category", "place", "priority", "severity", "venue"];

/// The same if the argument is a number. As a text, it names the page that is changed.
pub(super) const NUMBERED: &[&str] = &["page"];

/// Last words of argument names that are details if the tool creates or reads. In a tool that changes a thing, such an
/// argument can be the whole effect: the limit of a card.
pub(super) const DETAILS_IF_NEW: &[&str] = &["label", "limit", "location", "size"];

/// A word in the name of a sink. The words decide only about details, choices and flags: an argument that
/// is nothing else is a sink with any name.
#[rustfmt::skip]
pub(super) const SINKS: &[&str] = &[
    "access", "account", "address", "admin", "amount", "anyone", "assignee", "attendee", "balance",
    "bank", "bcc", "beneficiary", "bic", "branch", "bucket", "budget", "callback", "card", "cc",
    "channel", "chat", "code", "collaborator", "command", "commit", "contact", "cost", "credential",
    "credit", "currency", "customer", "database", "destination", "dir", "directory", "domain",
    "email", "endpoint", "everyone", "fee", "file", "folder", "force", "group", "guest", "host",
    "hostname", "href", "iban", "id", "invitee", "ip", "key", "link", "mail", "member", "notify",
    "org", "organization", "output", "overwrite", "owner", "participant", "password", "path",
    "payee", "payment", "people", "permission", "person", "phone", "price", "privacy", "private",
    "project", "public", "query", "recipient", "ref", "repo", "repository", "reviewer", "role",
    "room", "save", "scope", "script", "secret", "sender", "server", "service", "sha", "share",
    "shared", "site", "spending", "sql", "sum", "swift", "table", "target", "team", "thread", "to",
    "token", "total", "uri", "url", "user", "username", "uuid", "visibility", "webhook", "website",
    "workspace",
];

/// The last word of an argument that gives a new thing its name.
pub(super) const NAMES: &[&str] = &["filename", "name"];

/// The last word of a tool that creates such a thing. An argument with the same name is the name of the new thing, if
/// another argument is a sink: `create_branch`, `branch`.
pub(super) const NAMED: &[&str] = &["branch", "directory", "folder", "label", "milestone"];

/// Words in the names of tools that create a thing. Then its name is a detail. In other tools, a name says
/// which existing thing is changed.
pub(super) const CREATES: &[&str] = &["compose", "create", "draft", "make", "new", "schedule"];

/// The same for titles: a title never names a person.
#[rustfmt::skip]
pub(super) const ENTITLES: &[&str] = &[
    "add", "compose", "create", "draft", "make", "new", "notify", "post", "schedule", "send",
];

/// A word directly before `title`, with which a title is one of a new text in any tool.
pub(super) const TITLED: &[&str] = &["commit", "new"];

/// Things of the user that nobody else sees.
pub(super) const OWN: &[&str] =
    &["alarm", "bookmark", "draft", "label", "note", "reminder", "timer", "todo"];

/// Things that nobody else sees when they are new. Files are not among them: a tool that creates a file may replace a
/// file that a program runs, or put it where others see it.
pub(super) const OWN_IF_NEW: &[&str] = &["appointment", "calendar", "event"];

/// Words in the names of tools that change the user's things.
#[rustfmt::skip]
pub(super) const CHANGES: &[&str] = &[
    "add", "append", "archive", "cancel", "clear", "complete", "create", "delete", "edit", "make",
    "mark", "move", "new", "remove", "rename", "reschedule", "save", "schedule", "set", "update",
    "write",
];

/// Words besides a verb and a thing that do not change whom a call reaches.
#[rustfmt::skip]
pub(super) const FILLERS: &[&str] = &[
    "a", "an", "as", "done", "for", "from", "in", "item", "list", "my", "own", "personal", "the",
    "to",
];

/// Words in a description that say that others learn of a call.
#[rustfmt::skip]
pub(super) const TELLS: &[&str] = &[
    "broadcast", "email", "emailed", "forward", "invitation", "invite", "invited", "mail",
    "notification", "notified", "notifies", "notify", "post", "posted", "public", "publicly",
    "publish", "published", "send", "sending", "sent", "share", "shared", "sharing",
];

/// Words in the names of tools that destroy, spend, grant, stop a service or cannot be undone.
#[rustfmt::skip]
pub(super) const HIGH_RISK: &[&str] = &[
    "access", "admin", "approve", "authorize", "ban", "book", "buy", "cancel", "charge", "checkout",
    "clear", "collaborator", "credential", "deactivate", "delete", "deploy", "destroy", "disable",
    "discard", "dismiss", "donate", "drop", "erase", "exec", "execute", "forwarding", "freeze",
    "fund", "grant", "invite", "kick", "kill", "merge", "money", "order", "overwrite",
    "password", "pay", "payment", "payout", "permission", "promote", "publish", "purchase", "purge",
    "refund", "remit", "remove", "reserve", "reset", "restart", "revert", "revoke", "role",
    "rollback", "run", "sell", "share", "shell", "shutdown", "spend", "subscribe", "suspend",
    "terminate", "trade", "transaction", "transfer", "truncate", "uninstall", "unlock",
    "visibility", "webhook", "wipe", "wire", "withdraw",
];

/// The same in the names of tools that add: a member or the holder of a key gets access. Inviting and removing are high
/// risk by themselves. `press_key` is not.
pub(super) const HIGH_RISK_IF_ADDED: &[&str] = &["key", "member", "token"];

/// Words in the names of tools that add one.
#[rustfmt::skip]
pub(super) const ADDS: &[&str] = &[
    "add", "create", "generate", "import", "issue", "new", "register", "rotate", "upload",
];

/// The same for the first word. Elsewhere it is mostly a noun: the blocks of a document.
pub(super) const HIGH_RISK_IF_FIRST: &[&str] = &["block", "empty", "stop"];

/// The first word of the name of a tool that reads. The words after it do not make such a tool high risk.
#[rustfmt::skip]
pub(super) const READS: &[&str] = &[
    "check", "count", "describe", "fetch", "find", "get", "list", "lookup", "query", "read",
    "search", "show", "view",
];

/// The tables as the docs show them: what the words are, and what follows from them.
#[cfg(test)]
pub(super) const TABLES: [(&str, &str, &[&str]); 23] = [
    ("last word of an argument's name", "content", CONTENTS),
    ("word before it", "not a content", COMMANDS),
    ("last word of an argument's name", "detail", TIMES),
    (
        "the same, without a word of a sink; not in a tool of high risk whose name has the word",
        "detail",
        DETAILS,
    ),
    ("the same, in a tool whose name is not of high risk", "detail", DETAILS_IF_LOW_RISK),
    ("the same, in a tool that creates or reads", "detail", DETAILS_IF_NEW),
    ("the same as for `venue`, if the argument is a number", "detail", NUMBERED),
    ("last word of an argument's name, in a tool that creates", "detail", NAMES),
    (
        "last word of a tool that creates, and of an argument",
        "detail, if another argument is a sink",
        NAMED,
    ),
    ("word of a tool that creates", "a name is a detail", CREATES),
    ("word of a tool that creates or sends", "a title is a detail", ENTITLES),
    ("word before `title`", "detail", TITLED),
    ("word of a sink", "not a detail", SINKS),
    ("word of a thing of the user", "reach `nobody`", OWN),
    ("word of a thing that is new", "reach `nobody`", OWN_IF_NEW),
    ("word of a tool that changes such a thing", "reach `nobody`", CHANGES),
    ("word beside them in the tool's name", "reach `nobody`", FILLERS),
    ("word of a description", "reach `outside`", TELLS),
    ("word of a tool's name", "risk `high`", HIGH_RISK),
    ("the same, in a tool that adds", "risk `high`", HIGH_RISK_IF_ADDED),
    ("word of a tool that adds", "risk `high` with a word above", ADDS),
    ("first word of a tool's name", "risk `high`", HIGH_RISK_IF_FIRST),
    ("first word of the name of a tool that reads", "risk `medium`", READS),
];
