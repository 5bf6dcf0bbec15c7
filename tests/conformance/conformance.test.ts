// The MCP conformance suite passes through Gateward, except for the listed checks, each with its reason.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Setting, startBehindGateward } from "./setting.ts";
import { REVISIONS, runSuite } from "./suite.ts";

/** More than the time limit of the suite itself. */
const LIMIT_MS = 200_000;

let setting: Setting;
beforeAll(async () => {
  setting = await startBehindGateward();
});
afterAll(() => setting?.close());

test.each(REVISIONS)("the revision %s", { timeout: LIMIT_MS }, async (revision) => {
  const { passed, failed, stale } = await runSuite(revision, setting.url);
  expect({ failed, stale }).toEqual({ failed: [], stale: [] });
  expect(passed).toBeGreaterThan(0);
});
