/**
 * One simulated run: watches of every kind go through the real data path while apiservers and their connections fail.
 * Checks the guarantees during the run, at the end of each watch, and after the last fault.
 */
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { takenBlocks } from "../../../src/h2/core/slabs.ts";
import { SimulatedProxy } from "../proxy.ts";
import { Random } from "../random.ts";
import { setSlicesOf } from "../slices.ts";
import { World } from "../world.ts";
import { SimulatedApiserver } from "./apiserver.ts";
import type { Asker } from "./asker.ts";
import { Attempts } from "./attempts.ts";
import { Caller } from "./caller.ts";
import { askerFor, type Stage, type Watcher, watchedResources, watcherFor } from "./cast.ts";
import { EndJudge } from "./ends.ts";
import { blip, type Fault, faults } from "./faults.ts";
import { Findings, type Problem } from "./findings.ts";
import { probeOver } from "./probe.ts";
import { Reflector } from "./reflector.ts";
import { Truth } from "./truth.ts";
import type { WatchCall } from "./watch-call.ts";
import { type Weather, weatherOf } from "./weather.ts";
import { type End, Host, Wires } from "./wires.ts";
import { Writer } from "./writer.ts";

export type Played = {
  readonly seed: number;
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
  readonly virtualMs: number;
  readonly decisions: number;
};

export type PlayOptions = {
  readonly trace?: ((line: string) => void) | undefined;
  /** True (default) if an end without a reason and a late event are violations. False: they are only counted. */
  readonly isStrict?: boolean;
};

/** After this time without faults every watch must be up to date (G15). */
const progressMs = 5_000;
/**
 * The longest time that a plain request may take after the last fault: for a read, the proxy's patience with one silent
 * upstream connection (upstreamLimits.connectionPatienceMs), and the response. A write may wait for 30 s
 * (`boundPatienceMs`) while its connection is silent, but after the last fault no connection stays silent.
 */
const plainMs = 7_000;
const stepMs = 250;
const patienceMs = 60_000;

export function play(seed: number, options: PlayOptions = {}): Played {
  return new Scene(seed, options).play();
}

class Scene {
  readonly #seed: number;
  readonly #findings: Findings;
  readonly #weather: Weather;
  readonly #wires: Wires;
  readonly #truth: Truth;
  readonly #writer: Writer;
  readonly #calls = new Map<string, WatchCall>();
  readonly #attempts: Attempts;
  readonly #apiservers: readonly SimulatedApiserver[];
  readonly #judge: EndJudge;
  readonly #proxy: SimulatedProxy;
  readonly #proxyHost = new Host("proxy");
  readonly #watchers: Watcher[] = [];
  readonly #askers: Asker[] = [];
  readonly #callers: Caller[] = [];
  readonly #revoked = new Set<string>();
  /** Blocks that were in use before this run. Only an earlier run that failed leaves any. */
  readonly #blocksBefore = takenBlocks();
  /** The time at which the last fault ended. */
  #overAt = 0;
  /** The faults in progress. Each function ends its fault. */
  readonly #raging = new Set<() => void>();

