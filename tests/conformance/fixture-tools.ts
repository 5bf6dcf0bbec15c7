// The fixture's tools that answer at once, report progress, or ask the client within a session. The suite defines their
// names and the expected results.
import { setTimeout as pause } from "node:timers/promises";
import { type CallToolResult, type ContentBlock, fromJsonSchema, type McpServer, type ServerContext, type ServerNotifier } from "@modelcontextprotocol/server";

/** A PNG of one pixel. */
export const IMAGE = {
  type: "image",
  data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  mimeType: "image/png",
} as const;
/** A WAV file's head, with no samples. */
const AUDIO = { type: "audio", data: "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=", mimeType: "audio/wav" } as const;
/** Between two of a tool's messages, so that they are pieces of a stream. */
const STEP_MS = 20;

/** A JSON Schema with any keywords. */
export type Schema = Record<string, unknown>;
export type Arguments = Record<string, unknown>;
export type Calling = (args: Arguments, context: ServerContext) => Promise<CallToolResult>;

export function text(value: string): CallToolResult {
  return { content: [{ type: "text", text: value }] };
}

/** An object with these members, each of which is required. */
export function objectOf(properties: Record<string, Schema> = {}): Schema {
  return { type: "object", properties, required: Object.keys(properties) };
}

export function addTools(server: McpServer, notify: ServerNotifier): void {
  const add = (name: string, description: string, calling: Calling, schema = objectOf()) =>
    server.registerTool(name, { description, inputSchema: fromJsonSchema<Arguments>(schema) }, calling);

  for (const [name, ...content] of CONTENTS) add(name, `Answers with ${content.map(({ type }) => type).join(", ")}`, async () => ({ content }));
  add("test_error_handling", "Fails", async () => {
    throw new Error("This tool always fails");
  });
  add("test_tool_with_progress", "Reports its progress", reportProgress);
  add("test_tool_with_logging", "Logs within a session", logSteps);
  add("test_logging_tool", "Logs to whoever asked for it", async (_, { mcpReq }) => {
    await mcpReq.log("info", "logged");
    return text("done");
  });
  add("test_reconnection", "Closes its stream before it answers", closeStream);
  add("test_streaming_elicitation", "Answers without asking the client anything", async () => text("nothing was asked"));
  add("test_x_mcp_header", "Takes an argument that is in a header too", async ({ region }) => text(`region ${region}`), HEADER_SCHEMA);
  add("json_schema_2020_12_tool", "Has a schema of many keywords", async (args) => text(JSON.stringify(args)), WIDE_SCHEMA);
  add("test_trigger_tool_change", "Says that the list of tools changed", async () => {
    notify.toolsChanged();
    return text("said");
  });
  add("test_trigger_prompt_change", "Says that the list of prompts changed", async () => {
    notify.promptsChanged();
    return text("said");
  });

  const prompt = objectOf({ prompt: { type: "string" } });
  add("test_sampling", "Asks the client's model", ({ prompt }, { mcpReq }) =>
    reporting(mcpReq.send({ method: "sampling/createMessage", params: { messages: [{ role: "user", content: { type: "text", text: prompt } }], maxTokens: 100 } })), prompt);
  const message = objectOf({ message: { type: "string" } });
  add("test_elicitation", "Asks the user", ({ message }, { mcpReq }) => ask(mcpReq, message, objectOf({ response: { type: "string" } })), message);
  add("test_elicitation_sep1034_defaults", "Asks the user, with defaults", (_, { mcpReq }) => ask(mcpReq, "Is that so?", DEFAULTS_SCHEMA));
  add("test_elicitation_sep1330_enums", "Asks the user to choose", (_, { mcpReq }) => ask(mcpReq, "Which ones?", ENUMS_SCHEMA));
}

const CONTENTS: [string, ...ContentBlock[]][] = [
  ["test_simple_text", { type: "text", text: "This is a simple text response for testing." }],
  ["test_image_content", IMAGE],
  ["test_audio_content", AUDIO],
  ["test_embedded_resource", { type: "resource", resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "embedded" } }],
  [
    "test_multiple_content_types",
    { type: "text", text: "Multiple content types test:" },
    IMAGE,
    { type: "resource", resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: "{}" } },
  ],
];

const reportProgress: Calling = async (_, { mcpReq }) => {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
    await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    await pause(STEP_MS);
  }
  return text("done");
};

const logSteps: Calling = async (_, { mcpReq }) => {
  for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    await mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
    await pause(STEP_MS);
  }
  return text("done");
};

const closeStream: Calling = async (_, { http }) => {
  http?.closeSSE?.();
  await pause(STEP_MS);
  return text("answered on another stream");
};

function ask(mcpReq: ServerContext["mcpReq"], message: unknown, requestedSchema: Schema): Promise<CallToolResult> {
  return reporting(mcpReq.send({ method: "elicitation/create", params: { message, requestedSchema } }));
}

/** The client's answer as text, or why the client did not answer. */
async function reporting(answer: Promise<unknown>): Promise<CallToolResult> {
  try {
    return text(`answer: ${JSON.stringify(await answer)}`);
  } catch (error) {
    return text(`no answer: ${error}`);
  }
}

const HEADER_SCHEMA: Schema = {
  type: "object",
  properties: { region: { type: "string", "x-mcp-header": "Region" }, level: { type: "integer" } },
};

const WIDE_SCHEMA: Schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const DEFAULTS_SCHEMA: Schema = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
};

const titled = (...values: string[]) => values.map((value) => ({ const: value, title: value.toUpperCase() }));

const ENUMS_SCHEMA: Schema = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: titled("value1", "value2", "value3") },
    legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
    untitledMulti: { type: "array", minItems: 1, maxItems: 3, items: { type: "string", enum: ["option1", "option2"] } },
    titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: titled("value1", "value2") } },
  },
};
