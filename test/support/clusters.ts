/**
 * Starts a whole proxy in front of several clusters on one port. The SNI name selects the cluster: NAME.test leads to
 * the cluster NAME.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../src/main.ts";
import { type Config, parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { type Asking, askH2, type Place } from "./front-proxy.ts";
import { until } from "./h1.ts";
import { testPki } from "./pki.ts";
import { within } from "./within.ts";

/** The configuration of one cluster. Its backends are called b0, b1 and so on. */
export type ToldCluster = {
  readonly name: string;
  /** The ports of its backends on "localhost". */
  readonly ports: readonly number[];
  /** The CA that issues their certificates; default: the tests' own CA. */
  readonly ca?: string;
  /** More keys of the cluster's entry and of its `tls`, as YAML in flow style. */
  readonly more?: string;
  readonly tls?: string;
  /** More members of the listener's `host` entry for this cluster, and of the `tls` of this entry. */
  readonly host?: string;
  readonly hostTls?: string;
};

export type ClustersOptions = {
  readonly files?: Readonly<Record<string, string>>;
  /** How long the clients of a removed cluster stay connected. */
  readonly drainTimeout?: string;
  /** More lines of YAML: for the listeners, and for the end of the file. */
  readonly listeners?: string;
  readonly extra?: string;
};

export type SeveralClusters = {
  readonly running: Running;
  readonly entries: readonly Entry[];
  readonly place: Place;
  /** Reloads the configuration with these clusters. Returns the settings that need a restart, or the failure. */
  reload(clusters: readonly ToldCluster[]): Promise<readonly string[] | Failure>;
  /** Sends a request to the host of this cluster. */
  ask(name: string, asking?: Asking): Promise<string>;
  readyAt(backend: string): Promise<void>;
  get(path: string): Promise<Record<string, unknown>>;
  metrics(): Promise<string>;
  stop(): Promise<void>;
};

/** Waits until `holds` resolves with true. Tries every 50 ms, and throws after ten seconds. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let left = 200; left > 0; left -= 1) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`Waited in vain for ${what}`);
}

function listenerOf(clusters: readonly ToldCluster[], port: number): string {
  const [first, ...others] = clusters;
  const hosts = others.map(
    ({ name, host = "", hostTls = "" }) =>
      `{serverNames: [${name}.test], cluster: ${name}, tls: {certFile: tls.crt, keyFile: tls.key${hostTls}}${host}}`,
  );
  const { name = "", host = "", hostTls = "" } = first ?? {};
  return `  - {name: kube, address: "127.0.0.1:${port}", cluster: ${name}, tls: {certFile: tls.crt, keyFile: tls.key${hostTls}}${host}, hosts: [${hosts.join(", ")}]}`;
}

function upstreamOf({ name, ports, ca, more = "", tls = "" }: ToldCluster): string {
  const listed = ports.map((port, at) => `{name: b${at}, url: "https://localhost:${port}"}`);
  const backends = listed.length === 0 ? "" : `backends: [${listed.join(", ")}], `;
  const file = ca === undefined ? "ca.crt" : `${name}-ca.crt`;
  return `  - {name: ${name}, ${backends}tls: {caFile: ${file}${tls}}${more}}`;
}

/** Starts the proxy. The first cluster also serves every SNI name that no host has. */
export async function startClusters(
  clusters: readonly ToldCluster[],
  { files = {}, drainTimeout = "500ms", listeners = "", extra = "" }: ClustersOptions = {},
): Promise<SeveralClusters> {
  const { authority } = await testPki();
  const hosts = ["localhost", ...["eu", "us", "ap"].map((name) => `${name}.test`)];
  const serving = authority.issue({ name: "clusters", hosts });
  const directory = mkdtempSync(join(tmpdir(), "clusters-"));
  const put = (name: string, text: string): void =>
    writeFileSync(join(directory, name), text, { mode: 0o600 });
  put("tls.crt", serving.certificate);
  put("tls.key", serving.key);
  put("ca.crt", authority.certificate);
  for (const [name, text] of Object.entries(files)) put(name, text);
  let port = 0;
  const configOf = (all: readonly ToldCluster[]): Config => {
    for (const { name, ca } of all) if (ca !== undefined) put(`${name}-ca.crt`, ca);
    const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata: {name: test}
listeners:
${listenerOf(all, port)}
${listeners}
clusters:
${all.map(upstreamOf).join("\n")}
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0"}
drain: {shutdownDelay: 10ms, timeout: ${drainTimeout}}
${extra}`;
    const config = parseConfig(text, join(directory, "watchkeeper.yaml"));
    if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
    return config;
  };
  const entries: Entry[] = [];
  const journal = new Journal(wallClock);
  journal.subscribe((entry) => entries.push(entry));
  const running = await startWatchkeeper(configOf(clusters), { journal });
  if (running instanceof Failure) throw new Error(running.message);
  port = Number(running.addresses.get("kube")?.split(":").at(-1));
  const place = { url: `https://localhost:${port}`, port, ca: authority.certificate };
  return {
    running,
    entries,
    place,
    reload: (next) => running.reload(configOf(next)),
    ask: (name, asking = {}) =>
      within(
        20_000,
        `an answer of ${name}`,
        askH2(place, { servername: `${name}.test`, authority: `${name}.test`, ...asking }),
      ),
    async readyAt(backend) {
      await until(`${backend} to be ready`, () =>
        entries.some(
          (entry) => entry.kind === "backend.changed" && entry.backend === backend && entry.to === "ready",
        ),
      );
    },
    async get(path) {
      const answer: unknown = await (await fetch(`http://${running.apiAddress}/api/v1/${path}`)).json();
      return answer as Record<string, unknown>;
    },
    metrics: async () => (await fetch(`http://${running.adminAddress}/metrics`)).text(),
    async stop() {
      await running.stop(AbortSignal.timeout(300));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
