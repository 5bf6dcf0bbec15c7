//! The words by which [`super`] reads an instruction and the name of a tool. All are in lower case.

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

/// Verbs before a noun for an action.
#[rustfmt::skip]
pub(super) const LIGHT: [&str; 20] = [
    "arrange", "do", "faire", "fais", "faites", "hacer", "haz", "initiate", "issue", "mach", "mache", "make",
    "makes", "place", "process", "schedule", "set", "start", "submit", "tätige",
];

/// Words between such a verb and a noun that is only what something is about: "make a list of payments".
pub(super) const ABOUT: [&str; 4] = ["about", "for", "of", "on"];

/// Verbs that do this before some nouns only: "Anna gets a refund", but not "give Anna the order".
#[rustfmt::skip]
pub(super) const GIVE: [&str; 11] = [
    "besoin", "brauchen", "braucht", "gave", "get", "gets", "give", "gives", "necesita", "need", "needs",
];
#[rustfmt::skip]
pub(super) const GIVEN: [&str; 17] = [
    "acceso", "access", "approval", "back", "cab", "fund", "leserechte", "money", "neustart", "permission",
    "refund", "right", "schreibrechte", "taxi", "tip", "zugang", "zugriff",
];

/// Deeds after `a`: "give it a restart", "put a freeze on card c-9".
pub(super) const DEEDS: [&str; 5] = ["freeze", "reboot", "reset", "restart", "rollback"];

/// Later words that end their clause or follow their verb directly.
#[rustfmt::skip]
pub(super) const PARTICLES: [&str; 22] = [
    "ab", "an", "auf", "aus", "away", "back", "down", "ein", "frei", "herunter", "ligne", "live", "neu", "on",
    "out", "raus", "runter", "rückgängig", "up", "weg", "zurück", "über",
];

/// What is taken down, what is dropped for ever, and what somebody can come in by.
#[rustfmt::skip]
pub(super) const POSTS: [&str; 11] = [
    "ad", "article", "comment", "listing", "message", "page", "photo", "picture", "post", "tweet", "video",
];
#[rustfmt::skip]
pub(super) const DROPPED: [&str; 12] = [
    "branch", "collection", "column", "constraint", "database", "index", "indexes", "schema", "table", "tables", "trigger",
    "view",
];
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

/// Negations that come before the verb, beside those that end with `n't`.
#[rustfmt::skip]
pub(super) const NOT_BEFORE: [&str; 34] = [
    "arent", "avoid", "bez", "cannot", "cant", "couldnt", "didnt", "doesnt", "dont", "isnt", "mustnt", "nadie",
    "neither", "nessuno", "never", "niemand", "ninguém", "nobody", "noone", "nor", "not", "não", "ohne", "prevent",
    "refuse", "sans", "shouldnt", "unless", "without", "wont", "wouldnt", "без", "не", "нельзя",
];

/// Negations directly before the verb, or before a pronoun: `no` is also the short form of "number".
pub(super) const NOT_BESIDE: [&str; 3] = ["no", "non", "sin"];
#[rustfmt::skip]
pub(super) const PRONOUNS: [&str; 14] = [
    "gli", "la", "las", "le", "les", "li", "lo", "los", "me", "mi", "ne", "nos", "se", "te",
];

/// Negations that can also come after it.
#[rustfmt::skip]
pub(super) const NOT_ANYWHERE: [&str; 29] = [
    "forbidden", "forbids", "geen", "interdiction", "interdit", "jamais", "kein", "keine", "keinen", "keines", "nicht",
    "nichts", "nie", "niemals", "niet", "niets", "none", "nooit", "nothing", "nunca", "pas", "prohibido", "prohibited",
    "proibido", "rien", "verboden", "verboten", "vietato", "zonder",
];

/// Words that turn a negation around: "don't forget to pay".
#[rustfmt::skip]
pub(super) const FORGET: [&str; 11] = [
    "forget", "hesitate", "n'oublie", "n'oubliez", "olvide", "olvides", "oublie", "oublier", "vergeet", "vergessen",
    "vergiss",
];

