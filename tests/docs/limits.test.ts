// Runs `make demo-limits`, and compares what it prints. The demo starts and kills a Gateward of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { difference } from "./output.ts";
import { run } from "./shell.ts";

const LIMIT_MS = 120_000;

/** What the demo prints; `…` as in pages. */
const PRINTED = `
…
== The agent refunds 20 orders of 100 EUR at once ==

agent: 10 denied, 10 on their way
  | The limit \`refunds\` allows 1000 per day; 0 is left, and this call needs 100. Try again at …, in … s.
service: 4 failed, 6 carried out, of which 3 get no answer yet
GET /v1/limits/status: 400 remaining, 300 held

== The runtime is killed, and starts again on the same storage ==

kill -9 …
GET /v1/limits/status: 400 remaining, 300 held

== It retries the 14 that failed or were denied ==

agent: 10 denied, 4 on their way
…
GET /v1/limits/status: 100 remaining, 300 held

== It retries the 11 that failed or were denied ==

agent: 10 denied, 1 on their way
…
GET /v1/limits/status: 0 remaining, 300 held

== It retries the 10 that failed or were denied ==

agent: 10 denied, 0 on their way
…
GET /v1/limits/status: 0 remaining, 300 held

== The ledger of the payment service shows what was carried out ==

ledger: 10 refunds, 1000 EUR
agent: 7 succeeded; 3 are unclear to it, and their amounts stay used
Exactly 10 refunds of 100 EUR were carried out, each for a different order.
`;

test("exactly ten of twenty refunds are carried out, although some fail and the runtime is killed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "gateward-docs-"));
  try {
    const commands = `cd '${process.cwd()}' && GATEWARD_PREBUILT=1 '${process.execPath}' scripts/demo-limits.ts`;
    const [printed] = await run([{ place: "", commands, first: undefined, notRun: undefined, output: undefined }], directory, {}, LIMIT_MS);
    if (printed === undefined) throw new Error("it did not end in time");
    expect(difference({ language: "text", text: PRINTED.trim() }, printed.text)).toBeUndefined();
    expect(printed.status).toBe(0);
  } finally {
    rmSync(directory, { recursive: true });
  }
}, LIMIT_MS + 60_000);
