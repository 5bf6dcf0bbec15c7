// `make conformance`: runs the MCP conformance suite against Gateward in front of the fixture, and
// with `--direct` against the fixture alone.
import { startBehindGateward, startDirectly } from "./setting.ts";
import { REVISIONS, runSuite } from "./suite.ts";

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupted.abort());

const setting = await (process.argv.includes("--direct") ? startDirectly() : startBehindGateward());
try {
  for (const revision of REVISIONS) {
    const { passed, failed, expected, stale } = await runSuite(revision, setting.url, interrupted.signal);
    for (const failure of failed) console.log(`  ${failure}`);
    for (const entry of stale) console.log(`  ${entry}: passes, and is listed in expected-${revision}.yaml`);
    console.log(`${revision}: passed ${passed}, failed ${failed.length}, expected ${expected.length}`);
    if (failed.length + stale.length > 0) process.exitCode = 1;
  }
} catch (error) {
  if (!interrupted.signal.aborted) throw error;
  process.exitCode = 130;
} finally {
  await setting.close();
}
