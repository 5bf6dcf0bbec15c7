//! The words that suggest roles, reach and risk. The tables are also in docs/administration.md.

/// The last word of the name of a time. In a tool of high risk, a time says how much is deleted or granted, so it is a
/// sink there, unless the tool only pays or books.
#[rustfmt::skip]
pub(super) const TIMES: &[&str] = &[
    "begin", "date", "datetime", "day", "deadline", "due", "duration", "end", "expiration", "expiry",
    "hour", "minute", "month", "night", "recurrence", "rrule", "seconds", "since", "start", "time", "timezone", "tz",
    "until", "week", "weekday", "year",
];

/// Words in the names of tools of high risk that pay or book. If no other word makes a tool high risk, its times and its
/// subject line stay details.
#[rustfmt::skip]
pub(super) const BUYS: &[&str] = &[
    "book", "buy", "charge", "checkout", "donate", "donation", "money", "order", "pay", "payment",
    "payout", "purchase", "refund", "remit", "renew", "reserve", "tip", "transfer", "wire",
];

/// The last word of the name of a text for readers. A number with such a name is an id: `delete_comment`, `comment`.
#[rustfmt::skip]
pub(super) const CONTENTS: &[&str] = &[
    "append", "body", "caption", "comment", "content", "description", "detail", "html", "markdown",
    "message", "note", "payload", "reason", "remark", "summary", "text", "thought",
];

/// The end of the name of such a text, if its last word alone says less.
pub(super) const EDITED: &[&str] = &["new str", "old str"];

/// The last word of the name of a list of texts with formats. Its items are objects whose members no schema names.
pub(super) const BLOCKS: &[&str] = &["block", "children", "text"];

/// A word before them in the name of an argument that is run: a sink.
pub(super) const COMMANDS: &[&str] = &["code", "command", "query", "script", "shell", "sql"];

/// The last word of the name of a text that is run. `code` and `query` are not among them: most such texts are a code of a
/// country, or words to search for.
pub(super) const COMMANDED: &[&str] = &["cmd", "command", "script", "shell", "sql"];

/// Words in the names of tools that run a text: its texts are sinks, and the tool is of high risk. `query` alone is not: it
/// mostly searches.
#[rustfmt::skip]
pub(super) const RUNS: &[&str] = &[
    "bash", "command", "eval", "exec", "execute", "invoke", "powershell", "python", "query", "run",
    "script", "shell", "sql", "terminal", "trigger",
];

/// Words in the names of tools that change where a name of a domain leads: its names and its texts are sinks.
pub(super) const DNS: &[&str] = &["dns", "record", "rrset"];

/// A word in the name of an argument that only a record of a domain has. With it, such a tool is of high risk.
pub(super) const RECORDS: &[&str] = &["ttl", "zone"];

/// The last word of an argument of such a tool of high risk that changes no more than the other arguments say.
pub(super) const OF_RECORDS: &[&str] = &["ttl", "type"];

/// The end of the name of an argument that is a detail in any tool.
#[rustfmt::skip]
pub(super) const HARMLESS: &[&str] = &[
    "color id", "content type", "issue type", "merge method", "mime type", "noteable type",
    "page size", "send updates", "time zone",
];

/// The last word of the name of another detail. In a tool of high risk that has the word in its name, such an argument is
/// what is destroyed, so it is a sink there: `delete_theme`.
#[rustfmt::skip]
pub(super) const DETAILS: &[&str] = &[
    "color", "colour", "emoji", "format", "height", "icon", "lang", "language", "locale",
    "reaction", "sort", "theme", "width",
];

/// The same, but in each tool of high risk, such an argument can be what is paid for or destroyed.
pub(super) const DETAILS_IF_LOW_RISK: &[&str] =
    &["category", "place", "priority", "severity", "venue"];

/// The same if the argument is a number. As a text, it names the page that is changed.
pub(super) const NUMBERED: &[&str] = &["page"];

/// The same if the argument is a number and the tool reads: which part of a text or a list is read.
pub(super) const NUMBERED_IF_READ: &[&str] =
    &["count", "cursor", "depth", "index", "length", "offset", "result"];

/// Last words of argument names that are details if the tool creates or reads. In a tool that changes a thing, such an
/// argument can be the whole effect: the limit of a card.
pub(super) const DETAILS_IF_NEW: &[&str] =
    &["limit", "location", "size", "state", "status", "timestamp"];

