import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

let folder: string;

/** A repository with the script and the programs that it calls. `wrangler whoami` succeeds if `account` exists. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gateward-deploy-"));
  for (const name of ["scripts", "bin"]) mkdirSync(join(folder, name));
  copyFileSync(join(import.meta.dirname, "deploy.sh"), join(folder, "scripts/deploy.sh"));
  program("scripts/build-wasm.sh", "");
  program("bin/node", "");
  program("bin/wrangler", 'if [ "$1" = whoami ]; then test -f account; else echo "$@" >> deploys; fi');
  writeFileSync(join(folder, "deploys"), "");
});
afterEach(() => rmSync(folder, { recursive: true }));

function program(path: string, text: string): void {
  writeFileSync(join(folder, path), `#!/bin/sh\n${text}\n`);
  chmodSync(join(folder, path), 0o755);
}

function run(command: string, ...args: string[]) {
  const env = { PATH: `${join(folder, "bin")}:${process.env.PATH}`, HOME: folder };
  return spawnSync(command, args, { cwd: folder, env, encoding: "utf8" });
}

/** The script's exit status, what it gave `wrangler deploy`, and what it said. */
function deploy({ database = "11111111-1111-1111-1111-111111111111", account = true }, ...args: string[]): [number | null, string, string] {
  writeFileSync(join(folder, "wrangler.toml"), `database_id = "${database}"\n`);
  if (account) writeFileSync(join(folder, "account"), "");
  const { status, stderr } = run("scripts/deploy.sh", ...args);
  return [status, readFileSync(join(folder, "deploys"), "utf8").trim(), stderr];
}

const none = "00000000-0000-0000-0000-000000000000";
test.each<[string, Parameters<typeof deploy>, number, string, string]>([
  ["uploads, if an account and a database are set up", [{}], 0, "", ""],
  ["fails after a dry run without an account", [{ account: false }], 1, " --dry-run", "nothing was deployed, because no Cloudflare account"],
  ["fails after a dry run without a database", [{ database: none }], 1, " --dry-run", "nothing was deployed, because wrangler.toml has no `database_id`"],
  ["succeeds with a dry run that was asked for", [{ database: none, account: false }, "--dry-run"], 0, " --dry-run", ""],
])("a deploy %s", (_, args, status, flags, said) => {
  const [exited, deploys, stderr] = deploy(...args);
  expect([exited, deploys]).toEqual([status, `deploy --var COMMIT:unknown${flags}`]);
  expect(stderr).toContain(said);
  if (said === "") expect(stderr).toBe("");
});

test("a deploy tells which commit it is of, and whether a file was changed since", () => {
  writeFileSync(join(folder, "policy"), "as committed");
  for (const args of [["init", "--quiet"], ["add", "policy"], ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message", "m"], ["tag", "v1"]]) {
    expect(run("git", ...args).status).toBe(0);
  }
  const [, clean] = deploy({});
  expect(clean).toMatch(/^deploy --var COMMIT:[0-9a-f]{7,}$/);
  writeFileSync(join(folder, "policy"), "edited");
  const [, deploys] = deploy({});
  expect(deploys).toBe(`${clean}\n${clean}-dirty`);
});
