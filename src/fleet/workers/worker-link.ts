/**
 * A worker's side of the messages (messages.ts): applies the parent's messages to the worker's clusters and listeners,
 * and sends the worker's own messages. If the parent ends, the worker drains. Its connections to clients are still
 * healthy, so it sends them a GOAWAY, and the clients connect to the process that serves the port next.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Interval } from "../../base/interval.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import type { Config } from "../../ops/config/config.ts";
import type { Clusters } from "../../proxy/cluster/clusters.ts";
import type { OtherProcesses } from "../../proxy/cluster/shared-verdict.ts";
import type { DrainTimes } from "../../proxy/cluster/shutdown-drain.ts";
import { Channel } from "./channel.ts";
import { workerLimits } from "./limits.ts";
import {
  isToWorker,
  machineClockOffset,
  protocolVersion,
  type Question,
  shiftedEvidence,
  shiftedFacts,
  type ToParent,
  type ToWorker,
  type WorkerLoad,
} from "./messages.ts";

/** The parts of the running worker to which the parent's messages are applied. */
export type ServingWorker = {
  readonly clusters: Clusters;
  readonly accept: (listener: string, socket: Socket) => void;
  readonly reload: (config: Config) => Promise<unknown>;
  readonly load: () => Omit<WorkerLoad, "received" | "limits">;
  /**
   * Returns the answer to a question from the parent, or a promise of the answer. JSON must be able to represent the
   * answer.
   */
  readonly answer: (question: Question) => unknown;
};

/** Kinds of journal entries that are not sent to the parent, because the parent writes such entries itself. */
const ofParent: ReadonlySet<Entry["kind"]> = new Set<Entry["kind"]>([
  "process.started",
  "listener.opened",
  "listener.lost",
  "backend.changed",
  "backend.added",
  "backend.removed",
  "backend.probed",
  "history.unchecked",
  "cluster.added",
  "cluster.removed",
  "config.reloaded",
  "config.refused",
  "certificate.loaded",
  "certificate.refused",
  "limit.added",
  "limit.removed",
  "drain.started",
  "drain.ended",
]);

/** Milliseconds between two reports of the load. A report is sent earlier if `confirmedAtOnce` sockets have arrived. */
const loadMs = 200;

type Started = Extract<ToWorker, { kind: "start" }>;

export class WorkerLink {
  readonly #clock: Clock;
  readonly #channel: Channel;
  readonly #offsetMs: number;
  readonly #start = Promise.withResolvers<Started>();
  readonly #drain = Promise.withResolvers<DrainTimes>();
  readonly #reports: Interval;
  #labels: Readonly<Record<string, string>> = {};
  #worker: ServingWorker | undefined;
  /** Messages that have arrived before `attach`, except "start" and "drain". */
  #early: ToWorker[] = [];
  #config: Config | undefined;
  #entries: Entry[] = [];
  #dropped = 0;
  #received = 0;
  /** Value of `#received` in the latest report of the load. The report confirms these sockets to the parent. */
  #confirmed = 0;
  #sharesOfLimits: Readonly<Record<string, number>> = {};
  #reported = "";

