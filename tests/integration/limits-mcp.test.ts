// What calls of MCP servers use of limits, by how they end.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LimitStates } from "../support/api/types.gen.ts";
import { answerIn } from "../support/mcp.ts";
import { asked, call, inSession, Recorder, results, stateless } from "../support/recorder.ts";

const FAILED = { resultType: "complete", content: [{ type: "text", text: "no" }], isError: true };

let recorder: Recorder;
beforeAll(async () => {
  recorder = await Recorder.start();
});
afterAll(() => recorder?.close());

/** Registers a server, and limits the sum of what its calls pay to 10. Returns what is left. */
async function limited(server: string, more: object = {}): Promise<() => Promise<LimitStates["of_agent"][number] | undefined>> {
  const { tenant, agent } = recorder;
  await recorder.server(server);
  const rule = { kind: "amount", max: "10", pointer: "/amount", window: "month", tools: [`${server}/*`], ...more };
  await tenant.api.create("/v1/limits", { limit_id: server, subject_kind: "agent", subject: agent.name, rule });
  return async () => {
    const { of_agent } = await tenant.api.read<LimitStates>(`/v1/limits/status?agent=${agent.name}`);
    return of_agent.find(({ limit_id }) => limit_id === server);
  };
}

const pay = (amount: number) => ({ name: "record", arguments: { amount } });

test.each<[string, string, object, string]>([
  ["without a session gives its amount back", "stateless", {}, "10"],
  ["in a session uses its amount", "session", {}, "4"],
  ["in a session gives its amount back, if the limit says so", "returning", { unclear: "return" }, "10"],
])("a call that fails %s", async (_, server, more, remaining) => {
  const left = await limited(server, more);
  if (server === "stateless") {
    recorder.upstream.answer = results(FAILED);
    await answerIn(await recorder.sendStateless(stateless("tools/call", pay(6)), { server }));
  } else {
    const headers = inSession(await recorder.session(server));
    recorder.upstream.answer = results(FAILED);
    await answerIn(await recorder.send(call("record", pay(6)), { server, headers }));
  }
  await expect.poll(left).toMatchObject({ remaining, reserved: "0" });
});

test("a call that gets the error of another call with its id gives nothing back", async () => {
  const left = await limited("confused");
  const headers = inSession(await recorder.session("confused"));
  let endFirst: (() => void) | undefined;
  recorder.upstream.answer = async (exchange, response) => {
    const { amount } = asked(exchange).params.arguments as { amount: number };
    // The server confuses the two calls: the second one gets the error of the first, and is carried out.
    if (amount === 6) return results(FAILED)(exchange, response);
    await new Promise<void>((resolve) => {
      endFirst = resolve;
    });
    return results({ content: [] })(exchange, response);
  };
  const first = recorder.send(call("record", pay(1)), { server: "confused", headers });
  await expect.poll(() => endFirst).toBeDefined();
  const second = await answerIn(await recorder.send(call("record", pay(6)), { server: "confused", headers }));
  expect(second.result).toMatchObject({ isError: true });
  endFirst?.();
  await answerIn(await first);
  await expect.poll(left).toMatchObject({ remaining: "3", reserved: "0" });
});
