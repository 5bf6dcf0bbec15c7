//! Pairs of words, short lists, and the words of the names of tools, by which [`super`] reads. All are in lower case.

/// Regular ends of English, and what a word has in their place in the infinitive.
#[rustfmt::skip]
pub(super) const ENDS: [(&str, &str); 8] = [
    ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""), ("ing", "e"),
];

/// Words that say little about what a tool does: another word of its name says more.
#[rustfmt::skip]
pub(super) const WEAK: [&str; 15] = [
    "complete", "create", "do", "execute", "make", "new", "open", "perform", "process", "run", "schedule", "send", "set",
    "start", "submit",
];

/// Words for actions that are also words for things: `cancel_order` and `order_cancel` cancel.
#[rustfmt::skip]
pub(super) const THINGS: [&str; 40] = [
    "access", "archive", "ban", "bill", "block", "book", "charge", "comment", "contact", "email", "export", "file",
    "invoice", "lock", "mail", "message", "note", "order", "pay", "payout", "permission", "plan", "post",
    "purchase", "record", "register", "release", "report", "reserve", "role", "rollout", "sell", "share", "text",
    "tip", "trade", "transfer", "trash", "view", "visibility",
];

/// Nouns for actions. In an instruction, one counts only after a verb such as `make`: "set up a payment".
#[rustfmt::skip]
pub(super) const NOUNS: [(&str, &str); 34] = [
    ("neustart", "restart"), ("redémarrage", "restart"), ("reinicio", "restart"), ("virement", "pay"), ("transferencia", "pay"), ("überweisung", "pay"), ("zahlung", "pay"), ("paiement", "pay"), ("pago", "pay"), ("reembolso", "refund"), ("remboursement", "refund"), ("erstattung", "refund"), ("pedido", "buy"), ("bestellung", "buy"), ("buchung", "book"), ("réservation", "book"),
    ("approval", "approve"), ("cab", "buy"), ("dispute", "dispute"), ("taxi", "buy"),
    ("back", "refund"), ("bash", "run"), ("cancellation", "cancel"), ("command", "run"), ("deletion", "delete"),
    ("fund", "pay"), ("invitation", "invite"), ("money", "pay"), ("payment", "pay"), ("powershell", "run"),
    ("reservation", "book"), ("shell", "run"), ("terminal", "run"), ("transaction", "pay"),
];

/// Words between such a verb and a noun that is only what something is about: "make a list of payments".
pub(super) const ABOUT: [&str; 4] = ["about", "for", "of", "on"];

/// Deeds after `a`: "give it a restart", "put a freeze on card c-9".
pub(super) const DEEDS: [&str; 5] = ["freeze", "reboot", "reset", "restart", "rollback"];

pub(super) const OPENED: [&str; 6] = ["door", "garage", "gate", "port", "ports", "valve"];

/// Words that mean something else together with the next word: the words, and the next ones.
#[rustfmt::skip]
pub(super) const OTHERS: [(&[&str], &[&str]); 6] = [
    (&["merge"], &["conflict", "conflicts"]),
    (&["access", "refund", "share"], &["policy"]),
    (&["access", "change", "merge", "order", "pay", "purchase", "refund", "release", "transfer"], &["request", "requests"]),
    (&["make"], &["sure"]),
    (&["note"], &["that"]),
    (&["confirm"], &["that", "to", "with"]),
];

/// Words of tool names for rights, and for who has them.
pub(super) const RIGHTS: [&str; 4] = ["permission", "permissions", "role", "visibility"];
#[rustfmt::skip]
pub(super) const MEMBERS: [&str; 7] = [
    "access", "collaborator", "collaborators", "guest", "guests", "member", "members",
];

pub(super) const TEAMS: [&str; 3] = ["group", "team", "user"];

/// What is cancelled by a tool that deletes it.
#[rustfmt::skip]
pub(super) const CANCELLED: [&str; 9] = [
    "appointment", "booking", "event", "events", "job", "meeting", "order", "reservation", "subscription",
];

/// Words of tool names for what deploys when it runs.
pub(super) const PIPELINES: [&str; 4] = ["pipeline", "pipelines", "workflow", "workflows"];

/// Negations directly before the verb, or before a pronoun: `no` is also the short form of "number".
pub(super) const NOT_BESIDE: [&str; 3] = ["no", "non", "sin"];

/// What is often followed by its number, which is then no quantity: "invoice 7 and order 5".
pub(super) const NUMBERED: [&str; 3] = ["invoice", "order", "release"];

/// Words before a participle or the form with `ing`, and after a participle, that give an order: "to be merged",
/// "get it merged today", "I'm cancelling".
pub(super) const BE: [&str; 1] = ["be"];

/// First words of relative clauses.
pub(super) const RELATIVES: [&str; 5] = ["das", "dem", "den", "der", "die"];

/// Actions that destroy something, that only make or change something, and that give access.
#[rustfmt::skip]
pub(super) const DESTROYS: [&str; 10] = [
    "cancel", "delete", "disable", "move", "rename", "reset", "restart", "revoke", "stop", "terminate",
];
#[rustfmt::skip]
pub(super) const WIDE: [&str; 12] = [
    "add", "create", "dispute", "finalize", "fulfill", "overwrite", "renew", "run", "scale", "schedule", "send",
    "update",
];
pub(super) const GRANTS: [&str; 2] = ["invite", "share"];

/// Words of names of tools, and other words for the same thing.
#[rustfmt::skip]
pub(super) const SAME: [(&str, &str); 25] = [
    ("archivo", "file"), ("benutzer", "user"), ("compte", "user"), ("contraseña", "password"), ("cuenta", "user"),
    ("datei", "file"), ("fichier", "file"), ("kennwort", "password"), ("usuario", "user"), ("utilisateur", "user"),
    ("account", "user"), ("appointment", "event"), ("collaborator", "access"), ("dir", "folder"),
    ("directory", "folder"), ("email", "mail"), ("guest", "access"), ("konto", "user"), ("meeting", "event"),
    ("member", "access"), ("message", "mail"), ("passwort", "password"), ("permission", "access"), ("pwd", "password"),
    ("repo", "repository"),
];
