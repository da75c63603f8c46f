/**
 * The scale model: thousands of nodes with ten watches each. All apiservers are restarted one after another, as in an
 * upgrade of the control plane. Measures how much of that the clients notice.
 */
import { newCluster } from "../../../src/demo/apiserver/cluster.ts";
import type { KubeObject } from "../../../src/demo/objects/json.ts";
import type { Store } from "../../../src/demo/objects/store.ts";
import { SimulatedProxy } from "../proxy.ts";
import { Random } from "../random.ts";
import { World } from "../world.ts";
import { SimulatedApiserver } from "./apiserver.ts";
import { Attempts } from "./attempts.ts";
import { Caller } from "./caller.ts";
import { EndJudge } from "./ends.ts";
import { Findings, type Problem } from "./findings.ts";
import { Reflector } from "./reflector.ts";
import { type Interest, Truth } from "./truth.ts";
import type { Company, WatchCall } from "./watch-call.ts";
import { Host, type WireOptions, Wires } from "./wires.ts";

export type FleetOptions = {
  readonly nodes: number;
  readonly seed: number;
  readonly isStrict: boolean;
  /** Called every ten virtual seconds, so that the caller can measure the process. */
  readonly tell: (line: string) => void;
};

export type FleetFigures = {
  readonly watches: number;
  readonly virtualMs: number;
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
  /** The most requests that reached the backends within one second, not counting the start of the run. */
  readonly peakAskedPerSecond: number;
  /** The most connections that the proxy opened within one second, not counting the start of the run. */
  readonly peakDialsPerSecond: number;
  readonly eventCount: number;
};

const watchesPerNode = 10;
const apiserverCount = 3;
const startMs = 60_000;
/** An apiserver that stops lets its watches run this long: kube-apiserver's default (watch.md §5.5). */
const graceMs = 60_000;
const betweenMs = 30_000;
const awayMs = 5_000;
const tellMs = 10_000;
const resources = ["configmaps", "pods"];
const wire: WireOptions = { delayMs: 0.2, jitterMs: 0.3, loss: 0, cuts: 0 };

