// Every test searches the runtime's log for uncaught errors (`Gateward.close`). These tests show that it finds them.
import { expect, test } from "vitest";
import { eventually, Gateward, HINDERED } from "../support/gateward.ts";

test.each([
  ["that hangs", "/_test/hang", /had hung/],
  ["whose error nobody catches", "/_test/throw", /nobody catches this/],
])("a request %s fails the test that sent it", async (_, path, why) => {
  const gateward = await Gateward.start({ entry: HINDERED });
  await gateward.request(path, { method: "POST" });
  await eventually("the runtime logs it", async () => gateward.logs().some((line) => why.test(line)));
  await expect(gateward.close()).rejects.toThrow(why);
});
