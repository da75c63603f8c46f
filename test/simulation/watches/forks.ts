/**
 * One apiserver comes back on a restored copy of etcd. The copy is older than what clients have seen, and gets writes
 * of its own. The other apiservers are down for some seconds, beginning just before or soon after that. Checks:
 * - Data of the copy reaches a client only until the proxy can detect the copy, and never after the others are back.
 * - After that, every client has the true state.
 * - Without faults, each watched resource has a sentinel, a watch at a second backend that reveals a copy (D13).
 */
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import type { KubeObject } from "../../../demo/objects/json.ts";
import type { Store } from "../../../demo/objects/store.ts";
import { SimulatedProxy } from "../proxy.ts";
import { Random } from "../random.ts";
import { setSlicesOf } from "../slices.ts";
import { World } from "../world.ts";
import { SimulatedApiserver } from "./apiserver.ts";
import { Attempts } from "./attempts.ts";
import { Caller } from "./caller.ts";
import { apps, interestOf, namespaces, watchedResources } from "./cast.ts";
import { Findings, type Problem } from "./findings.ts";
import { probeOver } from "./probe.ts";
import { Reflector } from "./reflector.ts";
import { Truth } from "./truth.ts";
import type { Company, WatchCall } from "./watch-call.ts";
import { weatherOf } from "./weather.ts";
import { type End, Host, Wires } from "./wires.ts";

export type ForksPlayed = {
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
};

/** Within this time after the apiserver's return on the copy, the proxy cannot know yet that its history differs. */
const foundMs = 2_000;
/** After this time from the return of the other apiservers, every client must have the true state. */
const rightMs = 25_000;
const sentinelMs = 2_000;
const readyMs = 60_000;
const stepMs = 250;
const awayMs = 6_000;

export function playForks(seed: number, trace?: (line: string) => void): ForksPlayed {
  return new Forks(seed, trace).play();
}

class Forks {
  readonly #random: Random;
  readonly #world: World;
  readonly #findings: Findings;
  readonly #store: Store;
  readonly #truth: Truth;
  readonly #wires: Wires;
  readonly #apiservers: readonly SimulatedApiserver[];
  readonly #proxy: SimulatedProxy;
  readonly #proxyHost = new Host("proxy");
  readonly #reflectors: Reflector[] = [];
  readonly #upstream;
  readonly #downstream;
  /** The time at which the apiserver came back on the copy. Infinity before. */
  #forkedAt = Number.POSITIVE_INFINITY;
  #isLeaving = false;
  #isWriting = true;

