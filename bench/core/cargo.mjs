// Running programs for the benches: cargo, valgrind and scripts, from the repository's root.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";

const ROOT = resolve(import.meta.dirname, "../..");

/**
 * Runs a program to its end; what it says of its progress goes to standard error.
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<string>} its standard output
 */
export async function run(command, args, env = process.env) {
  const program = spawn(command, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(program.stdout), once(program, "exit")]);
  if (code !== 0) throw new Error(`\`${[command, ...args].join(" ")}\` ended with ${code}:\n${output}`);
  return output;
}

/** Where cargo builds. */
export async function targetDirectory() {
  const metadata = await run("cargo", ["metadata", "--no-deps", "--format-version", "1"]);
  return /** @type {{ target_directory: string }} */ (JSON.parse(metadata)).target_directory;
}
