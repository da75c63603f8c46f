/**
 * Two whole proxies in this process, configured as replicas of each other. Their backends answer health probes. If they
 * did not, each proxy would have two incidents after two seconds, which a test reaches on a busy machine.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../src/base/failure.ts";
import { parseConfig } from "../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../src/ops/config/problem.ts";
import { freePorts } from "./free-port.ts";
import { startProxy, type TestProxy } from "./proxy.ts";

export type ReplicaPair = {
  readonly here: TestProxy;
  readonly there: TestProxy;
  /** Reloads `here` with another list of replicas. */
  list(addresses: readonly string[]): Promise<void>;
  stop(): Promise<void>;
};

export async function startPair(): Promise<ReplicaPair> {
  const ports = await freePorts(2);
  const both = ports.map((port) => `127.0.0.1:${port}`);
  const start = (apiPort = 0): Promise<TestProxy> =>
    startProxy({ backends: 1, isProbed: true, apiPort, admin: replicasIn(both) });
  const [here, there] = await Promise.all([start(ports[0]), start(ports[1])]);
  await Promise.all([knows(here, 2), knows(there, 2)]);
  return {
    here,
    there,
    list: (addresses) => listIn(here, addresses),
    async stop() {
      await Promise.all([here.stop(), there.stop()]);
    },
  };
}

function replicasIn(addresses: readonly string[]): string {
  return `replicas: {addresses: [${addresses.map((address) => `"${address}"`).join(", ")}]}`;
}

async function listIn({ running, directory }: TestProxy, addresses: readonly string[]): Promise<void> {
  const file = join(directory, "watchkeeper.yaml");
  const text = readFileSync(file, "utf8").replace(/replicas: \{[^}]*\}/, replicasIn(addresses));
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
  const outcome = await running.reload(config);
  if (outcome instanceof Failure) throw new Error(outcome.message);
}

/** Waits until this many replicas are live. */
async function knows({ running }: TestProxy, count: number): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const answer = await fetch(`http://${running.apiAddress}/api/v1/replicas?state=live`);
    const list = (await answer.json()) as { readonly matching: number };
    if (list.matching === count) return;
    await sleep(25);
  }
  throw new Error(`${count} replicas are not live`);
}
