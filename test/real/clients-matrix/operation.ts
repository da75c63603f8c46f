/**
 * One operation of one client, and the scene in which it runs: a namespace and a folder of its own, and the address of
 * a server.
 */

import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as assert from "uvu/assert";
import { ask, order, type Question, type Server } from "../rig/ask.ts";
import { Call, type CallOptions, type Output } from "../rig/call.ts";
import type { Cluster } from "../rig/cluster.ts";
import type { Need } from "../rig/parts.ts";

export type Operation = {
  /** Name of the client, such as "kubectl 1.36". */
  readonly client: string;
  readonly name: string;
  /** What the operation needs in addition to a cluster. */
  readonly needs: readonly Need[];
  /** Builds programs that only this client needs. Returns what the machine lacks for that build, or undefined. */
  readonly prepare?: () => string | undefined;
  /** True if the operation calls `Scene.hold` in the middle of its work, so that an apiserver can fail then. */
  readonly isLong: boolean;
  /**
   * Path, relative to the namespace, of requests whose stream lives on one apiserver and ends with it. Default: every
   * request for a pod.
   */
  readonly tunnel?: string;
  /** Runs the operation. Rejects if its outcome is wrong. Adds what the client printed to the scene. */
  run(scene: Scene): Promise<void>;
};

export type Setting = {
  readonly cluster: Cluster;
  readonly namespace: string;
  /** The server that the client connects to: an apiserver or the proxy. */
  readonly server: Server & { readonly token: string };
  readonly kubeconfigFile: string;
  /**
   * Resolves when the operation may continue. That is at once, unless an apiserver is to fail in the middle of the
   * operation.
   */
  readonly hold: () => Promise<void>;
};

export type Run = CallOptions & {
  /** Exit code that the client must have. Default: 0. */
  readonly exit?: number;
  /** Returns the part of the client's output that is compared. Default: all of the output. */
  readonly shows?: (said: Output) => string;
};

/**
 * Time limit for clients that have such a flag. It exceeds the time that all operations of a round need to start, with
 * five kubectls at a time on two cores.
 */
export const waitFlag = "--timeout=200s";
/** A client that still runs after this time hangs. */
const clientMs = 220_000;
/** How long to wait for a line of a client. The start of a Java program alone takes 15 s on a busy machine. */
const saysMs = 60_000;

type Labels = Readonly<Record<string, string>>;

export class Scene {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly server: Setting["server"];
  readonly kubeconfigFile: string;
  readonly folder: string;
  readonly hold: () => Promise<void>;
  /** What the client has printed so far. */
  readonly shown: string[] = [];
  readonly #calls = new Set<Call>();

  constructor({ cluster, namespace, server, kubeconfigFile, hold }: Setting) {
    this.cluster = cluster;
    this.namespace = namespace;
    this.server = server;
    this.kubeconfigFile = kubeconfigFile;
    this.hold = hold;
    this.folder = join(cluster.folder, namespace);
    mkdirSync(this.folder);
  }

