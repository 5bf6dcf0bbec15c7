// Reads and checks Prometheus's text format.
import { execFileSync } from "node:child_process";
import type { Client } from "./client.ts";

/** Runs promtool. Throws what it prints if it finds a mistake. */
export function promtool(args: string[], input?: string): string {
  const binary = execFileSync("scripts/prometheus.sh", { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
  return execFileSync(binary, args, { encoding: "utf8", ...(input === undefined ? {} : { input }), stdio: "pipe" });
}

/** The samples of a text, each by its name and labels as they are written. */
export class Samples {
  readonly text: string;
  readonly #samples: Map<string, number>;

  constructor(text: string) {
    this.text = text;
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    this.#samples = new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
  }

  /** The metrics that a credential gets. */
  static async read(client: Client, token: string): Promise<Samples> {
    const response = await fetch(new URL("/metrics", client.url), { headers: { authorization: `Bearer ${token}` } });
    if (response.status !== 200) throw new Error(`/metrics was answered ${response.status}: ${await response.text()}`);
    return new Samples(await response.text());
  }

  /** The sum over the samples of a metric with these labels, whatever their other labels are. */
  sum(name: string, labels: Record<string, string> = {}): number {
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    const found = [...this.#samples].filter(([sample]) => {
      const [own, rest = ""] = sample.split(/[{}]/);
      return own === name && wanted.every((label) => `,${rest},`.includes(`,${label},`));
    });
    return found.reduce((sum, [, value]) => sum + value, 0);
  }

  /** The values of a label of a metric. */
  values(name: string, label: string): string[] {
    const pattern = new RegExp(`^${name}\\{.*\\b${label}="([^"]*)"`, "gm");
    return [...new Set([...this.text.matchAll(pattern)].map(([, value]) => String(value)))].sort();
  }
}
