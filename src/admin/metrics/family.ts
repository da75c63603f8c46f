/** What one metric family of ours is, and the numbers that all of them are made of. */
import type { Histogram } from "../../base/histogram.ts";
import type { Row } from "./series.ts";
import type { Tally } from "./tally.ts";

/** The state of the proxy at one moment, as plain numbers. Counts only grow; of rows with equal labels the sum is shown. */
export type Snapshot = {
  readonly version: string;
  readonly backends: readonly {
    readonly name: string;
    readonly state: string;
    readonly lanes: readonly {
      readonly trust: string;
      readonly kind: string;
      readonly open: number;
      readonly streams: number;
    }[];
    /** What its detectors have measured; 0 before they have. */
    readonly pingP99Ms: number;
    readonly suspectMs: number;
    readonly probes: { readonly answers: number; readonly failures: number; readonly lastMs: number };
    /** An operator wants it let go. */
    readonly isDrained: boolean;
  }[];
  /** Clients' sessions; "" for sockets without ALPN. */
  readonly sessions: readonly { readonly alpn: string; readonly open: number }[];
  readonly handshakeErrors: number;
  readonly exchanges: readonly {
    readonly kind: "plain" | "watch" | "long-running" | "upgrade";
    readonly active: number;
  }[];
  /** `verb` as in RequestInfo, or the method; `code` 0 when there was no answer; `backend` "" when none was chosen. */
  readonly requests: readonly {
    readonly verb: string;
    readonly code: number;
    readonly backend: string;
    readonly count: number;
  }[];
  readonly refusedSessions: readonly { readonly reason: string; readonly count: number }[];
  readonly resets: readonly { readonly reason: string; readonly count: number }[];
  readonly watchEvents: number;
  readonly watchEventBytes: number;
  readonly watches: {
    readonly states: ReadonlyMap<string, number>;
    /** Watches without a leg, which wait to be asked for elsewhere. */
    readonly waiting: number;
    readonly moves: ReadonlyMap<string, number>;
    readonly ends: ReadonlyMap<string, number>;
    readonly hedges: number;
    readonly refreshes: number;
    readonly progressRequests: {
      readonly answered: number;
      readonly refused: number;
      readonly unanswered: number;
    };
    /** Resources whose sentinel stands, and the second legs that were asked for them. */
    readonly sentinels: number;
    readonly sentinelLegs: number;
    /** APIs (a group and version each) that were found to be a CRD's, another server's, or neither yet. */
    readonly origins: { readonly custom: number; readonly aggregated: number; readonly unknown: number };
    readonly violations: number;
    /** Of the time-travel guard: answers from the past, requests that demanded none, refusals of those. */
    readonly timeTravel: { readonly outdated: number; readonly demanded: number; readonly refused: number };
    /** Caches that stand still: a backend and a resource each. */
    readonly stalls: number;
  };
  /** Sockets by backend, and bytes as clients see them. */
  readonly passthrough: {
    readonly counts: ReadonlyMap<string, number>;
    readonly bytes: { readonly sent: number; readonly received: number };
  };
  readonly bufferedBytes: number;
  /** Requests that were asked twice; those that wait now since no backend can be asked. */
  readonly hedges: number;
  readonly heldRequests: number;
  readonly config: { readonly isGood: boolean; readonly loadedAtMs: number };
  /** Of each cluster that looks for backends; "" is the only one. */
  readonly discovery: readonly {
    readonly cluster: string;
    readonly lastSuccessAtMs: number;
    readonly failures: number;
    readonly found: number;
  }[];
  readonly certificates: readonly {
    readonly purpose: string;
    readonly name: string;
    readonly notAfterMs: number;
  }[];
  readonly droppedLogLines: number;
  readonly incidents: {
    readonly counts: readonly { readonly kind: string; readonly backend: string; readonly count: number }[];
    readonly active: readonly { readonly kind: string; readonly backend: string }[];
  };
  /** Callers that are remembered, and the requests of all there were by agent. */
  readonly clients: { readonly count: number; readonly requests: ReadonlyMap<string, number> };
  /** But for the nodes' own leases. */
  readonly locks: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly holder: string;
    readonly source: string;
    readonly renewedAtMs: number;
    readonly verdict: string;
  }[];
  /** Of plain requests, in seconds, by verb. */
  readonly durations: ReadonlyMap<string, Histogram>;
};

export type Family = {
  readonly type: "gauge" | "counter";
  /** Behind `watchkeeper_`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Series that it may have; `limits.familySeries` unless said otherwise. */
  readonly cap?: number;
  readonly rows: (now: Snapshot, told: Tally) => readonly Row[];
};
