// Runs the blocks of a page in one shell, in a directory that looks like the project's.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Block } from "./page.ts";

/** The files of the project that commands in pages need. */
const LINKED = ["docs/snippets", "node_modules", "target/debug/gateward"];

export interface Printed {
  /** Of the block's last command. */
  status: number;
  /** Standard output and standard error, in the order in which they were written. */
  text: string;
}

/** Makes a directory to run commands in. */
export function makeSandbox(directory: string): void {
  for (const path of LINKED) {
    mkdirSync(join(directory, dirname(path)), { recursive: true });
    symlinkSync(resolve(path), join(directory, path));
  }
}

/**
 * Runs the blocks one after another. `limitMs` is the time limit of all blocks together. A block that has not ended by
 * then has no result.
 */
export async function run(blocks: Block[], directory: string, environment: Record<string, string>, limitMs: number): Promise<(Printed | undefined)[]> {
  const results = join(directory, ".results");
  mkdirSync(results);
  const file = (name: string) => join(results, name);
  // Files, because a command that reads standard input would read the rest of the script.
  const steps = blocks.flatMap(({ commands, first }, at) => [
    ...(first === undefined ? [] : [step(`${at}-first`, first)]),
    step(String(at), commands),
  ]);
  function step(name: string, commands: string): string {
    writeFileSync(file(`${name}.sh`), `${commands}\n`);
    return `. ${file(`${name}.sh`)} < /dev/null > ${file(`${name}.out`)} 2>&1; echo $? > ${file(`${name}.status`)}`;
  }
  function printed(name: string): Printed | undefined {
    if (!existsSync(file(`${name}.status`))) return undefined;
    return { status: Number(readFileSync(file(`${name}.status`), "utf8")), text: readFileSync(file(`${name}.out`), "utf8") };
  }

  const shell = spawn("bash", ["-c", steps.join("\n")], {
    cwd: directory,
    // It has its own process group, so that processes which a page leaves running end with it.
    detached: true,
    stdio: "ignore",
    env: { PATH: process.env.PATH ?? "", HOME: directory, ...environment },
  });
  const limit = setTimeout(() => endGroup(shell.pid), limitMs);
  await once(shell, "exit");
  clearTimeout(limit);
  endGroup(shell.pid);
  return blocks.map(({ first }, at) => {
    const setup = first === undefined ? undefined : printed(`${at}-first`);
    return setup !== undefined && setup.status !== 0 ? setup : printed(String(at));
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has ended.
  }
}
