// What the deployed Wasm contains, by section and by crate, and how much it may be.
//
//   node bench/report/wasm.ts      after a release build; `make wasm-report` builds first
//
// Writes its tables between two comments of bench/report/notes.md, then docs/performance.md, which ends
// with these notes and compares its run's size with the one in them.
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { functions, sections, type WasmFunction } from "../../scripts/wasm-module.ts";
import { NOTES, PAGE, report as reportOfRun, runOfPage } from "./generate.ts";
import { DEPLOYED } from "./page.ts";

const BUILD = "worker/edge/build";
/** What is deployed. */
const MODULES = ["index_bg.wasm", "index.js"];
/** The Wasm with the names of its functions. */
const NAMED = "named.wasm";

const BEGIN = "<!-- wasm-report: begin -->";
const END = "<!-- wasm-report: end -->";

/** Gzipped kilobytes of everything. */
const TOTAL_KB = 1_750;
const CI_MINUTES = 45;

/** A part's gzipped kilobytes. */
interface Bounds {
  /** `make wasm-report` fails above it. Ed25519, which two parts use, has no budget. */
  budget_kb?: number;
}

/** Parts of Gateward, by the names of their functions. */
const PARTS: ({ part: string; functions: RegExp } & Bounds)[] = [
  { part: "shield", functions: /gateward_core::(shield|decode)::/, budget_kb: 120 },
  { part: "warrants, without Ed25519", functions: /gateward_core::warrant::/, budget_kb: 45 },
  { part: "Ed25519, for warrants and logs", functions: /ed25519_dalek|curve25519_dalek/ },
  { part: "logs of receipts", functions: /gateward_core::tlog::|(lane|gate)::(publish|lost|tree|head_log|witness|log_keys)::|object::(publish|rewrite|witness)::|(handlers|d1)::logs::/, budget_kb: 50 },
  { part: "provenance", functions: /gateward_core::provenance::/, budget_kb: 60 },
  { part: "limits and velocity", functions: /gateward_core::(limit|velocity)::|lane::(limits|leases|reservations|windows|shared_windows)::/, budget_kb: 40 },
  { part: "metrics", functions: /gateward_core::metrics::/, budget_kb: 25 },
];

/** Crates with less of the code than this are one row. */
const SMALLEST_SHARE = 0.005;

/** Crates whose generic code is counted with the crate that it was made for. */
const GENERIC = new Set(["core", "alloc", "std", "hashbrown", "serde_core", "serde"]);

/** The crate that a function belongs to: the first that its name has, or the first that is not `GENERIC`. */
export function crateOf(name: string) {
  const crates = Array.from(name.matchAll(/(?<![\w:])([a-z_]\w*)(?:\[[0-9a-f]+\])?::/g), ([, crate]) => crate ?? "");
  return crates.find((crate) => !GENERIC.has(crate)) ?? crates[0] ?? "(no name)";
}

