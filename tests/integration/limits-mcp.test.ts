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

test.each([
  ["without a session gives its amount back", "refusing", "10"],
  ["in a session uses its amount", "refusing-session", "4"],
])("a call %s, if the server answers with a bare 404", async (_, server, remaining) => {
  const left = await limited(server);
  const headers = server === "refusing" ? undefined : inSession(await recorder.session(server));
  recorder.upstream.answer = (_, response) => response.writeHead(404).end();
  const answered = headers ? recorder.send(call("record", pay(6)), { server, headers }) : recorder.sendStateless(stateless("tools/call", pay(6)), { server });
  expect((await answered).status).toBe(404);
  await expect.poll(left).toMatchObject({ remaining, reserved: "0" });
});

test("a server's state goes only with the call that it belongs to", async () => {
  const left = await limited("asking");
  const send = async (params: object) => answerIn(await recorder.sendStateless(stateless("tools/call", { ...params }), { server: "asking" }));
  recorder.upstream.answer = results({ resultType: "input_required", requestState: "s" });
  const { result } = await send(pay(9));
  const requestState = result?.requestState;
  expect(requestState).toMatch(/^[0-9a-f]{32}\.s$/);
  await expect.poll(left).toMatchObject({ remaining: "10", reserved: "0" });
  recorder.upstream.answer = results({ resultType: "complete", content: [] });
  recorder.upstream.received.length = 0;
  for (const other of [pay(1), { ...pay(9), name: "change" }, { name: "record" }]) {
    const { error } = await send({ ...other, requestState });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("does not belong to this call") });
  }
  expect(recorder.upstream.received).toEqual([]);
  const inputResponses = { sure: { action: "accept", content: { sure: true } } };
  expect((await send({ ...pay(9), requestState, inputResponses })).error).toBeUndefined();
  expect(recorder.upstream.received.map((exchange) => asked(exchange).params.requestState)).toEqual(["s"]);
  await expect.poll(left).toMatchObject({ remaining: "1", reserved: "0" });
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
