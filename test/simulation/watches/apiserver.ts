/**
 * One simulated apiserver: the embedded demo apiserver behind real HTTP/2 sessions, with its own watch cache and with
 * the faults that a process can have. Reports each incoming request to `Attempts`, which compares it with the request
 * that the client sent to the proxy.
 */
import { Apiserver } from "../../../demo/apiserver/apiserver.ts";
import type { Answer, Ask } from "../../../demo/apiserver/ask.ts";
import type { Store } from "../../../demo/objects/store.ts";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import { Session } from "../../../src/h2/session/session.ts";
import { answerStream } from "../answer-stream.ts";
import type { Attempts } from "./attempts.ts";
import { Cache, type Progress } from "./cache.ts";
import { encodeProtobuf, protobufStream } from "./events.ts";
import type { Findings } from "./findings.ts";
import { hello } from "./probe.ts";
import { type End, Host, type Wires } from "./wires.ts";

const maxStreams = 100;
/** About one second of events for a slow watcher. Real watch queues hold 10 to 1,000 events. */
const mostWatchQueueBytes = 256 * 1024;
const encoding = { contentType: protobufStream, encode: encodeProtobuf };

export type ApiserverParts = {
  readonly findings: Findings;
  readonly wires: Wires;
  readonly store: Store;
  readonly resources: readonly string[];
  readonly attempts: Attempts;
  /**
   * Custom resources. The first request for one makes the apiserver fill its cache, and is refused with 429 and
   * Retry-After.
   */
  readonly custom?: readonly string[];
  readonly progress?: Progress;
  /** True if a change goes only to watches that select its label `app`. Saves time with thousands of watches. */
  readonly isIndexed?: boolean;
};

export class SimulatedApiserver {
  readonly host: Host;
  readonly cache: Cache;
  readonly #parts: ApiserverParts;
  readonly #turn: FlushScheduler;
  #store: Store;
  /** Custom resources that have been requested, and those whose cache has been filled. */
  readonly #asked = new Set<string>();
  readonly #filled: Set<string>;
  #apiserver: Apiserver;
  readonly #sessions = new Map<End, Session>();
  /** True while its watch cache is being filled: watches and lists are refused with 429 and Retry-After. */
  isInitialising = false;
  /** True while its /readyz fails, although it serves all requests. */
  isUnready = false;
  /**
   * Clients whose permissions were withdrawn. Their running watches go on, and their new requests are refused (watch.md
   * §8).
   */
  readonly revoked: ReadonlySet<string>;
  /** Time at which its cache was last known to lag. Infinity while it lags. */
  behindUntil = Number.NEGATIVE_INFINITY;
  /** True while its connection to etcd is cut: requests that need etcd hang. */
  #isCutOff = false;
  #hanging: (() => void)[] = [];

  constructor(name: string, parts: ApiserverParts, revoked: ReadonlySet<string>) {
    this.host = new Host(name);
    this.#parts = parts;
    this.#store = parts.store;
    // The first process has already been asked for all custom resources.
    this.#filled = new Set(parts.custom);
    this.#turn = new FlushScheduler(parts.findings.world);
    this.cache = new Cache(parts.store, parts.findings.world, parts.resources, parts.progress);
    this.revoked = revoked;
    this.#apiserver = this.#newProcess();
  }

  get name(): string {
    return this.host.name;
  }

  get watchCount(): number {
    return this.#apiserver.watchCount;
  }

  /** True if the apiserver can be reached now and can serve a watch from `version`. */
  serves(resource: string, version: number): boolean {
    const { host, isInitialising } = this;
    const isReachable = !host.isDown && !host.isFrozen && !host.dropsIn && !host.dropsOut;
    return isReachable && !isInitialising && this.knows(resource, version);
  }

  /** True if the apiserver runs and still has the history since `version`. It need not be reachable. */
  knows(resource: string, version: number): boolean {
    const oldest = resource === "events" ? this.#store.oldest : this.cache.oldestOf(resource);
    return !this.host.isDown && version >= oldest;
  }

