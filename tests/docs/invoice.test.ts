// Runs `make demo-invoice` against a Gateward of its own, and compares what it prints.
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { runOnDemo } from "./demo.ts";
import { difference } from "./output.ts";
import type { Block } from "./page.ts";

const LIMIT_MS = 120_000;

/** What the demo prints; `…` as in pages. */
const PRINTED = `
…
agent: office/pay {"account":"DE89370400440532013000","amount":1240,"reference":"2026-117"}
  | Paid 1240 EUR to DE89370400440532013000.

== It believes the invoice, and pays the other account: this payment waits for a person ==

agent: office/pay {"account":"GB33BUKB20201555555555","amount":1240,"reference":"2026-117"}
  | The call of office/pay needs approval and did not run. …
…
$ gateward approvals show appr_0_…
appr_0_…: pending, revision 1
…
Where its destinations come from
  reaches   outside
  /account  "GB33BUKB20201555555555"
            first seen in the untrusted result of \`office/read_invoice\` (result 1, decision …); the instruction does not name it
            gateward decisions show …
  /amount   1240
            named by the instruction or plan, or approved in this run
…
seq  time  kind      what               agent  server  tool  receipt_hash
…  decision  require_approval   accountant-…  office  pay   …
…  approval  approval_rejected  accountant-…
…
Provenance in rcpt_0_…: {"instruction_known":true,"lowest":"untrusted","reach":"outside","sinks":[{"call":1,"decision_id":"…","level":"untrusted","sink":"/account","tool":"office/read_invoice"},{"level":"instruction","sink":"/amount"}]}
…
The bank carried out one payment: 1240 EUR to DE89370400440532013000.
`;

test("the honest payment passes, and the poisoned one waits for a person, who is shown why", async () => {
  const demo = `GATEWARD_PREBUILT=1 '${process.execPath}' '${resolve("scripts/demo-invoice.ts")}'`;
  // Later runs use the server that the first one registered.
  const blocks = [demo, demo].map((commands, at): Block => ({ place: `run ${at + 1}`, commands, first: undefined, notRun: undefined, output: undefined }));
  for (const printed of await runOnDemo(blocks, LIMIT_MS)) {
    if (printed === undefined) throw new Error("it did not end in time");
    expect(difference({ language: "text", text: PRINTED.trim() }, printed.text)).toBeUndefined();
    expect(printed.status).toBe(0);
  }
}, LIMIT_MS + 60_000);
