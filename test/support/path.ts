/**
 * The proxy's whole data path on a manual clock: the real request handling, upstream connections, sessions and relay.
 * Clients and backends are scripted HTTP/2 sessions, connected by in-memory sockets, so that a test controls every
 * frame and its time.
 */

import * as assert from "uvu/assert";
import type { WrittenLimit } from "../../config/schema/written.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import type { RequestHead } from "../../src/h2/core/fields.ts";
import type { FlushScheduler } from "../../src/h2/core/flush-scheduler.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import type { StreamListener, StreamWriter } from "../../src/h2/core/stream-writer.ts";
import { Session } from "../../src/h2/session/session.ts";
import type { Stream } from "../../src/h2/session/stream.ts";
import type { Readiness } from "../../src/health/evidence.ts";
import type { ProbeListener } from "../../src/health/prober.ts";
import type { ShieldConfig } from "../../src/ops/config/cluster.ts";
import { limitOf } from "../../src/ops/config/limit.ts";
import { DataPath } from "../../src/proxy/cluster/data-path.ts";
import { Downstream } from "../../src/proxy/downstream/downstream.ts";
import { OperatorLimits } from "../../src/proxy/limits/operator-limits.ts";
import { shieldOff } from "../../src/proxy/limits/shields.ts";
import type { TraceSink } from "../../src/proxy/observe/request-trace.ts";
import { Tracer } from "../../src/proxy/observe/tracer.ts";
import { BufferLimiter } from "../../src/proxy/overload/buffer-limiter.ts";
import type { AccessLogLevel } from "../../src/proxy/request/access-log.ts";
import type { ClientOptions } from "../../src/upstream/context/client.ts";
import type { Wire, WireOwner } from "../../src/upstream/net/wire.ts";
import type { BackendTraits } from "../../src/upstream/pool/backend-shares.ts";
import type { Assertions } from "../../src/upstream/pool/pool-set.ts";
import { type Cable, cable } from "./cable.ts";
import { clientOf } from "./client.ts";
import { type ManualClock, manualClock } from "./clock.ts";
import { checkExchanges } from "./exchange-invariants.ts";

/** One end of a stream: records what it received, and can send. */
export class Ear implements StreamListener {
  side: (StreamWriter & { grant(count: number): void }) | undefined;
  readonly heads: Field[][] = [];
  readonly chunks: Buffer[] = [];
  /** If true, flow-control credit is returned as data arrives. False simulates a reader that has stopped. */
  isReading = true;
  isEnded = false;
  resetCode: number | undefined;

  headers(fields: Field[], end: boolean): void {
    this.heads.push(fields);
    if (end) this.isEnded = true;
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.chunks.push(Buffer.from(bytes.subarray(start, end)));
    if (this.isReading) this.side?.grant(end - start);
    if (endStream) this.isEnded = true;
  }

  reset(code: number): void {
    this.resetCode = code;
  }

  sent(): void {}

  get status(): string {
    return this.heads.at(-1)?.[0]?.value ?? "";
  }

  get body(): string {
    return Buffer.concat(this.chunks).toString();
  }

  say(text: string | Buffer, end = false): void {
    const bytes = typeof text === "string" ? Buffer.from(text) : Buffer.from(text);
    this.side?.sendData(bytes, 0, bytes.length, end);
  }
}

export type Asked = Ear & {
  readonly request: RequestHead;
  answer(status: number, body?: string, fields?: Field[]): void;
  /** Resets the stream, as a faulty server does. */
  fail(): void;
};

