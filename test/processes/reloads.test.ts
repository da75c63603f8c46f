/**
 * Certificate and CA files change under load, valid and invalid ones mixed, in the way that Secret volumes change. No
 * request may fail, and each valid file must be loaded. Each invalid one must be reported with its file, its subject
 * and the reason, in the journal, a metric and an incident. RELOADS=200 is the long form (`npm run test:reloads`).
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { type Running, startWatchkeeper } from "../../src/main.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { startJudge } from "../support/front-proxy.ts";
import { ReloadLoad } from "./reloads/load.ts";
import { type Change, makeMaterials, Volume } from "./reloads/material.ts";

const test = suite("reloads");

const reloads = Number(process.env["RELOADS"] ?? 20);
/**
 * Timeout in ms. A change takes effect within about 200 ms: the files are read every 100 ms, and a second time 100 ms
 * later. The rest is for slow machines.
 */
const patienceMs = 20_000;

const configOf = (judges: readonly { readonly name: string; readonly port: number }[]): string => `
apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners:
  - name: kube
    address: "127.0.0.1:0"
    tls: {certFile: m/tls.crt, keyFile: m/tls.key, clientCAFile: m/clients.crt, reloadInterval: 100ms}
    identity: {clientCerts: FrontProxy}
    hosts:
      - serverNames: [other.test]
        tls: {certFile: m/other.crt, keyFile: m/other.key, reloadInterval: 100ms}
clusters:
  - name: default
    backends: [${judges.map(({ name, port }) => `{name: ${name}, url: "https://localhost:${port}"}`).join(", ")}]
    tls:
      caFile: m/ca.crt
      reloadInterval: 100ms
      frontProxy: {certFile: m/front-proxy.crt, keyFile: m/front-proxy.key, reloadInterval: 100ms}
admin: {address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0"}
drain: {shutdownDelay: 10ms, timeout: 500ms}
`;

/** The journal entries about certificates, in order. */
class Said {
  readonly all: { readonly name: string; readonly problem: string | undefined }[] = [];

  read(entry: Entry): void {
    if (entry.kind === "certificate.loaded") this.all.push({ name: entry.name, problem: undefined });
    if (entry.kind === "certificate.refused") this.all.push({ name: entry.name, problem: entry.problem });
  }

  /**
   * Resolves with "" when the journal has the expected entry for this change, or with an error message after the
   * timeout.
   */
  async on({ name, refusal, title }: Change, since: number): Promise<string> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const words = this.all.slice(since).filter((word) => word.name === name);
      const expected = words.find(({ problem }) =>
        refusal === undefined ? problem === undefined : problem !== undefined && refusal.test(problem),
      );
      if (expected !== undefined) return "";
      if (performance.now() > deadline)
        return `${name}, ${title}: ${JSON.stringify(words)} instead of ${String(refusal ?? "loaded")}`;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function get(address: string, path: string): Promise<string> {
  return (await fetch(`http://${address}${path}`)).text();
}

async function startProxy(directory: string, text: string, journal: Journal): Promise<Running> {
  const config = parseConfig(text, join(directory, "watchkeeper.yaml"));
  if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
  const running = await startWatchkeeper(config, { journal });
  if (running instanceof Failure) throw new Error(running.message);
  return running;
}

async function settled(running: Running): Promise<void> {
  for (let left = 200; left > 0; left -= 1) {
    const text = await get(running.adminAddress, "/metrics");
    if ([...text.matchAll(/^watchkeeper_backend_ready\{.*\} 1$/gm)].length === 2) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("The backends are not ready");
}

test(`${reloads} changes under load, good and bad: no request fails, and every bad one is named`, async () => {
  const directory = mkdtempSync(join(tmpdir(), "watchkeeper-reloads-"));
  const materials = await makeMaterials();
  mkdirSync(join(directory, "m"));
  const volume = new Volume(join(directory, "m"), materials.first);
  const judges = [await startJudge("one", materials.pki), await startJudge("two", materials.pki)];
  writeFileSync(join(directory, "watchkeeper.yaml"), configOf(judges));
  const said = new Said();
  const journal = new Journal(wallClock);
  journal.subscribe((entry) => said.read(entry));
  const running = await startProxy(directory, configOf(judges), journal);
  await settled(running);
  const load = new ReloadLoad({
    port: Number(running.addresses.get("kube")?.split(":").at(-1)),
    trusted: materials.trusted,
    alice: materials.pki.clients.issue({ name: "alice", groups: ["devs"], usage: "client" }),
  });
  const unsaid: string[] = [];
  let good = 0;
  for (let done = 0; done < reloads; done += 1) {
    const change = materials.changes[done % materials.changes.length];
    if (change === undefined) continue;
    const since = said.all.length;
    volume.put(change.files);
    const wrong = await said.on(change, since);
    if (wrong !== "") unsaid.push(wrong);
    if (change.refusal === undefined) good += 1;
  }
  const incidents = JSON.parse(await get(running.apiAddress, "/api/v1/incidents?limit=500")) as {
    readonly items: readonly { readonly kind: string; readonly summary: string }[];
  };
  volume.put(materials.first);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const metrics = await get(running.adminAddress, "/metrics");
  load.stop();
  const figures = { reloads, good, bad: reloads - good, answered: load.answered, failed: load.failed };
  const more = { connections: load.connections, resent: load.resent };
  process.stdout.write(`\nfigure: ${JSON.stringify({ ...figures, ...more })}\n`);
  await running.stop(AbortSignal.timeout(1000));
  for (const judge of judges) judge.stop();
  rmSync(directory, { recursive: true });
  assert.equal(load.faults, [], "no request failed");
  assert.equal(unsaid, [], "each change was taken, or named");
  assert.ok(load.answered > reloads, "there was load");
  const refused = [
    ...metrics.matchAll(/^watchkeeper_certificate_reloads_total\{.*result="rejected".*\} (\d+)$/gm),
  ];
  const counted = refused.reduce((sum, [, number]) => sum + Number(number), 0);
  assert.ok(counted >= reloads - good, `the metric counts ${counted} of ${reloads - good}`);
  assert.ok(
    incidents.items.some(({ kind }) => kind === "certificate-refused"),
    JSON.stringify(incidents.items.map(({ kind }) => kind)),
  );
});

test.run();
