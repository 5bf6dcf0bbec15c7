// `make interop`: drives every client, writes the table in docs/mcp.md, and fails where a cell does.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLIENTS, isInstalled } from "./clients.ts";
import { type Cell, CELLS, type Finding, Interop, type Row } from "./runner.ts";

const DOCUMENT = join(import.meta.dirname, "../../docs/mcp.md");
const BEGIN = "<!-- begin: made by `make interop` -->\n";
const END = "<!-- end -->";
/** As the table has them: several cells are one column. */
const COLUMNS: Record<string, Cell[]> = {
  list: ["list"],
  call: ["call"],
  denied: ["denied"],
  approval: ["approval"],
  error: ["error", "schema", "rate", "broken"],
  "cancel a call": ["abort"],
  "close the client": ["close"],
  "large integer": ["large"],
};
/** Cells that say how something works, and not only that it works. */
const TELLING: Cell[] = ["abort", "close"];

function cell(findings: Record<Cell, Finding>, cells: Cell[]): string {
  const failed = cells.filter((name) => !findings[name].holds);
  if (failed.length > 0) return `**no** (${failed.join(", ")})`;
  return cells.every((name) => TELLING.includes(name)) ? cells.map((name) => findings[name].shown).join(", ") : "yes";
}

function table(rows: Row[]): string {
  const lines = [
    ["client", "era", ...Object.keys(COLUMNS)],
    ["---", "---", ...Object.keys(COLUMNS).map(() => "---")],
    ...rows.map(({ client, era, findings }) => [client, era, ...Object.values(COLUMNS).map((cells) => cell(findings, cells))]),
  ];
  return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

/** Part of a client's name: only such clients are driven, and the table is left as it is. */
const only = process.argv[2];
const chosen = CLIENTS.filter(({ name }) => only === undefined || name.includes(only));
const missing = chosen.filter((spec) => !isInstalled(spec));
if (missing.length > 0) throw new Error(`not installed: ${missing.map(({ name }) => name).join(", ")}`);

const interop = await Interop.start();
const rows: Row[] = [];
for (const spec of chosen) {
  for (const era of spec.eras) {
    const row = await interop.run(spec, era);
    rows.push(row);
    console.log(`\n${spec.name}, ${era}`);
    for (const name of CELLS) console.log(`  ${row.findings[name].holds ? "yes" : "NO "} ${name}: ${row.findings[name].shown}`);
  }
}
await interop.close();

if (only === undefined) {
  const document = readFileSync(DOCUMENT, "utf8");
  const [before, after] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (before < 0 || after < before) throw new Error(`${DOCUMENT} has no place for the table`);
  writeFileSync(DOCUMENT, `${document.slice(0, before)}${BEGIN}${table(rows)}${document.slice(after)}`);
}
if (rows.some(({ findings }) => CELLS.some((name) => !findings[name].holds))) process.exitCode = 1;
