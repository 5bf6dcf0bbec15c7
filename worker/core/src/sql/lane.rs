//! Statements on a lane's own SQLite.

/// A row if the storage is of a version whose journal had no books.
pub const HAS_NO_BOOKS: &str =
    "SELECT 1 FROM sqlite_master WHERE name = 'journal' AND sql NOT LIKE '%books TEXT%'";
/// Upgrades such a storage before [`SCHEMA`] runs, which makes the views again. The column is added last: until then, a
/// start runs all of these again.
pub const ADD_BOOKS: &[&str] = &[
    "DROP VIEW IF EXISTS counted_rows",
    "DROP VIEW IF EXISTS limit_steps",
    "DROP VIEW IF EXISTS limited_rows",
    "DROP VIEW IF EXISTS steps",
    "ALTER TABLE journal ADD COLUMN books TEXT",
];

/// Run at every start; all are idempotent. A journal row is written by one insert: the
/// partial indexes add a row only where a call has a request id or a nonce.
pub const SCHEMA: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) \
       STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
       receipt_hash TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, request_key TEXT, \
       fingerprint TEXT NOT NULL, nonce_key TEXT, row TEXT NOT NULL, books TEXT) STRICT",
    // A version that does not read the journal's books must not start: it would take this table for a view.
    "CREATE TABLE IF NOT EXISTS counted_rows (unused INTEGER) STRICT",
    "CREATE UNIQUE INDEX IF NOT EXISTS journal_request ON journal (request_key) \
       WHERE request_key IS NOT NULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS journal_nonce ON journal (nonce_key) \
       WHERE nonce_key IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS agents (agent TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL) \
       STRICT, WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS replay (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
       request_key TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL, response TEXT NOT NULL) \
       STRICT",
    "CREATE TABLE IF NOT EXISTS nonces (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
       nonce_key TEXT NOT NULL UNIQUE) STRICT",
    // Nonces of signatures, including those of commands that journal nothing. id: their order in
    // time.
    "CREATE TABLE IF NOT EXISTS signature_nonces (id INTEGER PRIMARY KEY, \
       at_ms INTEGER NOT NULL, nonce_key TEXT NOT NULL UNIQUE) STRICT",
    "CREATE TABLE IF NOT EXISTS approvals (approval_id TEXT NOT NULL PRIMARY KEY, \
       expires_at_ms INTEGER NOT NULL, closed_at_ms INTEGER, record TEXT NOT NULL, input TEXT, \
       edited_input TEXT) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS approvals_open ON approvals (expires_at_ms) \
       WHERE closed_at_ms IS NULL",
    "CREATE INDEX IF NOT EXISTS approvals_closed ON approvals (closed_at_ms) \
       WHERE closed_at_ms IS NOT NULL",
    // Messages about steps of approvals. attempts: the number of failed attempts. due_at_ms: NULL
    // if the message was given up.
    "CREATE TABLE IF NOT EXISTS webhook_outbox (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
       event TEXT NOT NULL, record TEXT NOT NULL, attempts INTEGER NOT NULL, \
       due_at_ms INTEGER) STRICT",
    "CREATE INDEX IF NOT EXISTS webhook_outbox_due ON webhook_outbox (due_at_ms)",
    // The receiver's status at the last attempt of a message that waits; 0 if it did not answer.
    "CREATE TABLE IF NOT EXISTS webhook_failures (seq INTEGER PRIMARY KEY, \
       status INTEGER NOT NULL) STRICT",
    "CREATE TRIGGER IF NOT EXISTS forget_failure AFTER DELETE ON webhook_outbox BEGIN \
       DELETE FROM webhook_failures WHERE seq = OLD.seq; \
     END",
    // The row of a message that is given up, and the step that the message is of.
    "CREATE VIEW IF NOT EXISTS dead_letters (seq, at_ms, receipt_hash, agent, state, \
       request_key, fingerprint, nonce_key, row, step) \
     AS SELECT 0, 0, '', '', '', '', '', '', '', 0 WHERE false",
    "CREATE TRIGGER IF NOT EXISTS write_dead_letter INSTEAD OF INSERT ON dead_letters BEGIN \
       INSERT INTO journal (seq, at_ms, receipt_hash, agent, state, request_key, fingerprint, \
         nonce_key, row) VALUES (NEW.seq, NEW.at_ms, NEW.receipt_hash, NEW.agent, NEW.state, \
         NEW.request_key, NEW.fingerprint, NEW.nonce_key, NEW.row); \
       DELETE FROM webhook_outbox WHERE seq = NEW.step; \
     END",
    // What was used of limits, by agent and by credential, as of the newest state checkpoint: the rows after it have
    // newer books. day: when it was last used, in days since 1970. A statement of its own sets it, only if it changes:
    // setting the same day again would write a page of the index.
    "CREATE TABLE IF NOT EXISTS limit_books (name TEXT NOT NULL PRIMARY KEY, \
       day INTEGER NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS limit_books_by_age ON limit_books (day)",
    "CREATE TABLE IF NOT EXISTS reservations (decision_id TEXT NOT NULL PRIMARY KEY, \
       ends_at_ms INTEGER NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID",
    // Of a version without limits.
    "DROP VIEW IF EXISTS approval_steps",
    // books: a JSON array of names and records. settles: the reservation that ends.
    "CREATE VIEW IF NOT EXISTS limit_steps (day, books, settles) \
     AS SELECT 0, '', '' WHERE false",
    "CREATE TRIGGER IF NOT EXISTS write_limit_step INSTEAD OF INSERT ON limit_steps BEGIN \
       INSERT INTO limit_books (name, day, record) \
       SELECT value->>0, NEW.day, value->>1 FROM json_each(NEW.books) WHERE true \
       ON CONFLICT (name) DO UPDATE SET record = excluded.record; \
       UPDATE limit_books SET day = NEW.day WHERE day < NEW.day \
         AND name IN (SELECT value->>0 FROM json_each(NEW.books)); \
       DELETE FROM reservations WHERE decision_id = NEW.settles; \
     END",
    // A row with a reservation, or with one that ends.
    "CREATE VIEW IF NOT EXISTS limited_rows (seq, at_ms, receipt_hash, agent, state, \
       request_key, fingerprint, nonce_key, row, books, reservation, settles) \
     AS SELECT 0, 0, '', '', '', '', '', '', '', '', '', '' WHERE false",
    "CREATE TRIGGER IF NOT EXISTS write_limited_row INSTEAD OF INSERT ON limited_rows BEGIN \
       INSERT INTO journal (seq, at_ms, receipt_hash, agent, state, request_key, fingerprint, \
         nonce_key, row, books) VALUES (NEW.seq, NEW.at_ms, NEW.receipt_hash, NEW.agent, NEW.state, \
         NEW.request_key, NEW.fingerprint, NEW.nonce_key, NEW.row, NEW.books); \
       INSERT INTO reservations (decision_id, ends_at_ms, record) \
       SELECT NEW.reservation->>'decision_id', NEW.reservation->>'ends_at_ms', NEW.reservation \
       WHERE NEW.reservation IS NOT NULL; \
       DELETE FROM reservations WHERE decision_id = NEW.settles; \
     END",
    "CREATE VIEW IF NOT EXISTS steps (seq, at_ms, receipt_hash, agent, state, \
       request_key, fingerprint, nonce_key, row, input, edited_input, books, reservation, settles) \
     AS SELECT 0, 0, '', '', '', '', '', '', '', '', '', '', '', '' WHERE false",
    "CREATE TRIGGER IF NOT EXISTS write_step INSTEAD OF INSERT ON steps BEGIN \
       INSERT INTO limited_rows (seq, at_ms, receipt_hash, agent, state, request_key, fingerprint, \
         nonce_key, row, books, reservation, settles) VALUES (NEW.seq, NEW.at_ms, NEW.receipt_hash, \
         NEW.agent, NEW.state, NEW.request_key, NEW.fingerprint, NEW.nonce_key, NEW.row, NEW.books, \
         NEW.reservation, NEW.settles); \
       INSERT INTO approvals (approval_id, expires_at_ms, closed_at_ms, record, input, \
         edited_input) \
       SELECT NEW.row->>'$.approval.approval_id', NEW.row->>'$.approval.expires_at_ms', \
         NEW.row->>'$.approval.closed_at_ms', NEW.row->>'approval', NEW.input, NEW.edited_input \
       WHERE NEW.row->>'approval' IS NOT NULL \
       ON CONFLICT (approval_id) DO UPDATE SET closed_at_ms = excluded.closed_at_ms, \
         record = excluded.record, \
         input = iif(excluded.closed_at_ms IS NULL, input, NULL), \
         edited_input = iif(excluded.closed_at_ms IS NULL, \
           coalesce(excluded.edited_input, edited_input), NULL); \
       INSERT INTO webhook_outbox (seq, at_ms, event, record, attempts, due_at_ms) \
       SELECT NEW.seq, NEW.at_ms, coalesce(NEW.row->>'event', 'approval_requested'), \
         NEW.row->>'approval', 0, NEW.at_ms \
       WHERE NEW.row->>'approval' IS NOT NULL; \
     END",
    // Windows of policies. hour: the hour after which the window is over, in hours since 1970. It is set apart, as
    // with the books of limits.
    "CREATE TABLE IF NOT EXISTS windows (name TEXT NOT NULL PRIMARY KEY, \
       hour INTEGER NOT NULL, record TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS windows_by_age ON windows (hour)",
    // Rows as `steps` has them, and windows: a JSON array of names, hours and records.
    "CREATE VIEW IF NOT EXISTS window_steps (steps, windows) AS SELECT '', '' WHERE false",
    "CREATE TRIGGER IF NOT EXISTS write_window_step INSTEAD OF INSERT ON window_steps BEGIN \
       INSERT INTO steps SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, \
         value->>6, value->>7, value->>8, value->>9, value->>10, value->>11, value->>12, value->>13 \
       FROM json_each(NEW.steps) ORDER BY key; \
       INSERT INTO windows (name, hour, record) \
       SELECT value->>0, value->>1, value->>2 FROM json_each(NEW.windows) WHERE true \
       ON CONFLICT (name) DO UPDATE SET record = excluded.record; \
       UPDATE windows SET hour = \
         (SELECT value->>1 FROM json_each(NEW.windows) WHERE value->>0 = name) \
       WHERE name IN (SELECT value->>0 FROM json_each(NEW.windows)) AND hour < \
         (SELECT value->>1 FROM json_each(NEW.windows) WHERE value->>0 = name); \
     END",
    // Records of the registry, all of one epoch. record: JSON, 'null' if it is not registered.
    "CREATE TABLE IF NOT EXISTS registry (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, \
       name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (kind, name)) STRICT",
    // Lanes that did not confirm an epoch. Only the object that tells them again has rows here.
    "CREATE TABLE IF NOT EXISTS pushes (tenant TEXT NOT NULL, lane INTEGER NOT NULL, \
       epoch INTEGER NOT NULL, until_ms INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, \
       attempts INTEGER NOT NULL, PRIMARY KEY (tenant, lane)) STRICT, WITHOUT ROWID",
    // What runs have seen and were told. record: JSON with keyed hashes. All rows of a run expire together.
    "CREATE TABLE IF NOT EXISTS observations (id INTEGER PRIMARY KEY, run TEXT NOT NULL, \
       expires_at_ms INTEGER NOT NULL, record TEXT NOT NULL) STRICT",
    "CREATE INDEX IF NOT EXISTS observations_run ON observations (run, id)",
    "CREATE INDEX IF NOT EXISTS observations_expiry ON observations (expires_at_ms, run)",
    // The lane's Merkle tree over its receipts: full tiles. Hashes are in base64. leaves: of level 0, while they are kept.
    "CREATE TABLE IF NOT EXISTS tiles (level INTEGER NOT NULL, number INTEGER NOT NULL, \
       root TEXT NOT NULL, leaves TEXT, PRIMARY KEY (level, number)) STRICT, WITHOUT ROWID",
    // How far D1 had the journal at the end of a minute, since 1970. A row's flush is not written on the row, because that
    // would write its page again.
    "CREATE TABLE IF NOT EXISTS flushes (minute INTEGER NOT NULL PRIMARY KEY, \
       through INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    // An earlier version moved the rows that D1 has to this table. Nothing is written to it. at_ms: when they were flushed.
    "CREATE TABLE IF NOT EXISTS flushed (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
       row TEXT NOT NULL) STRICT",
    "CREATE VIEW IF NOT EXISTS kept (seq, row) AS SELECT seq, row FROM flushed \
     UNION ALL SELECT seq, row FROM journal",
    "CREATE TABLE IF NOT EXISTS audit_counts (event_id TEXT NOT NULL PRIMARY KEY, \
       at_ms INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, \
       count INTEGER NOT NULL) STRICT, WITHOUT ROWID",
];

