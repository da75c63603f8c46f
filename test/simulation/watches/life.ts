/**
 * What the nodes of the scale model do all day: agents read objects, objects are written at a rate that changes over the
 * day, and etcd is compacted. day.ts and the scene of operators' mistakes use it.
 */
import type { DayFaultParts } from "./day-faults.ts";
import { PlainCall } from "./plain-call.ts";
import type { Reflector } from "./reflector.ts";
import type { ModelNode, ScaleModel } from "./scale-model.ts";

const hourMs = 3_600_000;
/** Mean number of writes a second, and the share of it by which the rates of day and night differ from it. */
const writesPerSecond = 1;
const swing = 0.8;
/** The share of the writes that concern all nodes. */
const everyoneShare = 0.005;
/** An apiserver compacts etcd every five minutes. Here, versions older than five minutes are forgotten each minute. */
const keptVersionsMs = 300_000;
const notedRevisions = 10;
const usualReadMs = 600_000;
const mostReadMs = 10_000;

/** The status with which an apiserver refuses requests while it initialises its watch cache, and its Retry-After in ms. */
const tooMany = 429;
const retryMs = 1_000;
/** The statuses that a read may get: its object may not exist yet. */
const mayGet: ReadonlySet<number> = new Set([200, 404, tooMany]);

/** The counts of what a client can notice. */
const noticed = /^(end|relist|watch-list again): /;
/**
 * A new watch that gets 429 from an apiserver that initialises its watch cache is no failure: client-go sends it again
 * after Retry-After, without a relist (watch.md §7).
 */
const unnoticed: ReadonlySet<string> = new Set([
  "end: its own timeout",
  "end: refused 429",
  "watch-list again: refused",
]);

export class Life<P> {
  readonly #model: ScaleModel<P>;
  readonly #readMs: number;
  /** The revision of the store at each full minute. */
  readonly #revisions: { readonly at: number; readonly version: number }[] = [];

  /** `readMs`: how often an agent reads an object of its node. */
  constructor(model: ScaleModel<P>, readMs = usualReadMs) {
    this.#model = model;
    this.#readMs = readMs;
  }

  /** Begins the writes and the compactions. */
  start(): void {
    this.#writeAll();
    this.#noteRevisions();
  }

  /** Adds a node that connects within `withinMs`, and whose agent reads an object of it again and again. */
  enter(withinMs: number): void {
    const node = this.#model.enter(withinMs);
    const { world, random } = this.#model.findings;
    world.after(withinMs + random.next() * this.#readMs, () => this.#read(node));
  }

  #read(node: ModelNode): void {
    if (!this.#model.nodes.has(node)) return;
    const { findings } = this.#model;
    const { caller, app } = node;
    const path = `/api/v1/namespaces/default/configmaps/o-${app}`;
    const asked = { method: "GET", path, accept: "application/json", auditId: caller.nextId() };
    void new PlainCall(caller, asked, ({ status, isWhole, ms }) => {
      if (!this.#model.nodes.has(node)) return;
      findings.count(`reads: ${status}`);
      // client-go sends a read that gets 429 with Retry-After again, up to ten times (watch.md §7).
      const isAgain = status === tooMany && isWhole;
      if (!isWhole || !mayGet.has(status)) findings.wrong("ends", `a read of ${app} got ${status}`);
      else if (ms > mostReadMs) findings.wrong("progress", `a read of ${app} took ${Math.round(ms)} ms`);
      findings.world.after(isAgain ? retryMs : this.#readMs, () => this.#read(node));
    });
  }

  #writeAll(): void {
    const { world, random } = this.#model.findings;
    const nodes = [...this.#model.nodes];
    this.#model.write(random.chance(everyoneShare) ? undefined : random.pick(nodes));
    const rate = writesPerSecond * (1 + swing * Math.sin((2 * Math.PI * world.now()) / (24 * hourMs)));
    world.after(2 * random.next() * (1_000 / rate), () => this.#writeAll());
  }

  /** Each minute, notes the revision of the store and compacts etcd. */
  #noteRevisions(): void {
    const { world } = this.#model.findings;
    this.#revisions.push({ at: world.now(), version: this.#model.store.revision });
    if (this.#revisions.length > notedRevisions) this.#revisions.shift();
    this.compact(this.#model.store.revision - this.versionBefore(keptVersionsMs));
    world.after(60_000, () => this.#noteRevisions());
  }

  /** Forgets all but the newest `keep` versions. */
  compact(keep: number): void {
    const version = this.#model.store.revision - Math.max(0, keep);
    this.#model.store.compact(version);
    for (const { cache } of this.#model.apiservers) cache.compact(version);
  }

  versionBefore(ms: number): number {
    const at = this.#model.findings.world.now() - ms;
    return this.#revisions.findLast((one) => one.at <= at)?.version ?? 0;
  }

  /** The parts of a fault that concern the store. */
  get faultParts(): Pick<DayFaultParts, "compact" | "versionBefore"> {
    return {
      compact: (keep) => this.compact(keep),
      versionBefore: (ms) => this.versionBefore(ms),
    };
  }

  /** Every watch is open at the end, every client knows the truth, and no client has noticed a fault. */
  judgeEnd(): void {
    const { findings, nodes } = this.#model;
    for (const [what, count] of findings.counts)
      if (noticed.test(what) && !unnoticed.has(what)) findings.wrong("ends", `${count} times "${what}"`);
    for (const { reflectors } of nodes) for (const reflector of reflectors) this.#judgeReflector(reflector);
  }

  #judgeReflector({ call, interest, name, store }: Reflector): void {
    const { findings, truth } = this.#model;
    if (call?.isAnswered !== true) findings.wrong("progress", `${name} has no watch at the end`);
    const state = truth.stateAt(interest, truth.store.revision);
    const isEqual =
      state.size === store.size && state.entries().every(([key, version]) => store.get(key) === version);
    if (!isEqual) findings.wrong("progress", `${name} does not know the truth at the end`);
  }
}
