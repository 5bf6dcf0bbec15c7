// `make containment`: replays recorded tasks, half of them with injected texts, through the built worker. It prints
// how many calls passed, needed approval and were denied, and fails if a target is missed.
//
//   node tests/containment/containment.ts [--data directory] [--json file] [--write]
//
// --data   replays the tasks of another directory of this form
// --json   writes every decision to a file
// --write  writes the table into docs/provenance.md
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../support/program.ts";
import { load } from "./data.ts";
import { type Configuration, Replay } from "./replay.ts";
import { missed, type Run, table } from "./report.ts";

const DOCUMENT = join(import.meta.dirname, "../../docs/provenance.md");
const BEGIN = "<!-- containment -->\n";
const END = "<!-- /containment -->";

const CONFIGURATIONS: Configuration[] = [
  { name: "untrusted servers, with instruction", trust: "untrusted", instruction: true },
  { name: "… roles as derived", trust: "untrusted", instruction: true, roles: "derived" },
  { name: "… without roles and reach", trust: "untrusted", instruction: true, roles: "none" },
  { name: "… without trusted results", trust: "untrusted", instruction: true, without: ["result_trust"] },
  { name: "… without allow-list", trust: "untrusted", instruction: true, without: ["destinations"] },
  { name: "… without plan", trust: "untrusted", instruction: true, without: ["plan"] },
  { name: "untrusted servers, without instruction", trust: "untrusted", instruction: false },
  { name: "trusted servers, with instruction", trust: "trusted", instruction: true },
  { name: "trusted servers, without instruction", trust: "trusted", instruction: false },
];

await run(async () => {
  const { data, json, write } = parseArgs({
    options: { data: { type: "string", default: import.meta.dirname }, json: { type: "string" }, write: { type: "boolean", default: false } },
  }).values;

  const replay = await Replay.start(load(data));
  const runs: Run[] = [];
  try {
    for (const configuration of CONFIGURATIONS) runs.push({ configuration, decided: await replay.run(configuration) });
  } finally {
    await replay.close();
  }

  const made = table(runs);
  console.log(made);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(runs.flatMap(({ decided }) => decided), null, 2)}\n`);
  if (write) writeTable(made);
  const misses = runs.flatMap(missed);
  if (misses.length > 0) throw new Error(`targets are missed\n${misses.join("\n")}`);
});

function writeTable(made: string): void {
  const document = readFileSync(DOCUMENT, "utf8");
  const [before, after] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (before < 0 || after < before) throw new Error(`${DOCUMENT} has no place for the table`);
  writeFileSync(DOCUMENT, `${document.slice(0, before)}${BEGIN}${made}${document.slice(after)}`);
}
