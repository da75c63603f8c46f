/**
 * Takes each request from its listener: identifies the client, and begins the request's exchange.
 *
 * `downstream.ts` (HTTP/2) or `h1-connection.ts` (HTTP/1.1) calls the handler with the stream for the response, and
 * gives the returned exchange whatever the client sends later. ARCHITECTURE.md lists the steps of a request.
 */
import { Failure } from "../../base/failure.ts";
import { limits as bounds } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import {
  classify,
  isLogRead,
  isObjectRead,
  isOwnApi,
  type RequestInfo,
  sharedInfo,
} from "../../kube/request-info.ts";
import type { Client } from "../../upstream/context/client.ts";
import { withoutPrefix, withPath } from "../../upstream/context/path-prefix.ts";
import { longHeadBytes, type RequestContext, targetIn } from "../../upstream/context/request-context.ts";
import { identify } from "../../upstream/context/upstream-fields.ts";
import type { Asserted } from "../../upstream/identity/asserted-identity.ts";
import { type Credential, isProvenAt } from "../../upstream/identity/trust.ts";
import type { CacheTracker } from "../../watch/cache/cache-progress.ts";
import {
  firstFields,
  resourceKey,
  uncompressed,
  type WatchContext,
  watchContextOf,
  withBookmarks,
} from "../../watch/session/watch-context.ts";
import { keyOf } from "../admission/sources.ts";
import type { Limit } from "../limits/limit.ts";
import { type GateRequest, isShielded, RequestGate } from "../limits/request-gate.ts";
import { type LimitedRequest, limitedCallerOf, type RequestLimits } from "../limits/request-limits.ts";
import type { Shields } from "../limits/shields.ts";
import type { RequestObserver } from "../load/request-observer.ts";
import type { BodyCopy, LedgerTap } from "../observe/ledger-tap.ts";
import type { RequestTrace } from "../observe/request-trace.ts";
import type { ClassifiedRequest, GuardedRead, StaleReadGuard } from "../observe/stale-read-guard.ts";
import type { Tracer } from "../observe/tracer.ts";
import { writeTapFor } from "../observe/write-tap.ts";
import type { ActiveRequests } from "./active-requests.ts";
import { Exchange, type ExchangeParts } from "./exchange.ts";

export type HandlerParts = ExchangeParts & {
  readonly exchanges: ActiveRequests;
  readonly caches: CacheTracker;
  readonly staleReadGuard: StaleReadGuard;
  readonly ledgerTap: LedgerTap;
  readonly tracer: Tracer;
  readonly observers: RequestObserver;
  readonly limits: RequestLimits;
  readonly shields: Shields;
  /** True if the proxy requests bookmarks even for clients that did not request them. */
  readonly alwaysRequestBookmarks: () => boolean;
  readonly pathPrefix: () => string;
};

/** Handles a request, and returns its exchange. `end`: true if no body follows the head. */
export type RequestHandler = (
  request: RequestHead,
  end: boolean,
  side: StreamWriter,
  client: Client,
) => StreamListener;

export function createHandler(parts: HandlerParts): RequestHandler {
  return (received, end, side, client) => {
    const request = withoutPrefix(received, parts.pathPrefix());
    const at = parts.clock.now();
    const trace = parts.tracer.begin(request.fields, at);
    const info = infoOf(request, client);
    const identified = identify(request, client, parts.clock);
    const isRefused = identified instanceof Failure;
    const { fields, auditId, asserted } = isRefused ? unknown(request) : identified;
    const credential = credentialOf(parts, request, client, asserted);
    const caller = parts.ledgerTap.callerOf(client, request.fields, asserted ?? credential);
    const classified = { info, target: request.path, client, caller, fields };
    const guardedRead = isRefused || !end ? undefined : parts.staleReadGuard.guardedRead(classified);
    const asked = end ? watchAsked(parts, classified, guardedRead) : undefined;
    const sent = fieldsOf(traced(fields, trace), asked, guardedRead);
    const context: RequestContext = {
      client,
      caller,
      at,
      resource: asked === undefined ? "" : asked.resource,
      method: request.method,
      kind: info.kind,
      verb: info.verb,
      isObjectRead: isObjectRead(info),
      isLogRead: isLogRead(info),
      isOwn: isOwnApi(info, request.path),
      target: targetIn(sent),
      fields: sent,
      auditId,
      isBodiless: end,
      asserted,
    };
    const gate = gateOf(parts, classified, { identified, credential }, asked);
    const exchange = new Exchange(parts, {
      context,
      down: side,
      credential,
      info,
      avoided: avoidedBy(parts, context, info, asked),
      observers: parts.observers,
      asked,
      reader: guardedRead ?? writeTapFor(parts, classified, end),
      copy: isRefused ? undefined : bodyCopyFor(parts, context, classified, asked),
      trace,
      gate: passedOf(gate),
      headBytes: longHeadBytes(request.fields),
    });
    return begun(parts, exchange, gate);
  };
}