/// Verbs that ask for an answer if the user follows, or a word of `REPORTS`: "let me know", "give an overview".
#[rustfmt::skip]
pub(super) const ANSWERS: [&str; 32] = [
    "bring", "do", "donne", "donner", "envoie", "envoyer", "geben", "geef", "get", "gib", "give", "let", "mail",
    "make", "sag", "sage", "sagen", "schick", "schicke", "schicken", "schreib", "schreibe", "send", "sende", "senden",
    "show", "stuur", "teile", "teilen", "tell", "write", "zeig",
];
pub(super) const USER: [&str; 6] = ["ich", "me", "mir", "nous", "uns", "us"];
#[rustfmt::skip]
pub(super) const REPORTS: [&str; 13] = [
    "analysis", "know", "look", "opinion", "overview", "review", "résumé", "summary", "translation", "zusammenfassung",
    "überblick", "übersetzung", "übersicht",
];

/// Verbs that only read, as the first word of an order. What follows is what is read, up to a word of `JOINS`.
#[rustfmt::skip]
pub(super) const LOOKS: [&str; 130] = [
    "analyse", "analyze", "assess", "bekijk", "beschreibe", "busca", "calculate", "cerca", "check", "cherche",
    "compare", "comprueba", "compute", "controleer", "controlla", "count", "describe", "determine", "dime",
    "erkläre", "erklären", "estimate", "evaluate", "explain", "explica", "explique", "fass", "fasse", "find",
    "finde", "finden", "guarda", "inspect", "investigate", "kijk", "lee", "leer", "lees", "leggi", "leia", "lese",
    "lesen", "lies", "lire", "lis", "list", "look", "mira", "monitor", "montre", "mostra", "mostrami", "mostre",
    "muestra", "muéstrame", "nenn", "nenne", "open", "opisz", "outline", "peruse", "pokaż", "porównaj",
    "proofread", "propose", "przeczytaj", "prüf", "prüfe", "prüfen", "quote", "read", "recommend", "regarde",
    "research", "resuma", "resume", "review", "revisa", "riassumi", "résume", "résumez", "scan", "schau", "schaue",
    "search", "see", "show", "sieh", "skim", "spiega", "sprawdź", "study", "such", "suche", "suchen", "suggest",
    "summarise", "summarize", "toon", "traduce", "traduci", "traduis", "traduza", "translate", "trouve",
    "understand", "untersuche", "vat", "veja", "vergleiche", "verifica", "verifique", "verify", "vertaal",
    "vertel", "view", "vérifie", "wyjaśnij", "zeig", "zeige", "zeigen", "znajdź", "найди", "объясни", "опиши",
    "покажи", "посмотри", "проверь", "прочитай", "сравни",
];

/// Words after which nothing is an order, wherever they are.
#[rustfmt::skip]
pub(super) const READING: [&str; 17] = [
    "before", "bevor", "czy", "dlaczego", "how", "jak", "know", "look", "nachdem", "ob", "whether", "why",
    "wonder", "зачем", "как", "ли", "почему",
];

/// First words of questions.
#[rustfmt::skip]
pub(super) const QUESTIONS: [&str; 62] = [
    "are", "che", "combien", "comment", "como", "cosa", "cuándo", "cómo", "did", "does", "gibt", "had", "has", "hast",
    "hat", "hebben", "heeft", "hoe", "is", "ist", "perché", "pourquoi", "quais", "qual", "quando", "que",
    "quelle", "quelles", "quels", "qui", "quién", "qué", "sind", "waarom", "wann", "wanneer", "war", "waren", "warum",
    "was", "wat", "welche", "welchen", "welcher", "welches", "welke", "wer", "were", "weshalb", "what", "what's",
    "where", "which", "who", "who's", "whose", "wie", "wieso", "wieviel", "wo", "wurde", "wurden",
];

/// Words that also begin a question if nobody of `ASKED` follows: "can you merge it?" is an order.
#[rustfmt::skip]
pub(super) const MODALS: [&str; 9] = [
    "can", "could", "darf", "kann", "may", "must", "should", "will", "would",
];
pub(super) const ASKED: [&str; 7] = ["du", "ihr", "please", "sie", "somebody", "someone", "you"];

/// Words after which another order can follow.
#[rustfmt::skip]
pub(super) const JOINS: [&str; 20] = [
    "afterwards", "and", "anschließend", "but", "dan", "danach", "dann", "e", "en", "et", "luego", "następnie",
    "poi", "puis", "then", "und", "y", "затем", "и", "потом",
];