/** A backend whose behavior the test sets. */
export class PlayedBackend {
  readonly asked: Asked[] = [];
  readonly sessions: { readonly session: Session; readonly cable: Cable; readonly address: string }[] = [];
  /** The IP address of connections that are opened from now on; "": unknown. */
  address = "";
  /** If true, it refuses connections. */
  isDown = false;
  /** Number of connections that the proxy has begun to open. */
  dialCount = 0;
  /** If true, connection attempts to it get no answer, as from a host that drops all packets. */
  isMute = false;
  /**
   * Only if `isMute` is true: TCP connections still succeed, because the kernel accepts them, but the process is
   * frozen.
   */
  isFrozen = false;
  /** Each write above this many bytes is lost on sessions that are opened from now on: see `loseLarge`. */
  mostBytes = Number.POSITIVE_INFINITY;
  maxStreams = 100;
  /** The readiness that health probes receive, if the path has probes. */
  readyz: Readiness = "ready";
  /** How many ms /readyz takes. */
  readyzDelayMs = 0;
  /** Number of probes that were started. */
  probeCount = 0;
  isUntrusted = false;
  /**
   * If set, the backend answers by itself, as an apiserver does. The function returns true for an Authorization field
   * that is accepted: such a request gets 200. Any other gets 401, followed by a GOAWAY
   * (UnauthenticatedHTTP2DOSMitigation). A path with "hang" gets no response.
   */
  authenticates: ((authorization: string) => boolean) | undefined;
  /** If the backend answers by itself: the delay of a response in ms. */
  answerMs = 5;
  /**
   * If the backend answers by itself: how many ms a GOAWAY takes to arrive. Streams that the proxy opens meanwhile have
   * ids above the GOAWAY's last stream id.
   */
  goAwayMs = 0;
  /** If true, it answers every request with GOAWAY, and refuses its stream. */
  isSendingAway = false;
  /** If true, TCP connections to the backend succeed, but no TLS handshake completes. */
  losesHandshakes = false;
  readonly #turn: FlushScheduler;
  readonly #clock: ManualClock;

  constructor(clock: ManualClock, turn: FlushScheduler) {
    this.#clock = clock;
    this.#turn = turn;
  }

  connect(owner: WireOwner): ReturnType<Cable["near"]> {
    this.dialCount += 1;
    const wires = cable(this.#clock);
    if (this.isMute || this.losesHandshakes) wires.blackHole();
    wires.loseLarge(this.mostBytes);
    if (this.isDown) {
      this.#clock.soon(() => wires.cut("connect ECONNREFUSED"));
      return wires.near(owner);
    }
    const session: Session = new Session({
      role: "server",
      clock: this.#clock,
      turn: this.#turn,
      maxStreams: this.maxStreams,
      owner: {
        opened: (stream, request, end) => this.#opened(session, wires, stream, request, end),
        write: (buffers, written) => far.write(buffers, written),
        changed() {},
        ponged() {},
        ended() {
          session.flush();
          far.end();
        },
      },
    });
    const far = wires.far({
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => session.lose(),
    });
    const { address } = this;
    this.sessions.push({ session, cable: wires, address });
    return Object.assign(wires.near(owner), { remoteAddress: address });
  }

  #opened(
    session: Session,
    wires: Cable,
    stream: Stream,
    request: RequestHead,
    end: boolean,
  ): StreamListener {
    const ear = Object.assign(new Ear(), {
      request,
      fail: () => stream.reset(errorCode.INTERNAL_ERROR),
      answer(status: number, body = "", fields: Field[] = []) {
        const head = [new Field(":status", String(status)), ...fields];
        stream.sendHeaders(head, body === "");
        if (body !== "") ear.say(body, true);
      },
    });
    ear.side = stream;
    ear.isEnded = end;
    this.asked.push(ear);
    if (this.isSendingAway)
      this.#clock.after(this.answerMs, () => {
        session.goAway();
        stream.reset(errorCode.REFUSED_STREAM);
      });
    else if (this.authenticates !== undefined && !request.path.includes("hang"))
      this.#clock.after(this.answerMs, () => this.#answers(session, wires, stream, request));
    return ear;
  }

  #answers(session: Session, wires: Cable, stream: Stream, { path, fields }: RequestHead): void {
    const authorization = fields.find(({ name }) => name === "authorization")?.value ?? "";
    const isKnown = this.authenticates?.(authorization) === true;
    if (!stream.isClosed) {
      const isWatch = isKnown && path.includes("watch=1");
      const head = [
        new Field(":status", isKnown ? "200" : "401"),
        new Field("content-type", "application/json"),
      ];
      stream.sendHeaders(head, !isWatch);
    }
    if (isKnown || !session.isOpen) return;
    if (this.goAwayMs > 0) this.#clock.after(this.goAwayMs, wires.hold());
    session.goAway();
  }

  /** Runs a health probe: connects in one loop turn, and returns /readyz in the next. */
  probe(ear: ProbeListener): () => void {
    this.probeCount += 1;
    let isOver = false;
    const soon = (run: () => void): void =>
      this.#clock.soon(() => {
        if (!isOver) run();
      });
    const { readyz } = this;
    if (!this.isDown && (!this.isMute || this.isFrozen)) soon(() => ear.connected());
    if (this.losesHandshakes) return () => {};
    // The response of /readyz?verbose has about 2,000 bytes, so a smaller limit loses it.
    const isLost = this.mostBytes < 2000;
    if (this.isDown) soon(() => ear.dialed("refusal", "connect ECONNREFUSED"));
    else if (this.isUntrusted) soon(() => ear.dialed("untrusted", "altnames"));
    else if (!this.isMute)
      soon(() => {
        ear.dialed("answer", "");
        const say = (): void => {
          if (isOver) return;
          ear.answered(readyz, "as played", {
            ask: (answered) => void (this.isMute || this.isDown || this.#clock.soon(answered)),
            close() {},
          });
        };
        if (isLost || readyz === "hanging") return;
        if (this.readyzDelayMs > 0) this.#clock.after(this.readyzDelayMs, say);
        else soon(say);
      });
    return () => {
      isOver = true;
    };
  }

  /** Drops all data on open and on new sockets. */
  blackHole(): void {
    this.isMute = true;
    for (const { cable: wires } of this.sessions) wires.blackHole();
  }

  /** Drops each write above `bytes`, as when the path MTU is smaller than both ends assume. Smaller writes pass. */
  loseLarge(bytes: number): void {
    this.mostBytes = bytes;
    for (const { cable: wires } of this.sessions) wires.loseLarge(bytes);
  }

  /** Lets large writes pass again. A session that has already lost one stays blocked. */
  passLarge(): void {
    this.loseLarge(Number.POSITIVE_INFINITY);
  }

  /** Resets all sockets and refuses new ones, as when the process is killed. */
  kill(): void {
    this.isDown = true;
    for (const { cable: wires } of this.sessions) wires.cut("read ECONNRESET");
  }

  get last(): Asked {
    const ear = this.asked.at(-1);
    if (ear === undefined) throw new Error("The backend was asked nothing");
    return ear;
  }
}