  /** `authenticate` returns a request as its user's own; default: as it came. */
  accept(end: End, authenticate: (ask: Ask) => Ask = (ask) => ask): void {
    const session = new Session({
      role: "server",
      clock: this.#parts.findings.world,
      turn: this.#turn,
      maxStreams,
      owner: {
        opened: (stream, request, isWhole) =>
          answerStream(stream, request, isWhole, (ask, answer) => {
            // Raises the limit of frames that the proxy may send. A real apiserver has no such limit.
            session.answered();
            this.#handle(authenticate(ask), answer, end.isLate);
          }),
        write: (buffers) => end.write(buffers),
        changed() {},
        ponged() {},
        fault: (error) => this.#parts.findings.wrong("thrown", `${this.name}: ${String(error)}`),
        ended: (error) => {
          if (error !== undefined)
            this.#parts.findings.wrong("transparent", `${this.name} was sent a violation: ${error.message}`);
          session.flush();
          end.end();
        },
      },
    });
    this.#sessions.set(end, session);
    end.owner = {
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => {
        this.#sessions.delete(end);
        session.lose();
      },
    };
  }

  /** What it answers to a readiness probe. Undefined: it does not answer. */
  get readiness(): "ready" | "failing" | undefined {
    if (this.#isCutOff) return undefined;
    return this.isUnready ? "failing" : "ready";
  }

  /** Answers a readiness probe, except while the connection to etcd is cut: the real check would wait for etcd. */
  acceptProbe(end: End): void {
    end.owner = {
      receive: () => {
        if (this.readiness !== undefined) end.write([Buffer.from(this.readiness)]);
      },
      drained() {},
      closed() {},
    };
    end.write([hello]);
  }

  // --- faults ---

  /** SIGKILL. */
  kill(): void {
    this.host.isDown = true;
    this.#parts.wires.kill(this.host);
  }

  /** Starts a new process with an empty event history. Another `store` stands for a restored copy of etcd. */
  restart(initialisingMs: number, store: Store = this.#store): void {
    this.#store = store;
    this.#asked.clear();
    this.#filled.clear();
    this.cache.restart(store);
    this.#apiserver = this.#newProcess();
    this.#cutOff(false);
    this.host.isDown = false;
    this.host.thaw();
    this.isInitialising = initialisingMs > 0;
    this.#parts.findings.world.after(initialisingMs, () => {
      this.isInitialising = false;
    });
  }

  /**
   * SIGTERM: sends GOAWAY and refuses new connections at once, ends the watches after `graceMs`, and exits one second
   * later.
   */
  shutDown(graceMs: number, gone: () => void): void {
    const { world } = this.#parts.findings;
    this.host.isDown = true;
    this.sendAway();
    world.after(graceMs, () => this.#apiserver.endWatches());
    world.after(graceMs + 1_000, () => {
      this.kill();
      gone();
    });
  }

  /** Sends GOAWAY on every connection. Open streams go on. */
  sendAway(): void {
    for (const session of this.#sessions.values()) session.goAway();
  }

  /** Returns a random open connection, or undefined without one. */
  connection(): End | undefined {
    const ends = [...this.#sessions.keys()];
    return ends.length === 0 ? undefined : this.#parts.findings.random.pick(ends);
  }

  freeze(): void {
    this.host.isFrozen = true;
    this.cache.freeze();
  }

  thaw(): void {
    this.host.thaw();
    if (!this.#isCutOff) this.cache.thaw();
  }

  /** Makes its cache lag behind etcd by `ms` from now on. */
  lag(ms: number): void {
    this.cache.lagMs = ms;
    this.#seeBehind();
  }

  cutOff(): void {
    this.cache.freeze();
    this.#cutOff(true);
    this.#seeBehind();
  }

  reconnect(): void {
    this.cache.thaw();
    this.#cutOff(false);
    this.#seeBehind();
  }

  /** Two faults may make the cache lag at the same time, so it lags until both are over. */
  #seeBehind(): void {
    const isBehind = this.#isCutOff || this.cache.lagMs > 0;
    this.behindUntil = isBehind ? Number.POSITIVE_INFINITY : this.#parts.findings.world.now();
  }

  /** Re-initialises its watch cache: running watches end, and until `initialised` new requests are refused with 429. */
  initialise(): void {
    this.relist();
    this.isInitialising = true;
  }

  initialised(): void {
    this.isInitialising = false;
  }

  /**
   * Lists everything from etcd again, as after a lost etcd watch. All watches end, and the cache forgets older
   * versions.
   */
  relist(): void {
    this.cache.compact(this.cache.revision);
    this.#apiserver.endWatches();
  }

  #cutOff(isCutOff: boolean): void {
    this.#isCutOff = isCutOff;
    if (isCutOff) return;
    const hanging = this.#hanging;
    this.#hanging = [];
    for (const run of hanging) run();
  }

  #newProcess(): Apiserver {
    return new Apiserver({
      store: this.#store,
      clock: this.#parts.findings.world,
      name: this.name,
      cache: this.cache,
      uncached: new Set(["events"]),
      encodingFor: (accept) => (accept.startsWith(protobufStream) ? encoding : undefined),
      mostWatchQueueBytes,
    });
  }

  /**
   * True if the cache of this custom resource is not filled yet. The first call begins to fill it, which takes up to
   * 0.9 s.
   */
  #isCold(resource: string): boolean {
    if (this.#parts.custom?.includes(resource) !== true || this.#filled.has(resource)) return false;
    if (this.#asked.has(resource)) return true;
    this.#asked.add(resource);
    const process = this.#apiserver;
    const { world, random } = this.#parts.findings;
    world.after(random.whole(50, 900), () => {
      if (this.#apiserver !== process) return;
      this.cache.begin(resource);
      this.#filled.add(resource);
    });
    return true;
  }

  #handle(ask: Ask, answer: Answer, isLate: boolean): void {
    const attempt = this.#parts.attempts.begin(this.name, ask, isLate);
    const client = fieldOf(ask, "authorization").replace("Bearer ", "");
    const noted = attempt.noting(answer);
    if (this.revoked.has(client)) return refuse(noted, 403);
    const resource = /\/([a-z]+)(?:[?]|$)/.exec(ask.path)?.[1] ?? "";
    const isFilling = this.isInitialising || this.#isCold(resource);
    if (isFilling && ask.method === "GET") return refuse(noted, 429, 1);
    const isConsistent = !/resourceVersion=[1-9]/.test(ask.path) && !ask.path.includes("resourceVersion=0");
    // A list or the initial events of a watch wait until the cache has reached etcd's revision or the requested
    // version. Any other watch begins at once (watch.md §6.6).
    if (!ask.path.includes("watch=true") || ask.path.includes("sendInitialEvents=true"))
      this.cache.catchUp(resource);
    if (this.#isCutOff && isConsistent) this.#hang(ask, noted);
    else this.#answer(ask, noted);
  }

  #answer(ask: Ask, answer: Answer): void {
    const app = /labelSelector=app%3D([^&,]+)/.exec(ask.path)?.[1];
    if (this.#parts.isIndexed === true) this.cache.selectedApp = app;
    this.#apiserver.handle(ask, answer);
    this.cache.selectedApp = undefined;
  }

  /** Lets the request wait until etcd can be reached or the client has cancelled. */
  #hang(ask: Ask, answer: Answer): void {
    const run = (): void => this.#answer(ask, answer);
    this.#hanging.push(run);
    answer.onGone(() => {
      this.#hanging = this.#hanging.filter((other) => other !== run);
    });
  }
}

function fieldOf(ask: Ask, name: string): string {
  return ask.fields.find(([key]) => key === name)?.[1] ?? "";
}

function refuse(answer: Answer, code: number, retryAfter?: number): void {
  const body = Buffer.from(
    JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code }),
  );
  const fields: [string, string][] = [
    ["content-type", "application/json"],
    ["content-length", String(body.length)],
  ];
  if (retryAfter !== undefined) fields.push(["retry-after", String(retryAfter)]);
  answer.head(code, fields);
  answer.write(body);
  answer.end();
}
