// The fixture's resources and prompts, with subscriptions, completion, and a log level.
import { fromJsonSchema, type GetPromptResult, type McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { IMAGE, objectOf } from "./fixture-tools.ts";

export function addContents(server: McpServer): void {
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
  server.server.setRequestHandler("logging/setLevel", async () => ({}));
  server.server.setRequestHandler("completion/complete", async () => ({ completion: { values: [], total: 0, hasMore: false } }));
}

function addResources(server: McpServer): void {
  const plain = { mimeType: "text/plain" };
  for (const name of ["static-text", "watched-resource"]) {
    const uri = `test://${name}`;
    server.registerResource(name, uri, plain, async () => ({ contents: [{ uri, ...plain, text: `The content of ${name}.` }] }));
  }
  const { data: blob, mimeType } = IMAGE;
  const binary = "test://static-binary";
  server.registerResource("static-binary", binary, { mimeType }, async () => ({ contents: [{ uri: binary, mimeType, blob }] }));
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { mimeType: "application/json" },
    async ({ href: uri }, { id }) => ({ contents: [{ uri, mimeType: "application/json", text: JSON.stringify({ id }) }] }),
  );
}

function addPrompts(server: McpServer): void {
  const add = (name: string, description: string, content: (args: Record<string, string>) => GetPromptResult["messages"][number]["content"], ...args: string[]) => {
    const argsSchema = fromJsonSchema<Record<string, string>>(objectOf(Object.fromEntries(args.map((arg) => [arg, { type: "string" }]))));
    server.registerPrompt(name, { description, ...(args.length > 0 && { argsSchema }) }, async (given) => ({
      messages: [{ role: "user", content: content(given) }],
    }));
  };
  add("test_simple_prompt", "Says something", () => ({ type: "text", text: "This is a simple prompt for testing." }));
  add("test_prompt_with_arguments", "Says what it was given", ({ arg1, arg2 }) => ({ type: "text", text: `arg1='${arg1}', arg2='${arg2}'` }), "arg1", "arg2");
  add(
    "test_prompt_with_embedded_resource",
    "Shows a resource",
    ({ resourceUri = "" }) => ({ type: "resource", resource: { uri: resourceUri, mimeType: "text/plain", text: "embedded" } }),
    "resourceUri",
  );
  add("test_prompt_with_image", "Shows an image", () => IMAGE);
}
