/**
 * The last hour of the process and of each backend, in steps of five seconds, so that the admin page shows an incident
 * that began before the page was opened. The memory has a fixed size for each backend (`SeriesRing`).
 */
import type { Clock } from "../../../base/clock.ts";
import { countsSince, quantileOf } from "../../../base/histogram.ts";
import { inSlices } from "../../../base/slices.ts";
import type { Entry, Journal } from "../../../events/journal.ts";
import { clientKinds } from "../../ledger/client-kind.ts";
import { adminLimits } from "../http/limits.ts";
import type { Times } from "../http/times.ts";
import { type Recorded, type RecordedCluster, record, sumOfRecorded } from "./recorded.ts";
import {
  type BackendStep,
  backendSeries,
  type ProcessStep,
  processSeries,
  type Series,
  states,
} from "./series.ts";
import { SeriesRing } from "./series-ring.ts";

const { historySteps, historyStepMs, historyBackends } = adminLimits;

export type HistorySources = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly times: Times;
  readonly clusters: () => readonly RecordedCluster[];
  /** Resolves with what the workers of this process have recorded; default: the process has no workers. */
  readonly workers?: (() => Promise<readonly Recorded[]>) | undefined;
  readonly process: () => Omit<ProcessStep, "requests" | "failures" | "watches" | "watchEvents">;
};

type Moved = { movedIn: number; movedOut: number };

/** The recorded steps of one backend, or of the process, and the counters at the end of the last step. */
class Track<T> {
  readonly ring: SeriesRing;
  readonly #series: readonly Series<T>[];
  #counters: readonly number[] | undefined;
  #at = 0;

  constructor(series: readonly Series<T>[]) {
    this.ring = new SeriesRing(historySteps, series.length);
    this.#series = series;
  }

  record(number: number, step: T, now: number): void {
    const counters = this.#series.map(({ of }) => of(step));
    const seconds = (now - this.#at) / 1000;
    const values = this.#series.map(({ isRate }, at) => {
      const value = counters[at] ?? Number.NaN;
      return isRate === true ? Math.max(0, value - (this.#counters?.[at] ?? Number.NaN)) / seconds : value;
    });
    this.#counters = counters;
    this.#at = now;
    this.ring.set(number, values);
  }
}

export class History {
  readonly #sources: HistorySources;
  readonly #startedAt: number;
  #cancelNext = (): void => {};
  readonly #process = new Track(processSeries);
  readonly #backends = new Map<string, Track<BackendStep>>();
  readonly #latencies = new Map<string, readonly number[]>();
  /** The worst state of each backend since the last step, as an index of `states`. */
  #worst = new Map<string, number>();
  #moved = new Map<string, Moved>();
  readonly #unsubscribe: () => void;

  constructor(sources: HistorySources) {
    const { clock, journal } = sources;
    this.#sources = sources;
    this.#startedAt = clock.now();
    this.#unsubscribe = journal.subscribe((entry) => this.#take(entry));
  }

  /**
   * Schedules the end of the current step. The delay is computed from `#startedAt`, because the delays of the timers
   * would otherwise add up.
   */
  start(): void {
    const { clock } = this.#sources;
    const inMs = (this.#step(clock.now()) + 1) * historyStepMs - (clock.now() - this.#startedAt);
    this.#cancelNext = clock.after(inMs, () => {
      this.start();
      this.#sample();
    });
  }

