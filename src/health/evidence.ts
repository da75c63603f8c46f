/** The closed list of evidence about a backend, from probes and from traffic. */
import type { Met } from "../base/failure.ts";

/** unknown: the backend does not report its readiness (401, 404, 429); hanging: no answer in time. */
export type Readiness = "unknown" | "ready" | "failing" | "hanging" | "shutdown";

/** forbidden (403): the probe lacks permission, or the apiserver has not loaded its RBAC yet. */
export type ReadyAnswer = Readiness | "forbidden";

export type Fresh = Extract<Evidence, { kind: "fresh" }>;

export type Evidence =
  /** The first SETTINGS of an upstream connection arrived `ms` after the dial began. */
  | { readonly kind: "connection-opened"; readonly ms: number }
  /** Every open upstream connection has a PING that is unanswered for longer than `limitMs`; `ms`: the oldest. */
  | { readonly kind: "connections-silent"; readonly ms: number; readonly limitMs: number }
  /** At least one of the silent upstream connections answers again. */
  | { readonly kind: "connections-answer" }
  /** The backend has sent GOAWAY on every open upstream connection. */
  | { readonly kind: "connections-going" }
  /**
   * No upstream connection is open any more. `by` ended the last one: an unanswered PING, a failed dial, or its socket.
   */
  | { readonly kind: "connections-lost"; readonly by: "ping" | "dial" | "socket"; readonly reason: string }
  /** A fresh socket, of a probe or an upstream connection, had a result `ms` after `begunAt` (a clock reading). */
  | {
      readonly kind: "fresh";
      readonly met: Met;
      readonly begunAt: number;
      readonly ms: number;
      readonly reason: string;
      /** For a failed probe: true if the TCP connection was established. Undefined for an upstream connection. */
      readonly hasConnected?: boolean;
    }
  /** /readyz answered after `ms`, or failed to answer for so long. */
  | { readonly kind: "readyz"; readonly readiness: ReadyAnswer; readonly ms: number; readonly reason: string }
  /** `count` reads in a row were unanswered here for longer than `limitMs`, and answered elsewhere; `ms`: the longest. */
  | { readonly kind: "reads-hanging"; readonly count: number; readonly ms: number; readonly limitMs: number }
  /**
   * Small packets pass, but large ones are lost: a connection in use and a probe, or the TLS handshakes of three
   * probes, got no answer for `ms`.
   */
  | { readonly kind: "packets-lost"; readonly ms: number; readonly limitMs: number }
  /** The backend has answered a request that requires etcd. */
  | { readonly kind: "reads-answer" }
  /** An operator starts or ends a drain: the backend gets no new work while others are ready. */
  | { readonly kind: "drain"; readonly isDrained: boolean; readonly by: string }
  /**
   * The backend's etcd has another history than the one that clients have seen, or has theirs again. The backend has
   * `resource` at `version`, clients have seen `seen`; "": no backend has their history.
   */
  | {
      readonly kind: "history";
      readonly isForked: boolean;
      readonly resource: string;
      readonly version: string;
      readonly seen: string;
    }
  /** No other backend is ready, so this one becomes ready although it still recovers. */
  | { readonly kind: "alone" };
