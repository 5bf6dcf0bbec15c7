// The official SDK, 2.x: both eras.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { serve, textOf } from "./driver.ts";

await serve({
  ableToSendMeta: true,
  async connect(url, headers) {
    const client = new Client({ name: "interop", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    return {
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      async call(name, args, _meta, signal) {
        const { content, isError = false } = await client.callTool({ name, arguments: args, ...(_meta && { _meta }) }, { signal });
        return { text: textOf(content), is_error: isError };
      },
      close: () => client.close(),
    };
  },
});
