// Runs `make demo` against a Gateward of its own, and compares what it prints.
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { runOnDemo } from "./demo.ts";
import { difference } from "./output.ts";
import type { Block } from "./page.ts";

const LIMIT_MS = 120_000;
/** Settings that `make start` also gives to the worker, and that pages do not need. */
const LOG = { LOG_KEY: "5".repeat(64), LOG_ORIGIN: "gateward.example" };

/**
 * What the demo prints; `…` as in pages. The fault of the forged export is found at the next receipt, or at a
 * checkpoint that comes before it in the head log.
 */
const PRINTED = `
Agent demo/coder-… on http://127.0.0.1:…

call  tool  source trust  decision  reason  receipt  policies
…
read a public issue  github/get_issue  untrusted_external  allow  policy_allow  …  base/provenance#reads-pass
merge, as the issue said  github/merge_pull_request  untrusted_external  deny  policy_forbid  …  base/provenance#untrusted-never-writes
merge to main, as a maintainer said  github/merge_pull_request  trusted_internal_signed  require_approval  policy_require_approval  …
$ gateward approvals approve appr_0_…  approved  by admin of release-managers
…
read the vault's root key  vault/read_root_key  trusted_internal_signed  quarantine  policy_quarantine  …  base/canary#canary-quarantines
list issues, quarantined  github/list_issues  trusted_internal_signed  deny  agent_quarantined  …

The approval's own receipts: … approval_approved, … approval_tampered, … approval_used
Receipts 1 to … of lane 0 verify here (SHA-256 over RFC 8785), head …
POST /v1/receipts/verify agrees: … checked, none broken

== The receipts are a signed log: an export verifies without the worker, and a changed field shows ==

log  receipts  size  root  key_id
demo.lane-0  … (1 to …)  …
demo.head  … (1 to …)  …
…
With one denial changed to an approval:
…: demo.lane-0, receipt…, line …: …
\`gateward verify …forged.ndjson --key gateward.example/v1/log/demo.head+…\` failed: gateward: the export does not verify

The rows in D1:
…
`;

test("the attack is stopped, its export verifies, and a copy with a changed field does not", async () => {
  const demo = `GATEWARD_PREBUILT=1 '${process.execPath}' '${resolve("scripts/demo.ts")}'`;
  // Later runs add to the receipts of the first one.
  const blocks = [demo, demo].map((commands, at): Block => ({ place: `run ${at + 1}`, commands, first: undefined, notRun: undefined, output: undefined }));
  for (const printed of await runOnDemo(blocks, LIMIT_MS, LOG)) {
    if (printed === undefined) throw new Error("it did not end in time");
    expect(difference({ language: "text", text: PRINTED.trim() }, printed.text)).toBeUndefined();
    expect(printed.status).toBe(0);
  }
}, LIMIT_MS + 60_000);
