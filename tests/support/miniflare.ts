// Starts workers in workerd, for tests and benches: as wrangler.toml says, with real Durable Objects, D1
// and SQLite.
//
// It uses Miniflare itself and not wrangler's test harness, which sends a worker's own requests from Node.
// Here workerd sends them. Callers connect to workerd's own socket: Miniflare's entry worker is not in
// between.
import type { ChildProcess } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig } from "wrangler";

/** Where `scripts/build-wasm.sh` puts the worker. */
export const BUILD = "worker/edge/build";
export const HOST = "127.0.0.1";
const CONFIG = "wrangler.toml";
/** A migration's statements begin at the start of a line; a trigger's own statements are indented. */
const STATEMENT_END = /;\s*^(?=(?:ALTER|CREATE|DROP|INSERT|UPDATE) )/m;

export type SqlValue = string | number | null;

/** What tests and benches use of D1's binding; Miniflare's own type needs a package that is not installed. */
export interface Database {
  prepare(sql: string): BoundStatement;
  batch(statements: BoundStatement[]): Promise<unknown>;
  exec(sql: string): Promise<unknown>;
}
export interface BoundStatement {
  bind(...values: SqlValue[]): BoundStatement;
  run(): Promise<unknown>;
  all<Row>(): Promise<{ results: Row[] }>;
}

/** What is used of wrangler.toml. */
interface Configuration {
  name: string;
  compatibility_date: string;
  compatibility_flags: string[];
  vars: Record<string, string | number>;
  durable_objects: { bindings: { name: string; class_name: string }[] };
  d1_databases: { binding: string; migrations_dir: string }[];
}

type MiniflareOptions = Parameters<typeof convertV4MiniflareOptions>[0];

export type Module = { type: "ESModule"; path: string; contents: string } | { type: "CompiledWasm"; path: string; contents: Uint8Array<ArrayBuffer> };

export interface Start {
  /** The entry is the first. */
  modules: Module[];
  /** The port of workerd's socket; any free one unless set. */
  port?: number;
  /** Further options of Miniflare. */
  miniflare?: Partial<MiniflareOptions>;
}

export interface StartWithStorage extends Start {
  /** Added to `[vars]` of wrangler.toml; of two with the same name, these count. */
  bindings?: Record<string, unknown>;
  /** A directory that keeps Durable Objects and the database; unless set, they are deleted at the end. */
  state?: string;
  /** Whether to apply the migrations, which an empty database needs. */
  migrate?: boolean;
}

/** A worker that runs. */
export interface Running {
  /** The worker's name, which Miniflare asks for. */
  name: string;
  /** workerd's own socket. */
  url: URL;
  miniflare: Miniflare;
}

export interface RunningWithStorage extends Running {
  db: Database;
}

/** A JavaScript module; `path` is its name, by which other modules import it. */
export function scriptModule(path: string): Module {
  return { type: "ESModule", path, contents: readFileSync(path, "utf8") };
}

/** The modules that `scripts/build-wasm.sh` writes, from any directory, with the names that they have in `BUILD`. */
export function builtModules(build = BUILD): Module[] {
  if (!existsSync(join(build, "index.js"))) throw new Error(`\`${build}\` holds no built worker: run \`make test\`, which builds it`);
  return [
    { type: "ESModule", path: `${BUILD}/index.js`, contents: readFileSync(join(build, "index.js"), "utf8") },
    { type: "CompiledWasm", path: `${BUILD}/index_bg.wasm`, contents: new Uint8Array(readFileSync(join(build, "index_bg.wasm"))) },
  ];
}

/** Starts a worker that has no bindings. The caller disposes of `miniflare`. */
export async function start({ modules, port = 0, miniflare: further = {} }: Start): Promise<Running> {
  const { name, compatibility_date, compatibility_flags } = readConfiguration();
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      name,
      cf: false,
      modules,
      compatibilityDate: compatibility_date,
      compatibilityFlags: compatibility_flags,
      unsafeDirectSockets: [{ host: HOST, port }],
      ...further,
    } as MiniflareOptions),
  );
  return orDispose(miniflare, async () => {
    await miniflare.ready;
    return { name, url: await miniflare.unsafeGetDirectURL(), miniflare };
  });
}

/** Starts a worker with the Durable Objects, the database and the variables of wrangler.toml. The caller disposes of `miniflare`. */
export async function startWithStorage({ bindings = {}, state, migrate = true, miniflare = {}, ...rest }: StartWithStorage): Promise<RunningWithStorage> {
  const { vars, durable_objects, d1_databases } = readConfiguration();
  const running = await start({
    ...rest,
    miniflare: {
      durableObjects: Object.fromEntries(durable_objects.bindings.map(({ name, class_name }) => [name, { className: class_name, useSQLite: true }])),
      d1Databases: Object.fromEntries(d1_databases.map(({ binding }) => [binding, binding])),
      bindings: { ...vars, ...bindings },
      ...(state === undefined ? {} : { resourcePersistencePath: state, defaultPersistRoot: state }),
      ...miniflare,
    } as Partial<MiniflareOptions>,
  });
  return orDispose(running.miniflare, async () => {
    const [database] = d1_databases;
    if (database === undefined) throw new Error(`\`${CONFIG}\` names no database`);
    const db = (await running.miniflare.getD1Database(database.binding)) as Database;
    if (migrate) await applyMigrations(db, database.migrations_dir);
    return { ...running, db };
  });
}

/**
 * The same, with workerd's process. Start one at a time: Miniflare does not say which process it starts, so the
 * process that Node starts meanwhile is taken to be workerd's. `onSpawn` is called when it is created, before it runs.
 */
export async function startWithProcess(options: StartWithStorage, onSpawn?: () => void): Promise<RunningWithStorage & { workerd: ChildProcess }> {
  let workerd: ChildProcess | undefined;
  const spawned = (message: unknown) => {
    workerd = (message as { process: ChildProcess }).process;
    onSpawn?.();
  };
  subscribe("child_process", spawned);
  const running = await startWithStorage(options).finally(() => unsubscribe("child_process", spawned));
  return orDispose(running.miniflare, async () => {
    if (workerd?.pid === undefined) throw new Error("workerd's process is not known");
    return { ...running, workerd };
  });
}

async function orDispose<T>(miniflare: Miniflare, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

function readConfiguration(): Configuration {
  return unstable_readConfig({ config: CONFIG }) as Configuration;
}

async function applyMigrations(db: Database, directory: string): Promise<void> {
  for (const file of readdirSync(directory).sort()) {
    const statements = readFileSync(join(directory, file), "utf8").replace(/--.*$/gm, "").split(STATEMENT_END);
    await db.batch(statements.filter((text) => text.trim() !== "").map((text) => db.prepare(text)));
  }
}
