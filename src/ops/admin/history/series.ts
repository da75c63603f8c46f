/** Declares the series of the history. A new series needs only an entry here. GET /openapi.json lists the series. */
import { clientKinds } from "../../ledger/client-kind.ts";

/**
 * Values of a backend at the end of a step of the history. `p50Ms` and `p99Ms`: latency quantiles of the plain requests
 * (neither watches nor long-running) that ended during the step; NaN if none did. `pingMs`: 99th percentile of the PING
 * round trips.
 */
export type BackendStep = {
  /** The worst state during the step, as an index of `states`. */
  readonly state: number;
  /** Counters since the process began: `requests`, `serverErrors` (5xx) and `tooManyRequests` (429). */
  readonly requests: number;
  readonly serverErrors: number;
  readonly tooManyRequests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly pingMs: number;
  /**
   * Longest time from a write until this backend delivered the write's event; undefined: not measured, because no
   * client watches all objects of a resource at this backend.
   */
  readonly watchDelay: { readonly delayMs: number } | undefined;
  /** The load by which backends are compared, in open streams; NaN: not measured. */
  readonly load: number;
  readonly watches: number;
  /** Numbers of watches that moved away from the backend (`movedOut`) and to it (`movedIn`) during the step. */
  readonly movedOut: number;
  readonly movedIn: number;
  /** Number of open requests, watches included, by kind of client, in the order of `clientKinds`. */
  readonly streams: readonly number[];
};

/** Values of the process at the end of a step of the history. */
export type ProcessStep = {
  /** Counters since the process began: `requests`, `failures`, `watchEvents`, and `cpuMs` of all threads. */
  readonly requests: number;
  readonly failures: number;
  readonly watchEvents: number;
  readonly cpuMs: number;
  readonly eventLoopDelayMs: number;
  readonly rssMiB: number;
  readonly watches: number;
  readonly clientConnections: number;
};

/**
 * A series of the history. `isRate`: true if `of` returns a counter; the history then stores the counter's increase per
 * second.
 */
export type Series<T> = {
  readonly name: string;
  readonly about: string;
  readonly isRate?: true;
  readonly of: (step: T) => number;
};

/** The states of backends, from the best to the worst. */
export const states = ["ready", "unknown", "draining", "suspect", "dead"];

export const backendSeries: readonly Series<BackendStep>[] = [
  {
    name: "state",
    about: `Worst state in the step: ${states.map((state, at) => `${at} ${state}`).join(", ")}.`,
    of: ({ state }) => state,
  },
  { name: "requests", about: "Completed requests per second.", isRate: true, of: ({ requests }) => requests },
  {
    name: "serverErrors",
    about: "Responses with a 5xx code per second.",
    isRate: true,
    of: ({ serverErrors }) => serverErrors,
  },
  {
    name: "tooManyRequests",
    about: "Responses with code 429 per second.",
    isRate: true,
    of: ({ tooManyRequests }) => tooManyRequests,
  },
  {
    name: "p50Ms",
    about: "Median time of a plain request, in ms, too long by at most a quarter.",
    of: ({ p50Ms }) => p50Ms,
  },
  { name: "p99Ms", about: "99th percentile of that time, in ms.", of: ({ p99Ms }) => p99Ms },
  { name: "pingMs", about: "99th percentile of PING round trips, in ms.", of: ({ pingMs }) => pingMs },
  {
    name: "watchDelayMs",
    about: "Longest delay of a write on watches in the last 10 to 20 s, in ms.",
    of: ({ watchDelay }) => watchDelay?.delayMs ?? Number.NaN,
  },
  {
    name: "load",
    about: "Load by which backends are compared, in open streams.",
    of: ({ load }) => load,
  },
  { name: "watches", about: "Open watches.", of: ({ watches }) => watches },
  { name: "movedOut", about: "Watches that moved away in the step.", of: ({ movedOut }) => movedOut },
  { name: "movedIn", about: "Watches that moved here in the step.", of: ({ movedIn }) => movedIn },
  ...clientKinds.map((kind, at) => ({
    name: `streams-${kind}`,
    about: `Open requests, watches included, of clients of the kind ${kind}.`,
    of: ({ streams }: BackendStep) => streams[at] ?? 0,
  })),
];

export const processSeries: readonly Series<ProcessStep>[] = [
  { name: "requests", about: "Completed requests per second.", isRate: true, of: ({ requests }) => requests },
  {
    name: "failures",
    about: "Responses with a 5xx code, and requests without a response, per second.",
    isRate: true,
    of: ({ failures }) => failures,
  },
  {
    name: "watchEvents",
    about: "Watch events delivered per second.",
    isRate: true,
    of: ({ watchEvents }) => watchEvents,
  },
  {
    name: "cpuMs",
    about: "CPU time of all threads, in ms per second.",
    isRate: true,
    of: ({ cpuMs }) => cpuMs,
  },
  {
    name: "eventLoopDelayMs",
    about: "Longest delay of the event loop in the step, in ms.",
    of: ({ eventLoopDelayMs }) => eventLoopDelayMs,
  },
  { name: "rssMiB", about: "Resident memory, in MiB.", of: ({ rssMiB }) => rssMiB },
  { name: "watches", about: "Open watches.", of: ({ watches }) => watches },
  {
    name: "clientConnections",
    about: "Open client connections.",
    of: ({ clientConnections }) => clientConnections,
  },
];
