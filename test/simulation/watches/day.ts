/**
 * A whole day of the scale model: writes at a rate that changes over the day, watches that end after their timeouts and
 * are opened again, nodes that leave and join, and one fault after another. Checks at each event what clients get, and
 * at the end of each hour that nothing has grown.
 */

import { limits } from "../../../src/base/limits.ts";
import { takenBlocks } from "../../../src/h2/core/slabs.ts";
import { BackendHistory } from "../../../src/ops/admin/events/backend-history.ts";
import { EventRing } from "../../../src/ops/admin/events/event-ring.ts";
import { adminLimits } from "../../../src/ops/admin/http/limits.ts";
import { timesOf } from "../../../src/ops/admin/http/times.ts";
import { Incidents } from "../../../src/ops/incidents/incidents.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { ledgerLimits } from "../../../src/ops/ledger/limits.ts";
import { staleReadLimits } from "../../../src/proxy/observe/stale-read-guard.ts";
import { rememberedBearers } from "../../../src/upstream/identity/trust.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { SimulatedProxy } from "../proxy.ts";
import { World } from "../world.ts";
import { type DayFault, dayFaults } from "./day-faults.ts";
import type { Problem } from "./findings.ts";
import { grownSince, liveBytes, type Sizes } from "./growth.ts";
import { Life } from "./life.ts";
import { apiserverCount, Peaks, ScaleModel, streamsPerConnection, watchesPerNode } from "./scale-model.ts";
import { tablesOf } from "./tables.ts";
import { End } from "./wires.ts";

export type DayOptions = {
  readonly nodes: number;
  readonly seed: number;
  readonly hours: number;
  readonly faultsPerHour: number;
  readonly isStrict: boolean;
  /** Called with each fault and each hour, and every ten virtual minutes. */
  readonly tell: (line: string) => void;
  readonly trace?: ((line: string) => void) | undefined;
};

export type DayFigures = {
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
  readonly watches: number;
  readonly virtualMs: number;
  readonly peakAskedPerSecond: number;
  readonly peakDialsPerSecond: number;
  /** The longest time from the end of a fault until the loads were even again. */
  readonly evenMs: number;
  readonly faults: number;
};

const hourMs = 3_600_000;
const startMs = 90_000;
const stepMs = 1_000;
const tellMs = 600_000;
const checkMs = 60_000;
/** The end of each hour has no faults, so that the state can be compared with that of other hours. */
const calmMs = 300_000;
/** After so many hours, the caches are full, and the tables that soon reach their limits have reached them. */
const settledHours = 2;
/** Changes and requests older than this concern no client, because the longest timeout of a watch is 10 min. */
const longPastMs = 900_000;
/** Each hour a pool of this share of the nodes is replaced, as in an upgrade of the nodes. */
const poolShare = 0.04;
const poolMs = 60_000;
/**
 * The time within which the loads are even again. A returned apiserver warms up for a minute. Then the balancer moves 1 %
 * of the clients a second (`balanceLimits.rebalanceShare`), a third of all. Clients that were moved before rest for two
 * minutes (`restMs`).
 */
const evenMostMs = 300_000;
/**
 * The share of the mean by which even loads may differ: `balanceLimits.rebalanceSlack`, and more because watches end and
 * begin at random times.
 */
const evenSlack = 0.15;

/**
 * The limits of tables that fill up slowly. Most keep an entry for each client that was ever seen, and new nodes join
 * all day.
 */
const slowTables: Readonly<Record<string, number>> = {
  "WatchLives.#places": watchLimits.lifeEntries,
  "ReplayLoopDetector.#replays": limits.replayKeys,
  "StaleReadGuard.#seenVersions": staleReadLimits.seenVersions,
  "Trust.#bearers": rememberedBearers,
  "Ledger.#callers": ledgerLimits.callers,
  "BackendHistory.#changes[]": adminLimits.backendHistory,
  "EventRing.#entries": adminLimits.eventsKept,
  "EventRing.#ofClients": adminLimits.clientEventsKept,
  "IncidentStore.#ended": incidentLimits.incidentsKept,
};

/** Maximum numbers of requests a second for moves and for bookmark refreshes. */
const paceOfMoves = watchLimits.movesPerSecond + watchLimits.moveBurst;
const refreshesPerSecond = 1_000 / watchLimits.bookmarkRefreshPauseMs;
const dialsInOneSecond = apiserverCount * 2 * upstreamLimits.dialsPerSecond;
/** New connections in one second that do not depend on the number of watches: the warm ones that are lost. */
const fewDials = 20;
/**
 * In one second, at most one watch in 50 is opened again. The mean is one in 450, because watches end after 300 to
 * 600 s.
 */