  constructor(seed: number, { trace, isStrict = true }: PlayOptions) {
    this.#seed = seed;
    setSlicesOf(seed);
    const random = new Random(seed);
    const world = new World(random);
    this.#findings = new Findings(world, random, trace);
    const findings = this.#findings;
    this.#weather = weatherOf(random);
    this.#wires = new Wires(world, random);
    const store = newCluster(world);
    this.#truth = new Truth(store, world);
    this.#writer = new Writer(findings, store, this.#weather);
    this.#attempts = new Attempts(findings, this.#calls);
    const parts = {
      findings,
      wires: this.#wires,
      store,
      resources: watchedResources,
      attempts: this.#attempts,
      progress: this.#weather.progress,
    };
    const { backends } = this.#weather;
    this.#apiservers = Array.from(
      { length: backends },
      (_, at) => new SimulatedApiserver(`cp-${at + 1}`, parts, this.#revoked),
    );
    this.#judge = new EndJudge({
      findings,
      apiservers: this.#apiservers,
      attempts: this.#attempts,
      truth: this.#truth,
      isStrict,
      isCarried: this.#weather.isBlips,
    });
    this.#proxy = new SimulatedProxy({
      world,
      backends: this.#apiservers.map(({ name }) => name),
      dial: (name) => this.#dialBackend(name),
      connections: { streams: random.pick([80, 80, 3]), warm: 1 },
      isPerClient: random.chance(0.1),
      probes: {
        probe: (name, ear) => probeOver(this.#dialProbe(name), ear),
        times: { intervalMs: 1_000, timeoutMs: 3_000 },
        random: () => random.next(),
      },
      tell: (entry) => {
        findings.tell(() => JSON.stringify(entry));
        if (entry.kind === "internal.error") findings.wrong("thrown", entry.message);
      },
      thrown: (error) =>
        findings.wrong("thrown", error instanceof Error ? (error.stack ?? error.message) : String(error)),
    });
  }

  play(): Played {
    const { world } = this.#findings;
    try {
      this.#act();
    } catch (error) {
      // Virtual time that stands still, for example. Only this seed fails; the other seeds still run.
      this.#findings.wrong("thrown", error instanceof Error ? error.message : String(error));
    }
    const { problems, counts, delays } = this.#findings;
    for (const [seconds, count] of delays) this.#findings.count(`events ${seconds} s late`, count);
    return { seed: this.#seed, problems, counts, virtualMs: world.now(), decisions: world.decisions };
  }

  #act(): void {
    this.#writer.fill();
    this.#enter();
    this.#writer.start();
    this.#scheduleFaults();
    this.#findings.world.runUntil(() => false, this.#weather.stormMs);
    this.#calm();
    this.#settle();
    this.#leave();
  }

  // --- participants ---

  #enter(): void {
    const { random, world } = this.#findings;
    const company = {
      truth: this.#truth,
      calls: this.#calls,
      judgeEnd: this.#judge.judge.bind(this.#judge),
      judgeEvent: this.#judge.judgeDelay.bind(this.#judge),
    };
    const stage: Stage = {
      company,
      truth: this.#truth,
      mayFail: () => this.#raging.size > 0,
      carriedSince: () => this.#carriedSince,
    };
    for (let at = 0; at < this.#weather.clients; at += 1) {
      const host = new Host(`client-${at + 1}`);
      for (let count = random.whole(1, 3); count > 0; count -= 1) {
        const caller = new Caller(`${host.name}-${count}`, this.#findings, () => this.#dialProxy(host));
        this.#callers.push(caller);
        const watcher = watcherFor(caller, stage);
        this.#watchers.push(watcher);
        world.after(random.next() * 2_000, () => watcher.start());
      }
      if (random.chance(0.5)) continue;
      const caller = new Caller(`${host.name}-asks`, this.#findings, () => this.#dialProxy(host));
      this.#callers.push(caller);
      const asker = askerFor(caller, stage);
      this.#askers.push(asker);
      asker.start();
    }
    if (random.chance(0.15)) this.#slowOne();
  }

  /** Makes the reader of one watch pause for a while at a random time. */
  #slowOne(): void {
    const { random, world } = this.#findings;
    const watcher = random.pick(this.#watchers);
    world.after(random.next() * this.#weather.stormMs, () => {
      const { call } = watcher;
      if (call === undefined) return;
      this.#findings.tell(() => `${call.auditId} stalls`);
      call.stall();
      world.after(random.size(10_000), () => call.unstall());
    });
  }

  #dialBackend(name: string): End {
    const apiserver = this.#apiserver(name);
    return this.#wires.connect(this.#proxyHost, apiserver.host, this.#weather.upstream, (end) =>
      apiserver.accept(end),
    );
  }

  /** A probe has a connection of its own. */
  #dialProbe(name: string): End {
    const apiserver = this.#apiserver(name);
    return this.#wires.connect(this.#proxyHost, apiserver.host, this.#weather.upstream, (end) =>
      apiserver.acceptProbe(end),
    );
  }

  #apiserver(name: string): SimulatedApiserver {
    const apiserver = this.#apiservers.find((one) => one.name === name);
    if (apiserver === undefined) throw new Error(`No backend ${name}`);
    return apiserver;
  }

  #dialProxy(host: Host): End {
    return this.#wires.connect(host, this.#proxyHost, this.#weather.downstream, (end) =>
      this.#proxy.accept(end),
    );
  }

  // --- what happens ---

  #scheduleFaults(): void {
    const { random, world } = this.#findings;
    if (this.#weather.isBlips) return this.#scheduleBlips();
    for (let count = this.#weather.faults; count > 0; count -= 1)
      world.after(1_000 + random.next() * (this.#weather.stormMs - 2_000), () =>
        this.#strike(random.pick(faults)),
      );
  }

  /**
   * Schedules one silence of all backends after another. Each one, and all its retransmissions, are over before the
   * next.
   */
  #scheduleBlips(): void {
    const { random, world } = this.#findings;
    const { stormMs } = this.#weather;
    for (let at = random.whole(1_000, 6_000); at < stormMs - 2_000; at += random.whole(30_000, 40_000))
      world.after(at, () => this.#strike(blip));
  }

  #strike(fault: Fault): void {
    const { random, world } = this.#findings;
    const backend = random.pick(this.#apiservers);
    this.#findings.tell(() => `fault: ${fault.name} at ${backend.name}`);
    this.#findings.count(`fault: ${fault.name}`);
    const end = fault.begin({
      findings: this.#findings,
      apiservers: this.#apiservers,
      backend,
      revoked: this.#revoked,
      clients: this.#callers.map(({ name }) => name),
      compact: (keep) => this.#compact(keep),
    });
    const struck = fault.isOfAll === true ? this.#apiservers : [backend];
    const look = (): void => {
      for (const one of struck) this.#judge.look(one);
    };
    look();
    const over = (): void => {
      if (!this.#raging.delete(over)) return;
      look();
      this.#findings.tell(() => `over: ${fault.name} at ${backend.name}`);
      end();
      look();
      this.#overAt = world.now();
    };
    this.#raging.add(over);
    world.after(
      fault.ms?.(random) ?? random.pick([300, 1_500, 3_000, 8_000, 20_000]) * (0.5 + random.next()),
      over,
    );
  }

  #compact(keep: number): void {
    const version = this.#truth.store.revision - keep;
    this.#truth.store.compact(version);
    for (const { cache } of this.#apiservers) cache.compact(version);
  }

  /** Ends all faults. The writers go on for one more second, so that there are events that could be late. */
  #calm(): void {
    const { world } = this.#findings;
    for (const over of Array.from(this.#raging)) over();
    this.#findings.tell(() => "calm");
    world.runUntil(() => false, 1_000);
    this.#writer.stop();
    for (const asker of this.#askers) asker.stop();
  }

  /** The end of the last silence of all backends. Undefined if the run has other faults. */
  get #carriedSince(): number | undefined {
    return this.#weather.isBlips ? this.#overAt : undefined;
  }

  // --- checks after the last fault ---

  /**
   * Every watcher must have the true state and all events 5 s after the later of two times: the end of the faults, and
   * the end of the watcher's own backoff.
   */
  #settle(): void {
    const { world } = this.#findings;
    const calmAt = world.now();
    const waiting = new Set(this.#watchers);
    while (waiting.size > 0 && world.now() < calmAt + patienceMs) {
      world.runUntil(() => false, stepMs);
      for (const watcher of waiting) {
        const late = this.#lateness(watcher);
        if (late === undefined) waiting.delete(watcher);
        else if (world.now() - Math.max(calmAt, watcher.waitsUntil) > progressMs + stepMs) {
          waiting.delete(watcher);
          this.#findings.wrong(
            "progress",
            `${watcher.name} ${late} ${Math.round(world.now() - calmAt)} ms after calm`,
          );
        }
      }
    }
    // If its backend answers on other connections, a write on a silent connection waits for the next retransmission, at
    // most for `boundPatienceMs`. Then it fails with an unknown outcome.
    world.runUntil(() => this.#askers.every(({ openCount }) => openCount === 0), plainMs);
    for (const asker of this.#askers)
      if (asker.openCount > 0) this.#findings.wrong("progress", `${asker.openCount} plain requests hang`);
  }

  /** Describes what the watcher still lacks. Undefined if it lacks nothing. */
  #lateness(watcher: Watcher): string | undefined {
    if (watcher instanceof Reflector) {
      const state = this.#truth.stateAt(watcher.interest, this.#truth.store.revision);
      const isEqual =
        state.size === watcher.store.size &&
        state.entries().every(([key, version]) => watcher.store.get(key) === version);
      return isEqual ? undefined : "does not know the truth";
    }
    if (watcher.isOver) return undefined;
    const { call } = watcher;
    if (call === undefined || !call.isAnswered) return "has no watch";
    if (call.follower.phase !== "live") return undefined;
    return call.follower.missing === 0 ? undefined : `lacks ${call.follower.missing} events`;
  }

  /**
   * Ends all watches and waits until nothing is left. Dropped segments may still be retransmitted: after an outage of n
   * seconds, the last retransmission comes at most n seconds later.
   */
  #leave(): void {
    const { world } = this.#findings;
    for (const watcher of this.#watchers) watcher.stop();
    world.runUntil(() => this.#leftovers().length === 0, patienceMs);
    for (const left of this.#leftovers()) this.#findings.wrong("tidy", `${left} are left`);
  }

  #leftovers(): string[] {
    const { path } = this.#proxy;
    const watches = this.#apiservers.reduce((sum, { watchCount }) => sum + watchCount, 0);
    const all: [number, string][] = [
      [path.exchanges.size, "exchanges"],
      [watches, "watches of backends"],
      [path.buffered.bytes, "bytes"],
      [takenBlocks() - this.#blocksBefore, "blocks of kept bytes"],
      [Math.abs(path.migrations.pace.state.unanswered), "unanswered requests for watches"],
    ];
    return all.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  }
}