export class PlayedClient {
  readonly session: Session;
  readonly downstream: Downstream;
  readonly cable: Cable;
  isGone = false;
  readonly #far: Wire;

  constructor(path: PlayedPath, options: Partial<ClientOptions>) {
    this.cable = cable(path.clock);
    const client = clientOf(options);
    this.downstream = new Downstream(client, path, (owner) => this.cable.near(owner));
    const session: Session = new Session({
      role: "client",
      clock: path.clock,
      turn: path.turn,
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers, written) => far.write(buffers, written),
        changed() {},
        ponged() {},
        ended() {
          session.flush();
          far.end();
        },
      },
    });
    const far = this.cable.far({
      receive: (chunk) => session.receive(chunk),
      drained: () => session.drained(),
      closed: () => {
        this.isGone = true;
        session.lose();
      },
    });
    this.session = session;
    this.#far = far;
  }

  /** Closes the client's connection. */
  hangUp(): void {
    this.session.goAway();
    this.session.flush();
    this.#far.end();
  }

  /** Sends a request. If `end` is false, its body stays open. */
  ask(method: string, path: string, fields: Field[] = [], end = true): Ear & { stream: Stream } {
    const ear = new Ear();
    const head = [
      new Field(":method", method),
      new Field(":scheme", "https"),
      new Field(":path", path),
      new Field(":authority", "kube.test"),
      ...fields,
    ];
    const stream = this.session.open(head, end, ear, method === "HEAD");
    ear.side = stream;
    return Object.assign(ear, { stream });
  }
}

export class PlayedPath extends DataPath {
  override readonly clock: ManualClock;
  readonly entries: Entry[] = [];
  /** Every change of a backend's health state, with its time. */
  readonly changes: { readonly name: string; readonly to: string; readonly at: number }[] = [];
  readonly played = new Map<string, PlayedBackend>();
  readonly operatorLimits: OperatorLimits;