function begun(parts: HandlerParts, exchange: Exchange, gate: RequestGate | Failure | undefined): Exchange {
  parts.exchanges.add(exchange);
  exchange.begin(gate instanceof Failure ? gate : crowdedOut(parts, exchange));
  return exchange;
}

function infoOf({ method, path }: RequestHead, { target }: Client): RequestInfo {
  if (target.info !== undefined && target.path === path && target.method === method) return target.info;
  const info = classify(method, path);
  // The connection remembers its last target for as long as it lives, so a long target is not remembered (A26).
  if (path.length > bounds.targetChars) return info;
  target.method = method;
  target.path = path;
  target.info = sharedInfo(info, path);
  return target.info;
}

type LimitParts = Pick<HandlerParts, "limits" | "trust" | "clock" | "ledgerTap">;

const unlimited: readonly Limit[] = [];

function passedOf(gate: RequestGate | Failure | undefined): RequestGate | undefined {
  return gate instanceof Failure ? undefined : gate;
}

/** A classified request, with the entry of its caller in the ledger (src/ops/ledger). */
type Classified = ClassifiedRequest & Pick<LimitedRequest, "caller">;

/**
 * The sender of a request. While this request waits, a backend may accept another request with the same credential. The
 * credential then counts as proven for this request, too.
 */
type Sender = { readonly asserted: Asserted | undefined; readonly credential: Credential };

/** What the request's header fields say about its sender. */
type Identification = {
  readonly identified: Pick<Sender, "asserted"> | Failure;
  readonly credential: Credential;
};

function isVerified({ trust }: Pick<HandlerParts, "trust">, { asserted, credential }: Sender): boolean {
  return asserted !== undefined || trust.classOf(credential) === "proven";
}

/** Returns the checks that the request must pass before it is sent; undefined: none. A Failure refuses the request. */
function gateOf(
  parts: HandlerParts,
  classified: Classified,
  { identified, credential }: Identification,
  watch: WatchContext | undefined,
): RequestGate | Failure | undefined {
  if (identified instanceof Failure) return identified;
  const { asserted } = identified;
  const sender = { asserted, credential };
  const isUnproven = asserted === undefined && !isProvenAt(credential, parts.clock.now());
  // For nearly all requests, there is nothing to check.
  if (!isUnproven && parts.limits.isEmpty && !isShielded(classified.info, watch?.start)) return undefined;
  const limited = limitsOf(parts, classified, sender);
  if (limited instanceof Failure) return limited;
  const applicant = isUnproven ? applicantOf(classified.client, credential) : undefined;
  return new RequestGate(parts, { applicant, ...gated(parts, classified, sender, watch) }, limited);
}

function applicantOf({ address }: Client, credential: Credential): GateRequest["applicant"] {
  return { address, bearer: credential?.key ?? "" };
}

function gated(
  parts: HandlerParts,
  { info, target, client, caller }: Classified,
  sender: Sender,
  watch: WatchContext | undefined,
): Omit<GateRequest, "applicant"> {
  const { credential } = sender;
  return {
    info,
    start: watch?.start,
    awaitsMarker: watch?.awaitsMarker === true,
    isSelected: target.includes("Selector="),
    caller: () => limitedCallerOf(client, caller, isVerified(parts, sender)),
    // Returns the key under which requests are counted: the token if a backend has accepted it, otherwise the address.
    // A client can invent a new token for each request, but not a new address.
    credential: () =>
      credential !== undefined && isVerified(parts, sender) ? credential.key : keyOf(client.address),
  };
}

/** Returns the limits that count the request. If the request exceeds one of them, returns the refusal instead. */
function limitsOf(
  parts: LimitParts,
  { info, client, caller }: Omit<LimitedRequest, "isVerified">,
  sender: Sender,
): readonly Limit[] | Failure {
  if (parts.limits.isEmpty) return unlimited;
  return parts.limits.begin({ info, client, caller, isVerified: isVerified(parts, sender) });
}

