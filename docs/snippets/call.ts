// Calls a tool of an MCP server through Gateward, with the official SDK.
//
//   node call.ts <token file> <server> <tool> <arguments> [<approval id>]
import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [tokenFile = "", server = "", name = "", parameters = "{}", approvalId] = process.argv.slice(2);
const url = new URL(`/mcp/${server}`, process.env.GATEWARD_URL ?? "http://127.0.0.1:8787");
const headers = { Authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}` };

const client = new Client({ name: "tutorial", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
const { content } = await client.callTool({
  name,
  arguments: JSON.parse(parameters),
  _meta: {
    // Where the text came from that made the agent act.
    "dev.gateward/source_trust": "semi_trusted_customer",
    ...(approvalId !== undefined && { "dev.gateward/approval_id": approvalId }),
  },
});
for (const part of content) console.log(part.type === "text" ? part.text : part.type);
await client.close();