/// Other words before a verb that gives an order.
#[rustfmt::skip]
pub(super) const BEGINS: [&str; 28] = [
    "alsjeblieft", "also", "bitte", "du", "favor", "favore", "help", "ihr", "immediately", "just", "kindly",
    "let's", "lets", "mal", "must", "now", "oder", "or", "plaît", "please", "proszę", "should", "sie", "so", "to",
    "will", "you", "пожалуйста",
];

/// Words after which comes no order: "the merge", "in release 4".
#[rustfmt::skip]
pub(super) const DETERMINERS: [&str; 29] = [
    "a", "about", "all", "an", "any", "at", "each", "every", "for", "from", "her", "his", "in", "its", "last",
    "latest", "my", "next", "of", "our", "some", "than", "that", "the", "their", "these", "this", "um", "your",
];

/// Verbs that are also nouns or adjectives. They give an order only at its beginning.
#[rustfmt::skip]
pub(super) const NOUN_OR_VERB: [&str; 98] = [
    "access", "archive", "ban", "bill", "bin", "block", "bloque", "book", "boot", "bounce", "build", "challenge",
    "change", "charge", "cierre", "clean", "clear", "close", "commande", "comment", "commit", "compra", "conferma",
    "contact", "contest", "deel", "demande", "dispatch", "dispute", "draft", "drop", "dump", "email", "empty",
    "end", "exchange", "exec", "export", "file", "fix", "flush", "halt", "hire", "invoice", "issue", "kauf",
    "koop", "lance", "land", "launch", "lock", "mail", "message", "mute", "new", "note", "nuke", "open", "order",
    "paga", "partage", "patch", "permission", "plaats", "plan", "post", "publica", "purchase", "push", "raise",
    "record", "refund", "register", "release", "rent", "report", "reserva", "reserve", "role", "scale", "schedule",
    "set", "share", "ship", "start", "swap", "text", "tip", "toegang", "toss", "trade", "transfer", "trash",
    "update", "view", "visibility", "wire", "write",
];

/// What is often followed by its number, which is then no quantity: "invoice 7 and order 5".
pub(super) const NUMBERED: [&str; 3] = ["invoice", "order", "release"];

/// Words for rights that are never verbs.
#[rustfmt::skip]
pub(super) const RIGHTS_ONLY: [&str; 10] = [
    "acceso", "access", "accès", "permission", "rechte", "rights", "role", "visibility", "zugang", "zugriff",
];

/// Users, as who can do something. "I want to be able to read it" gives nobody access.
pub(super) const I: [&str; 7] = ["i", "i'd", "i'm", "me", "us", "we", "we'd"];

/// Irregular participles of the table.
#[rustfmt::skip]
pub(super) const PARTICIPLES: [&str; 31] = [
    "abgelehnt", "abgesagt", "bestellt", "bezahlt", "bought", "built", "deaktiviert", "eingeladen", "entfernt",
    "erstattet", "gebucht", "gekündigt", "gelöscht", "gemergt", "genehmigt", "gesperrt", "gestoppt", "got",
    "hinzugefügt", "made", "paid", "ran", "repaid", "sent", "sold", "storniert", "told", "veröffentlicht",
    "withdrew", "written", "überwiesen",
];

/// Words before a participle or the form with `ing`, and after a participle, that give an order: "to be merged",
/// "get it merged today", "I'm cancelling".
pub(super) const BE: [&str; 1] = ["be"];
pub(super) const WANT: [&str; 9] =
    ["get", "gets", "got", "have", "need", "needs", "see", "want", "wants"];
#[rustfmt::skip]
pub(super) const TIMES: [&str; 22] = [
    "again", "ahora", "asap", "before", "by", "completely", "endgültig", "heute", "hoy", "immediately", "jetzt",
    "maintenant", "morgen", "now", "permanently", "please", "right", "sofort", "soon", "today", "tomorrow",
    "tonight",
];
#[rustfmt::skip]
pub(super) const DOING: [&str; 10] = [
    "am", "and", "begin", "by", "consider", "i'm", "mind", "start", "try", "we're",
];

/// Verbs before the name of a tool.
pub(super) const USE: [&str; 8] =
    ["benutze", "call", "invoke", "nutze", "run", "use", "using", "verwende"];