pub const META: &str = "SELECT value FROM meta WHERE name = ?1";
pub const SET_META: &str = "INSERT INTO meta (name, value) VALUES (?1, ?2) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The last row that D1 has; 0 if it has none.
pub const FLUSHED_THROUGH: &str = "SELECT coalesce(max(through), 0) FROM flushes";
/// The first and the last number after a number; 0 if there is no such row. For one `SELECT` with both, SQLite would read
/// every row.
pub const JOURNAL_EXTENT: &str = "SELECT coalesce((SELECT min(seq) FROM journal WHERE seq > ?1), 0), \
     coalesce((SELECT max(seq) FROM journal WHERE seq > ?1), 0)";
pub const JOURNAL_HASH: &str = "SELECT receipt_hash FROM journal WHERE seq = ?1";
/// Bytes of the rows after a sequence number. The `length` of a text would count characters.
pub const JOURNAL_BYTES: &str =
    "SELECT coalesce(sum(length(CAST(row AS BLOB))), 0) FROM journal WHERE seq > ?1";
/// The newest state of each agent among the rows after a sequence number, and how many of them
/// are the agent's; SQLite takes `state` from the row of the maximum.
pub const JOURNAL_STATES: &str =
    "SELECT agent, state, max(seq), count(*) FROM journal WHERE seq > ?1 GROUP BY agent";
