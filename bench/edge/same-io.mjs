// Whether the floor does what it must to be one: the same answer, the same journal row and the same
// rows in D1 as Gateward, byte for byte as long. Run before anything is compared with it, so that
// Gateward cannot change its rows and leave the floor behind.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { KINDS } from "./kinds.mjs";
import { demoHeaders, withState, withWorker } from "./workers.mjs";

/**
 * @typedef {import("./workers.mjs").Target} Target
 * @typedef {import("./workers.mjs").Options} Options
 */

/** Long enough to read the journal before it is flushed. */
const FLUSH_INTERVAL_MS = 2_000;

/**
 * How far two lengths may be apart, in bytes: what is compared holds a key id, whose length is
 * fixed, and numbers, which a row of a second before or after may write with a digit more.
 */
const MAX_BYTES_APART = 2;

/**
 * @param {Options} [options] of Gateward
 */
export async function assertSameIo(options = {}) {
  const gateward = await sizes("gateward", options);
  const floor = await sizes("floor", {});
  const apart = Object.entries(gateward).filter(([what, bytes]) => !(Math.abs((floor[what] ?? NaN) - bytes) <= MAX_BYTES_APART));
  if (apart.length > 0) {
    const differences = apart.map(([what, bytes]) => `${what}: ${bytes} and ${floor[what]}`).join("; ");
    throw new Error(`the floor is not as Gateward is (${differences}): change bench/edge/floor-worker.js with it`);
  }
}

/**
 * What one call leaves: bytes of each text, and rows.
 * @param {Target} target
 * @param {Options} options
 * @returns {Promise<Record<string, number>>}
 */
function sizes(target, options) {
  const { body } = KINDS.allow_read;
  return withState((state) =>
    withWorker(target, { ...options, state, vars: { FLUSH_INTERVAL_MS } }, async (worker) => {
      const response = await fetch(worker.url, { method: "POST", headers: demoHeaders(), body: JSON.stringify(body) });
      const journal = journalIn(state);
      const sizes = { answer: (await response.text()).length, ...lengths("journal", journal) };
      await worker.settle(body);
      for (const table of ["decisions", "receipts", "audit_events", "approvals", "lane_flushes"]) {
        const { results } = await worker.db.prepare(`SELECT * FROM ${table}`).all();
        Object.assign(sizes, { [`${table}, rows`]: results.length }, lengths(table, results[0] ?? {}));
      }
      for (const [name, value] of response.headers) Object.assign(sizes, { [`header ${name}`]: value.length });
      return sizes;
    }),
  );
}

/**
 * @param {string} of
 * @param {Record<string, unknown>} row
 */
function lengths(of, row) {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [`${of}.${column}`, String(value).length]));
}

/**
 * The only row in the journal of the lane whose storage is somewhere in `state`.
 * @param {string} state
 * @returns {Record<string, unknown>}
 */
function journalIn(state) {
  const files = readdirSync(state, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sqlite"));
  for (const file of files) {
    const database = new DatabaseSync(join(state, file), { readOnly: true });
    try {
      const isLane = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'journal'").get();
      if (isLane === undefined) continue;
      const rows = database.prepare("SELECT * FROM journal").all();
      if (rows.length !== 1) throw new Error(`the journal holds ${rows.length} rows after one call`);
      return /** @type {Record<string, unknown>} */ (rows[0]);
    } finally {
      database.close();
    }
  }
  throw new Error(`no journal among ${files.join(", ")}`);
}
