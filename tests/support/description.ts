// Checks answers against the API's description, docs/openapi.json: the description must list the answer for its method,
// path and status.
//
// The document's schemas are open, so that a client still works when an answer has a new member. This check closes
// them: a member that the document does not have is a violation.
import { readFileSync } from "node:fs";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";

/** Paths that are deliberately not in the document: every method is open there, and the servers behind Gateward answer. */
const UNDESCRIBED = [
  /^\/mcp\//,
  /^\/http\//,
  /^\/v1\/forward-auth(\/|$)/,
  // The worker that a test wraps around Gateward answers these.
  /^\/_test\//,
];

/** Statuses and codes of the answers to a path, or a method, that the document does not have. */
const ELSEWHERE: Record<number, string[]> = { 404: ["not_found"], 405: ["method_not_allowed"], 503: ["misconfigured"] };

const RATE = ["ratelimit", "ratelimit-policy"];
/** Headers that an answer has only under the condition in their description. It always has all other headers. */
const CONDITIONAL = { success: ["idempotency-replayed", "retry-after", ...RATE], problem: RATE };

/** The most violations that are reported for one answer: a list with a wrong schema has one for each item. */
const MAX_VIOLATIONS = 5;

export interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  [keyword: string]: unknown;
}
interface Response {
  $ref?: string;
  headers?: Record<string, unknown>;
  content?: Record<string, { schema: Schema }>;
}
export interface Operation {
  operationId: string;
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, Response>;
}
export interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Response>; headers: Record<string, unknown> };
}

export interface Answered {
  method: string;
  /** As it was requested, without the query. */
  path: string;
  status: number;
  headers: Headers;
  text: string;
}

const pointer = (...parts: string[]) => `#/${parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}`;
/** Whether a schema names members of an object, and allows others. False if it names none: then any object is valid. */
const isOpen = ({ properties, allOf, additionalProperties }: Schema) => (properties !== undefined || allOf !== undefined) && additionalProperties === undefined;

export class Description {
  readonly document: Document;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #templates: { path: string; pattern: RegExp }[];