/// The latest time of the rows after a sequence number.
pub const JOURNAL_LATEST: &str = "SELECT coalesce(max(at_ms), 0) FROM journal WHERE seq > ?1";
/// The books of the rows after a sequence number, newest first.
pub const JOURNAL_BOOKS: &str =
    "SELECT books FROM journal WHERE seq > ?1 AND books IS NOT NULL ORDER BY seq DESC";
/// The journal's columns. Books: a JSON array of names and records, or NULL.
pub const INSERT: &str = "INSERT INTO journal (seq, at_ms, receipt_hash, agent, state, \
     request_key, fingerprint, nonce_key, row, books) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
/// Rows with approvals, or several rows: a JSON array of the journal's columns, the call's arguments, the edited ones,
/// books, reservation, and the reservation that ends. All of it is written with its row, or not at all.
pub const INSERT_STEPS: &str = "INSERT INTO steps SELECT value->>0, value->>1, \
     value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9, \
     value->>10, value->>11, value->>12, value->>13 FROM json_each(?1) ORDER BY key";
/// The journal's columns, reservation, and the reservation that ends.
pub const INSERT_LIMITED: &str = "INSERT INTO limited_rows (seq, at_ms, receipt_hash, agent, \
     state, request_key, fingerprint, nonce_key, row, books, reservation, settles) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
