/** The closed list of evidence about a backend, from probes and from traffic. */
import type { Met } from "../base/failure.ts";

/**
 * Readiness as /readyz reports it. unknown: the response says nothing about readiness (401, 404, 429). hanging: no
 * response in time.
 */
export type Readiness = "unknown" | "ready" | "failing" | "hanging" | "shutdown";

/** The result of a probe. forbidden (403): no permission, or the apiserver has not loaded its RBAC yet. */
export type ReadyAnswer = Readiness | "forbidden";

export type Fresh = Extract<Evidence, { kind: "fresh" }>;

export type Evidence =
  /** The first SETTINGS of an upstream connection arrived `ms` after the connection's dial began. */
  | { readonly kind: "connection-opened"; readonly ms: number }
  /** Each open upstream connection has had an unanswered PING for more than `limitMs`. `ms`: the longest wait. */
  | { readonly kind: "connections-silent"; readonly ms: number; readonly limitMs: number }
  /** At least one of the silent upstream connections answers again. */
  | { readonly kind: "connections-answer" }
  /** The backend has sent GOAWAY on every open upstream connection. */
  | { readonly kind: "connections-going" }
  /**
   * The last upstream connection was closed. `by`: "ping" if a PING was unanswered, "dial" if a dial failed, "socket"
   * if the socket was closed or failed.
   */
  | { readonly kind: "connections-lost"; readonly by: "ping" | "dial" | "socket"; readonly reason: string }
  /**
   * A new socket, of a probe or an upstream connection, had a result after `ms`. `begunAt`: clock reading at which the
   * socket was opened.
   */
  | {
      readonly kind: "fresh";
      readonly met: Met;
      readonly begunAt: number;
      readonly ms: number;
      readonly reason: string;
      /**
       * For a failed probe: true if the TCP handshake succeeded. Undefined for a dial of an upstream connection, which
       * does not report this.
       */
      readonly hasConnected?: boolean;
    }
  /** /readyz answered after `ms`, or has not answered for `ms`. */
  | { readonly kind: "readyz"; readonly readiness: ReadyAnswer; readonly ms: number; readonly reason: string }
  /**
   * Other backends answered `count` consecutive reads that this backend had left unanswered for `limitMs`. `ms`: the
   * longest wait.
   */
  | { readonly kind: "reads-hanging"; readonly count: number; readonly ms: number; readonly limitMs: number }
  /**
   * Large packets are lost although small ones arrive. One of three observations shows this: the TLS handshakes of
   * three probes are unanswered; the TLS handshake of one probe is unanswered until its deadline; or an upstream
   * connection in use and a probe are both silent. `ms`: duration of the silence.
   */
  | { readonly kind: "packets-lost"; readonly ms: number; readonly limitMs: number }
  /** The backend has answered a request that requires etcd. */
  | { readonly kind: "reads-answer" }
  /** An operator starts or ends a drain. A draining backend gets no new requests while another backend is ready. */
  | { readonly kind: "drain"; readonly isDrained: boolean; readonly by: string }
  /**
   * `isForked`: true if the backend's etcd has another history than the one that clients have seen; false once the two
   * histories agree again. `version`: the backend's version of `resource`. `seen`: the version that clients have seen;
   * "" if no backend has this version.
   */
  | {
      readonly kind: "history";
      readonly isForked: boolean;
      readonly resource: string;
      readonly version: string;
      readonly seen: string;
    }
  /** No other backend is ready, so this backend becomes ready before it has answered enough probes. */
  | { readonly kind: "alone" };