  constructor(
    names: readonly string[],
    options: {
      isPerClient?: boolean;
      /** Default: false, because most tests check the upstream requests frame by frame. */
      alwaysRequestBookmarks?: boolean;
      staleReadGuard?: "Observe" | "Enforce" | "Disabled";
      /**
       * Which watch caches of the backends are compared. Default: nothing, because the comparison sends requests of its
       * own.
       */
      compares?: "all" | "watches" | "nothing";
      accessLog?: AccessLogLevel;
      down?: readonly string[];
      bufferBytes?: number;
      warm?: number;
      /** Which backends take the identities that the proxy asserts. Default: all. */
      assertions?: Assertions;
      traitsOf?: (backend: string) => BackendTraits;
      /** The Kubernetes version that each backend reports. Default: unknown. */
      versions?: Readonly<Record<string, string>>;
      /** True if backends receive health probes, as in production. Default: false. */
      isProbed?: boolean;
      /** The share of requests that are traced, and the destination of the traces. Default: no traces. */
      traces?: TraceSink & { readonly share: number };
      limits?: readonly WrittenLimit[];
      /** The path below which the backends serve their API. Default: at the root. */
      pathPrefix?: string;
      /** Default: no shield. */
      shield?: ShieldConfig;
    } = {},
  ) {
    const clock = manualClock();
    const journal = new Journal(clock);
    const operatorLimits = new OperatorLimits(clock, journal);
    const tracer = options.traces && new Tracer(clock, options.traces);
    tracer?.configure(options.traces?.share);
    super({
      clock,
      journal,
      tracer,
      operatorLimits,
      limits: (options.limits ?? []).map(limitOf),
      shield: options.shield ?? shieldOff,
      connect: (backend, owner) => this.backend(backend).connect(owner),
      connections: { streams: 80, warm: options.warm ?? 1, pathPrefix: options.pathPrefix ?? "" },
      assertions: options.assertions,
      versionOf: (backend) => options.versions?.[backend] ?? "",
      isPerClient: options.isPerClient ?? false,
      alwaysRequestBookmarks: options.alwaysRequestBookmarks ?? false,
      staleReadGuard: options.staleReadGuard ?? "Observe",
      compares: options.compares ?? "nothing",
      accessLog: options.accessLog ?? "None",
      // With a fixed list of API groups the proxy sends no discovery request of its own.
      customResourceAPIGroups: ["stable.example.com"],
      bufferLimiter: new BufferLimiter(clock, options.bufferBytes ?? 64 * 1024 * 1024),
      ...(options.traitsOf === undefined ? {} : { traitsOf: options.traitsOf }),
      ping: { intervalMs: 250, suspectAfterMs: 500, deadAfterMs: 2000, deadAfterWhenAllSilentMs: 10_000 },
      ...(options.isProbed === true
        ? {
            probes: {
              probe: (backend: string, ear: ProbeListener) => this.backend(backend).probe(ear),
              times: { intervalMs: 1000, timeoutMs: 2000 },
              random: () => 0.5,
            },
          }
        : {}),
    });
    this.clock = clock;
    this.operatorLimits = operatorLimits;
    journal.subscribe((entry, at) => {
      this.entries.push(entry);
      if (entry.kind === "backend.changed") this.changes.push({ name: entry.backend, to: entry.to, at });
    });
    for (const name of names) {
      const backend = new PlayedBackend(clock, this.turn);
      backend.isDown = options.down?.includes(name) === true;
      this.played.set(name, backend);
    }
    this.reconcile(names);
    clock.turn();
  }

  backend(name: string): PlayedBackend {
    const backend = this.played.get(name);
    if (backend === undefined) throw new Error(`No backend ${name}`);
    return backend;
  }

  client(options: Partial<ClientOptions> = {}): PlayedClient {
    return new PlayedClient(this, options);
  }

  /** Delivers everything that is in transit, and checks the invariants of all requests and watches. */
  settle(): void {
    this.clock.turn();
    checkExchanges(this.exchanges.live);
    for (const { watch } of this.exchanges.live) assert.is(watch?.check(), undefined);
  }
}

export const bearer = (token: string): Field => new Field("authorization", `Bearer ${token}`);