/// The journal's columns without books, and the step of which the message is given up.
pub const INSERT_DEAD_LETTER: &str = "INSERT INTO dead_letters (seq, at_ms, receipt_hash, agent, \
     state, request_key, fingerprint, nonce_key, row, step) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
/// Rows as [`INSERT_STEPS`] has them, which may be none, and windows: a JSON array of names, hours and records.
pub const COUNT: &str = "INSERT INTO window_steps (steps, windows) VALUES (?1, ?2)";
pub const WINDOW: &str = "SELECT record FROM windows WHERE name = ?1";
/// A window that counts nothing any more.
pub const DELETE_WINDOW: &str = "DELETE FROM windows WHERE name = ?1";
/// Windows that were over before an hour, a bounded number of them.
pub const EXPIRE_WINDOWS: &str = "DELETE FROM windows WHERE name IN \
     (SELECT name FROM windows WHERE hour < ?1 ORDER BY hour LIMIT ?2)";
/// The hour in which the first window is over.
pub const OLDEST_WINDOW: &str = "SELECT hour FROM windows ORDER BY hour LIMIT 1";
/// Today, books as a JSON array, and the reservation that ends.
pub const SETTLE: &str = "INSERT INTO limit_steps (day, books, settles) VALUES (?1, ?2, ?3)";
pub const BOOK: &str = "SELECT record FROM limit_books WHERE name = ?1";
/// A JSON array of names, empty for the first ones; limit.
pub const BOOKS: &str = "SELECT name, record FROM limit_books \
     WHERE ?1 = '[]' OR name IN (SELECT value FROM json_each(?1)) ORDER BY name LIMIT ?2";
