// Prints what the built worker says of itself: the answer of GET /version, from workerd.
import { createTestHarness } from "wrangler";

const harness = createTestHarness({
  workers: [{ configPath: "wrangler.toml", secrets: { TOKEN_MAC_KEY: "only-for-asking-the-version-0000" } }],
});
try {
  const { url } = await harness.listen();
  const response = await fetch(new URL("/version", url));
  const version = /** @type {Record<string, unknown>} */ (await response.json());
  if (response.status !== 200) {
    throw new Error(`GET /version answered ${response.status}: ${JSON.stringify(version)}`);
  }
  console.log(`Bundle ${version.bundle}: ${version.policies} policies, ${version.tools} tools`);
} finally {
  await harness.close();
}
