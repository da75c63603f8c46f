/**
 * Takes each request from its listener: identifies the client, and begins the request's exchange.
 *
 * `downstream.ts` (HTTP/2) or `h1-connection.ts` (HTTP/1.1) calls the handler with the stream for the response, and
 * gives the returned exchange whatever the client sends later. ARCHITECTURE.md lists the steps of a request.
 */
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import type { Origins } from "../../kube/api-origin.ts";
import { classify, isLogRead, isObjectRead, isOwnApi, type RequestInfo } from "../../kube/request-info.ts";
import type { CacheTracker } from "../../watch/cache/cache-progress.ts";
import {
  firstFields,
  resourceKey,
  uncompressed,
  type WatchContext,
  watchContextOf,
  withBookmarks,
  withPath,
} from "../../watch/session/watch-context.ts";
import type { Client } from "../context/client.ts";
import { longHeadBytes, type RequestContext } from "../context/request-context.ts";
import { identify } from "../context/upstream-fields.ts";
import type { Asserted } from "../identity/asserted-identity.ts";
import type { Credential } from "../identity/trust.ts";
import type { BodyCopy, LedgerTap } from "../observe/ledger-tap.ts";
import type { ClassifiedRequest, GuardedRead, StaleReadGuard } from "../observe/stale-read-guard.ts";
import type { ActiveRequests } from "./active-requests.ts";
import { Exchange, type ExchangeParts } from "./exchange.ts";

export type HandlerParts = ExchangeParts & {
  readonly exchanges: ActiveRequests;
  readonly caches: CacheTracker;
  readonly staleReadGuard: StaleReadGuard;
  readonly origins: Origins;
  readonly ledgerTap: LedgerTap;
  /** True if the proxy requests bookmarks even for clients that did not request them. */
  readonly alwaysRequestBookmarks: () => boolean;
};

/** `end`: true if no body follows the head. */
export type RequestHandler = (
  request: RequestHead,
  end: boolean,
  side: StreamWriter,
  client: Client,
) => StreamListener;

export function createHandler(parts: HandlerParts): RequestHandler {
  return (request, end, side, client) => {
    const info = classify(request.method, request.path);
    const identified = identify(request, client, parts.clock.wall());
    const isRefused = identified instanceof Failure;
    const { fields, auditId, asserted } = isRefused ? unknown(request) : identified;
    const credential = credentialOf(parts, request, client, asserted);
    const caller = parts.ledgerTap.callerOf(client, request.fields, asserted ?? credential);
    const classified = { info, target: request.path, client, caller, fields };
    const guardedRead = isRefused || !end ? undefined : parts.staleReadGuard.guardedRead(classified);
    const asked = end ? watchAsked(parts, classified, guardedRead) : undefined;
    const context: RequestContext = {
      client,
      caller,
      at: parts.clock.now(),
      resource: asked === undefined ? "" : asked.resource,
      method: request.method,
      kind: info.kind,
      verb: info.verb,
      isObjectRead: isObjectRead(info),
      isLogRead: isLogRead(info),
      isOwn: isOwnApi(info, request.path),
      fields: fieldsOf(fields, asked, guardedRead),
      auditId,
      isBodiless: end,
      asserted,
    };
    const exchange = new Exchange(parts, {
      context,
      down: side,
      credential,
      info,
      avoided: avoidedBy(parts, info, asked),
      asked,
      guardedRead,
      copy: isRefused ? undefined : bodyCopyFor(parts, context, classified, asked),
      headBytes: longHeadBytes(request.fields),
    });
    parts.exchanges.add(exchange);
    exchange.begin(isRefused ? identified : crowdedOut(parts, exchange));
    return exchange;
  };
}

/**
 * Refuses a long head that arrives while too many bytes are buffered (A26). The buffer limiter acts only after a turn's
 * input was read, and on a busy machine one turn may bring a thousand long heads.
 */
function crowdedOut({ buffered }: HandlerParts, { headBytes }: Exchange): Failure | undefined {
  if (headBytes === 0 || !buffered.isOver) return undefined;
  return new Failure("overload", "proxy", "Buffered bytes exceed the limit of this process");
}

/** Returns undefined for a client with a certificate: its token is not sent upstream, so no response can prove it. */
function credentialOf(
  { trust }: HandlerParts,
  request: RequestHead,
  client: Client,
  asserted: Asserted | undefined,
): Credential {
  return asserted === undefined ? trust.credentialOf(request, client.credential) : undefined;
}

function unknown({ fields }: RequestHead): Pick<RequestContext, "fields" | "auditId" | "asserted"> {
  return { fields, auditId: "", asserted: undefined };
}

/** Returns the context of a watch; undefined if the request is none, or its target is too long to be changed. */
function watchAsked(
  { clock, alwaysRequestBookmarks, origins }: HandlerParts,
  classified: ClassifiedRequest,
  guardedRead: GuardedRead | undefined,
): WatchContext | undefined {
  if (classified.info.kind !== "watch" || classified.target.length > limits.changedTargetBytes)
    return undefined;
  const target = guardedRead?.target ?? classified.target;
  const asked = watchContextOf(target, classified.info, clock.now(), {
    origin: origins.of(classified.info),
    seenVersion: guardedRead,
  });
  return alwaysRequestBookmarks() ? withBookmarks(asked, classified.fields) : asked;
}

/**
 * Returns the backends that do not serve the resource, whose cache of it is stalled, or whose cache begins after the
 * version that the watch requests.
 */
function avoidedBy(
  { caches, clock, missingApis }: HandlerParts,
  info: RequestInfo,
  asked: WatchContext | undefined,
): readonly string[] {
  const stalled = caches.isClear ? none : caches.stalledWith(resourceKey(info), clock.now());
  const version = asked?.request.version ?? "";
  const refusing = version === "" ? none : caches.refusing(resourceKey(info), version);
  const missing = missingApis.avoided(info);
  return refusing.length + missing.length === 0 ? stalled : [...stalled, ...refusing, ...missing];
}

const none: readonly string[] = [];

/** Reports the request to the ledger. Returns undefined if the ledger needs no copy of the body. */
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

function fieldsOf(
  fields: readonly Field[],
  asked: WatchContext | undefined,
  guardedRead: GuardedRead | undefined,
): readonly Field[] {
  const own = asked === undefined ? fields : uncompressed(fields);
  if (guardedRead?.isDemanded === true) return withPath(own, guardedRead.target);
  return asked === undefined ? own : firstFields(asked, own);
}