pub const RESERVATIONS: &str = "SELECT record FROM reservations";
/// Books that were last used before a day, a bounded number of them.
pub const FORGET_BOOKS: &str = "DELETE FROM limit_books WHERE name IN \
     (SELECT name FROM limit_books WHERE day < ?1 ORDER BY day LIMIT ?2)";
pub const APPROVAL: &str =
    "SELECT record, input, edited_input FROM approvals WHERE approval_id = ?1";
/// Open approvals whose time is over, oldest first. Now, limit.
pub const DUE_APPROVALS: &str = "SELECT record FROM approvals \
     WHERE closed_at_ms IS NULL AND expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2";
/// When the time of the next open approval is over.
pub const NEXT_EXPIRY: &str =
    "SELECT coalesce(min(expires_at_ms), 0) FROM approvals WHERE closed_at_ms IS NULL";
pub const OPEN_APPROVALS: &str = "SELECT count(*) FROM approvals WHERE closed_at_ms IS NULL";
/// Deletes closed approvals that are past their time, a bounded number of them.
pub const FORGET_APPROVALS: &str = "DELETE FROM approvals WHERE approval_id IN \
     (SELECT approval_id FROM approvals WHERE closed_at_ms < ?1 ORDER BY closed_at_ms LIMIT ?2)";
/// Messages that are due by now.
pub const DUE_DELIVERIES: &str = "SELECT seq, at_ms, event, record, attempts, 0 \
     FROM webhook_outbox WHERE due_at_ms <= ?1 ORDER BY due_at_ms, seq LIMIT ?2";
/// Messages that were given up, and messages older than a number of newer ones; a bounded number of both.
pub const DEAD_LETTERS: &str = "SELECT seq, at_ms, event, record, attempts, \
       coalesce((SELECT status FROM webhook_failures AS f WHERE f.seq = webhook_outbox.seq), 0) \
     FROM webhook_outbox \
     WHERE seq IN (SELECT seq FROM webhook_outbox WHERE due_at_ms IS NULL \
       UNION ALL SELECT seq FROM (SELECT seq FROM webhook_outbox ORDER BY seq DESC \
         LIMIT -1 OFFSET ?1)) ORDER BY seq LIMIT ?2";
/// When the first message is due; NULL, which comes first, when one was given up.
pub const NEXT_DELIVERY: &str = "SELECT due_at_ms FROM webhook_outbox ORDER BY due_at_ms LIMIT 1";
pub const DELIVERY_FAILED: &str =
    "UPDATE webhook_outbox SET attempts = ?2, due_at_ms = ?3 WHERE seq = ?1";
/// Sequence number, status.
pub const KEEP_FAILURE: &str = "INSERT INTO webhook_failures (seq, status) VALUES (?1, ?2) \
     ON CONFLICT (seq) DO UPDATE SET status = excluded.status";
/// Now, and the latest time at which a row can be due.
pub const REPAIR_DELIVERIES: &str = "UPDATE webhook_outbox SET due_at_ms = ?1 WHERE due_at_ms > ?2";
/// Now, and the latest time at which an approval can have been requested.
pub const REPAIR_APPROVALS: &str = "UPDATE approvals SET expires_at_ms = ?1 \
     WHERE closed_at_ms IS NULL AND expires_at_ms > ?2 AND record->>'created_at_ms' > ?2";
pub const DROP_MESSAGE: &str = "DELETE FROM webhook_outbox WHERE seq = ?1";
pub const FORGET_DELIVERIES: &str = "DELETE FROM webhook_outbox WHERE seq <= ?1";
pub const AGENT_STATE: &str = "SELECT state FROM agents WHERE agent = ?1";
pub const STORED_ANSWER: &str = "SELECT fingerprint, row->>'response' FROM journal \
       WHERE request_key = ?1 \
     UNION ALL SELECT fingerprint, response FROM replay WHERE request_key = ?1 LIMIT 1";
/// The answer at a sequence number is no longer the answer to its request id. It is in the journal, or in `replay`.
pub const FORGET_REQUEST: &str =
    "UPDATE journal SET request_key = NULL WHERE seq = ?1 AND request_key IS NOT NULL";
