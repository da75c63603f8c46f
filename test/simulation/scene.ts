/** One run: a proxy between clients and backends, with or without faults, and the checks at its end. */

import { newCluster } from "../../demo/apiserver/cluster.ts";
import type { KubeObject } from "../../demo/objects/json.ts";
import type { Store } from "../../demo/objects/store.ts";
import type { Entry } from "../../src/events/journal.ts";
import { h2Limits } from "../../src/h2/core/limits.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { upstreamLimits } from "../../src/upstream/pool/limits.ts";
import { Backend } from "./backend.ts";
import { type Asking, SimulatedClient, type Watching } from "./client.ts";
import { type End, Network, type Weather } from "./network.ts";
import { isUntouched } from "./payload.ts";
import { newHabits, newPlan, type Plan } from "./plan.ts";
import { SimulatedProxy } from "./proxy.ts";
import { Random } from "./random.ts";
import { Run } from "./run-state.ts";
import { Silence } from "./silence.ts";
import { setSlicesOf } from "./slices.ts";
import { runErrands, storm } from "./storm.ts";
import { World } from "./world.ts";

export type Figures = {
  readonly seed: number;
  readonly requests: number;
  readonly watches: number;
  readonly events: number;
  readonly decisions: number;
  readonly frames: number;
  readonly bytes: number;
  readonly astray: number;
  readonly queuedBytes: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
};

/** All requests begin within `busyMs`. All must be answered within `patienceMs` after that. */
const busyMs = 1_500;
const patienceMs = 120_000;
/** Each backend has had its first readiness probe by this time. */
const knownMs = 600;

export function play(seed: number, trace?: (line: string) => void): Figures {
  return new Scene(seed, trace).play();
}

export class Scene {
  readonly seed: number;
  readonly run: Run;
  readonly network: Network;
  readonly store: Store;
  readonly proxy: SimulatedProxy;
  readonly backends: readonly Backend[];
  readonly clients: readonly SimulatedClient[];
  readonly isStormy: boolean;
  /**
   * A period in which all backends are silent. If a run has one, it has no other faults, and nothing may end or fail
   * (D14).
   */
  readonly #silence: Silence | undefined;
  readonly #askings: Asking[] = [];
  readonly #watchings: Watching[] = [];
  /** Every change of the watched ConfigMaps, in order. */
  readonly #truth: { readonly version: number; readonly text: string }[] = [];
  /** True if a backend was down for a while, so the proxy may have had no backend for a request. */
  hasCrashed = false;
  /** The backends' ends of upstream connections that became black holes. */
  readonly swallowed: End[] = [];
  /**
   * True once a fault has struck a backend or a connection to one. Before that the proxy must not suspect any backend.
   */
  hasHitBackends = false;
  #queuedBytes = 0;
  /** Connection pools, including those of removed backends: their streams may still have queued bytes. */
  readonly #pools = new Set<{ readonly openStreams: number }>();
  #mostRttMs = 0;
  #troubles = 0;