  constructor(document: Document) {
    this.document = document;
    ajvFormats.default(this.#ajv);
    const parameters = (path: string) => path.split("{").length;
    this.#templates = Object.keys(document.paths)
      .sort((one, other) => parameters(one) - parameters(other))
      .map((path) => ({ path, pattern: new RegExp(`^${path.replace("/tile/{tile}", "/tile/.+").replace(/\{\w+\}/g, "[^/]+")}$`) }));
    const schemas = Object.fromEntries(Object.entries(document.components.schemas).map(([name, schema]) => [name, this.#closeMembers(schema)]));
    this.#ajv.addSchema({ components: { schemas } }, "closed");
  }

  static read(): Description {
    return new Description(JSON.parse(readFileSync("docs/openapi.json", "utf8")) as Document);
  }

  /** Whether a path is deliberately not in the document. */
  leavesOut(path: string): boolean {
    return UNDESCRIBED.some((pattern) => pattern.test(path));
  }

  /** What is wrong with an answer, one sentence each; empty when nothing is. */
  violationsOf(answer: Answered): string[] {
    const { method, path, status, headers } = answer;
    const template = this.#templates.find(({ pattern }) => pattern.test(path))?.path;
    const operation = template === undefined ? undefined : this.document.paths[template]?.[(method === "HEAD" ? "GET" : method).toLowerCase()];
    const violations = headers.has("x-request-id") ? [] : ["it has no header `X-Request-Id`"];
    if (operation === undefined) {
      const codes = ELSEWHERE[status];
      if (codes === undefined) return [...violations, `the document has no ${method} ${template ?? path}, so it must be ${Object.keys(ELSEWHERE).join(" or ")}`];
      if (status === 405 && !headers.has("allow")) violations.push("it has no header `Allow`");
      const problem = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
      return [...violations, ...this.#bodyViolations("elsewhere", problem, answer, codes)];
    }
    const listed = operation.responses[status];
    if (listed === undefined) return [...violations, `the document lists no status ${status} for ${operation.operationId}: ${answer.text.slice(0, 200)}`];
    const name = listed.$ref?.split("/").at(-1);
    const response = name === undefined ? listed : this.document.components.responses[name];
    if (response === undefined) return [...violations, `${listed.$ref} leads nowhere`];
    const promised = Object.keys(response.headers ?? {}).map((header) => header.toLowerCase());
    for (const header of Object.keys(this.document.components.headers).map((header) => header.toLowerCase())) {
      const repeated = headers.has("idempotency-replayed") && header === "etag";
      const conditional = repeated || CONDITIONAL[status < 400 ? "success" : "problem"].includes(header);
      if (headers.has(header) && !promised.includes(header)) violations.push(`the document does not list its header \`${header}\``);
      if (!headers.has(header) && promised.includes(header) && !conditional) violations.push(`it has no header \`${header}\``);
    }
    // The name of a shared response is the list of its codes.
    const codes = status < 400 ? undefined : name?.split(".");
    return [...violations, ...this.#bodyViolations(`${operation.operationId} ${status}`, response.content ?? {}, answer, codes)];
  }

  /** Whether a value matches the schema at this place of the document. Other members are allowed. */
  validator(...place: string[]): ValidateFunction {
    if (this.#ajv.getSchema("document") === undefined) this.#ajv.addSchema(this.document, "document");
    return this.#ajv.compile({ $ref: `document${pointer(...place)}` });
  }

  #bodyViolations(key: string, content: Record<string, { schema: Schema }>, { method, status, headers, text }: Answered, codes?: string[]): string[] {
    const type = headers.get("content-type") ?? "";
    const schema = content[type]?.schema;
    if (schema === undefined) return [`its content type is \`${type}\`, not one of ${Object.keys(content).join(", ")}`];
    if (method === "HEAD") return [];
    let body: { code?: string; status?: number };
    try {
      body = type.startsWith("text/") || type === "application/octet-stream" ? text : JSON.parse(text);
    } catch {
      return [`its body is not JSON: ${text.slice(0, 200)}`];
    }
    let validate = this.#validators.get(key);
    if (validate === undefined) {
      validate = this.#ajv.compile(this.#close(schema, "closed"));
      this.#validators.set(key, validate);
    }
    const violations = validate(body) ? [] : sentences(validate.errors ?? []);
    if (codes !== undefined && !codes.includes(body.code ?? "")) violations.push(`its code is \`${body.code}\`, not one of ${codes.join(", ")}`);
    if (codes !== undefined && body.status !== status) violations.push(`its body says status ${body.status}`);
    return violations;
  }

  /**
   * A schema in which no object has a member that the schema does not name. The members of an `allOf`
   * stay open, since each sees those of the others too.
   */
  #close(schema: Schema, base = ""): Schema {
    if (schema.$ref !== undefined) {
      const target = this.document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {};
      return { $ref: `${base}${schema.$ref}`, ...(isOpen(target) && { unevaluatedProperties: false }) };
    }
    return { ...this.#closeMembers(schema, base), ...(isOpen(schema) && { unevaluatedProperties: false }) };
  }

  /** The same for the members of an object, or the items of a list. */
  #closeMembers({ discriminator, ...schema }: Schema, base = ""): Schema {
    const each = (schemas: Schema[]) => schemas.map((one) => this.#close(one, base));
    const closed: Schema = { ...schema };
    if (schema.properties !== undefined) closed.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, member]) => [name, this.#close(member, base)]));
    if (schema.items !== undefined) closed.items = this.#close(schema.items, base);
    if (schema.anyOf !== undefined) closed.anyOf = each(schema.anyOf);
    if (schema.allOf !== undefined) closed.allOf = schema.allOf.map((one) => (one.$ref === undefined ? this.#closeMembers(one, base) : { ...one, $ref: `${base}${one.$ref}` }));
    if (schema.oneOf !== undefined && discriminator === undefined) closed.oneOf = each(schema.oneOf);
    if (discriminator !== undefined) {
      // Only the branch that the discriminator names is checked, so that the report has the errors of that branch.
      const { propertyName, mapping } = discriminator;
      delete closed.oneOf;
      closed.required = [propertyName];
      closed.properties = { [propertyName]: { enum: Object.keys(mapping) } };
      closed.allOf = Object.entries(mapping).map(([value, $ref]) => ({
        if: { properties: { [propertyName]: { const: value } } },
        then: this.#close({ $ref }, base),
      }));
    }
    return closed;
  }
}

/** What ajv found, with the place first. */
function sentences(errors: ErrorObject[]): string[] {
  const said = errors.map(({ instancePath, keyword, message, params }) => {
    const place = instancePath === "" ? "its body" : instancePath;
    const unknown = params.unevaluatedProperty ?? params.additionalProperty;
    if (unknown !== undefined) return `${place} has the member \`${unknown}\`, which the document does not have`;
    return keyword === "enum" ? `${place} must be one of ${params.allowedValues.join(", ")}` : `${place} ${message}`;
  });
  return said.length > MAX_VIOLATIONS ? [...said.slice(0, MAX_VIOLATIONS), `and ${said.length - MAX_VIOLATIONS} more`] : said;
}