pub const FORGET_REPLAY: &str = "DELETE FROM replay WHERE seq = ?1";
pub const NONCE_USED: &str = "SELECT 1 FROM journal WHERE nonce_key = ?1 \
     UNION ALL SELECT 1 FROM nonces WHERE nonce_key = ?1 LIMIT 1";
/// Key id and nonce.
pub const SIGNATURE_NONCE_USED: &str = "SELECT 1 FROM signature_nonces WHERE nonce_key = ?1";
pub const USE_SIGNATURE_NONCE: &str =
    "INSERT INTO signature_nonces (nonce_key, at_ms) VALUES (?1, ?2)";
/// The oldest that are past their time, a bounded number of them.
pub const EXPIRE_SIGNATURE_NONCES: &str = "DELETE FROM signature_nonces WHERE id IN \
     (SELECT id FROM signature_nonces ORDER BY id LIMIT ?2) AND at_ms < ?1";
/// Calls that write nothing read this, so that a superseded object fails instead of answering.
pub const TOUCH: &str = "SELECT 1 FROM meta LIMIT 1";

pub const ROWS: &str = "SELECT seq, receipt_hash, row, at_ms FROM journal WHERE seq >= ?1 \
     ORDER BY seq LIMIT ?2";
pub const ROW: &str = "SELECT row FROM journal WHERE seq = ?1";

/// Of the rows between two numbers.
pub const KEEP_REPLAYS: &str = "INSERT INTO replay (seq, at_ms, request_key, fingerprint, \
       response) SELECT seq, at_ms, request_key, fingerprint, row->>'response' FROM journal \
     WHERE seq BETWEEN ?1 AND ?2 AND request_key IS NOT NULL \
     ON CONFLICT (request_key) DO UPDATE SET seq = excluded.seq, at_ms = excluded.at_ms, \
       fingerprint = excluded.fingerprint, response = excluded.response";
pub const KEEP_NONCES: &str = "INSERT INTO nonces (seq, at_ms, nonce_key) \
     SELECT seq, at_ms, nonce_key FROM journal \
     WHERE seq BETWEEN ?1 AND ?2 AND nonce_key IS NOT NULL \
     ON CONFLICT (nonce_key) DO UPDATE SET seq = excluded.seq, at_ms = excluded.at_ms";
/// Of the rows between two numbers. From now on, `replay` and `nonces` have the keys, and say when they expire.
pub const DROP_KEYS: &str = "UPDATE journal SET request_key = NULL, nonce_key = NULL \
     WHERE seq BETWEEN ?1 AND ?2 AND (request_key IS NOT NULL OR nonce_key IS NOT NULL)";
/// The newest state of each agent among the rows after a sequence number.
pub const KEEP_STATES: &str = "INSERT INTO agents (agent, state) SELECT agent, state FROM journal \
     WHERE seq IN (SELECT max(seq) FROM journal WHERE seq > ?1 GROUP BY agent) \
     ON CONFLICT (agent) DO UPDATE SET state = excluded.state";
/// Minute, the last row that D1 has.
pub const FLUSHED: &str = "INSERT INTO flushes (minute, through) VALUES (?1, ?2) \
     ON CONFLICT (minute) DO UPDATE SET through = max(through, excluded.through)";
/// A bounded number of the oldest rows: those that D1 has since before a minute, and those up to a number. One bound on
/// `seq`, so that no row is read that stays. Minute, number of rows, number.
pub const FORGET_ROWS: &str = "DELETE FROM journal WHERE seq <= min((SELECT min(seq) FROM journal) + ?2 - 1, \
     max((SELECT coalesce(max(through), 0) FROM flushes WHERE minute < ?1), ?3))";
/// All flushes before a minute but for the last, which [`FORGET_ROWS`] may need again.
pub const FORGET_FLUSHES: &str = "DELETE FROM flushes WHERE minute < ?1 \
     AND through < (SELECT max(through) FROM flushes WHERE minute < ?1)";
/// As [`FORGET_ROWS`], of an earlier version's rows. Time, number of rows, number.
pub const FORGET_FLUSHED: &str = "DELETE FROM flushed WHERE seq < (SELECT min(seq) FROM flushed) + ?2 \
     AND (at_ms < ?1 OR seq <= ?3)";
