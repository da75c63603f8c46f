import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { WatchContext } from "../../watch/session/watch-context.ts";
import type { RequestContext } from "../context/request-context.ts";
import type { Credential } from "../identity/trust.ts";
import type { RequestObserver } from "../load/request-observer.ts";
import type { BodyCopy } from "../observe/ledger-tap.ts";
import type { GuardedRead } from "../observe/stale-read-guard.ts";

export type ExchangeRequest = {
  readonly context: RequestContext;
  readonly down: StreamWriter;
  readonly credential: Credential;
  readonly info: RequestInfo;
  /** Backends that are asked only if no other backend can be asked. */
  readonly avoided: readonly string[];
  readonly observers: RequestObserver;
  /** A watch that another backend can continue; undefined for any other request. */
  readonly asked: WatchContext | undefined;
  /** Compares the response with what the client has seen; undefined if the response shows no version. */
  readonly guardedRead: GuardedRead | undefined;
  /** Copies the body for the ledger; undefined if the ledger needs no copy. */
  readonly copy: BodyCopy | undefined;
  /** Result of `longHeadBytes` for the request's head. */
  readonly headBytes: number;
};