/**
 * Returns the limits that count an Upgrade until its response. If the Upgrade exceeds a limit, returns the refusal
 * instead.
 */
export function limitsOfUpgrade(
  parts: LimitParts,
  request: RequestHead,
  client: Client,
  asserted: Asserted | undefined,
): readonly Limit[] | Failure {
  if (parts.limits.isEmpty) return unlimited;
  const credential = credentialOf(parts, request, client, asserted);
  const caller = parts.ledgerTap.callerOf(client, request.fields, asserted ?? credential);
  const info = classify(request.method, request.path);
  return limitsOf(parts, { info, client, caller }, { asserted, credential });
}

/**
 * Returns a refusal if the request has a long head and too many bytes are buffered already (A26); otherwise undefined.
 * The buffer limiter acts only after all input of a turn of the event loop was read, and on a busy machine one turn may
 * bring a thousand long heads.
 */
function crowdedOut({ buffered }: HandlerParts, { headBytes }: Exchange): Failure | undefined {
  if (headBytes === 0 || !buffered.isOver) return undefined;
  return new Failure("overload", "proxy", "Buffered bytes exceed the limit of this process");
}

/**
 * Returns the request's token. Undefined for a client with a certificate: its token is not forwarded, so no backend's
 * response can show that the token is valid.
 */
function credentialOf(
  { trust }: Pick<HandlerParts, "trust">,
  request: RequestHead,
  client: Client,
  asserted: Asserted | undefined,
): Credential {
  return asserted === undefined ? trust.credentialOf(request, client.credential) : undefined;
}

function unknown({ fields }: RequestHead): Pick<RequestContext, "fields" | "auditId" | "asserted"> {
  return { fields, auditId: "", asserted: undefined };
}

/** Returns the context of a watch; undefined: the request is not a watch, or its target is too long to change. */
function watchAsked(
  { alwaysRequestBookmarks, origins }: HandlerParts,
  classified: ClassifiedRequest,
  guardedRead: GuardedRead | undefined,
): WatchContext | undefined {
  if (classified.info.kind !== "watch" || classified.target.length > bounds.changedTargetBytes)
    return undefined;
  const target = guardedRead?.target ?? classified.target;
  const asked = watchContextOf(target, classified.info, {
    origin: origins.of(classified.info),
    seenVersion: guardedRead,
    fields: classified.fields,
  });
  return alwaysRequestBookmarks() ? withBookmarks(asked, classified.fields) : asked;
}

/**
 * Returns the backends that a request avoids: those that do not serve the API or cannot reach its server, those whose
 * watch cache of the resource is stalled, and those whose cache begins after the version from which the watch starts.
 */
function avoidedBy(
  { caches, clock, avoidedApis }: HandlerParts,
  context: RequestContext,
  info: RequestInfo,
  asked: WatchContext | undefined,
): readonly string[] {
  const stalled = caches.isClear ? none : caches.stalledWith(resourceKey(info), clock.now());
  const version = asked?.version ?? "";
  const refusing = version === "" ? none : caches.refusing(resourceKey(info), version);
  const missing = avoidedApis.place(context, info);
  return refusing.length + missing.length === 0 ? stalled : [...stalled, ...refusing, ...missing];
}

const none: readonly string[] = [];

/**
 * Reports the request to the ledger (src/ops/ledger). Returns an object that copies the request's body; undefined: the
 * ledger needs no copy.
 */
function bodyCopyFor(
  { ledgerTap }: HandlerParts,
  { caller, auditId, client }: RequestContext,
  { info, target }: ClassifiedRequest,
  watch: WatchContext | undefined,
): BodyCopy | undefined {
  const request = { caller, client, info, target, auditId };
  if (watch !== undefined || info.verb === "list") ledgerTap.asked(request, watch);
  return ledgerTap.copyFor(request);
}

/** Returns the fields for the backend. If the request is traced, `traceparent` names the request's span. */
function traced(fields: readonly Field[], trace: RequestTrace | undefined): readonly Field[] {
  return trace === undefined ? fields : trace.into(fields);
}

function fieldsOf(
  fields: readonly Field[],
  asked: WatchContext | undefined,
  guardedRead: GuardedRead | undefined,
): readonly Field[] {
  const own = asked === undefined ? fields : uncompressed(fields);
  if (guardedRead?.isDemanded === true) return withPath(own, guardedRead.target);
  return asked === undefined ? own : firstFields(asked, own);
}