  constructor(seed: number, trace?: (line: string) => void) {
    this.seed = seed;
    setSlicesOf(seed);
    const random = new Random(seed);
    const world = new World(random);
    this.run = new Run(world, random, trace);
    this.network = new Network(world, random);
    this.isStormy = seed % 2 === 1;
    this.#silence = !this.isStormy && random.chance(0.3) ? new Silence(world, random) : undefined;
    this.store = newCluster(world);
    this.store.subscribe(({ type, version, resource, object: { metadata } }) => {
      if (resource === "configmaps" && metadata.namespace === "default")
        this.#truth.push({ version, text: `${type} ${metadata.name}@${version}` });
    });
    const isPrivate = random.chance(0.2);
    const maxStreams = random.chance(0.5) ? 100 : random.whole(1, 10);
    this.backends = Array.from({ length: random.whole(2, 3) }, (_, at) => {
      return new Backend({ name: `cp-${at + 1}`, run: this.run, store: this.store, maxStreams, isPrivate });
    });
    this.proxy = new SimulatedProxy({
      world,
      backends: this.backends.map(({ name }) => name),
      dial: (name) => this.#dialBackend(name, weatherOf(random, connectionWindows)),
      connections: { streams: random.chance(0.5) ? 80 : random.whole(1, 6), warm: random.whole(0, 2) },
      isPerClient: isPrivate,
      probes: this.#silence?.probes,
      tell: (entry) => this.run.tell(() => JSON.stringify(entry)),
      thrown: (error) => this.run.wrong(`thrown: ${error instanceof Error ? error.stack : String(error)}`),
    });
    this.clients = Array.from({ length: random.whole(1, 5) }, (_, at) => {
      const weather = weatherOf(random, clientWindows);
      return new SimulatedClient(`client-${at + 1}`, this.run, () => this.#dialProxy(weather));
    });
  }

  play(): Figures {
    const { world, random } = this.run;
    this.#schedule();
    runErrands(this, busyMs);
    if (this.isStormy) storm(this, busyMs);
    const silence = this.#silence;
    // The silence begins only after the first probes. Before them nothing exists that could survive it.
    if (silence !== undefined) world.after(knownMs + random.next() * busyMs, () => this.#fallSilent(silence));
    world.runUntil(() => world.now() >= busyMs, busyMs);
    const isQuiet = world.runUntil(() => silence?.isOver !== false && this.#isAnswered(), patienceMs);
    if (!isQuiet) this.#tellHanging();
    this.#settleWatches();
    this.#close();
    this.#judge();
    return this.#figures();
  }

  // --- what happens ---

  #schedule(): void {
    const { world, random } = this.run;
    const habits = newHabits(random);
    for (let tag = 1; tag <= habits.requests; tag += 1) {
      world.after(random.next() * busyMs, () => {
        const plan = newPlan(tag, random, habits);
        if (plan.fate === "unauthorized") this.#troubles += 1;
        this.#askings.push(random.pick(this.clients).ask(plan));
      });
    }
    for (let count = random.whole(0, 8); count > 0; count -= 1) {
      world.after(random.next() * busyMs, () => {
        const watching = random.pick(this.clients).watch(this.store.revision);
        this.#watchings.push(watching);
        if (random.chance(0.3)) world.after(random.next() * busyMs, () => watching.cancel());
      });
    }
    for (let count = random.whole(0, 60); count > 0; count -= 1)
      world.after(random.next() * busyMs, () => this.write(random.size(20_000)));
    const look = (): void => {
      const queued = this.#queuedNow();
      this.#queuedBytes = Math.max(this.#queuedBytes, queued);
      // Each stream may have one window of received bytes and one of bytes that wait to be sent.
      const streams = this.#openStreams() + this.#openUpstream();
      if (queued > 2 * this.#mostWindowBytes() * streams)
        this.run.wrong(`${queued} bytes queued for ${streams} streams`);
      if (world.now() < busyMs) world.after(20, look);
    };
    look();
  }

  #fallSilent(silence: Silence): void {
    this.hasHitBackends = true;
    silence.begin(this.backends.flatMap(({ sessions }) => [...sessions.keys()]));
    this.run.tell(() => `all backends silent until ${silence.until}`);
  }

  /** Removes a random ConfigMap, or writes one with `bytes` bytes of data. */
  write(bytes: number): void {
    const { random } = this.run;
    const name = `c-${random.whole(1, 5)}`;
    const namespace = random.chance(0.8) ? "default" : "kube-system";
    if (random.chance(0.2)) this.store.remove("configmaps", namespace, name);
    else this.store.put("configmaps", configMap(namespace, name, "x".repeat(bytes)));
  }

  #dialBackend(name: string, weather: Weather): End | undefined {
    const backend = this.backends.find((one) => one.name === name);
    if (backend === undefined || backend.isDown) return undefined;
    const [ours, theirs] = this.network.pair(weather);
    backend.accept(theirs);
    this.#silence?.dialled(theirs);
    return ours;
  }

  #dialProxy(weather: Weather): End {
    const [ours, theirs] = this.network.pair(weather);
    this.proxy.accept(theirs);
    return ours;
  }

  // --- the end of the run ---