export class Fleet {
  readonly #options: FleetOptions;
  readonly #findings: Findings;
  readonly #wires: Wires;
  readonly #store: Store;
  readonly #calls = new Map<string, WatchCall>();
  readonly #attempts: Attempts;
  readonly #apiservers: readonly SimulatedApiserver[];
  readonly #proxy: SimulatedProxy;
  readonly #proxyHost = new Host("proxy");
  readonly #company: Company;
  readonly #reflectors: Reflector[] = [];
  /** The highest rates so far, and the total counts one second ago. */
  readonly #peak = { asked: 0, dialled: 0 };
  #before = { asked: 0, dialled: 0 };
  #backoff = 0;
  #hasBegun = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    const random = new Random(options.seed);
    const world = new World(random);
    const findings = new Findings(world, random);
    this.#findings = findings;
    this.#wires = new Wires(world, random);
    this.#store = newCluster(world);
    const truth = new Truth(this.#store, world);
    this.#attempts = new Attempts(findings, this.#calls);
    const parts = { findings, wires: this.#wires, store: this.#store, resources, attempts: this.#attempts };
    this.#apiservers = Array.from(
      { length: apiserverCount },
      (_, at) => new SimulatedApiserver(`cp-${at + 1}`, parts, new Set()),
    );
    const { isStrict } = options;
    const judge = new EndJudge({
      findings,
      apiservers: this.#apiservers,
      attempts: this.#attempts,
      truth,
      isStrict,
      isCarried: false,
    });
    this.#company = {
      truth,
      calls: this.#calls,
      judgeEnd: judge.judge.bind(judge),
      judgeEvent: judge.judgeDelay.bind(judge),
    };
    this.#proxy = new SimulatedProxy({
      world,
      backends: this.#apiservers.map(({ name }) => name),
      dial: (name) => this.#dialBackend(name),
      connections: { streams: 80, warm: 1 },
      isPerClient: false,
      tell: () => {},
      thrown: (error) => findings.wrong("thrown", String(error)),
    });
  }

  play(): FleetFigures {
    const { world } = this.#findings;
    this.#write();
    for (let node = 0; node < this.#options.nodes; node += 1) this.#enter(node);
    this.#watchRates();
    this.#pass(startMs);
    this.#hasBegun = true;
    for (const apiserver of this.#apiservers) this.#restart(apiserver);
    this.#pass(graceMs);
    const { problems, counts } = this.#findings;
    return {
      watches: this.#reflectors.filter(({ call }) => call?.isAnswered === true).length,
      virtualMs: world.now(),
      problems,
      counts,
      peakAskedPerSecond: this.#peak.asked,
      peakDialsPerSecond: this.#peak.dialled,
      eventCount: counts.get("events") ?? 0,
    };
  }

  #restart(apiserver: SimulatedApiserver): void {
    this.#options.tell(`${apiserver.name} is shut down`);
    apiserver.shutDown(graceMs, () => this.#findings.world.after(awayMs, () => apiserver.restart(1_000)));
    this.#pass(graceMs + awayMs + betweenMs);
  }

  /** Lets `ms` pass and reports the state of the run every `tellMs`. */
  #pass(ms: number): void {
    const { world, counts } = this.#findings;
    for (let left = ms; left > 0; left -= tellMs) {
      world.runUntil(() => false, Math.min(tellMs, left));
      const loads = this.#apiservers.map(({ watchCount }) => watchCount).join(" + ");
      const relists = [...counts]
        .filter(([what]) => what.startsWith("relist"))
        .reduce((sum, [, count]) => sum + count, 0);
      this.#options.tell(`${Math.round(world.now() / 1_000)} s: watches ${loads}, ${relists} relists`);
    }
  }

  /** A kubelet or another agent of a node: one connection, and watches of the objects of this node. */
  #enter(node: number): void {
    const { world, random } = this.#findings;
    const host = new Host(`node-${node}`);
    const caller = new Caller(host.name, this.#findings, () =>
      this.#wires.connect(host, this.#proxyHost, wire, (end) => this.#proxy.accept(end)),
    );
    const startsAt = random.next() * (startMs / 2);
    for (let at = 0; at < watchesPerNode; at += 1) {
      const reflector = new Reflector(caller, this.#company, {
        interest: interestOf(node, at),
        isProtobuf: at % 2 === 0,
        usesWatchList: at % 3 !== 0,
        timeoutSeconds: () => random.whole(300, 600),
      });
      this.#reflectors.push(reflector);
      // The first request proves the client's token. The others are sent after that.
      world.after(startsAt + (at === 0 ? 0 : 1_000 + random.next() * 1_000), () => reflector.start());
    }
  }

  #dialBackend(name: string): ReturnType<Wires["connect"]> | undefined {
    const apiserver = this.#apiservers.find((one) => one.name === name);
    this.#backoff += 1;
    if (apiserver === undefined) return undefined;
    return this.#wires.connect(this.#proxyHost, apiserver.host, wire, (end) => apiserver.accept(end));
  }

  /** Writes one object every 50 ms. One write in fifty concerns all nodes. */
  #write(): void {
    const { world, random } = this.#findings;
    const { nodes } = this.#options;
    const isForAll = random.chance(0.02);
    const app = isForAll ? "all" : `n-${random.whole(0, nodes - 1)}`;
    this.#store.put(random.pick(resources), objectOf(app));
    world.after(50, () => this.#write());
  }

  #watchRates(): void {
    this.#findings.world.after(1_000, () => {
      const now = { asked: this.#attempts.count, dialled: this.#backoff };
      if (this.#hasBegun) {
        this.#peak.asked = Math.max(this.#peak.asked, now.asked - this.#before.asked);
        this.#peak.dialled = Math.max(this.#peak.dialled, now.dialled - this.#before.dialled);
      }
      this.#before = now;
      this.#watchRates();
    });
  }
}

/** Of ten watches of a node, nine select the node's own objects, and one selects the objects for all nodes. */
function interestOf(node: number, at: number): Interest {
  const app = at === watchesPerNode - 1 ? "all" : `n-${node}`;
  return { resource: resources[at % resources.length] ?? "", namespace: "default", app };
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