/// The same, also if the last word of the tool is `write`: such a tool creates and updates.
pub(super) const LABELS: &[&str] = &["label", "milestone"];

/// The last word of a choice of what the tool does. It is a detail only if each value begins with a word of `ACTIONS`.
#[rustfmt::skip]
pub(super) const MODES: &[&str] = &[
    "action", "command", "event", "method", "mode", "op", "operation",
];

/// The first word of a value that changes no more than the tool's other arguments say.
#[rustfmt::skip]
pub(super) const ACTIONS: &[&str] = &[
    "add", "append", "comment", "create", "edit", "get", "insert", "list", "new", "read", "search",
    "select", "update", "view",
];

/// A word in the name of a flag that changes nothing but who hears of the call, or how small it looks.
pub(super) const QUIET: &[&str] = &["minor", "notification", "notify", "silent", "squash"];

/// Words in the names of tools that add or send, besides those that create. Such a tool changes no existing thing, so a
/// choice or a flag is a detail.
#[rustfmt::skip]
pub(super) const SENDS: &[&str] = &[
    "add", "generate", "notify", "post", "reply", "send", "upload",
];

/// Words in the names of tools that change a thing. A choice or a flag can be what is changed: `confidential`.
#[rustfmt::skip]
pub(super) const ALTERS: &[&str] = &[
    "adjust", "change", "configure", "edit", "increase", "modify", "patch", "raise", "set",
    "toggle", "update",
];

/// A word in the name of a choice or a flag that can be the whole effect.
#[rustfmt::skip]
pub(super) const EFFECTS: &[&str] = &[
    "all", "any", "approve", "archive", "archived", "behavior", "behaviour", "broadcast", "cascade",
    "confirm", "delete", "deleted", "everything", "level", "permanent", "recursive", "remove",
    "root", "side", "state", "status", "submit", "superuser", "trash",
];

/// A word in a value of a choice that gives rights, or shows something to many.
pub(super) const OPENS: &[&str] =
    &["admin", "anyone", "everyone", "owner", "public", "root", "superuser"];

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
pub(super) const CREATES: &[&str] = &["compose", "create", "make", "new"];

/// The same for the first word. Elsewhere it is mostly a noun: `delete_draft`.
pub(super) const CREATES_IF_FIRST: &[&str] = &["draft", "schedule"];

/// The same for titles and subject lines: a title never names a person.
#[rustfmt::skip]
pub(super) const ENTITLES: &[&str] = &[
    "add", "compose", "create", "draft", "email", "mail", "make", "message", "new", "notify",
    "post", "reply", "schedule", "send",
];

/// Words in the names of tools that change a thing. The title is a new one if another argument says which thing it is.
pub(super) const EDITS: &[&str] = &["edit", "update", "write"];

/// The last word of an argument that says which thing it is.
pub(super) const SELECTS: &[&str] = &["id", "iid", "key", "number", "uuid"];

/// A word directly before `title`, with which a title is one of a new text in any tool.
pub(super) const TITLED: &[&str] = &["commit", "new"];

/// Arguments that put a message into a thread.
pub(super) const THREADS: &[&str] = &["in reply to", "references", "thread id", "thread ts"];

/// A word in the name of an argument that says who gets the message. If a call must have one, the thread is a detail.
pub(super) const RECEIVERS: &[&str] = &["channel", "chat", "recipient", "room", "to"];

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

/// Words in the names of tools that destroy, spend, grant, stop a service or cannot be undone. The same words with `un`
/// before them count too: `unban`, `unsubscribe`.
#[rustfmt::skip]
pub(super) const HIGH_RISK: &[&str] = &[
    "accept", "access", "activate", "admin", "apply", "approve", "authorize", "ban", "beneficiary",
    "bid", "book", "broadcast", "buy", "cancel", "charge", "checkout", "cleanup", "clear",
    "collaborator", "credential", "deactivate", "decline", "delete", "deny", "deploy", "destroy",
    "disable", "disarm", "discard", "dismiss", "dns", "donate", "donation", "drain", "drop",
    "enable", "erase", "evict", "expunge", "finalize", "flush", "forwarding", "freeze", "fund",
    "grant", "hdel", "invite", "kick", "kill", "marketing", "merge", "migration", "mint", "money",
    "nameserver", "order", "overwrite", "password", "pay", "payee", "payment", "payout",
    "permission", "policy", "promote", "prune", "public", "publish", "purchase", "purge",
    "reactivate", "reboot", "redeem", "refund", "reject", "remit", "remove", "renew", "reserve",
    "reset", "restart", "revert", "revoke", "rm", "rmdir", "role", "rollback", "rrset", "scale",
    "sell", "share", "shutdown", "spend", "stake", "stop", "subscribe", "subscription", "suspend",
    "swap", "terminate", "tip", "topup", "trade", "transaction", "transfer", "trash", "truncate",
    "uninstall", "unlink", "unlock", "visibility", "void", "webhook", "wipe", "wire", "withdraw",
];

