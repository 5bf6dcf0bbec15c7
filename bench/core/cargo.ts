// Runs programs for the benches: cargo, valgrind and scripts.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";

const ROOT = resolve(import.meta.dirname, "../..");

/** Runs a program to its end, in the repository's root. It returns its standard output. */
export async function run(command: string, args: string[], env = process.env): Promise<string> {
  const program = spawn(command, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(program.stdout), once(program, "exit")]);
  if (code !== 0) throw new Error(`\`${[command, ...args].join(" ")}\` ended with ${code}:\n${output}`);
  return output;
}

/** Where cargo builds. */
export async function targetDirectory(): Promise<string> {
  const metadata = await run("cargo", ["metadata", "--no-deps", "--format-version", "1"]);
  return (JSON.parse(metadata) as { target_directory: string }).target_directory;
}