  constructor(clock: Clock, stream: Duplex) {
    this.#clock = clock;
    this.#offsetMs = machineClockOffset(clock.now());
    this.#channel = new Channel(stream, {
      received: (message) => {
        if (!isToWorker(message)) return false;
        this.#take(message);
        return true;
      },
      // It does not matter why the channel closed: without it, the worker gets no new clients and does not learn the
      // backends' health states, so it drains.
      closed: () => this.#parentGone(),
    });
    this.#reports = new Interval(clock, loadMs, () => this.#reportLoad());
    this.send({ kind: "hello", version: protocolVersion });
  }

  /** Resolves with the message "start", which the parent sends first. */
  get started(): Promise<Started> {
    return this.#start.promise;
  }

  /**
   * Resolves with the time limits of the drain when the worker must drain, because the parent has sent "drain" or has
   * ended.
   */
  get drained(): Promise<DrainTimes> {
    return this.#drain.promise;
  }

  readonly others: OtherProcesses = {
    labels: () => this.#labels,
    judge: {
      report: (backend, evidence) =>
        this.send({ kind: "evidence", backend, evidence: shiftedEvidence(evidence, this.#offsetMs) }),
      unconnected: (backend) => this.send({ kind: "unconnected", backend }),
      tellLedger: (cluster, fact) => this.send({ kind: "ledger", cluster, fact }),
      probe: (backend, symptom) => this.send({ kind: "probe", backend, symptom }),
    },
  };

  send(message: ToParent): void {
    this.#channel.send(message);
  }

  /** Sends the entries of `journal` to the parent. All entries of one turn of the event loop go in one message. */
  forward(journal: Journal): void {
    journal.subscribe((entry) => {
      if (ofParent.has(entry.kind)) return;
      if (this.#entries.length >= workerLimits.waitingEntries) {
        this.#dropped += 1;
        return;
      }
      this.#entries.push(entry);
      if (this.#entries.length === 1) this.#clock.soon(() => this.#sendEntries());
    });
  }

  #sendEntries(): void {
    const [entries, dropped] = [this.#entries, this.#dropped];
    this.#entries = [];
    this.#dropped = 0;
    this.send({ kind: "entries", entries, dropped });
  }

  /** Applies all messages from the parent to `worker`: those that arrived before this call, and all later ones. */
  attach(worker: ServingWorker): void {
    this.#worker = worker;
    this.#divide(worker.clusters);
    for (const message of this.#early.splice(0)) this.#act(message, worker);
  }

  /** Informs the parent that this worker serves. */
  ready(): void {
    this.#reportLoad();
    this.#reports.start();
    this.send({ kind: "ready" });
  }

  /** Serves a socket that the parent has passed; closes it if the worker does not serve yet. */
  /** `socket` undefined: it was lost on the way. It counts as received, so that the parent passes the next one. */
  accept(listener: string, socket: Socket | undefined): void {
    this.#received += 1;
    if (this.#worker === undefined) socket?.destroy();
    else if (socket !== undefined) this.#worker.accept(listener, socket);
    if (this.#received - this.#confirmed < workerLimits.confirmedAtOnce) return;
    this.#confirmed = this.#received;
    this.#clock.soon(() => this.#reportLoad());
  }

  stop(): void {
    this.#reports.stop();
    if (this.#entries.length > 0) this.#sendEntries();
  }

  #reportLoad(): void {
    if (this.#worker === undefined) return;
    const { clusters } = this.#worker;
    const limits = Object.fromEntries(
      Array.from(clusters.limits, ([key, { passed, refused, inFlight }]) => [
        key,
        { passed, refused, inFlight },
      ]),
    );
    const load = { ...this.#worker.load(), received: this.#received, limits };
    const text = JSON.stringify(load);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#confirmed = this.#received;
    this.send({ kind: "load", ...load });
  }

  #take(message: ToWorker): void {
    if (message.kind === "start") {
      this.#labels = message.labels;
      this.#config = message.config;
      this.#start.resolve(message);
    } else if (message.kind === "drain") {
      this.#drain.resolve(message.times);
    } else if (this.#worker === undefined) {
      this.#early.push(message);
    } else {
      this.#act(message, this.#worker);
    }
  }

  #act(message: ToWorker, worker: ServingWorker): void {
    const { clusters } = worker;
    if ("cluster" in message) {
      takeToldOf(message, clusters);
    } else if (message.kind === "verdict") {
      const { backend, version, facts, evidence } = message;
      const by = -this.#offsetMs;
      const cluster = clusters.ownerOf(backend);
      cluster?.versions.told(backend, version);
      cluster?.path.adopt(backend, shiftedFacts(facts, by), shiftedEvidence(evidence, by));
    } else if (message.kind === "config") {
      this.#labels = message.labels;
      this.#config = message.config;
      void this.#configure(message.id, message.config, worker);
    } else if (message.kind === "limits") {
      clusters.operatorLimits.follow(message.state);
      this.#divide(clusters);
    } else if (message.kind === "shares") {
      clusters.operatorLimits.replicas.set(message.replicas);
      this.#sharesOfLimits = message.shares;
      this.#divide(clusters);
    } else if (message.kind === "ask") {
      void this.#answer(message.id, message.question, worker);
    }
  }

  /** Sets this worker's share of each limit. Until the parent has sent shares, each worker has an equal share. */
  #divide(clusters: Clusters): void {
    const even = 1 / (this.#config?.workers ?? 1);
    for (const [key, limit] of clusters.limits) limit.share = this.#sharesOfLimits[key] ?? even;
  }

  async #configure(id: number, config: Config, worker: ServingWorker): Promise<void> {
    const outcome = await worker.reload(config);
    this.#divide(worker.clusters);
    this.send({ kind: "answer", id, answer: outcome instanceof Failure ? outcome.message : "" });
  }

  async #answer(id: number, question: Question, worker: ServingWorker): Promise<void> {
    this.send({ kind: "answer", id, answer: await worker.answer(question) });
  }

  #parentGone(): void {
    this.#drain.resolve({ shutdownDelayMs: 0, timeoutMs: this.#config?.drain.timeoutMs ?? 0 });
  }
}

/** Takes over the backends of a cluster, or what the canaries have shown about them. */
function takeToldOf(message: Extract<ToWorker, { cluster: string }>, { all }: Clusters): void {
  const cluster = all.find(({ label }) => label === message.cluster);
  if (message.kind === "found") cluster?.backends.take(message.backends);
  else cluster?.credentials.follow(message.proofs);
}
