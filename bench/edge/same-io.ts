// Checks that the floor does the same I/O as Gateward: the same answer, the same journal row and the same rows
// in D1, each as many bytes long, and as many rows in each table of the lane after a flush. It runs before anything is compared with the floor, so that Gateward
// cannot change its rows without the floor.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { KINDS } from "./kinds.ts";
import { demoHeaders, type Options, type Target, withState, withWorker } from "./workers.ts";

/** Long enough to read the journal before it is flushed. */
const FLUSH_INTERVAL_MS = 2_000;

/**
 * How far two lengths may differ, in bytes: a time or a counter may have one more digit in one of them, and the hash of the
 * key id, a number, some digits less.
 */
const MAX_BYTES_APART = 4;
/** The end of a size's name that counts rows, which must be equal. */
const ROWS = ", rows";
/** The tables of a lane that a flush changes. */
const FLUSHED_TABLES = ["journal", "flushes", "flushed", "agents", "replay", "nonces", "signature_nonces"];

/** `options` are Gateward's. */
export async function assertSameIo(options: Options = {}): Promise<void> {
  const gateward = await sizes("gateward", options);
  const floor = await sizes("floor", {});
  const most = (what: string) => (what.endsWith(ROWS) ? 0 : MAX_BYTES_APART);
  const apart = Object.entries(gateward).filter(([what, size]) => !(Math.abs((floor[what] ?? NaN) - size) <= most(what)));
  if (apart.length > 0) {
    const differences = apart.map(([what, bytes]) => `${what}: ${bytes} and ${floor[what]}`).join("; ");
    throw new Error(`the floor's I/O is not Gateward's (${differences}): change bench/edge/floor-worker.js with it`);
  }
}

/** The traces of one call: the bytes of each text, and the number of rows. */
function sizes(target: Target, options: Options): Promise<Record<string, number>> {
  const { body } = KINDS.allow_read;
  return withState((state) =>
    withWorker(target, { ...options, state, vars: { FLUSH_INTERVAL_MS } }, async (worker) => {
      const response = await fetch(worker.url, { method: "POST", headers: demoHeaders(), body: JSON.stringify(body) });
      const [journal, ...others] = inLane(state, (lane) => lane.prepare("SELECT * FROM journal").all());
      if (journal === undefined || others.length > 0) throw new Error(`the journal holds ${others.length + 1} rows after one call`);
      const sizes = { answer: (await response.text()).length, ...lengths("journal", journal) };
      await worker.settle(body);
      const count = (lane: DatabaseSync, table: string) => Number(lane.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows);
      Object.assign(sizes, inLane(state, (lane) => Object.fromEntries(FLUSHED_TABLES.map((table) => [`lane's ${table}${ROWS}`, count(lane, table)]))));
      for (const table of ["decisions", "receipts", "audit_events", "approvals", "lane_flushes"]) {
        const { results } = await worker.db.prepare(`SELECT * FROM ${table}`).all<Record<string, unknown>>();
        Object.assign(sizes, { [`${table}${ROWS}`]: results.length }, lengths(table, results[0] ?? {}));
      }
      for (const [name, value] of response.headers) Object.assign(sizes, { [`header ${name}`]: value.length });
      return sizes;
    }),
  );
}

function lengths(of: string, row: Record<string, unknown>): Record<string, number> {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [`${of}.${column}`, String(value).length]));
}

/** What `read` returns of the storage of the only lane below `state`. */
function inLane<T>(state: string, read: (lane: DatabaseSync) => T): T {
  const files = readdirSync(state, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sqlite"));
  for (const file of files) {
    const database = new DatabaseSync(join(state, file), { readOnly: true });
    try {
      const isLane = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'journal'").get();
      if (isLane !== undefined) return read(database);
    } finally {
      database.close();
    }
  }
  throw new Error(`no journal among ${files.join(", ")}`);
}
