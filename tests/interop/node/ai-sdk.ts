// Vercel's AI SDK, as its agents use it: tools by name, which it creates from a list.
import { fromPackages, serve, textOf } from "./driver.ts";

interface Execute {
  (input: unknown, options: { abortSignal: AbortSignal }): Promise<{ content: unknown; isError?: boolean }>;
}
interface AiClient {
  tools(): Promise<Record<string, { execute: Execute }>>;
  close(): Promise<void>;
}
interface Package {
  createMCPClient(config: object): Promise<AiClient>;
}

const { createMCPClient } = (await fromPackages("@ai-sdk/mcp")) as Package;

await serve({
  ableToSendMeta: false,
  async connect(url, headers) {
    const client = await createMCPClient({ transport: { type: "http", url: url.href, headers }, onUncaughtError: () => undefined });
    const list = () => client.tools();
    let tools = await list();
    return {
      async tools() {
        tools = await list();
        return Object.keys(tools);
      },
      async call(name, args, _, abortSignal) {
        const tool = tools[name];
        if (tool === undefined) throw new Error(`the list has no ${name}`);
        const { content, isError = false } = await tool.execute(args, { abortSignal });
        return { text: textOf(content), is_error: isError };
      },
      close: () => client.close(),
    };
  },
});
