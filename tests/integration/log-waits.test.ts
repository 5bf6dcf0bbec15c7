// Decisions that wait for their checkpoint, with `Prefer: wait=…`. The decision does not change. The answer only has
// more members.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { AuthorizeRequest, AuthorizeResponse } from "../support/api/types.gen.ts";
import type { Reply } from "../support/client.ts";
import { LOG_SECRETS, logSigner } from "../support/exports.ts";
import { canaryCall, eventually, Gateward, INSPECTABLE, NEVER_MS, readCall, type Tenant, writeCall } from "../support/gateward.ts";
import { leafHash, Note, parseTreeHead, VerifierKey, verifyInclusion } from "../support/tlog.ts";

/** The longest wait that docs/receipts.md allows. */
const LONGEST_MS = 10_000;

const waits = (gateward: Gateward, token: string, body: AuthorizeRequest, seconds: number): Promise<Reply<AuthorizeResponse>> =>
  gateward.post(token, "/v1/authorize", body, { headers: { prefer: `wait=${seconds}` } });

describe("a decision that waits", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: 50 }, secrets: LOG_SECRETS });
  });
  afterAll(() => gateward?.close());

  /** The answer has a signed checkpoint, and the proof that the receipt of the decision is in it. Returns its size. */
  async function expectProof({ name }: Tenant, { receipt, log }: AuthorizeResponse): Promise<number> {
    const { checkpoint, inclusion } = log ?? { checkpoint: "", inclusion: undefined };
    const note = new Note(checkpoint);
    expect(note.signaturesOf([new VerifierKey(logSigner(`${name}.lane-0`).vkey)])).toHaveLength(1);
    const { size, root } = parseTreeHead(note.text);
    expect(inclusion).toMatchObject({ log: `${name}.lane-0`, index: (receipt?.seq ?? 0) - 1, size });
    const [row] = await gateward.rows<{ body: string }>("SELECT body FROM receipts WHERE tenant = ?1 AND lane = 0 AND seq = ?2", name, receipt?.seq ?? 0);
    const leaf = leafHash(Buffer.from(row?.body ?? ""));
    expect(inclusion?.leaf_hash).toBe(leaf.toString("base64"));
    const proof = inclusion?.proof.map((hash) => Buffer.from(hash, "base64")) ?? [];
    expect(verifyInclusion(inclusion?.index ?? -1, size, leaf, proof, root)).toBe(true);
    return size;
  }

  test.each<[string, AuthorizeRequest]>([
    ["allow", readCall()],
    ["deny", writeCall({ context: { source_trust: "unknown" } })],
    ["require_approval", writeCall({ context: { source_trust: "semi_trusted_customer" } })],
    ["quarantine", canaryCall()],
  ])("to %s has a proof of its receipt", async (decision, body) => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const { status, body: answer } = await waits(gateward, token, body, 10);
    expect({ status, decision: answer.decision }).toEqual({ status: 200, decision });
    await expectProof(tenant, answer);
  });

  test("has no proof if it has no receipt", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    await waits(gateward, token, canaryCall(), 10);
    const first = await waits(gateward, token, readCall(), 10);
    expect(first.body).toMatchObject({ decision: "deny", reason_code: "agent_quarantined" });
    await expectProof(tenant, first.body);
    const repeated = await waits(gateward, token, readCall(), 10);
    expect(repeated.body).toMatchObject({ decision: "deny", reason_code: "agent_quarantined", receipt: null });
    expect(repeated.body).not.toHaveProperty("log");
  });

  test("and is repeated gets its first answer, with a proof of the same receipt if it waits", async () => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = readCall({ request_id: "r1" });
    const { log, ...first } = (await waits(gateward, token, body, 10)).body;
    const size = await expectProof(tenant, { ...first, ...(log === undefined ? {} : { log }) });
    expect(await gateward.decide(token, body)).toEqual(first);
    await waits(gateward, token, readCall(), 10);
    // The newest checkpoint also covers the other call.
    const again = (await waits(gateward, token, body, 10)).body;
    expect(again).toMatchObject(first);
    expect(await expectProof(tenant, again)).toBeGreaterThan(size);

    // It did not wait at first.
    const late = readCall({ request_id: "r2" });
    const plain = await gateward.decide(token, late);
    const waited = (await waits(gateward, token, late, 10)).body;
    expect(waited).toMatchObject(plain);
    await expectProof(tenant, waited);
  });
});

describe("while no checkpoint comes", () => {
  let gateward: Gateward;
  beforeAll(async () => {
    gateward = await Gateward.start({ entry: INSPECTABLE, vars: { FLUSH_INTERVAL_MS: NEVER_MS }, secrets: LOG_SECRETS });
  });
  afterEach(() => gateward.clockIsAhead(0));
  afterAll(() => gateward?.close());

  test.each([0, 1])("a decision that waits %d s is answered without a proof, and holds", async (seconds) => {
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const body = readCall({ request_id: "r1" });
    const { status, body: answer } = await waits(gateward, token, body, seconds);
    expect({ status, answer }).toMatchObject({ status: 200, answer: { decision: "allow", receipt: { seq: 1 } } });
    expect(answer).not.toHaveProperty("log");
    expect(await gateward.decide(token, body)).toEqual(answer);
  });

  test("none waits longer than 10 s, by the clock of its lane", async () => {
    const ASKED_S = 3_600;
    const tenant = await gateward.tenant();
    const { token } = await tenant.agent();
    const begunMs = Date.now();
    let aheadMs = 0;
    let reply: Reply<AuthorizeResponse> | undefined;
    const answered = waits(gateward, token, readCall(), ASKED_S).then((it) => (reply = it));
    await eventually("it is answered", async () => {
      if (reply === undefined) await gateward.clockIsAhead((aheadMs += 1_000));
      return reply !== undefined;
    });
    await answered;
    expect(aheadMs).toBeLessThan(ASKED_S * 1_000);
    expect(aheadMs + Date.now() - begunMs).toBeGreaterThanOrEqual(LONGEST_MS);
    expect(reply).toMatchObject({ status: 200, body: { decision: "allow", receipt: { seq: 1 } } });
    expect(reply?.body).not.toHaveProperty("log");
  });
});
