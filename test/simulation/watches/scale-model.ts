/** The scale model: thousands of nodes with ten watches each, a proxy and three apiservers. fleet.ts and day.ts use it. */

import type { Ask } from "../../../demo/apiserver/ask.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import type { KubeObject } from "../../../demo/objects/json.ts";
import type { Store } from "../../../demo/objects/store.ts";
import type { ClientPair } from "../../../src/upstream/net/connect.ts";
import type { ProxyOptions } from "../proxy.ts";
import { Random } from "../random.ts";
import { World } from "../world.ts";
import { SimulatedApiserver } from "./apiserver.ts";
import { Attempts } from "./attempts.ts";
import { Caller } from "./caller.ts";
import { EndJudge } from "./ends.ts";
import { Findings } from "./findings.ts";
import { probeOver } from "./probe.ts";
import { Reflector } from "./reflector.ts";
import { type Interest, Truth } from "./truth.ts";
import type { Company, WatchCall } from "./watch-call.ts";
import { type End, Host, type WireOptions, Wires } from "./wires.ts";

export type ScaleModelOptions = {
  readonly seed: number;
  readonly isStrict: boolean;
  /** True if the proxy probes the apiservers; false: it knows their state from its connections only. */
  readonly isProbed: boolean;
  readonly checkMs?: number;
  readonly trace?: ((line: string) => void) | undefined;
  /** True if the client of this node authenticates with a certificate; default: each has a bearer token. */
  readonly hasCertificate?: (node: string) => boolean;
  /** Returns the request as its user's own. `pair`: the proxy's certificate on this connection. Default: as it came. */
  readonly authenticate?: (backend: string, ask: Ask, pair: ClientPair | undefined) => Ask;
};

/** Returns the proxy of a model. */
export type ProxyOf<P> = (options: ProxyOptions) => P;
/** What the model needs of a proxy. */
type Accepting = { accept(end: End, client: Caller): void };

export const watchesPerNode = 10;
export const apiserverCount = 3;
export const streamsPerConnection = 80;
const resources = ["configmaps", "pods"];
const wire: WireOptions = { delayMs: 0.2, jitterMs: 0.3, loss: 0, cuts: 0 };
const probeTimes = { intervalMs: 1_000, timeoutMs: 3_000 };
/** After this time, no packet or timer of an ended watch, or of a node that has left, is left. */
const overMs = 60_000;

/** A kubelet or another agent of a node: one connection, and watches of the objects of this node. */
export class ModelNode {
  readonly app: string;
  readonly caller: Caller;
  readonly reflectors: readonly Reflector[];

  constructor(app: string, caller: Caller, reflectors: readonly Reflector[]) {
    this.app = app;
    this.caller = caller;
    this.reflectors = reflectors;
  }
}

export class ScaleModel<P> {
  readonly findings: Findings;
  readonly store: Store;
  readonly truth: Truth;
  readonly attempts: Attempts;
  readonly apiservers: readonly SimulatedApiserver[];
  readonly judge: EndJudge;
  readonly proxy: P & Accepting;
  readonly #options: ScaleModelOptions;
  readonly nodes = new Set<ModelNode>();
  readonly calls = new Map<string, WatchCall>();
  readonly #company: Company;
  readonly #wires: Wires;
  readonly #proxyHost = new Host("proxy");
  /** Number of connections that the proxy has opened. Probes do not count. */
  dialled = 0;
  #entered = 0;

  constructor(options: ScaleModelOptions, proxyOf: ProxyOf<P & Accepting>) {
    const { seed, isStrict, isProbed, checkMs, trace } = options;
    this.#options = options;
    const random = new Random(seed);
    const world = new World(random);
    const findings = new Findings(world, random, trace);
    this.findings = findings;
    this.#wires = new Wires(world, random);
    this.store = newCluster(world);
    this.truth = new Truth(this.store, world);
    this.attempts = new Attempts(findings, this.calls);
    const { attempts, truth, calls, store } = this;
    const parts = { findings, wires: this.#wires, store, resources, attempts, isIndexed: true };
    this.apiservers = Array.from(
      { length: apiserverCount },
      (_, at) => new SimulatedApiserver(`cp-${at + 1}`, parts, new Set()),
    );
    const { apiservers } = this;
    this.judge = new EndJudge({ findings, apiservers, attempts, truth, isStrict, isCarried: false });
    this.#company = {
      truth,
      calls,
      judgeEnd: (call, end) => {
        this.judge.judge(call, end);
        world.after(overMs, () => calls.delete(call.auditId));
      },
      judgeEvent: this.judge.judgeDelay.bind(this.judge),
    };
    this.proxy = proxyOf({
      world,
      backends: apiservers.map(({ name }) => name),
      dial: (name, pair) => this.#dialBackend(name, pair),
      connections: { streams: streamsPerConnection, warm: 1 },
      isPerClient: false,
      probes: isProbed ? this.#probes() : undefined,
      checkMs,
      tell: (entry) => {
        if (entry.kind === "internal.error") findings.wrong("thrown", entry.message);
        findings.tell(() => JSON.stringify(entry));
      },
      thrown: (error) =>
        findings.wrong("thrown", error instanceof Error ? (error.stack ?? error.message) : String(error)),
    });
  }

  /** Number of watches that are open at the apiservers, by apiserver. */
  get loads(): readonly number[] {
    return this.apiservers.map(({ watchCount }) => watchCount);
  }

