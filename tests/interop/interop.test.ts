// The clients of `make interop` that CI runs: the oldest and newest SDKs, in both eras.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLIENTS, type ClientSpec, isInstalled } from "./clients.ts";
import type { Era } from "./node/driver.ts";
import { CELLS, Interop } from "./runner.ts";

/** Those whose packages `make test` has; the others only `make interop` installs. */
const DRIVEN = CLIENTS.filter(({ short }) => short === true).flatMap((spec) => spec.eras.map((era): [string, Era, ClientSpec] => [spec.name, era, spec]));

let interop: Interop;
beforeAll(async () => {
  interop = await Interop.start();
});
afterAll(() => interop?.close());

describe("everything that a client meets reaches its user, and its session goes on after it", () => {
  test.for(DRIVEN)("%s, before a server of the %s era", async ([, era, spec], { skip }) => {
    if (!isInstalled(spec)) return skip("its packages are not installed: scripts/clients.sh says why");
    const { findings } = await interop.run(spec, era);
    const failed = CELLS.filter((cell) => !findings[cell].holds).map((cell) => `${cell}: ${findings[cell].shown}`);
    expect(failed).toEqual([]);
  });
});