const kilobytes = (bytes: number) => `${Math.round(bytes / 1_000).toLocaleString("en")} KB`;
const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;
const table = (header: string[], rows: string[][]) =>
  [header, header.map((_, at) => (at === 0 ? "---" : "---:")), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

function report() {
  const read = (name: string) => readFileSync(`${BUILD}/${name}`);
  const deployed = MODULES.map(read);
  const total = gzipSync(Buffer.concat(deployed)).length;
  const [wasm] = deployed;
  if (wasm === undefined) throw new Error("there is no build");

  const gzipped = (bytes: Buffer) => gzipSync(bytes).length;
  const parts = sections(wasm).map(({ name, body }) => ({ name, bytes: body.left }));
  const large = parts.filter(({ name }) => name === "code" || name === "data");
  const rest = Buffer.concat(parts.filter((part) => !large.includes(part)).map(({ bytes }) => bytes));
  const bySection = [
    ...large,
    { name: "other sections", bytes: rest },
    { name: "JavaScript", bytes: read("index.js") },
  ];

  const byCrate = new Map<string, number>();
  const all = functions(read(NAMED));
  for (const { name, code } of all) {
    const crate = crateOf(name);
    byCrate.set(crate, (byCrate.get(crate) ?? 0) + code.length);
  }
  const code = [...byCrate.values()].reduce((sum, bytes) => sum + bytes, 0);
  const crates = [...byCrate].sort(([, a], [, b]) => b - a);
  const shown = crates.filter(([, bytes]) => bytes >= SMALLEST_SHARE * code);
  const others = crates.slice(shown.length);
  const ofOthers = others.reduce((sum, [, bytes]) => sum + bytes, 0);
  const rows: [string, number][] = [
    ...shown.map(([crate, bytes]): [string, number] => [`\`${crate}\``, bytes]),
    [`${others.length} others`, ofOthers],
  ];

  const partRows = PARTS.map(({ functions, ...part }) => ({ ...part, bytes: added(all, functions) }));
  const text = [
    "### What the Wasm contains",
    "Written by `make wasm-report` from the release build. A section is gzipped alone here, so the column adds up to a little more or less than the whole.",
    table(
      ["section", "bytes", "gzipped"],
      [
        ...bySection.map(({ name, bytes }) => [name, kilobytes(bytes.length), kilobytes(gzipped(bytes))]),
        [DEPLOYED, kilobytes(deployed.reduce((sum, { length }) => sum + length, 0)), kilobytes(total)],
      ],
    ),
    "A function is counted with the crate that its name begins with. Inlined code is counted with its caller: most handlers are in the shell's router or in `js_sys`, whose futures run them. Generic code of the standard library and of serde is counted with the first other crate in its name.",
    table(
      ["crate", "code", "share"],
      rows.map(([crate, bytes]) => [crate, kilobytes(bytes), share(bytes, code)]),
    ),
    "What a part of Gateward adds: how much smaller all code is, gzipped, without the part's functions. The texts and tables in the section `data` are not counted, nor is what was inlined into functions of other parts. The row of warrants has the functions that read, verify and judge warrants (`gateward_core::warrant`). What the gate, the registry, the administration and the shell do about warrants is not counted there. The same holds for limits, velocity and metrics, except that the lane's books and windows count for limits and velocity. If a part is above its budget, `make wasm-report` fails.",
    table(["part", "gzipped", "budget", ""], partRows.map(beside)),
    "### Budget",
    `CI may take ${CI_MINUTES} minutes.`,
    table(
      [DEPLOYED, "gzipped"],
      [
        ["today", kilobytes(total)],
        ["limit", kilobytes(1_000 * TOTAL_KB)],
      ],
    ),
  ].join("\n\n");
  return { text, large: tooLarge(partRows) };
}

/** A row of the table of budgets. Sizes have a decimal, because some are next to their budget. */
export function beside({ part, bytes, budget_kb }: { part: string; bytes: number } & Bounds): string[] {
  const size = `${(bytes / 1_000).toFixed(1)} KB`;
  if (budget_kb === undefined) return [part, size, "none", ""];
  return [part, size, `${budget_kb} KB`, bytes > 1_000 * budget_kb ? "above its budget" : "within its budget"];
}

/** The names of the parts for which the report fails. */
export function tooLarge(parts: ({ part: string; bytes: number } & Bounds)[]) {
  return parts.filter(({ bytes, budget_kb = Infinity }) => bytes > 1_000 * budget_kb).map(({ part }) => part);
}

/** How many bytes these functions add to the gzipped code. */
export function added(all: WasmFunction[], names: RegExp) {
  const gzipped = (functions: WasmFunction[]) => gzipSync(Buffer.concat(functions.map(({ code }) => code)), { level: 9 }).length;
  return gzipped(all) - gzipped(all.filter(({ name }) => !names.test(name)));
}

/** The page with `text` between the comments; without them it is an error. */
export function replaced(page: string, text: string) {
  const [before] = page.split(BEGIN);
  const [, after] = page.split(END);
  if (before === page || after === undefined) throw new Error(`a page has no \`${BEGIN}\` and \`${END}\``);
  return `${before}${BEGIN}\n${text}\n${END}${after}`;
}

if (process.argv[1] === import.meta.filename) {
  const { text, large } = report();
  writeFileSync(NOTES, replaced(readFileSync(NOTES, "utf8"), text));
  writeFileSync(PAGE, (await reportOfRun(runOfPage())).markdown);
  console.log(text);
  if (large.length > 0) throw new Error(`too large: ${large.join("; ")}`);
}
