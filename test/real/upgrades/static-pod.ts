/**
 * A static pod of deploy/, replaced as the kubelet replaces it: the old one is stopped, and the new one starts after
 * the old one has exited.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import type { Child } from "../rig/child.ts";
import { type Host, root } from "./host.ts";
import { bin } from "./installed.ts";

/**
 * Assumed time in milliseconds from the exit of a pod to the start of the next pod's container. There is no kubelet
 * here.
 */
const kubeletMs = 1_000;

type Manifest = {
  readonly spec: {
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly [
      {
        readonly args: readonly string[];
        readonly readinessProbe: { readonly httpGet: { readonly port: number } };
      },
    ];
  };
};

export class StaticPod {
  readonly #host: Host;
  readonly #args: readonly string[];
  readonly #metricsPort: number;
  readonly #graceMs: number;
  #child: Child | undefined;

  /** `manifest` is a file below deploy/. */
  constructor(host: Host, manifest: string) {
    this.#host = host;
    const { spec } = parse(readFileSync(join(root, "deploy", manifest), "utf8")) as Manifest;
    const [{ args, readinessProbe }] = spec.containers;
    const { port } = readinessProbe.httpGet;
    // In the root namespace, the first pod uses a free port for its probes, and the second pod uses the port after it.
    this.#metricsPort = host.metricsPort + port - 7_481;
    this.#graceMs = spec.terminationGracePeriodSeconds * 1_000;
    this.#args = args.map((arg) =>
      arg
        .replace("/etc/watchkeeper/watchkeeper.yaml", host.configFile)
        .replace(`127.0.0.1:${port}`, `0.0.0.0:${this.#metricsPort}`),
    );
  }

  async start(): Promise<void> {
    const host = this.#host;
    this.#child = host.start(process.execPath, [bin, ...this.#args]);
    await this.#child.ready(60_000, () => host.isReady(this.#metricsPort));
  }

  async stop(): Promise<void> {
    await this.#child?.stop(this.#graceMs);
  }

  async replace(): Promise<void> {
    await this.stop();
    await sleep(kubeletMs);
    await this.start();
  }
}
