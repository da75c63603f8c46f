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
  /** Compares the response's version with those that the client has received; undefined: the response shows none. */
  readonly guardedRead: GuardedRead | undefined;
  /** Copies the request's body for the ledger; undefined: the ledger needs no copy. */
  readonly copy: BodyCopy | undefined;
  readonly headBytes: number;
};