/// Words after `no` that forbid all that follows: "under no circumstances".
#[rustfmt::skip]
pub(super) const NO_WAY: [&str; 31] = [
    "account", "bisogna", "case", "circumstance", "circumstances", "condition", "conditions", "debe", "debemos",
    "debería", "debes", "deve", "devi", "event", "events", "hay", "occorre", "one", "point", "puede", "puedes",
    "queremos", "quiero", "reason", "se", "si", "time", "va", "vogliamo", "voglio", "way",
];

/// Words that end a negation.
#[rustfmt::skip]
pub(super) const RESUMES: [&str; 12] = [
    "aber", "ale", "but", "dan", "dann", "ma", "maar", "mais", "mas", "pero", "sondern", "then",
];

/// Who does what the next word says, and modal verbs, before which is who does it: "Bob will merge it".
#[rustfmt::skip]
pub(super) const SUBJECTS: [&str; 17] = [
    "eu", "everybody", "everyone", "he", "i", "ich", "ik", "io", "je", "man", "she", "they", "we", "who", "wij", "wir",
    "yo",
];
#[rustfmt::skip]
pub(super) const AUXILIARIES: [&str; 9] = [
    "can", "could", "may", "might", "must", "shall", "should", "will", "would",
];

/// First words of relative clauses.
pub(super) const RELATIVES: [&str; 5] = ["das", "dem", "den", "der", "die"];

/// Words in a question that asks the agent for something.
#[rustfmt::skip]
pub(super) const POLITE: [&str; 26] = [
    "bitte", "favor", "favore", "kannst", "kun", "kunt", "können", "könnten", "könntest", "peux-tu", "plaît",
    "please", "pode", "podes", "podría", "podrías", "potresti", "pourrais-tu", "pourriez-vous", "pouvez-vous",
    "proszę", "puede", "puedes", "puoi", "würdest", "пожалуйста",
];

/// Verbs that also send other things than money, and what says that it is money.
#[rustfmt::skip]
pub(super) const SENDS: [&str; 17] = [
    "envia", "enviar", "envoie", "envoyer", "envía", "invia", "inviare", "move", "schicke", "schicken", "send",
    "sende", "sending", "sends", "sent", "settle", "stuur",
];
#[rustfmt::skip]
pub(super) const MONEY: [&str; 19] = [
    "argent", "chf", "dinero", "dinheiro", "dollar", "dollars", "eur", "euro", "euros", "franken", "gbp", "geld",
    "jpy", "money", "pound", "pounds", "soldi", "usd", "yen",
];

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

/// Verbs that destroy only what is in a thing.
#[rustfmt::skip]
pub(super) const EMPTIES: [&str; 14] = [
    "clean", "clear", "empty", "flush", "leere", "leeren", "purge", "svuota", "truncate", "vacía", "vide", "vider",
    "videz", "wipe",
];

/// What such a verb destroys as a whole: "purge the rows of t".
#[rustfmt::skip]
pub(super) const CONTENTS: [&str; 10] = [
    "cache", "comments", "entries", "items", "keys", "logs", "messages", "records", "rows", "zeilen",
];

/// What in a thing is the thing itself: "delete everything in /tmp/x".
#[rustfmt::skip]
pub(super) const WHOLE: [&str; 11] = [
    "all", "alle", "alles", "content", "contents", "dateien", "everything", "fichiers", "files", "todo", "tout",
];

/// Words for rights, and for who has them. Verbs that give access only with one of them, and other verbs that do.
#[rustfmt::skip]
pub(super) const ACCESS: [&str; 34] = [
    "acceso", "access", "accesso", "accès", "acesso", "admin", "adminrechte", "admins", "collaborator",
    "collaborators", "editor", "guest", "lecture", "leserechte", "lesezugriff", "maintainer", "member", "members",
    "moderator", "owner", "permission", "permissions", "reader", "rechte", "right", "rights", "role",
    "schreibrechte", "schreibzugriff", "toegang", "viewer", "writer", "zugang", "zugriff",
];
#[rustfmt::skip]
pub(super) const GIVES: [&str; 25] = [
    "able", "accorde", "allow", "allows", "autorise", "berechtige", "concede", "dale", "dar", "donne", "donner",
    "donnez", "geben", "geef", "geven", "gewähre", "gib", "give", "given", "gives", "giving", "let", "lets",
    "letting", "permit",
];
#[rustfmt::skip]
pub(super) const ENTITLED: [&str; 19] = [
    "bearbeiten", "change", "comment", "deploy", "edit", "editar", "leer", "lesen", "lire", "look", "merge",
    "modifier", "open", "pull", "push", "read", "see", "view", "write",
];