/// The same in the names of tools that add: a member or the holder of a key gets access, and a discount, a filter or a rule
/// has effects later, without another call. Inviting and removing are high risk by themselves. `press_key` is not.
#[rustfmt::skip]
pub(super) const HIGH_RISK_IF_ADDED: &[&str] = &[
    "discount", "filter", "group", "key", "member", "rule", "token", "user",
];

/// Words in the names of tools that add one.
#[rustfmt::skip]
pub(super) const ADDS: &[&str] = &[
    "add", "create", "generate", "import", "issue", "new", "register", "rotate", "upload",
];

/// The same in the names of tools that change a thing: what somebody earns, pays or may spend.
pub(super) const HIGH_RISK_IF_ALTERED: &[&str] =
    &["bank", "budget", "limit", "price", "quota", "salary"];

/// The same for the first word. Elsewhere it is mostly a noun: the blocks of a document.
pub(super) const HIGH_RISK_IF_FIRST: &[&str] = &["block", "empty"];

/// The same, if the tool's name has none of the words of `WRITTEN`: such a tool replaces what is there. `write` after
/// another word is a noun: `issue_write`.
pub(super) const HIGH_RISK_IF_WRITTEN: &[&str] = &["push", "put", "replace", "write"];

/// New texts that replace nothing.
#[rustfmt::skip]
pub(super) const WRITTEN: &[&str] = &[
    "comment", "draft", "email", "mail", "message", "note", "notification", "post", "reply",
    "review", "todo",
];

/// Words in the names of tools that replace a whole file.
pub(super) const REPLACES: &[&str] = &["commit", "save", "update"];

/// Words in the names of tools with the word `close`: such a thing is not opened again. Issues are.
pub(super) const HIGH_RISK_IF_CLOSED: &[&str] = &["account", "position"];

/// Words in the names of tools with the word `open`: somebody can come in.
pub(super) const HIGH_RISK_IF_OPENED: &[&str] = &["door", "garage", "gate", "valve"];

/// Words of a tool's name that make it a tool of high risk together: a verb and a thing.
#[rustfmt::skip]
pub(super) const HIGH_RISK_TOGETHER: &[(&[&str], &[&str])] = &[
    (ADDS, HIGH_RISK_IF_ADDED),
    (ALTERS, HIGH_RISK_IF_ALTERED),
    (REPLACES, &["file"]),
    (&["close"], HIGH_RISK_IF_CLOSED),
    (&["open"], HIGH_RISK_IF_OPENED),
];

/// The first word of the name of a tool that reads. The words after it do not make such a tool high risk.
#[rustfmt::skip]
pub(super) const READS: &[&str] = &[
    "check", "count", "crawl", "describe", "fetch", "find", "get", "list", "lookup", "query",
    "read", "retrieve", "scrape", "search", "show", "view",
];

/// The second word of the name of such a tool, if the first one is no verb: `jira_search`.
pub(super) const READS_IF_SECOND: &[&str] =
    &["crawl", "describe", "find", "get", "lookup", "retrieve", "scrape", "search", "snapshot"];

/// The first word of the name of a tool that reads, but that can do more: `check_item` ticks it off.
pub(super) const DOES_MORE: &[&str] = &["check", "fetch", "query"];

/// A word in the name or in the description of a tool that sends its arguments to the web.
pub(super) const WEB: &[&str] = &["internet", "online", "web"];