const reopenedShare = 50;

export class Day {
  readonly #options: DayOptions;
  readonly #model: ScaleModel<SimulatedProxy>;
  readonly #life: Life<SimulatedProxy>;
  readonly #peaks: Peaks;
  readonly #most = { asked: 0, dialled: 0, evenMs: 0 };
  /** The parts of the proxy in which no table may grow. */
  readonly #measured: object;
  /** The faults to come, last first. */
  readonly #plan: DayFault[] = [];
  /** The state with which that of each later hour is compared. */
  #settled: Sizes | undefined;
  #faults = 0;

  constructor(options: DayOptions) {
    this.#options = options;
    const { seed, isStrict, trace } = options;
    const asked = { seed, isStrict, isProbed: true, checkMs, trace };
    this.#model = new ScaleModel(asked, (parts) => new SimulatedProxy(parts));
    this.#life = new Life(this.#model);
    this.#peaks = new Peaks(this.#model);
    const { proxy, findings } = this.#model;
    const incidents = new Incidents(findings.world, proxy.journal);
    this.#measured = {
      path: proxy.path,
      downstreams: proxy.downstreams,
      incidents,
      history: new BackendHistory(proxy.journal),
      ring: new EventRing(proxy.journal, timesOf(findings.world)),
    };
  }

  play(): DayFigures {
    const { findings } = this.#model;
    const { world, problems, counts } = findings;
    for (let node = 0; node < this.#options.nodes; node += 1) this.#life.enter(startMs / 3);
    this.#life.start();
    this.#pass(startMs);
    for (let hour = 1; hour <= this.#options.hours; hour += 1) this.#hour(hour);
    this.#life.judgeEnd();
    const { asked, dialled, evenMs } = this.#most;
    return {
      problems,
      counts,
      watches: this.#model.openWatches,
      virtualMs: world.now(),
      peakAskedPerSecond: asked,
      peakDialsPerSecond: dialled,
      evenMs,
      faults: this.#faults,
    };
  }

  // --- the clients and their objects ---

  /** Replaces a pool of nodes: some leave, and as many join. */
  #replacePool(): void {
    const { random, world } = this.#model.findings;
    const count = Math.ceil(this.#options.nodes * poolShare);
    const leaving = [...this.#model.nodes].toSorted(() => random.next() - 0.5).slice(0, count);
    this.#options.tell(`${count} nodes are replaced`);
    for (const node of leaving) {
      world.after(random.next() * poolMs, () => this.#model.leave(node));
      this.#life.enter(poolMs);
    }
  }

  // --- time ---

  #hour(hour: number): void {
    const { world, random } = this.#model.findings;
    const endsAt = startMs + hour * hourMs;
    const slotMs = (hourMs - calmMs) / this.#options.faultsPerHour;
    const beganAt = world.now();
    world.after(random.next() * (hourMs - calmMs), () => this.#replacePool());
    for (let slot = 0; slot < this.#options.faultsPerHour; slot += 1) {
      this.#pass(Math.max(0, beganAt + slot * slotMs - world.now()));
      this.#strike(this.#nextFault());
    }
    this.#pass(Math.max(0, endsAt - world.now()));
    this.#measure(hour);
  }

  #pass(ms: number): void {
    const { world } = this.#model.findings;
    const until = world.now() + ms;
    while (world.now() < until) {
      const nextAt = Math.min(until, (Math.floor(world.now() / tellMs) + 1) * tellMs);
      this.#runUntil(nextAt);
      if (nextAt % tellMs === 0) this.#tellState();
    }
  }

  /** Adds an empty callback at `at`, because the clock would stop at the last callback before `at`. */
  #runUntil(at: number): void {
    const { world } = this.#model.findings;
    world.at(at, () => {});
    world.runUntil(() => world.now() >= at, at - world.now() + stepMs);
  }

  #tellState(): void {
    const { loads, relists, findings } = this.#model;
    this.#options.tell(
      `${timeOf(findings.world.now())}: watches ${loads.join(" + ")}, ${relists} relists, ` +
        `${findings.problems.length} problems`,
    );
  }

  // --- faults ---

  /** Returns the next fault. No fault comes again before all others have come. */
  #nextFault(): DayFault {
    const { random } = this.#model.findings;
    if (this.#plan.length === 0) this.#plan.push(...dayFaults.toSorted(() => random.next() - 0.5));
    const next = this.#plan.pop();
    if (next === undefined) throw new Error("No faults");
    return next;
  }

  #strike(fault: DayFault): void {
    const { findings, apiservers, judge } = this.#model;
    const { world, random } = findings;
    const backend = random.pick(apiservers);
    const beganAt = world.now();
    this.#faults += 1;
    this.#peaks.reset();
    findings.count(`fault: ${fault.name}`);
    findings.tell(() => `fault: ${fault.name} at ${backend.name}`);
    judge.look(backend);
    const end = fault.begin({
      findings,
      apiservers,
      backend,
      revoked: new Set(),
      clients: [],
      ...this.#life.faultParts,
      look: (one) => judge.look(one),
    });
    judge.look(backend);
    this.#pass(fault.ms(random));
    judge.look(backend);
    end();
    judge.look(backend);
    const lastedMs = world.now() - beganAt;
    const evenMs = this.#untilEven(fault);
    this.#judgePeaks(fault);
    this.#options.tell(
      `${timeOf(beganAt)}: ${fault.name} at ${backend.name} for ${seconds(lastedMs)}, ` +
        `even after ${seconds(evenMs)}, at most ${this.#peaks.asked} requests and ${this.#peaks.dialled} dials a second`,
    );
  }

  /** Waits until all apiservers are ready and their loads are even. Returns how long that took. */
  #untilEven({ name }: DayFault): number {
    const { findings, proxy } = this.#model;
    const overAt = findings.world.now();
    const passedMs = (): number => findings.world.now() - overAt;
    const isWell = (): boolean =>
      this.#isEven && proxy.path.backends.views.every(({ state }) => state === "ready");
    while (!isWell() && passedMs() < evenMostMs) this.#pass(stepMs);
    if (!isWell())
      findings.wrong("load", `${this.#model.loads.join(" + ")} watches ${evenMostMs} ms after "${name}"`);
    this.#most.evenMs = Math.max(this.#most.evenMs, passedMs());
    return passedMs();
  }

  get #isEven(): boolean {
    const { loads } = this.#model;
    const even = loads.reduce((sum, load) => sum + load, 0) / loads.length;
    return loads.every((load) => Math.abs(load - even) <= even * evenSlack + watchesPerNode);
  }

  /**
   * Checks the peaks. The pace of moves bounds the requests, however many watches there are, so that an apiserver that
   * gets the watches of another one still serves its other clients. Bookmark refreshes, watches that are opened again,
   * and nodes that join add requests. New connections are needed for the watches that move, and in place of lost warm
   * connections. With many nodes, the token bucket of each pool bounds them. It may give twice its rate in one second.
   */
  #judgePeaks({ name }: DayFault): void {
    const watches = this.#options.nodes * watchesPerNode;
    const others = watches / reopenedShare;
    const mostAsked = Math.min(paceOfMoves, 2 * watches) + refreshesPerSecond + others;
    const mostDials = Math.min(dialsInOneSecond, fewDials + watches / streamsPerConnection);
    const { asked, dialled } = this.#peaks;
    const { findings } = this.#model;
    if (asked > mostAsked) findings.wrong("load", `${asked} requests a second during "${name}"`);
    if (dialled > mostDials) findings.wrong("load", `${dialled} new connections a second during "${name}"`);
    this.#most.asked = Math.max(this.#most.asked, asked);
    this.#most.dialled = Math.max(this.#most.dialled, dialled);
  }

  // --- checks ---

  /** Compares the sizes of all tables with those at the end of the second hour. */
  #measure(hour: number): void {
    const { findings, truth, attempts, proxy } = this.#model;
    truth.forget(longPastMs);
    attempts.forget(longPastMs);
    proxy.entries.length = 0;
    const tables = tablesOf(this.#measured, (object) => object instanceof World || object instanceof End);
    tables.set("timers", findings.world.pending);
    tables.set("blocks of kept bytes", takenBlocks());
    const sizes: Sizes = { tables, liveBytes: liveBytes() };
    if (hour >= settledHours || this.#options.hours < 2 * settledHours) this.#settled ??= sizes;
    const grown = this.#settled === undefined ? [] : grownSince(this.#settled, sizes, slowTables);
    // `tablesOf` looks into some of the watches and clients only, so it may find a table in a later hour first.
    for (const [name, size] of tables)
      if (this.#settled?.tables.has(name) === false) this.#settled.tables.set(name, size);
    for (const what of grown) {
      findings.wrong("growth", `hour ${hour}: ${what}`);
      this.#options.tell(what);
    }
    const mb = sizes.liveBytes === undefined ? "" : `, ${Math.round(sizes.liveBytes / 1e6)} MB live`;
    this.#options.tell(
      `hour ${hour}: ${tables.size} tables, ${findings.world.pending} timers${mb}, ${findings.problems.length} problems`,
    );
  }
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

function timeOf(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}
