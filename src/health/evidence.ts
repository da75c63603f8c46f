/** What can be learnt about a backend, by asking it (probe) or by using it (traffic). The list is closed. */
import type { Met } from "../base/failure.ts";

/** What is held of /readyz. `unknown`: the backend does not tell us (401, 404, 429); `hanging`: no answer in time. */
export type Readiness = "unknown" | "ready" | "failing" | "hanging" | "shutdown";

/** What one probe of /readyz learnt. `forbidden` (403): not for us to know, or an apiserver that has not loaded its RBAC yet. */
export type ReadyAnswer = Readiness | "forbidden";

export type Evidence =
  /** An upstream connection's first SETTINGS came, `ms` after its dial began. */
  | { readonly kind: "connection-opened"; readonly ms: number }
  /** Every open upstream connection has left a PING unanswered for longer than `limitMs`; `ms` is the longest. */
  | { readonly kind: "connections-silent"; readonly ms: number; readonly limitMs: number }
  /** One of them answers again. */
  | { readonly kind: "connections-answer" }
  /** The backend has sent GOAWAY on every open upstream connection. */
  | { readonly kind: "connections-going" }
  /** No open upstream connection is left, and what ended the last one: its silence, its dial, or its socket. */
  | { readonly kind: "connections-lost"; readonly by: "ping" | "dial" | "socket"; readonly reason: string }
  /** A fresh socket, a probe's or an upstream connection's, met something `ms` after `begunAt` (a clock reading). */
  | {
      readonly kind: "fresh";
      readonly met: Met;
      readonly begunAt: number;
      readonly ms: number;
      readonly reason: string;
      /** Of a probe that met silence: did a kernel take its socket? */
      readonly hasConnected?: boolean;
    }
  /** /readyz spoke, or did not within `ms`. */
  | { readonly kind: "readyz"; readonly readiness: ReadyAnswer; readonly ms: number; readonly reason: string }
  /**
   * So many reads in a row, each silent for longer than `limitMs`, were answered by another backend at once; `ms` is
   * the longest.
   */
  | { readonly kind: "reads-hanging"; readonly count: number; readonly ms: number; readonly limitMs: number }
  /**
   * PINGs are answered, none of them late, and what takes a large packet is not, for `ms`, though TCP connects: a session in
   * use fell silent, and a probe got no answer on a socket of its own; or the TLS handshakes of three probes did not.
   */
  | { readonly kind: "packets-lost"; readonly ms: number; readonly limitMs: number }
  /** It has answered something again for which it had to ask etcd. */
  | { readonly kind: "reads-answer" }
  /** Somebody who may say so wants it drained, or no longer: nothing new while others are ready, and no hurry. */
  | { readonly kind: "told"; readonly isDrained: boolean; readonly by: string }
  /**
   * Its etcd has another history than clients have seen, or that one again: what it has of `resource` came to `version`,
   * and clients have seen `seen`. "" when the other history is all there is.
   */
  | {
      readonly kind: "history";
      readonly isForked: boolean;
      readonly resource: string;
      readonly version: string;
      readonly seen: string;
    }
  /** No other backend is ready: whoever answers is taken at once. */
  | { readonly kind: "alone" };