  /**
   * Returns the number of the step that contains `now`. The last tenth of a step already counts as the next step,
   * because a timer may fire a few ms early.
   */
  #step(now: number): number {
    return Math.floor((now - this.#startedAt + historyStepMs / 10) / historyStepMs);
  }

  stop(): void {
    this.#cancelNext();
    this.#unsubscribe();
  }

  get bytes(): number {
    const rings = [this.#process.ring, ...Array.from(this.#backends.values(), ({ ring }) => ring)];
    return rings.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Resolves with the steps after `after` as JSON. Works in time slices: an hour of 3 backends has 40,000 numbers. */
  text(after = -1): Promise<string> {
    const { clock, times } = this.#sources;
    const next = this.#process.ring.newest + 1;
    const first = Math.min(next, Math.max(after + 1, next - historySteps, 0));
    const backends = [...this.#backends];
    const columns = [
      ...columnsOf(undefined, this.#process, { series: processSeries, first, next }),
      ...backends.flatMap(([name, track]) => columnsOf(name, track, { series: backendSeries, first, next })),
    ];
    const texts = new Map<string | undefined, string[]>(
      [undefined, ...this.#backends.keys()].map((name) => [name, []]),
    );
    return new Promise((resolve) => {
      inSlices(
        clock,
        columns,
        ({ backend, name, values }) => texts.get(backend)?.push(`"${name}":${JSON.stringify(values())}`),
        () => {
          const head = {
            at: times.timeOf(clock.now()),
            kind: "History",
            startedAt: times.timeOf(this.#startedAt),
            stepMs: historyStepMs,
            first,
            next,
          };
          const listed = backends.map(
            ([name]) => `{"name":${JSON.stringify(name)},"series":{${(texts.get(name) ?? []).join()}}}`,
          );
          const process = `"process":{${(texts.get(undefined) ?? []).join()}}`;
          resolve(`${JSON.stringify(head).slice(0, -1)},${process},"backends":[${listed.join()}]}\n`);
        },
      );
    });
  }

  #take(entry: Entry): void {
    if (entry.kind === "backend.changed") this.#worsen(entry.backend, entry.to);
    if (entry.kind !== "watches.moved") return;
    this.#movedOf(entry.from).movedOut += entry.count;
    this.#movedOf(entry.to).movedIn += entry.count;
  }

  #worsen(backend: string, state: string): void {
    this.#worst.set(backend, Math.max(this.#worst.get(backend) ?? 0, states.indexOf(state)));
  }

  #movedOf(backend: string): Moved {
    const moved = this.#moved.get(backend) ?? { movedIn: 0, movedOut: 0 };
    this.#moved.set(backend, moved);
    return moved;
  }

  #sample(): void {
    const { clock, clusters, workers } = this.#sources;
    const now = clock.now();
    const all = clusters();
    record(all, clock, (own) => {
      if (workers === undefined) this.#record(all, own, now);
      else void workers().then((others) => this.#record(all, sumOfRecorded([own, ...others]), now));
    });
  }

  #record(clusters: readonly RecordedCluster[], recorded: Recorded, now: number): void {
    const step = this.#step(now) - 1;
    const [worst, moved] = [this.#worst, this.#moved];
    this.#worst = new Map();
    this.#moved = new Map();
    const counters = countersOf(recorded);
    const open = new Map(recorded.open);
    const delays = new Map(recorded.delays);
    const loads = new Map(recorded.loads);
    const latencies = new Map(recorded.latencies);
    for (const { name, state, pingP99Ms } of clusters.flatMap(({ backends }) => backends())) {
      this.#worsen(name, state);
      const delayMs = delays.get(name);
      this.#trackOf(name)?.record(
        step,
        {
          ...(counters.get(name) ?? noCounters),
          ...this.#quantilesOf(name, latencies.get(name)),
          ...(open.get(name) ?? { watches: 0, streams: noStreams }),
          state: Math.max(worst.get(name) ?? 0, states.indexOf(state)),
          pingMs: pingP99Ms,
          watchDelay: delayMs === undefined ? undefined : { delayMs },
          load: loads.get(name) ?? Number.NaN,
          ...(moved.get(name) ?? noMoves),
        },
        now,
      );
    }
    const watches = Array.from(open.values()).reduce((sum, counts) => sum + counts.watches, 0);
    const { requests, failures } = Array.from(counters.values()).reduce(sumOf, noCounters);
    const { watchEvents } = recorded;
    this.#process.record(step, { ...this.#sources.process(), requests, failures, watches, watchEvents }, now);
  }

  /**
   * Returns the backend's track; undefined if too many backends have one. Before a new backend gets a track, backends
   * without a step in the last hour lose theirs.
   */
  #trackOf(backend: string): Track<BackendStep> | undefined {
    let track = this.#backends.get(backend);
    if (track !== undefined) return track;
    for (const [name, { ring }] of this.#backends)
      if (ring.newest < this.#process.ring.newest - historySteps) this.#backends.delete(name);
    if (this.#backends.size >= historyBackends) return undefined;
    track = new Track(backendSeries);
    this.#backends.set(backend, track);
    return track;
  }

  /**
   * Returns the latency quantiles of the plain requests (neither watches nor long-running) that have ended at the
   * backend since the last step.
   */
  #quantilesOf(
    backend: string,
    latencies: readonly number[] | undefined,
  ): Pick<BackendStep, "p50Ms" | "p99Ms"> {
    const recent = countsSince(this.#latencies.get(backend), latencies ?? []);
    if (latencies === undefined) this.#latencies.delete(backend);
    else this.#latencies.set(backend, latencies);
    if (latencies === undefined) return { p50Ms: Number.NaN, p99Ms: Number.NaN };
    return { p50Ms: quantileOf(recent, 0.5), p99Ms: quantileOf(recent, 0.99) };
  }
}

const noMoves: Moved = { movedIn: 0, movedOut: 0 };
const noStreams: readonly number[] = clientKinds.map(() => 0);

/** Numbers of completed requests. `failures`: those with a 5xx code, and those without a response. */
type Counters = Pick<BackendStep, "requests" | "serverErrors" | "tooManyRequests"> &
  Pick<ProcessStep, "failures">;

const noCounters: Counters = { requests: 0, serverErrors: 0, tooManyRequests: 0, failures: 0 };

function sumOf(one: Counters, other: Counters): Counters {
  return {
    requests: one.requests + other.requests,
    serverErrors: one.serverErrors + other.serverErrors,
    tooManyRequests: one.tooManyRequests + other.tooManyRequests,
    failures: one.failures + other.failures,
  };
}

function countersOf({ counts }: Recorded): ReadonlyMap<string, Counters> {
  const sums = new Map<string, Counters>();
  for (const { backend, code, count } of counts) {
    const isServerError = code >= 500;
    const more = {
      requests: count,
      serverErrors: isServerError ? count : 0,
      tooManyRequests: code === 429 ? count : 0,
      failures: isServerError || code === 0 ? count : 0,
    };
    sums.set(backend, sumOf(sums.get(backend) ?? noCounters, more));
  }
  return sums;
}

type Column = {
  readonly backend: string | undefined;
  readonly name: string;
  readonly values: () => (number | null)[];
};

function columnsOf<T>(
  backend: string | undefined,
  { ring }: Track<T>,
  {
    series,
    first,
    next,
  }: { readonly series: readonly Series<T>[]; readonly first: number; readonly next: number },
): readonly Column[] {
  return series.map(({ name }, at) => ({ backend, name, values: () => ring.values(at, first, next) }));
}