  constructor(seed: number, trace?: (line: string) => void) {
    setSlicesOf(seed);
    this.#random = new Random(seed);
    const random = this.#random;
    this.#world = new World(random);
    const world = this.#world;
    this.#findings = new Findings(world, random, trace);
    const findings = this.#findings;
    const weather = weatherOf(random);
    this.#upstream = { ...weather.upstream, loss: 0 };
    this.#downstream = { ...weather.downstream, loss: 0 };
    this.#wires = new Wires(world, random);
    this.#store = newCluster(world);
    this.#truth = new Truth(this.#store, world);
    const calls = new Map<string, WatchCall>();
    const attempts = new Attempts(findings, calls);
    const parts = {
      findings,
      wires: this.#wires,
      store: this.#store,
      resources: watchedResources,
      attempts,
    };
    this.#apiservers = Array.from(
      { length: random.whole(2, 3) },
      (_, at) => new SimulatedApiserver(`cp-${at + 1}`, parts, new Set()),
    );
    this.#proxy = new SimulatedProxy({
      world,
      backends: this.#apiservers.map(({ name }) => name),
      dial: (name) => this.#dial(name, (one, end) => one.accept(end)),
      connections: { streams: 80, warm: 1 },
      isPerClient: false,
      probes: {
        probe: (name, ear) =>
          probeOver(
            this.#dial(name, (one, end) => one.acceptProbe(end)),
            ear,
          ),
        times: { intervalMs: 1_000, timeoutMs: 3_000 },
        random: () => random.next(),
      },
      tell: (entry) => {
        findings.tell(() => JSON.stringify(entry));
        if (entry.kind === "backend.changed" && entry.detector === "history")
          findings.count(`found ${entry.to}`);
        if (entry.kind === "internal.error") findings.wrong("thrown", entry.message);
      },
      thrown: (error) =>
        findings.wrong("thrown", error instanceof Error ? (error.stack ?? "") : String(error)),
    });
    const company: Company = {
      truth: this.#truth,
      calls,
      judgeEnd: (call, end) => {
        findings.tell(() => `${call.auditId} ended: ${JSON.stringify(end)}`);
        if (end.kind === "reset" && world.now() < this.#forkedAt && !this.#isLeaving)
          findings.wrong("ends", `${call.auditId} was reset`);
      },
      judgeEvent() {},
    };
    for (let count = random.whole(4, 9); count > 0; count -= 1) {
      const host = new Host(`client-${count}`);
      const caller = new Caller(host.name, findings, () =>
        this.#wires.connect(host, this.#proxyHost, this.#downstream, (end) => this.#proxy.accept(end)),
      );
      const isShort = random.chance(0.3);
      this.#reflectors.push(
        new Reflector(caller, company, {
          interest: interestOf(random),
          isProtobuf: random.chance(0.4),
          usesWatchList: random.chance(0.5),
          timeoutSeconds: () => (isShort ? random.whole(3, 20) : random.whole(300, 600)),
        }),
      );
    }
  }

  #dial(name: string, accept: (one: SimulatedApiserver, end: End) => void): End {
    const one = this.#apiservers.find((apiserver) => apiserver.name === name);
    if (one === undefined) throw new Error(`No backend ${name}`);
    return this.#wires.connect(this.#proxyHost, one.host, this.#upstream, (end) => accept(one, end));
  }

  play(): ForksPlayed {
    const { problems, counts } = this.#findings;
    try {
      this.#act();
    } catch (error) {
      this.#findings.wrong("thrown", error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    // Before the proxy can detect the copy, a client may receive events of the other history. The proxy then resets its
    // watch, and the client relists.
    const from = this.#forkedAt;
    const isEarly = ({ validator, at }: Problem): boolean =>
      at >= from &&
      at <= from + foundMs &&
      ["ordered", "unique", "reliable", "bookmarkable"].includes(validator);
    const early = problems.filter(isEarly);
    if (early.length > 0) counts.set("shown before it was found", early.length);
    return { problems: problems.filter((problem) => !isEarly(problem)), counts };
  }

  #act(): void {
    for (let count = 20; count > 0; count -= 1) this.#put(this.#store, "");
    this.#write();
    for (const reflector of this.#reflectors) reflector.start();
    this.#pass(this.#random.whole(4_000, 8_000));
    this.#settled();
    this.#judgeSentinels("at the start");
    const [copied, ...others] = this.#random.chance(0.5) ? this.#apiservers : this.#apiservers.toReversed();
    if (copied === undefined) return;
    this.#fork(copied, others);
    this.#pass(rightMs);
    this.#judgeTruth("after the others are back");
    this.#mend(copied);
    this.#pass(rightMs);
    this.#settled();
    this.#judgeSentinels("in the end");
    this.#judgeTruth("in the end");
    this.#isLeaving = true;
    for (const reflector of this.#reflectors) reflector.stop();
  }

  #fork(copied: SimulatedApiserver, others: readonly SimulatedApiserver[]): void {
    copied.kill();
    const version = this.#store.revision - this.#random.whole(5, 15);
    this.#pass(this.#random.whole(1_000, 4_000));
    const copy = this.#store.copyAt(version);
    // So few writes that the copy's version stays below what clients have seen.
    let left = this.#random.whole(0, 4);
    const write = (): void => {
      if (left === 0) return;
      left -= 1;
      this.#put(copy, "forked");
      this.#world.after(this.#random.next() * 1_000, write);
    };
    const isAlone = this.#random.chance(0.4);
    if (isAlone) for (const one of others) one.kill();
    this.#findings.tell(() => `${copied.name} comes back on a copy of ${version}`);
    this.#forkedAt = this.#world.now();
    copied.restart(0, copy);
    write();
    if (!isAlone) {
      this.#pass(this.#random.whole(500, 6_000));
      for (const one of others) one.kill();
    }
    this.#pass(awayMs);
    for (const one of others) one.restart(0);
    this.#findings.tell(() => "the others are back");
  }

  #mend(copied: SimulatedApiserver): void {
    copied.kill();
    this.#pass(1_000);
    copied.restart(0, this.#store);
  }

  #pass(ms: number): void {
    this.#world.runUntil(() => false, ms);
  }

  #settled(): void {
    const isReady = (): boolean => this.#proxy.path.backends.views.every(({ state }) => state === "ready");
    for (let ms = 0; ms < readyMs && !isReady(); ms += stepMs) this.#pass(stepMs);
    if (!isReady()) this.#findings.wrong("progress", "a backend is not found well again");
    this.#pass(sentinelMs);
  }

  /**
   * Checks that each resource has a sentinel if one of its watches may be sent to a second backend. Waits for a moment,
   * because a short watch may have ended just now.
   */
  #judgeSentinels(when: string): void {
    const {
      detectors: { sentinels },
      migrations,
    } = this.#proxy.path;
    const lacking = (): string[] => {
      const posted = new Set(sentinels.all.map(({ resource }) => resource));
      return Array.from(migrations.watches.resources).filter(
        (resource) =>
          !posted.has(resource) &&
          Array.from(migrations.watches.of(resource)).some(({ mayHedge }) => mayHedge),
      );
    };
    for (let ms = 0; ms < sentinelMs && lacking().length > 0; ms += stepMs) this.#pass(stepMs);
    if (lacking().length > 0)
      this.#findings.wrong("progress", `no sentinel of ${lacking().join(", ")} ${when}`);
    this.#findings.count("sentinels", sentinels.count);
  }

  #judgeTruth(when: string): void {
    // Waits until the last writes have arrived.
    this.#isWriting = false;
    this.#pass(1_000);
    this.#isWriting = true;
    for (const { interest, store, name } of this.#reflectors) {
      const state = this.#truth.stateAt(interest, this.#store.revision);
      const isEqual =
        state.size === store.size && state.entries().every(([key, version]) => store.get(key) === version);
      if (!isEqual) this.#findings.wrong("progress", `${name} does not know the truth ${when}`);
    }
  }

  #write(): void {
    if (this.#isWriting) this.#put(this.#store, "");
    this.#world.after(200 + this.#random.next() * 200, () => this.#write());
  }

  #put(store: Store, mark: string): void {
    const resource = this.#random.pick(watchedResources);
    const name = `c-${mark}${this.#random.whole(1, 8)}`;
    store.put(resource, objectOf(this.#random.pick(namespaces), name, this.#random.pick([...apps, ""])));
  }
}

function objectOf(namespace: string, name: string, app: string): KubeObject {
  const metadata = {
    name,
    namespace,
    uid: "",
    resourceVersion: "",
    creationTimestamp: "2027-01-15T08:00:00Z",
    labels: app === "" ? {} : { app },
    rest: {},
  };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, fields: { data: { value: name } } };
}