/// The tables as the docs show them: what the words are, and what follows from them.
#[cfg(test)]
pub(super) const TABLES: [(&str, &str, &[&str]); 55] = [
    ("last word of an argument's name, if it is no number and no flag", "content", CONTENTS),
    ("end of such a name", "content", EDITED),
    ("last word of the name of a list of objects whose members are not named", "content", BLOCKS),
    ("word before it", "not a content", COMMANDS),
    ("word of a tool that runs a text", "not a content; risk `high`, except for `query`", RUNS),
    ("last word of the name of a text that is no choice", "risk `high`", COMMANDED),
    ("word of a tool, for an argument `content` or `name`", "sink", DNS),
    ("word of an argument of such a tool", "risk `high`", RECORDS),
    ("last word of an argument's name, in such a tool of high risk", "detail", OF_RECORDS),
    ("end of an argument's name", "detail", HARMLESS),
    ("last word of an argument's name, in a tool that is not of high risk", "detail", TIMES),
    ("word of a tool of high risk that only pays or books", "a time is a detail", BUYS),
    (
        "last word of an argument's name, without a word of a sink; not in a tool of high risk whose name has the word",
        "detail",
        DETAILS,
    ),
    ("the same, in a tool that is not of high risk", "detail", DETAILS_IF_LOW_RISK),
    ("the same as for `venue`, in a tool that creates or reads", "detail", DETAILS_IF_NEW),
    ("the same, also in a tool whose last word is `write`", "detail", LABELS),
    ("the same as for `venue`, if the argument is a number", "detail", NUMBERED),
    ("the same, in a tool that reads", "detail", NUMBERED_IF_READ),
    ("word of the name of a flag, without a word of an effect", "detail", QUIET),
    ("last word of a choice's name", "sink, unless each value begins with a word below", MODES),
    ("first word of a value", "detail", ACTIONS),
    (
        "word of a tool that creates or sends",
        "another choice or flag is a detail, without a word below",
        SENDS,
    ),
    ("word of a tool that changes a thing", "a choice or a flag is a sink", ALTERS),
    ("word of the name of a choice or a flag", "sink", EFFECTS),
    ("word of a choice's value", "sink", OPENS),
    ("last word of an argument's name, in a tool that creates", "detail", NAMES),
    (
        "last word of a tool that creates, and of an argument",
        "detail, if another argument is a sink",
        NAMED,
    ),
    ("word of a tool that creates", "a name, a choice or a flag is a detail", CREATES),
    (
        "first word of a tool that creates",
        "a name, a choice or a flag is a detail",
        CREATES_IF_FIRST,
    ),
    ("word of a tool that creates or sends", "a title or subject is a detail", ENTITLES),
    ("word of a tool that changes a thing", "the same, if an argument selects the thing", EDITS),
    ("last word of an argument that selects a thing", "a title or subject is a detail", SELECTS),
    ("word before `title`", "detail", TITLED),
    ("argument's name, if another one says who gets the message", "detail", THREADS),
    (
        "word of an argument that says so, and that a call must have",
        "a thread is a detail",
        RECEIVERS,
    ),
    ("word of a sink", "not a detail", SINKS),
    ("word of a thing of the user", "reach `nobody`", OWN),
    ("word of a thing that is new", "reach `nobody`", OWN_IF_NEW),
    ("word of a tool that changes such a thing", "reach `nobody`", CHANGES),
    ("word beside them in the tool's name", "reach `nobody`", FILLERS),
    ("word of a description", "reach `outside`", TELLS),
    ("word of a tool's name", "risk `high`", HIGH_RISK),
    ("the same, in a tool that adds", "risk `high`", HIGH_RISK_IF_ADDED),
    ("word of a tool that adds", "risk `high` with a word above", ADDS),
    ("word of a tool's name, with one that changes a thing", "risk `high`", HIGH_RISK_IF_ALTERED),
    ("word of a tool's name, with the word `file`", "risk `high`", REPLACES),
    ("word of a tool's name, with the word `close`", "risk `high`", HIGH_RISK_IF_CLOSED),
    ("word of a tool's name, with the word `open`", "risk `high`", HIGH_RISK_IF_OPENED),
    ("first word of a tool's name", "risk `high`", HIGH_RISK_IF_FIRST),
    ("word of a tool's name, without a word below", "risk `high`", HIGH_RISK_IF_WRITTEN),
    ("word of a tool's name", "risk `medium` with a word above", WRITTEN),
    ("first word of the name of a tool that reads", "risk `medium`", READS),
    ("second word of such a name, if the first one is no verb", "risk `medium`", READS_IF_SECOND),
    (
        "first word of the name of a tool that can do more than read",
        "it changes something",
        DOES_MORE,
    ),
    ("word of a name or a description", "it changes something", WEB),
];
