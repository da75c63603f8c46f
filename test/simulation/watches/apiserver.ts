/**
 * One simulated apiserver: the embedded one behind real HTTP/2 sessions, with a cache of its own and everything that
 * may befall a process. Compares what it is asked with what the client asked the proxy for.
 */
import { Apiserver } from "../../../src/demo/apiserver/apiserver.ts";
import type { Answer, Ask } from "../../../src/demo/apiserver/ask.ts";
import type { Store } from "../../../src/demo/objects/store.ts";
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
/** About a second of events for a slow watcher; real queues hold 10 to 1,000. */
const mostWatchQueueBytes = 256 * 1024;
const encoding = { contentType: protobufStream, encode: encodeProtobuf };

export type ApiserverParts = {
  readonly findings: Findings;
  readonly wires: Wires;
  readonly store: Store;
  readonly resources: readonly string[];
  readonly attempts: Attempts;
  /** Custom resources: the first that asks for one has its cache filled, and is told to come back (429). */
  readonly custom?: readonly string[];
  readonly progress?: Progress;
};

export class SimulatedApiserver {
  readonly host: Host;
  readonly cache: Cache;
  readonly #parts: ApiserverParts;
  readonly #turn: FlushScheduler;
  #store: Store;
  /** Custom resources whose caches are being filled, or are. */
  readonly #asked = new Set<string>();
  readonly #filled: Set<string>;
  #apiserver: Apiserver;
  readonly #sessions = new Map<End, Session>();
  /** Its cache is not filled yet: watches and lists are told to come back. */
  isInitialising = false;
  /** Whose rights were taken away: running watches go on, new requests are refused (watch.md §8). */
  readonly revoked: ReadonlySet<string>;
  /** Until when its cache was known to be behind: for ever, while it is. */
  behindUntil = Number.NEGATIVE_INFINITY;
  /** Its way to etcd is cut: what has to be asked there hangs. */
  #isCutOff = false;
  #hanging: (() => void)[] = [];

  constructor(name: string, parts: ApiserverParts, revoked: ReadonlySet<string>) {
    this.host = new Host(name);
    this.#parts = parts;
    this.#store = parts.store;
    // The process that is there has been asked for all of them.
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

  /** True if it could serve a watch from `version` on now. */
  serves(resource: string, version: number): boolean {
    const { host, isInitialising } = this;
    const isReachable = !host.isDown && !host.isFrozen && !host.dropsIn && !host.dropsOut;
    return isReachable && !isInitialising && this.knows(resource, version);
  }

  /** True if it would continue from `version` once it can be reached. */
  knows(resource: string, version: number): boolean {
    const oldest = resource === "events" ? this.#store.oldest : this.cache.oldestOf(resource);
    return !this.host.isDown && version >= oldest;
  }

  accept(end: End): void {
    const session = new Session({
      role: "server",
      clock: this.#parts.findings.world,
      turn: this.#turn,
      maxStreams,
      owner: {
        opened: (stream, request, isWhole) =>
          answerStream(stream, request, isWhole, (ask, answer) => this.#handle(ask, answer, end.isLate)),
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

  /** A probe asks whether it is ready; no answer while etcd's would have to be waited for. */
  acceptProbe(end: End): void {
    end.owner = {
      receive: () => {
        if (!this.#isCutOff) end.write([Buffer.from("ready")]);
      },
      drained() {},
      closed() {},
    };
    end.write([hello]);
  }

  // --- what befalls it ---

  /** SIGKILL. */
  kill(): void {
    this.host.isDown = true;
    this.#parts.wires.kill(this.host);
  }

  /** Comes back with a cache that begins now; on another store, which is a restored copy of etcd. */
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

  /** SIGTERM: GOAWAY and no new connections at once; the watches end after `graceMs`, and then the process. */
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

  /** GOAWAY on every connection, while what is open lives on. */
  sendAway(): void {
    for (const session of this.#sessions.values()) session.goAway();
  }

  /** Any one of its connections. */
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

  /** Its cache follows so far behind from now on. */
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

  /** Two faults may hold it back at once: it is behind until both are over. */
  #seeBehind(): void {
    const isBehind = this.#isCutOff || this.cache.lagMs > 0;
    this.behindUntil = isBehind ? Number.POSITIVE_INFINITY : this.#parts.findings.world.now();
  }

  /** One of its caches is made anew: its watches end, and for a while everybody is told to come back. */
  initialise(): void {
    this.relist();
    this.isInitialising = true;
  }

  initialised(): void {
    this.isInitialising = false;
  }

  /** Lists everything again, as after a lost etcd watch: all watches end and older versions are unknown. */
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

  /** True if its cache is not filled yet; it is a moment after the first call. */
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
    // A list, and a state, are as new as etcd or as what they name; any other watch waits for nothing (watch.md §6.6).
    if (!ask.path.includes("watch=true") || ask.path.includes("sendInitialEvents=true"))
      this.cache.catchUp(resource);
    if (this.#isCutOff && isConsistent) this.#hang(ask, noted);
    else this.#apiserver.handle(ask, noted);
  }

  /** Until etcd answers, or the asker has gone. */
  #hang(ask: Ask, answer: Answer): void {
    const run = (): void => this.#apiserver.handle(ask, answer);
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