  async make(): Promise<void> {
    const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: this.namespace } };
    await this.order({ method: "POST", path: "/api/v1/namespaces", body });
  }

  /** HOME is the scene's folder, so that clients share no cache with each other or with the user's own home. */
  start(command: string, args: readonly string[], options: CallOptions = {}): Call {
    const env = { HOME: this.folder, ...options.env };
    const call = new Call(command, args, { timeoutMs: clientMs, saysMs, ...options, env });
    this.#calls.add(call);
    void call.ended.then(() => this.#calls.delete(call));
    return call;
  }

  /** Runs a client and waits until it exits. */
  async run(command: string, args: readonly string[], options: Run = {}): Promise<Output> {
    const call = this.start(command, args, options);
    if (options.input === undefined) call.endInput();
    return this.end(call, args, options);
  }

  /** Waits until the client exits, checks its exit code, and adds what it printed. */
  async end(call: Call, args: readonly string[], options: Run = {}): Promise<Output> {
    const said = await call.ended;
    const { exit = 0, shows = ({ out, err }) => `${out}${err}` } = options;
    if (said.code !== exit) {
      throw new Error(`${args.join(" ")}: exit ${said.code} instead of ${exit}:\n${said.out}${said.err}`);
    }
    this.shown.push(`$ ${args.join(" ")}`, shows(said));
    return said;
  }

  /** True if all clients of the scene exit by themselves within this time. */
  async hasEnded(ms: number): Promise<boolean> {
    const ended = [...this.#calls].map((call) => call.ended);
    return Promise.race([Promise.all(ended).then(() => true), sleep(ms, false)]);
  }

  /** Kills the clients that still run. */
  async stop(): Promise<void> {
    for (const call of this.#calls) call.signal("SIGKILL");
    await Promise.all([...this.#calls].map(({ ended }) => ended));
  }

  /** Sends a request of the test itself to an apiserver that never fails. */
  order(question: Question): Promise<string> {
    return order(this.cluster.admin, question);
  }

  /** The path of a resource of the core group in this namespace. */
  path(resource: string): string {
    return `/api/v1/namespaces/${this.namespace}/${resource}`;
  }

  create(resource: string, kind: string, name: string, more: object = {}): Promise<string> {
    const body = { apiVersion: "v1", kind, metadata: { name }, ...more };
    return this.order({ method: "POST", path: this.path(resource), body });
  }

  configMap(name: string, value: string): Promise<string> {
    return this.create("configmaps", "ConfigMap", name, { data: { key: value } });
  }

  /**
   * Changes ConfigMaps during a watch that has already delivered the ConfigMap "first". These changes cause the events
   * of `watchedEvents` from the second one on.
   */
  async changeConfigMaps(): Promise<void> {
    await this.patch(this.path("configmaps/first"), { data: { key: "two" } });
    await this.order({ method: "DELETE", path: this.path("configmaps/first") });
    await this.configMap("last", "three");
  }

  patch(path: string, body: object): Promise<string> {
    return this.order({ method: "PATCH", path, body, contentType: "application/merge-patch+json" });
  }

  /** Returns the object that the apiserver has, or undefined if there is none. */
  async object<T>(path: string): Promise<T | undefined> {
    const { status, text } = await ask(this.cluster.admin, { path });
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`GET ${path} got ${status}: ${text}`);
    return JSON.parse(text) as T;
  }

  /** Calls `isSo` repeatedly and resolves once it returns true. Rejects after `ms`. */
  async until(what: string, isSo: () => Promise<boolean>, ms = 20_000): Promise<void> {
    const deadline = Date.now() + ms;
    while (!(await isSo())) {
      if (Date.now() > deadline) throw new Error(`Waited ${ms} ms for ${what}`);
      await sleep(50);
    }
  }

  /** Creates a pod on the node that KWOK simulates, and waits until it runs. */
  async pod(name: string, labels: Labels = {}): Promise<void> {
    const spec = { nodeName: this.cluster.node.name, containers: [{ name: "main", image: "none" }] };
    await this.create("pods", "Pod", name, { metadata: { name, labels }, spec });
    const path = this.path(`pods/${name}`);
    type PodState = { readonly status: { readonly phase?: string } };
    await this.until(
      `pod ${name}`,
      async () => (await this.object<PodState>(path))?.status.phase === "Running",
    );
  }

  /**
   * All pods write to one log, so each line begins with its namespace. `ownLines` drops the lines of other namespaces.
   */
  log(line: string): string {
    const marked = `${this.namespace} ${line}`;
    this.cluster.node.log(marked);
    return marked;
  }

  ownLines(text: string): string {
    return text
      .split("\n")
      .filter((line) => line.includes(this.namespace))
      .join("\n");
  }
}

/** All events of a watch during which `changeConfigMaps` runs, with the ConfigMap "first" as its initial state. */
export const watchedEvents = ["ADDED first", "MODIFIED first", "DELETED first", "ADDED last"] as const;

/** Returns the events in the body of a JSON watch. */
export function eventsOf(body: string): readonly string[] {
  type Event = { readonly type: string; readonly object: { readonly metadata: { readonly name: string } } };
  const events = body.split("\n").filter((line) => line !== "");
  return events
    .map((line) => JSON.parse(line) as Event)
    .map(({ type, object }) => `${type} ${object.metadata.name}`);
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * Fails unless all bytes arrived. If only the first part of them arrived, the error says that the session ended early,
 * which the failure of the session's apiserver may explain (outcome.ts). Other bytes are wrong data, which nothing
 * explains.
 */
export function arrivedWhole(arrived: Uint8Array, sent: Uint8Array): void {
  const { length } = arrived;
  if (length < sent.length && Buffer.compare(sent.subarray(0, length), arrived) === 0)
    throw new Error(`Only ${length} of ${sent.length} bytes arrived`);
  assert.is(hashOf(arrived), hashOf(sent), `${length} bytes arrived`);
}

/** Text that differs between two correct runs of the same operation. */
const varying: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\brun-\d{4}\b/g, "<namespace>"],
  [/\/\S*\/<namespace>/g, "<folder>"],
  [/\S*\.kubeconfig\b/g, "<kubeconfig>"],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<uid>"],
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?/g, "<time>"],
  [
    /[A-Z][a-z]{2},? [A-Z0-9][a-z0-9]{1,2} +[A-Z0-9][a-z0-9]{0,2} [\d:]{4,8} [\d:]{4,8}( [A-Z]{3})?/g,
    "<time>",
  ],
  [/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} (GMT|[+-]\d{4})/g, "<time>"],
  [/("?resourceVersion"?:? ?=?)"?\d+"?/g, "$1<version>"],
  [/https:\/\/[\d.]+:\d+/g, "<server>"],
  [/127\.0\.0\.1:\d+/g, "<server>"],
  [/\[::1\]:\d+/g, "<server>"],
  [/\b10\.0\.\d+\.\d+\b/g, "<pod>"],
  [/\b10\.\d+\.\d+\.\d+\b/g, "<address>"],
  [/\b(\d+m)?\d+(\.\d+)?m?s\b/g, "<age>"],
  [/ {2,}/g, "  "],
  [/ +$/gm, ""],
];

export function normalised(text: string): string {
  return varying.reduce((now, [pattern, name]) => now.replace(pattern, name), text).trim();
}
