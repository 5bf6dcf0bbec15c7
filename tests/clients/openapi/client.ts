// Uses the client that @hey-api/openapi-ts made of Gateward's description, which is beside this file
// when it runs.
//
// Its input is `{"url", "agent_token", "administrator_token", "agent", "call"}`; it prints what it got,
// each receipt by the members that its kind has.
import { text } from "node:stream/consumers";
import { createClient } from "./gateward/client/index.ts";
import { authorize, type AuthorizeRequest, createAgent, listDecisions, listReceipts, type ReceiptBody } from "./gateward/index.ts";

/** The compiler knows which members each kind has, and that there is no other kind. */
function said(body: ReceiptBody): string {
  switch (body.kind) {
    case "decision":
      return `decision ${body.decision} ${body.reason_code} ${body.server}/${body.tool}`;
    case "approval":
      return `approval ${body.change} ${body.status} ${body.approval_id}`;
    case "outcome":
      return `outcome ${body.ending} ${body.status} ${body.result_sha256}`;
    case "dead_letter":
      return `dead_letter ${body.change} ${body.message_id} ${body.attempts}`;
    case "registry":
      return `registry ${body.change} ${body.administrator}`;
    case "lane_checkpoint":
      return `lane_checkpoint ${body.of_lane} ${body.checkpoint}`;
    case "registry_event":
      return `registry_event ${body.event_id} ${body.event_hash}`;
    default:
      return body satisfies never;
  }
}

const given = JSON.parse(await text(process.stdin)) as { url: string; agent_token: string; administrator_token: string; agent: string; call: AuthorizeRequest };
const agent = createClient({ baseUrl: given.url, auth: given.agent_token });
const administrator = createClient({ baseUrl: given.url, auth: given.administrator_token });

const { data: decided } = await authorize({ client: agent, body: given.call, throwOnError: true });
const { data: decisions } = await listDecisions({ client: agent, query: { limit: 200 }, throwOnError: true });
const { data: receipts } = await listReceipts({ client: administrator, query: { lane: 0 }, throwOnError: true });
const body = { agent: given.agent, environment: "production" };
const { data: created } = await createAgent({ client: administrator, body, throwOnError: true });
const { error: refused } = await createAgent({ client: administrator, body });

console.log(
  JSON.stringify({
    decided: { decision: decided.decision, receipt: decided.receipt?.receipt_id },
    decisions: decisions.decisions.map(({ decision_id }) => decision_id),
    receipts: receipts.receipts.map((receipt) => said(receipt.body)),
    created: { agent: created.agent, lane: created.lane, allowed_tools: created.allowed_tools },
    refused: { status: refused?.status, code: refused?.code },
  }),
);
