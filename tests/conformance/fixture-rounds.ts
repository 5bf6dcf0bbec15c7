// The fixture's tools and prompt that need several rounds in the revision without sessions: they ask for missing input
// in a result, and the client calls again with it.
import {
  acceptedContent,
  type CallToolResult,
  type ClientCapabilities,
  CLIENT_CAPABILITIES_META_KEY,
  fromJsonSchema,
  type GetPromptResult,
  type InputRequests,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type McpServer,
  type PrimitiveSchemaDefinition,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { type Arguments, objectOf, text } from "./fixture-tools.ts";

/** What the next round of a call needs to know. */
export interface RoundState {
  round: number;
  name?: string | undefined;
}

type Answered = Record<string, unknown> | undefined;
type Round = (answers: Answered, context: ServerContext) => Promise<CallToolResult | InputRequiredResult>;

export function addRounds(server: McpServer, states: RequestStateCodec<RoundState>): void {
  const add = (name: string, description: string, round: Round) =>
    server.registerTool(
      name,
      { description, inputSchema: fromJsonSchema<Arguments>(objectOf()) },
      (_, context): Promise<CallToolResult | InputRequiredResult> => round(context.mcpReq.inputResponses, context),
    );
  /** Asks until the user confirmed, with a state that has to come back. */
  const confirmed: Round = async (answers, { mcpReq }) =>
    mcpReq.requestState<RoundState>() === undefined || acceptedContent(answers, "confirm") === undefined
      ? inputRequired({ inputRequests: { confirm: question("Is that right?", "ok", { type: "boolean" }) }, requestState: await states.mint({ round: 1 }) })
      : text("state-ok");

  add("test_input_required_result_elicitation", "Asks the user's name", async (answers) => {
    const name = nameIn(answers, "user_name");
    return name === undefined ? required({ user_name: NAME }) : text(`Hello, ${name}!`);
  });
  add("test_input_required_result_sampling", "Asks the client's model", async (answers) => {
    const answer = inputResponse(answers, "capital_question");
    return answer.kind === "sampling" ? text(JSON.stringify(answer.result.content)) : required({ capital_question: sampling("What is the capital of France?") });
  });
  add("test_input_required_result_list_roots", "Asks for the client's roots", async (answers) => {
    const answer = inputResponse(answers, "client_roots");
    return answer.kind === "roots" ? text(answer.roots.map(({ uri }) => uri).join(" ")) : required({ client_roots: inputRequired.listRoots() });
  });
  add("test_input_required_result_request_state", "Gives a state, and wants it back", confirmed);
  add("test_input_required_result_tampered_state", "Gives a state, and wants it back unchanged", confirmed);
  add("test_input_required_result_multiple_inputs", "Asks for everything at once", async (answers) => {
    const asked = { user_name: NAME, greeting: sampling("Greet the user"), client_roots: inputRequired.listRoots() };
    return Object.keys(asked).every((key) => answers?.[key] !== undefined)
      ? text("complete")
      : inputRequired({ inputRequests: asked, requestState: await states.mint({ round: 1 }) });
  });
  add("test_input_required_result_multi_round", "Asks twice", async (answers, { mcpReq }) => {
    const { round, name } = mcpReq.requestState<RoundState>() ?? { round: 0 };
    if (round === 2) return text(`${name} likes ${acceptedContent<{ color: string }>(answers, "step2")?.color}`);
    const asked: InputRequests = round === 0 ? { step1: NAME } : { step2: question("What is your favourite colour?", "color") };
    return inputRequired({ inputRequests: asked, requestState: await states.mint({ round: round + 1, name: nameIn(answers, "step1") }) });
  });
  add("test_input_required_result_capabilities", "Asks only for what the client said that it can do", async (answers, { mcpReq }) => {
    const can = (mcpReq.envelope as Record<string, ClientCapabilities> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
    const asked: InputRequests = {
      ...(can?.elicitation && { user_name: NAME }),
      ...(can?.sampling && { greeting: sampling("Greet the user") }),
      ...(can?.roots && { client_roots: inputRequired.listRoots() }),
    };
    return answers === undefined && Object.keys(asked).length > 0 ? required(asked) : text("complete");
  });
  add("test_missing_capability", "Asks the client's model, whether it has one or not", async (answers) =>
    inputResponse(answers, "answer").kind === "sampling" ? text("complete") : required({ answer: sampling("Say: pong") }));

  server.registerPrompt("test_input_required_result_prompt", { description: "Asks for its context" }, async (context): Promise<GetPromptResult | InputRequiredResult> => {
    // A prompt without arguments gets the request's context. The types do not say so.
    const { inputResponses } = (context as ServerContext).mcpReq;
    const given = acceptedContent<{ context: string }>(inputResponses, "user_context")?.context;
    if (given === undefined) return required({ user_context: question("In which context?", "context") });
    return { messages: [{ role: "user", content: { type: "text", text: `The context is ${given}` } }] };
  });
}

function required(inputRequests: InputRequests): InputRequiredResult {
  return inputRequired({ inputRequests });
}

function question(message: string, field: string, asked: PrimitiveSchemaDefinition = { type: "string" }) {
  return inputRequired.elicit({ message, requestedSchema: { type: "object", properties: { [field]: asked }, required: [field] } });
}

const NAME = question("What is your name?", "name");

function nameIn(answers: Answered, key: string): string | undefined {
  const name = acceptedContent<{ name: unknown }>(answers, key)?.name;
  return typeof name === "string" ? name : undefined;
}

function sampling(prompt: string) {
  return inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: prompt } }], maxTokens: 100 });
}