/// Words of names of tools, and other words for the same thing.
#[rustfmt::skip]
pub(super) const SAME: [(&str, &str); 24] = [
    ("archivo", "file"), ("benutzer", "user"), ("compte", "user"), ("contraseña", "password"), ("cuenta", "user"),
    ("datei", "file"), ("fichier", "file"), ("kennwort", "password"), ("usuario", "user"), ("utilisateur", "user"),
    ("account", "user"), ("appointment", "event"), ("collaborator", "access"), ("dir", "folder"),
    ("directory", "folder"), ("email", "mail"), ("guest", "access"), ("konto", "user"), ("meeting", "event"),
    ("member", "access"), ("message", "mail"), ("passwort", "password"), ("permission", "access"), ("repo", "repository"),
];

/// Words before where something is, or what it belongs to.
#[rustfmt::skip]
pub(super) const PREPOSITIONS: [&str; 89] = [
    "about", "after", "against", "al", "alla", "als", "am", "as", "at", "auf", "aus", "because", "between", "by",
    "da", "dal", "dalla", "dans", "de", "del", "della", "dem", "der", "des", "di", "dla", "do", "em", "en", "for",
    "from", "für", "if", "im", "in", "inside", "into", "like", "na", "nel", "nella", "od", "of", "on", "onto",
    "out", "over", "per", "po", "por", "pour", "przy", "since", "sul", "sulla", "sur", "to", "uit", "under",
    "until", "van", "via", "vom", "von", "w", "we", "when", "within", "without", "z", "ze", "zu", "zum", "zur",
    "à", "über", "в", "во", "для", "из", "к", "на", "о", "об", "от", "по", "с", "со", "у",
];

/// Words after which a thing is described, and words before whom or what something is for or has.
#[rustfmt::skip]
pub(super) const DESCRIBES: [&str; 8] = ["called", "named", "that", "titled", "where", "which", "who", "whose"];
pub(super) const WITH: [&str; 6] = ["avec", "com", "con", "met", "mit", "with"];

/// Words in place of a thing that is named elsewhere.
#[rustfmt::skip]
pub(super) const THESE: [&str; 20] = [
    "both", "es", "following", "her", "him", "hun", "ihn", "it", "la", "le", "les", "lo", "one", "ones", "sie", "that",
    "them", "these", "this", "those",
];

/// Words before `to` by which the user asks the agent, and before `to be`.
#[rustfmt::skip]
pub(super) const ASKS: [&str; 20] = [
    "asked", "forget", "free", "have", "help", "hesitate", "it", "like", "love", "me", "need", "remember", "sure",
    "time", "told", "try", "us", "want", "wish", "you",
];
#[rustfmt::skip]
pub(super) const TO_BE: [&str; 9] =
    ["has", "have", "like", "need", "needs", "ready", "should", "want", "you"];

/// Verbs of other languages before an infinitive that is for the agent.
#[rustfmt::skip]
pub(super) const TRIES: [&str; 10] = [
    "besoin", "dich", "essaie", "hay", "merci", "pas", "prie", "quiero", "tengo", "tienes",
];

/// Verbs that tell somebody something, and what is written to be done later.
#[rustfmt::skip]
pub(super) const TELLS: [&str; 30] = [
    "answer", "ask", "comment", "dile", "dis", "email", "erinnere", "escribe", "mail", "message", "napisz", "note",
    "ping", "post", "powiedz", "remind", "reply", "sag", "sage", "say", "schreib", "schreibe", "send", "tell",
    "text", "tweet", "write", "écris", "напиши", "скажи",
];
#[rustfmt::skip]
pub(super) const LATER: [&str; 11] = [
    "brief", "comment", "letter", "nachricht", "note", "reminder", "task", "ticket", "to-do", "todo",
    "напоминание",
];