/// The hash that a row has of the receipt before it.
pub const HASH_BEFORE: &str = "SELECT row->>'prev_receipt_hash' FROM kept WHERE seq = ?1 LIMIT 1";
/// The number of the first row from a number on.
pub const FIRST_KEPT: &str = "SELECT seq FROM kept WHERE seq >= ?1 ORDER BY seq LIMIT 1";
/// Rows between two numbers, and how many of them at most.
pub const KEPT_ROWS: &str =
    "SELECT seq, row FROM kept WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq LIMIT ?3";

/// Level, number, root, leaves.
pub const KEEP_TILE: &str = "INSERT INTO tiles (level, number, root, leaves) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (level, number) DO UPDATE SET root = excluded.root, leaves = excluded.leaves";
pub const DROP_LEAVES: &str = "UPDATE tiles SET leaves = NULL WHERE level = 0 AND number = ?1";
pub const LEAVES: &str = "SELECT leaves FROM tiles WHERE level = 0 AND number = ?1";
/// Level, first number, how many.
pub const TILE_ROOTS: &str = "SELECT root FROM tiles \
     WHERE level = ?1 AND number >= ?2 AND number < ?2 + ?3 ORDER BY number";
/// Level, first number, last number (exclusive), and the first tile whose leaves are wanted.
pub const TILES: &str = "SELECT json_array(level, number, root, CASE WHEN number >= ?4 THEN leaves END) FROM tiles \
     WHERE level = ?1 AND number >= ?2 AND number < ?3 ORDER BY number";
pub const FORGET_TILES: &str = "DELETE FROM tiles";
/// A bounded number of the oldest expired rows: rows from before a time, and rows up to a sequence
/// number whose time is after another time because the clock was ahead.
pub const EXPIRE_REPLAYS: &str = "DELETE FROM replay WHERE seq IN \
     (SELECT seq FROM replay ORDER BY seq LIMIT ?2) \
     AND (at_ms < ?1 OR (seq <= ?3 AND at_ms > ?4))";
pub const EXPIRE_NONCES: &str = "DELETE FROM nonces WHERE seq IN \
     (SELECT seq FROM nonces ORDER BY seq LIMIT ?2) \
     AND (at_ms < ?1 OR (seq <= ?3 AND at_ms > ?4))";

pub const OBSERVATIONS: &str =
    "SELECT record, expires_at_ms FROM observations WHERE run = ?1 ORDER BY id";
/// Run, expiry, record.
pub const OBSERVE: &str =
    "INSERT INTO observations (run, expires_at_ms, record) VALUES (?1, ?2, ?3)";
/// A bounded number of expired runs.
pub const EXPIRE_RUNS: &str = "DELETE FROM observations WHERE run IN \
     (SELECT DISTINCT run FROM observations WHERE expires_at_ms <= ?1 LIMIT ?2)";

pub const RECORD: &str = "SELECT record FROM registry WHERE kind = ?1 AND name = ?2";
/// A JSON array of arrays: kind, name, record.
pub const KEEP_RECORDS: &str = "INSERT INTO registry (kind, name, record) \
     SELECT value->>0, value->>1, value->>2 FROM json_each(?1) WHERE true \
     ON CONFLICT (kind, name) DO UPDATE SET record = excluded.record \
       WHERE record <> excluded.record";
/// How many of the newest are kept.
pub const BOUND_RECORDS: &str =
    "DELETE FROM registry WHERE id <= (SELECT max(id) FROM registry) - ?1";
pub const FORGET_RECORDS: &str = "DELETE FROM registry";
/// A JSON array of arrays: kind, first name, and the name before which the last one is.
pub const FORGET_NAMED_RECORDS: &str = "DELETE FROM registry WHERE id IN \
     (SELECT r.id FROM json_each(?1) n JOIN registry r \
       ON r.kind = n.value->>0 AND r.name >= n.value->>1 AND r.name < n.value->>2)";

/// Tenant, lane, epoch, until when, when it is due.
pub const KEEP_PUSH: &str = "INSERT INTO pushes (tenant, lane, epoch, until_ms, due_at_ms, \
       attempts) VALUES (?1, ?2, ?3, ?4, ?5, 0) \
     ON CONFLICT (tenant, lane) DO UPDATE SET epoch = excluded.epoch, \
       until_ms = excluded.until_ms, due_at_ms = excluded.due_at_ms, attempts = 0 \
       WHERE epoch < excluded.epoch";
