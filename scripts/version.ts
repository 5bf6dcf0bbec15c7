// Prints the answer of GET /version, by the built worker in workerd.
import { builtModules, startWithStorage } from "../tests/support/miniflare.ts";

const { url, miniflare } = await startWithStorage({
  modules: builtModules(),
  bindings: { TOKEN_MAC_KEY: "only-for-asking-the-version-0000" },
  migrate: false,
});
try {
  const response = await fetch(new URL("/version", url));
  const version = (await response.json()) as Record<string, unknown>;
  if (response.status !== 200) {
    throw new Error(`GET /version answered ${response.status}: ${JSON.stringify(version)}`);
  }
  console.log(`Bundle ${version.bundle}: ${version.policies} policies, ${version.tools} tools`);
} finally {
  await miniflare.dispose();
}
