// The official SDK, 1.x: sessions only.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { serve, textOf } from "./driver.ts";

await serve({
  ableToSendMeta: true,
  async connect(url, headers) {
    const client = new Client({ name: "interop", version: "1.0.0" });
    const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
    await client.connect(transport);
    return {
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      async call(name, args, _meta, signal) {
        const { content, isError = false } = await client.callTool({ name, arguments: args, _meta }, undefined, { signal });
        return { text: textOf(content), is_error: isError === true };
      },
      close: () => client.close(),
    };
  },
});