pub const FORGET_PUSHES: &str = "DELETE FROM pushes WHERE until_ms <= ?1";
pub const DUE_PUSHES: &str = "SELECT tenant, lane, epoch, attempts FROM pushes \
     WHERE due_at_ms <= ?1 ORDER BY due_at_ms LIMIT ?2";
/// Tenant, lane, epoch.
pub const PUSHED: &str = "DELETE FROM pushes WHERE tenant = ?1 AND lane = ?2 AND epoch <= ?3";
/// Tenant, lane, epoch, when it is due.
pub const PUSH_FAILED: &str = "UPDATE pushes SET attempts = attempts + 1, due_at_ms = ?4 \
     WHERE tenant = ?1 AND lane = ?2 AND epoch = ?3";
pub const NEXT_PUSH: &str = "SELECT due_at_ms FROM pushes ORDER BY due_at_ms LIMIT 1";

pub const SET_COUNT: &str = "INSERT INTO audit_counts (event_id, at_ms, kind, source, count) \
     VALUES (?1, ?2, ?3, ?4, ?5) \
     ON CONFLICT (event_id) DO UPDATE SET count = max(count, excluded.count)";
pub const COUNTS: &str = "SELECT event_id, count, json_object('event_id', event_id, \
     'at_ms', at_ms, 'kind', kind, 'source', source, 'count', count) FROM audit_counts \
     ORDER BY event_id LIMIT ?1";
pub const DROP_COUNT: &str = "DELETE FROM audit_counts WHERE event_id = ?1 AND count = ?2";

/// All but [`ADD_BOOKS`] and the schema, for the test.
pub const ALL: &[&str] = &[
    HAS_NO_BOOKS,
    META,
    SET_META,
    FLUSHED_THROUGH,
    JOURNAL_EXTENT,
    JOURNAL_HASH,
    JOURNAL_BYTES,
    JOURNAL_STATES,
    JOURNAL_BOOKS,
    KEEP_PUSH,
    FORGET_PUSHES,
    DUE_PUSHES,
    PUSHED,
    PUSH_FAILED,
    NEXT_PUSH,
    RECORD,
    KEEP_RECORDS,
    BOUND_RECORDS,
    FORGET_RECORDS,
    FORGET_NAMED_RECORDS,
    JOURNAL_LATEST,
    INSERT,
    INSERT_STEPS,
    INSERT_LIMITED,
    INSERT_DEAD_LETTER,
    COUNT,
    WINDOW,
    DELETE_WINDOW,
    EXPIRE_WINDOWS,
    OLDEST_WINDOW,
    SETTLE,
    BOOK,
    BOOKS,
    RESERVATIONS,
    FORGET_BOOKS,
    APPROVAL,
    DUE_APPROVALS,
    NEXT_EXPIRY,
    OPEN_APPROVALS,
    FORGET_APPROVALS,
    DUE_DELIVERIES,
    DEAD_LETTERS,
    NEXT_DELIVERY,
    DELIVERY_FAILED,
    REPAIR_DELIVERIES,
    REPAIR_APPROVALS,
    DROP_MESSAGE,
    KEEP_FAILURE,
    FORGET_DELIVERIES,
    AGENT_STATE,
    STORED_ANSWER,
    FORGET_REQUEST,
    FORGET_REPLAY,
    NONCE_USED,
    SIGNATURE_NONCE_USED,
    USE_SIGNATURE_NONCE,
    EXPIRE_SIGNATURE_NONCES,
    TOUCH,
    ROWS,
    ROW,
    KEEP_REPLAYS,
    KEEP_NONCES,
    DROP_KEYS,
    KEEP_STATES,
    FLUSHED,
    FORGET_ROWS,
    FORGET_FLUSHES,
    FORGET_FLUSHED,
    HASH_BEFORE,
    FIRST_KEPT,
    KEPT_ROWS,
    KEEP_TILE,
    DROP_LEAVES,
    LEAVES,
    TILE_ROOTS,
    TILES,
    FORGET_TILES,
    EXPIRE_REPLAYS,
    EXPIRE_NONCES,
    OBSERVATIONS,
    OBSERVE,
    EXPIRE_RUNS,
    SET_COUNT,
    COUNTS,
    DROP_COUNT,
];