  #isAnswered(): boolean {
    const isFresh = (watching: Watching): boolean =>
      watching.outcome !== "waiting" || watching.events.length === this.#expected(watching).length;
    return this.#askings.every(({ outcome }) => outcome !== "waiting") && this.#watchings.every(isFresh);
  }

  #tellHanging(): void {
    for (const { outcome, description } of this.#askings)
      if (outcome === "waiting") this.run.wrong(`hangs: ${description}`);
    for (const watching of this.#watchings) {
      const missing = this.#expected(watching).length - watching.events.length;
      if (watching.outcome === "waiting" && missing > 0)
        this.run.wrong(`a watch hangs: ${missing} events missing`);
    }
  }

  #expected({ from }: Watching): string[] {
    return this.#truth.filter(({ version }) => version > from).map(({ text }) => text);
  }

  /** Each watch must have received the true changes since its start, in order and without a gap, until it ended. */
  #settleWatches(): void {
    for (const watching of this.#watchings) {
      const expected = this.#expected(watching);
      const wrong = watching.events.findIndex((event, at) => event !== expected[at]);
      if (wrong >= 0)
        this.run.wrong(
          `a watch from ${watching.from} was told ${watching.events[wrong]}, not ${expected[wrong]}`,
        );
      const mayEnd = this.isStormy || watching.outcome === "waiting" || watching.outcome === "cancelled";
      if (!mayEnd) this.run.wrong(`a watch was ${watching.outcome} with ${watching.status} in calm weather`);
      // Whatever happens to the backend, a watch ends after a complete event and never with a reset (D5).
      const isClean = ["waiting", "cancelled", "whole"].includes(watching.outcome);
      if (!isClean && !this.hasCrashed && !watching.client.isStruck)
        this.run.wrong(`a watch was ${watching.outcome} with ${watching.status}`);
      watching.cancel();
    }
    // A black hole hides from the backend that the proxy has closed the connection, so the backend's end is closed
    // here.
    for (const end of this.swallowed) end.destroy();
    const { world } = this.run;
    const heldMs = Math.max(0, (this.#silence?.arrivedAt ?? 0) - world.now());
    world.runUntil(() => false, heldMs + 10_000);
  }

  #close(): void {
    const { run, proxy, backends, network } = this;
    const nothing = (count: number, what: string): void => {
      if (count !== 0) run.wrong(`${count} ${what} left at the end`);
    };
    nothing(proxy.path.exchanges.size, "exchanges");
    nothing(this.#openUpstream(), "upstream streams");
    for (const backend of backends) nothing(backend.watchCount, "watches of a backend");
    nothing(this.#openStreams(), "downstream streams");
    nothing(this.#queuedNow(), "queued bytes");
    this.#checkWindows();
    for (const client of this.clients) client.goAway();
    proxy.stop();
    run.world.runUntil(() => run.world.isStill, 30_000);
    nothing(network.open.size, "sockets");
    if (!run.world.isStill) run.wrong("a timer was left running");
  }

  /**
   * Without bytes in flight, each session must have given back its window, except for credit that waits for the next
   * WINDOW_UPDATE.
   */
  #checkWindows(): void {
    for (const end of this.network.open) {
      const { size, lent } = end.window;
      if (lent * 4 > size && !end.isHole)
        this.run.wrong(`${lent} of a session's window of ${size} were not given back`);
    }
  }

  /**
   * The largest window that a stream may have grown to so far: what can arrive in one round trip to its backend
   * (attempt.ts).
   */
  #mostWindowBytes(): number {
    for (const { rtt } of this.proxy.path.pools.all.values())
      this.#mostRttMs = Math.max(this.#mostRttMs, rtt.quantile(0.1));
    const grown = Math.min(
      upstreamLimits.streamWindowMostBytes,
      this.#mostRttMs * upstreamLimits.streamBytesPerMs,
    );
    return Math.max(h2Limits.streamWindowBytes, grown);
  }

  #openUpstream(): number {
    for (const pool of this.proxy.path.pools.all.values()) this.#pools.add(pool);
    let sum = 0;
    for (const { openStreams } of this.#pools) sum += openStreams;
    return sum;
  }

  #openStreams(): number {
    let sum = 0;
    for (const { session } of this.proxy.downstreams) sum += session.openCount;
    return sum;
  }

  #queuedNow(): number {
    return this.proxy.path.buffered.bytes;
  }

  #judge(): void {
    const { run } = this;
    if (run.astray > 0) run.wrong(`${run.astray} bytes astray`);
    if (!isUntouched()) run.wrong("bytes that were only lent were written over");
    if (!this.hasHitBackends) {
      for (const entry of this.proxy.entries) if (isEvidence(entry)) run.wrong(JSON.stringify(entry));
    }
    if (this.#silence !== undefined) {
      for (const entry of this.proxy.entries) if (isLost(entry)) run.wrong(JSON.stringify(entry));
    }
    for (const asking of this.#askings)
      if (!this.#mayEndSo(asking)) run.wrong(`ended wrongly: ${asking.description}`);
  }

  /** True if the request had a reason to end as it did. The content of responses is checked when it arrives. */
  #mayEndSo(asking: Asking): boolean {
    const { plan, outcome, status, resetCode } = asking;
    if (outcome === "whole" || outcome === "cancelled") return true;
    if (plan.fate.startsWith("reset") && outcome === "reset" && resetCode === heardCode(plan)) return true;
    // Go's transport would repeat a write after this code, so the proxy answers 504 instead (local-reply.ts).
    const isUnknown = plan.fate === "reset-early" && plan.resetCode === errorCode.PROTOCOL_ERROR;
    if (isUnknown && outcome === "refused" && status === 504) return true;
    // The proxy cannot repeat a request after it has sent a part of its body, so it passes the refusal to the client.
    const mayBeRefused = plan.uploadBytes > 0 && (plan.fate === "refuse" || this.#troubles > 0);
    if (mayBeRefused && outcome === "reset") return true;
    return this.isStormy && this.#mayBeLost(asking);
  }

  /**
   * True if a fault may have ended the request: a response that had begun ends with its connection, and a write is
   * never repeated.
   */
  #mayBeLost({ plan, status, client }: Asking): boolean {
    if (client.isStruck || this.hasCrashed || this.#troubles > 0 || status !== 0) return true;
    const isSafe = plan.method === "GET" || plan.method === "HEAD";
    return !isSafe || plan.path.includes("/log") || plan.path.includes("/proxy");
  }

  #figures(): Figures {
    const outcomes: Record<string, number> = {};
    for (const { outcome } of [...this.#askings, ...this.#watchings])
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    return {
      seed: this.seed,
      requests: this.#askings.length,
      watches: this.#watchings.length,
      events: this.#watchings.reduce((sum, { events }) => sum + events.length, 0),
      decisions: this.run.world.decisions,
      frames: this.network.frames,
      bytes: this.network.bytes,
      astray: this.run.astray,
      queuedBytes: this.#queuedBytes,
      outcomes,
      problems: this.run.problems,
    };
  }
}

/**
 * Returns the code that the client receives: the backend's code, unless the client could take that for an orderly end
 * (exchange.ts).
 */
function heardCode({ resetCode }: Plan): number {
  const isMistakable = resetCode === errorCode.NO_ERROR || resetCode === errorCode.CANCEL;
  return isMistakable ? errorCode.INTERNAL_ERROR : resetCode;
}

/** True if the proxy closed an open upstream connection because of unanswered PINGs. */
function isLost(entry: Entry): boolean {
  return entry.kind === "upstream_connection.closed" && entry.reason.startsWith("PING unanswered");
}

/** True if this journal entry blames a backend. The behaviour of clients must never cause one. */
function isEvidence(entry: Entry): boolean {
  if (entry.kind === "backend.changed") return entry.to === "suspect" || entry.to === "dead";
  if (entry.kind === "request.failed" && entry.code === "outcome-unknown") return false;
  if (entry.kind === "request.failed") return entry.origin === "backend";
  return entry.kind === "upstream_connection.closed" && entry.reason !== "ended";
}

const clientWindows = [20_000, 200_000, 2_000_000] as const;
/**
 * The kernel's send buffer must drain within the deadline of a PING behind it. Slower upstream connections would fail
 * that.
 */
const connectionWindows = [200_000, 2_000_000] as const;

function weatherOf(random: Random, windows: readonly number[]): Weather {
  const leastMs = random.next() * random.pick([1, 1, 40]);
  return {
    leastMs,
    mostMs: leastMs + random.next() * random.pick([1, 20]),
    chunkBytes: random.pick([1, 100, 2_000, 16_000, 65_536]),
    isEdgy: random.chance(0.15),
    windowBytes: random.pick(windows),
  };
}

function configMap(namespace: string, name: string, value: string): KubeObject {
  const metadata = {
    name,
    namespace,
    uid: "",
    resourceVersion: "",
    creationTimestamp: "2027-01-15T08:00:00Z",
    labels: {},
    rest: {},
  };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, fields: { data: { value } } };
}
