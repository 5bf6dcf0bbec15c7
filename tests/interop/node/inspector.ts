// MCP Inspector's command line: each command is a process with its own session.
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { pathInPackages, serve, textOf } from "./driver.ts";

const PROGRAM = pathInPackages("@modelcontextprotocol/inspector/clients/launcher/build/index.js");

await serve({
  ableToSendMeta: true,
  async connect(url, headers) {
    const fixed = ["--cli", "--server-url", url.href, "--transport", "http", "--protocol-era", "auto", "--format", "json", "--quiet", "--stored-auth-only"];
    const named = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
    const run = async (args: string[], signal?: AbortSignal) => {
      const child = spawn(process.execPath, [PROGRAM, ...fixed, ...named, ...args], { stdio: ["ignore", "pipe", "pipe"] });
      running.add(child);
      signal?.addEventListener("abort", () => child.kill("SIGINT"));
      const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
      running.delete(child);
      if (out.trim() === "") throw new Error((JSON.parse(errors) as { error: { message: string } }).error.message);
      return (JSON.parse(out) as { result: Record<string, unknown> }).result;
    };
    const running = new Set<ReturnType<typeof spawn>>();
    return {
      async tools() {
        const { tools } = (await run(["--method", "tools/list"])) as { tools: { name: string }[] };
        return tools.map(({ name }) => name);
      },
      async call(name, args, meta = {}, signal) {
        const metadata = Object.entries(meta).flatMap(([key, value]) => ["--tool-metadata", `${key}=${String(value)}`]);
        const result = await run(["--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args), ...metadata], signal);
        return { text: textOf(result.content), is_error: result.isError === true };
      },
      async close() {
        for (const child of running) child.kill("SIGTERM");
      },
    };
  },
});
