// After a trap, the state of Wasm's memory is unknown. `entry.js` starts a new instance of the module for the next
// event, and each lane starts again from its storage.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, Gateward, HINDERED, readCall } from "../support/gateward.ts";

let gateward: Gateward;
beforeAll(async () => {
  gateward = await Gateward.start({ entry: HINDERED });
});
afterAll(() => gateward.close());

test("a trap is logged, and the next calls are decided by a new instance that knows the earlier ones", async () => {
  const tenant = await gateward.tenant();
  const { token } = await tenant.agent();
  const decide = (request_id: string) => gateward.decide(token, readCall({ request_id }));
  const before = await decide("before");
  expect(before.decision).toBe("allow");

  await gateward.request("/_test/trap", { method: "POST" });
  expect(await decide("before")).toEqual(before);
  expect((await decide("after")).decision).toBe("allow");

  const aboutWasm = () => gateward.lines().filter(({ event }) => event.startsWith("wasm_"));
  await eventually("the runtime hands over both lines", async () => aboutWasm().length >= 2);
  expect(aboutWasm().map(({ level, event }) => [level, event])).toEqual([
    ["error", "wasm_trapped"],
    ["info", "wasm_restarted"],
  ]);
  expect(aboutWasm()[0]?.detail).toContain("unreachable");
});