  /** Number of watches that clients have and that were answered. */
  get openWatches(): number {
    let count = 0;
    for (const { reflectors } of this.nodes)
      for (const { call } of reflectors) if (call?.isAnswered === true) count += 1;
    return count;
  }

  /** Number of relists, whatever their reasons. */
  get relists(): number {
    let sum = 0;
    for (const [what, count] of this.findings.counts) if (what.startsWith("relist")) sum += count;
    return sum;
  }

  /** Adds a node, which connects within `withinMs`. */
  enter(withinMs: number): ModelNode {
    const { world, random } = this.findings;
    const number = this.#entered;
    this.#entered += 1;
    const host = new Host(`node-${number}`);
    const isBearer = this.#options.hasCertificate?.(host.name) !== true;
    const dial = (): End =>
      this.#wires.connect(host, this.#proxyHost, wire, (end) => this.proxy.accept(end, caller));
    const caller: Caller = new Caller(host.name, this.findings, dial, isBearer);
    const app = `n-${number}`;
    const startsAt = random.next() * withinMs;
    const reflectors: Reflector[] = [];
    for (let at = 0; at < watchesPerNode; at += 1) {
      const reflector = new Reflector(caller, this.#company, {
        interest: interestOf(app, at),
        isProtobuf: at % 2 === 0,
        usesWatchList: at % 3 !== 0,
        timeoutSeconds: () => random.whole(300, 600),
      });
      reflectors.push(reflector);
      // The first request proves the client's token. The others are sent after that.
      world.after(startsAt + (at === 0 ? 0 : 1_000 + random.next() * 1_000), () => reflector.start());
    }
    const node = new ModelNode(app, caller, reflectors);
    this.nodes.add(node);
    return node;
  }

  /** Switches a node off: its objects are deleted, and its connection ends. */
  leave(node: ModelNode): void {
    this.nodes.delete(node);
    for (const { call } of node.reflectors) if (call !== undefined) this.calls.delete(call.auditId);
    for (const reflector of node.reflectors) reflector.stop();
    const { end } = node.caller;
    this.findings.world.after(0, () => end?.end());
    for (const resource of resources) this.store.remove(resource, "default", `o-${node.app}`);
    this.findings.world.after(overMs, () => {
      for (const { interest } of node.reflectors) if (interest.app !== everyone) this.truth.drop(interest);
    });
  }

  /** Writes an object that concerns `node`; undefined: all nodes. */
  write(node: ModelNode | undefined): void {
    this.store.put(this.findings.random.pick(resources), objectOf(node?.app ?? everyone));
  }

  apiserver(name: string): SimulatedApiserver {
    const found = this.apiservers.find((one) => one.name === name);
    if (found === undefined) throw new Error(`No backend ${name}`);
    return found;
  }

  #dialBackend(name: string, pair: ClientPair | undefined): End {
    this.dialled += 1;
    const apiserver = this.apiserver(name);
    const { authenticate } = this.#options;
    return this.#wires.connect(this.#proxyHost, apiserver.host, wire, (end) =>
      apiserver.accept(end, authenticate && ((ask) => authenticate(name, ask, pair))),
    );
  }

  #probes(): ProxyOptions["probes"] {
    const { random } = this.findings;
    return {
      probe: (name, ear) => {
        const apiserver = this.apiserver(name);
        const end = this.#wires.connect(this.#proxyHost, apiserver.host, wire, (far) =>
          apiserver.acceptProbe(far),
        );
        return probeOver(end, ear);
      },
      times: probeTimes,
      random: () => random.next(),
    };
  }
}

const everyone = "all";

/** Of ten watches of a node, nine select the node's own objects, and one selects the objects for all nodes. */
function interestOf(app: string, at: number): Interest {
  const selected = at === watchesPerNode - 1 ? everyone : app;
  return { resource: resources[at % resources.length] ?? "", namespace: "default", app: selected };
}

function objectOf(app: string): KubeObject {
  const metadata = {
    name: `o-${app}`,
    namespace: "default",
    uid: "",
    resourceVersion: "",
    creationTimestamp: "2027-01-15T08:00:00Z",
    labels: { app },
    rest: {},
  };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, fields: { data: { value: "x".repeat(300) } } };
}

/** The most requests and new connections within one second. */
export class Peaks {
  readonly #model: Pick<ScaleModel<unknown>, "attempts" | "dialled" | "findings">;
  asked = 0;
  dialled = 0;
  #before = { asked: 0, dialled: 0 };

  constructor(model: Pick<ScaleModel<unknown>, "attempts" | "dialled" | "findings">) {
    this.#model = model;
    this.#before = this.#now;
    this.#watch();
  }

  /** Forgets the highest rates so far. */
  reset(): void {
    this.asked = 0;
    this.dialled = 0;
  }

  get #now(): { readonly asked: number; readonly dialled: number } {
    return { asked: this.#model.attempts.count, dialled: this.#model.dialled };
  }

  #watch(): void {
    this.#model.findings.world.after(1_000, () => {
      const now = this.#now;
      this.asked = Math.max(this.asked, now.asked - this.#before.asked);
      this.dialled = Math.max(this.dialled, now.dialled - this.#before.dialled);
      this.#before = now;
      this.#watch();
    });
  }
}
