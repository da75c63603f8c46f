import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import type { Backends } from "../../health/backends.ts";
import type { Probers } from "../../health/prober.ts";
import type { Origin, Origins } from "../../kube/api-origin.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { isRepeatable, type RequestContext } from "../../upstream/context/request-context.ts";
import type { Credential, Trust } from "../../upstream/identity/trust.ts";
import type { PoolKey } from "../../upstream/pool/pool-key.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import type { Migrations } from "../../watch/migration/migrations.ts";
import type { WatchContext } from "../../watch/session/watch-context.ts";
import type { WatchSession } from "../../watch/session/watch-session.ts";
import type { Admission } from "../admission/admission.ts";
import type { RequestGate } from "../limits/request-gate.ts";
import type { RequestObserver } from "../load/request-observer.ts";
import type { BodyCopy } from "../observe/ledger-tap.ts";
import type { Overhead } from "../observe/overhead.ts";
import type { ReplayLoopDetector } from "../observe/replay-loop-detector.ts";
import type { RequestTrace } from "../observe/request-trace.ts";
import type { AvoidedApis } from "./avoided-apis.ts";
import type { PendingQueue } from "./pending-queue.ts";

/** The parts of the proxy that every exchange of a cluster uses. */
export type ExchangeServices = {
  readonly probers: Probers | undefined;
  readonly buffered: Buffered;
  readonly clock: Clock;
  readonly backends: Backends;
  readonly pools: PoolSet;
  readonly trust: Trust;
  readonly admission: Admission;
  readonly journal: Journal;
  readonly pending: PendingQueue;
  readonly migrations: Migrations;
  readonly replays: ReplayLoopDetector;
  readonly overhead: Overhead;
  readonly avoidedApis: AvoidedApis;
  readonly origins: Origins;
  readonly originChecks: {
    answered(api: RequestInfo, head: readonly Field[]): Origin;
    check(api: RequestInfo, origin: Origin, watch: WatchSession): void;
  };
};

/** Reads the relayed response: its final head, and then its body. */
export type ResponseReader = {
  /**
   * Returns true if the backend's data is older than data that the client has already received. The client is then
   * bound to another backend.
   */
  answered(backend: string, head: readonly Field[]): boolean;
  read(bytes: Buffer, start: number, end: number, endStream: boolean): void;
};

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
  /** Observes the response; undefined if nothing in it is of interest. */
  readonly reader: ResponseReader | undefined;
  /** Copies the request's body for the ledger (observe/ledger-tap.ts); undefined: the ledger needs no copy. */
  readonly copy: BodyCopy | undefined;
  /** The request's trace; undefined: the request is not traced. */
  readonly trace?: RequestTrace | undefined;
  /** The checks that the request must pass before it is sent; undefined: none. */
  readonly gate: RequestGate | undefined;
  readonly headBytes: number;
};

/** Returns the key of the upstream connections that may carry the request. */
export function poolKeyOf(
  { pools, trust, admission }: Pick<ExchangeServices, "pools" | "trust" | "admission">,
  { client, kind, asserted }: RequestContext,
  credential: Credential,
): PoolKey {
  const of = asserted?.trust ?? trust.classOf(credential);
  // Some requests get connections of their own: anonymous requests, and those from addresses with many recent 401s
  // (D15). Their 401s cause GOAWAYs, which would disturb the other clients of a connection.
  const isApart = of === "unproven" && (credential === undefined || admission.isRejected(client.address));
  return pools.keyFor(
    { trust: isApart ? "rejected" : of, kind: kind === "plain" ? "plain" : "long" },
    client,
  );
}

/** The paths that a load balancer in front of the apiserver may answer. */
const healthPath = /^\/(?:health|live|ready)z/;

/**
 * Returns which server may have chosen the status of the request's response. "webhook": the apiserver, or a webhook that
 * refuses the write after the apiserver has authenticated it. "other": perhaps another server, because the request is
 * proxied, or its API may be aggregated. Also "other" for OPTIONS.
 */
export function answeredBy(
  context: RequestContext,
  { isResource, kind, verb, group, version }: RequestInfo,
  origins: Pick<Origins, "of">,
): "apiserver" | "webhook" | "other" {
  if (kind === "long-running" || verb === "") return "other";
  const isOwn = isResource
    ? !origins.of({ group, version }).isForeign
    : isRepeatable(context) && context.isOwn && !healthPath.test(context.target);
  if (!isOwn) return "other";
  return isRepeatable(context) ? "apiserver" : "webhook";
}
