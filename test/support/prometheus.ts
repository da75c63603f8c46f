/**
 * A real Prometheus that scrapes, and evaluates the alert rules, every second. Its binaries come with Debian's package
 * `prometheus`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { rulesFile } from "./alert-rules.ts";
import { freePort } from "./free-port.ts";
import { programOf } from "./promtool.ts";

/** An alert as Prometheus' API returns it. */
export type Told = {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: string;
};

type Options = {
  /** True if the series already carry the labels of their instances, as when one target exposes a whole fleet. */
  readonly honorLabels?: boolean;
};

export class Prometheus {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #url: string;

  private constructor(child: ChildProcess, folder: string, url: string) {
    this.#child = child;
    this.#folder = folder;
    this.#url = url;
  }

  /**
   * `target` is the address of the metrics, for example "127.0.0.1:7481". Resolves after the first scrape. Each rule
   * has a `for` of two seconds instead of its own; test/processes/admin/promtool.test.ts tests the real ones.
   */
  static async start(target: string, { honorLabels = false }: Options = {}): Promise<Prometheus> {
    const program = programOf("prometheus");
    if (program === undefined) throw new Error("There is no prometheus");
    const folder = mkdtempSync(join(tmpdir(), "watchkeeper-prometheus-"));
    writeFileSync(join(folder, "rules.yaml"), rulesFile().replaceAll(/^( +for:) \S+$/gm, "$1 2s"));
    const config = {
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: ["rules.yaml"],
      scrape_configs: [
        {
          job_name: "watchkeeper",
          honor_labels: honorLabels,
          static_configs: [{ targets: [target] }],
        },
      ],
    };
    writeFileSync(join(folder, "prometheus.yaml"), JSON.stringify(config));
    const port = await freePort();
    const child = spawn(
      program,
      [
        `--config.file=${join(folder, "prometheus.yaml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: "ignore" },
    );
    const started = new Prometheus(child, folder, `http://127.0.0.1:${port}`);
    await started.#scraped();
    return started;
  }

  /** Returns the alerts that fire now. */
  async firing(): Promise<readonly Told[]> {
    const answer = await fetch(`${this.#url}/api/v1/alerts`);
    const { data } = (await answer.json()) as { readonly data: { readonly alerts: readonly Told[] } };
    return data.alerts.filter(({ state }) => state === "firing");
  }

  /** Waits up to `withinMs` for an alert of this name to fire. */
  async fired(alertname: string, withinMs: number): Promise<Told> {
    const until = performance.now() + withinMs;
    while (performance.now() < until) {
      const told = (await this.firing()).find(({ labels }) => labels["alertname"] === alertname);
      if (told !== undefined) return told;
      await sleep(50);
    }
    throw new Error(`${alertname} does not fire, but ${JSON.stringify(await this.firing())}`);
  }

  async stop(): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      this.#child.once("close", () => resolve());
    });
    this.#child.kill("SIGTERM");
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #scraped(): Promise<void> {
    for (let tries = 0; tries < 600; tries += 1) {
      const query = encodeURIComponent('up{job="watchkeeper"} == 1');
      const answer = await fetch(`${this.#url}/api/v1/query?query=${query}`).catch(() => undefined);
      if (answer?.ok === true && (await answer.text()).includes('"instance"')) return;
      await answer?.body?.cancel().catch(() => undefined);
      await sleep(100);
    }
    await this.stop();
    throw new Error("Prometheus does not scrape");
  }
}
