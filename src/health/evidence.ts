/** The closed list of evidence about a backend, from probes and from traffic. */
import type { Met } from "../base/failure.ts";

/** The state of /readyz. `unknown`: the backend does not report it (401, 404, 429); `hanging`: no answer in time. */
export type Readiness = "unknown" | "ready" | "failing" | "hanging" | "shutdown";

/**
 * The result of one /readyz probe. `forbidden` (403): the probe lacks permission, or the apiserver has not loaded its
 * RBAC yet.
 */
export type ReadyAnswer = Readiness | "forbidden";

export type Fresh = Extract<Evidence, { kind: "fresh" }>;

export type Evidence =
  /** An upstream connection's first SETTINGS arrived, `ms` after its dial began. */
  | { readonly kind: "connection-opened"; readonly ms: number }
  /** Every open upstream connection has an unanswered PING older than `limitMs`; `ms` is the longest. */
  | { readonly kind: "connections-silent"; readonly ms: number; readonly limitMs: number }
  /** At least one of them answers again. */
  | { readonly kind: "connections-answer" }
  /** The backend has sent GOAWAY on every open upstream connection. */
  | { readonly kind: "connections-going" }
  /** No open upstream connection is left. `by` is what ended the last one: its silence, its dial, or its socket. */
  | { readonly kind: "connections-lost"; readonly by: "ping" | "dial" | "socket"; readonly reason: string }
  /** A fresh socket, a probe's or an upstream connection's, had a result `ms` after `begunAt` (a clock reading). */
  | {
      readonly kind: "fresh";
      readonly met: Met;
      readonly begunAt: number;
      readonly ms: number;
      readonly reason: string;
      /** For an unanswered probe: true if a kernel accepted its socket. */
      readonly hasConnected?: boolean;
    }
  /** /readyz answered, or did not within `ms`. */
  | { readonly kind: "readyz"; readonly readiness: ReadyAnswer; readonly ms: number; readonly reason: string }
  /**
   * This many reads in a row were silent for longer than `limitMs` here and answered by another backend at once; `ms`
   * is the longest.
   */
  | { readonly kind: "reads-hanging"; readonly count: number; readonly ms: number; readonly limitMs: number }
  /**
   * PINGs are answered on time, TCP connects, but large packets get no answer for `ms`. Either a session in use fell
   * silent and a probe on its own socket got no answer, or the TLS handshakes of three probes got none.
   */
  | { readonly kind: "packets-lost"; readonly ms: number; readonly limitMs: number }
  /** It has answered a request that required etcd. */
  | { readonly kind: "reads-answer" }
  /**
   * An authorised operator starts or ends its drain. A drained backend gets nothing new while others are ready, and is
   * not hurried.
   */
  | { readonly kind: "told"; readonly isDrained: boolean; readonly by: string }
  /**
   * Its etcd has a different history from the one that clients have seen, or the same again: its state of `resource` is
   * at `version`, and clients have seen `seen`. "" if the other history is the only one left.
   */
  | {
      readonly kind: "history";
      readonly isForked: boolean;
      readonly resource: string;
      readonly version: string;
      readonly seen: string;
    }
  /** No other backend is ready, so one that answers becomes ready at once. */
  | { readonly kind: "alone" };
