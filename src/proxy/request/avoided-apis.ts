/**
 * The backends that requests of an API avoid, because another backend can answer them. There are two reasons.
 *
 * A backend has no route for a resource, as in the middle of an upgrade of the apiservers (enhancements#4020). Only
 * reads show this:
 *
 *     one backend's router answers a read with 404      the read is sent to another backend
 *     this other backend serves the resource            a *gap*: all requests for the resource avoid the first backend
 *     this other backend's router answers 404, too      no gap; a known gap of this resource ends
 *     `missingMs` later, if no read has confirmed it    the gap ends
 *
 * A gap decides where a request is placed. It never makes a request other than a read be sent again.
 *
 * Or a backend is *grey*: it is ready, but cannot reach the server of an aggregated API, or a webhook, that other
 * backends reach. Requests are counted only after a first failure, so a healthy cluster costs nothing.
 *
 * A read tests an avoided backend from time to time. If the test fails, the read is sent to another backend.
 */
import type { Clock } from "../../base/clock.ts";
import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { isBuiltIn, type Origins } from "../../kube/api-origin.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { isRepeatable, type RequestContext } from "../../upstream/context/request-context.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import { resourceKey } from "../../watch/session/watch-context.ts";
import { type Outcomes, type Outlier, PeerOutcomes } from "../observe/peer-outcomes.ts";
import type { HeldResponse } from "./held-response.ts";
import { requestLimits } from "./limits.ts";

export const apiFailureLimits = {
  /**
   * Ms after which a read tests a backend that cannot reach the API. The API's other requests avoid this backend until
   * `trials` tests have succeeded.
   */
  avoidMs: 30_000,
  /** Minimum ms between two reads that test the same avoided backend. */
  trialMs: 10_000,
  /** Ms after which an avoided backend is forgotten if no request of the API has come since it could be tested. */
  forgetMs: 300_000,
  /**
   * Number of consecutive requests that must reach the API through an avoided backend before it is no longer avoided.
   */
  trials: 3,
  /** Maximum number of APIs whose requests avoid a backend that cannot reach the API. */
  avoided: 64,
  /** Minimum ms between two journal entries about one API group or webhook at one backend. */
  reportMs: 10_000,
  /** Ms between two checks for API groups and webhooks that no longer fail. */
  lookMs: 10_000,
  /**
   * Number of bytes of an error response that are searched. A Status with a webhook's name and URL is about 1 KiB long.
   */
  statusBytes: 4096,
  /** Maximum length of a webhook's name, which is a DNS name. */
  nameChars: 253,
} as const;

/**
 * Why a request did not reach an API's server through a backend. `refused`: the backend's response says so.
 * `unanswered`: the backend did not answer, and another backend answered the request's hedge.
 */
export type ApiFailure = "refused" | "unanswered";

/**
 * A backend that requests avoid. Clock readings: `testAt`: from when a read may test the backend; `endsAt`: until when
 * requests avoid it. `successes`: number of consecutive requests that have reached the API through this backend.
 */
type Avoided = { testAt: number; endsAt: number; successes: number };

type Resource = Pick<RequestInfo, "isResource" | "group" | "version" | "resource" | "subresource">;

type Held = Pick<HeldResponse, "complaint"> & { readonly attempt: { readonly backend: string } };

const none: readonly string[] = [];
const noBackends: ReadonlyMap<string, Avoided> = new Map();

/**
 * The error text of kube-apiserver's webhook admission (k8s.io/apiserver, admission/plugin/webhook/errors): in a JSON
 * Status, where quotes are escaped, or in a protobuf Status.
 */
const ofWebhook = /Internal error occurred: failed calling webhook \\?"([^"\\]{1,253})\\?":/;
const ofTimeout = /context deadline exceeded|Client\.Timeout|i\/o timeout/;

/** Matches the discovery or OpenAPI documents of an API, and its requests. */
const apiPath = /^\/(?:openapi\/v3\/)?(?:apis\/([^/?]+)(?:\/([^/?]+))?|api\/)/;

export class AvoidedApis {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #groups = new PeerOutcomes();
  readonly #webhooks = new PeerOutcomes();
  /** By API group: the backends that cannot reach the server of this API. */
  readonly #unreachable = new Lru<string, Map<string, Avoided>>(apiFailureLimits.avoided);
  /** By resource: the backends that have no route for it. */
  readonly #gaps = new Lru<string, Map<string, Avoided>>(requestLimits.missingResources);
  readonly #budget: TokenBucket;
  readonly #reportedAt = new Map<string, number>();
  #lookedAt = 0;
  #names = none;
  /** Failures since the process started, by backend, API group and kind of failure (`ApiFailure`). */
  readonly counts = new Map<string, { readonly labels: readonly string[]; count: number }>();
  /** If false, a backend that cannot reach an API is reported, but still gets the API's requests. */
  mayAvoid = true;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
    this.#budget = new TokenBucket(clock, requestLimits.missingAskBurst, requestLimits.missingAsksPerSecond);
  }

  // --- where a request is placed ---

  /** Returns the backends that this API's requests avoid: they are asked only if no other backend can be asked. */
  avoided(info: Resource): readonly string[] {
    if (this.#unreachable.size + this.#gaps.size === 0) return none;
    const now = this.#clock.now();
    return this.#avoidedBy(info).flatMap(([backend, { endsAt }]) => (now < endsAt ? [backend] : []));
  }

  /**
   * Places a request: returns the backends that it avoids. A read may have to test one of the backends that the API's
   * requests avoid; then all others are returned.
   */
  place(context: RequestContext, info: Resource): readonly string[] {
    const avoided = this.avoided(info);
    if (avoided.length === 0) return avoided;
    const now = this.#clock.now();
    for (const one of this.#unreachableBy(info).values())
      one.endsAt = Math.max(one.endsAt, now + apiFailureLimits.forgetMs);
    // After a failed test, the read needs a token of the budget, to be sent to another backend.
    if (context.kind !== "plain" || !isRepeatable(context) || !this.#budget.isOpen) return avoided;
    const [tested, one] =
      this.#avoidedBy(info).find(([, { testAt, endsAt }]) => testAt <= now && now < endsAt) ?? [];
    if (one === undefined) return avoided;
    one.testAt = now + apiFailureLimits.trialMs;
    return this.#names.filter((name) => name !== tested);
  }

  #avoidedBy(info: Resource): readonly (readonly [backend: string, Avoided])[] {
    return [...this.#unreachableBy(info), ...(this.#gapsOf(info) ?? noBackends)];
  }

  #unreachableBy({ group }: Resource): ReadonlyMap<string, Avoided> {
    return (this.mayAvoid && this.#unreachable.get(cleaned(group))) || noBackends;
  }

  // --- as an observer of all requests ---

  /**
   * Counts a success: the request reached the API, or a write passed its webhooks. A 503 or 504 is not counted here,
   * because it may be a failure. `failed` counts it when the response's body shows that. 401, 403 and 429 show nothing:
   * the apiserver sends them itself, before it calls the API's server.
   */
  answered(backend: string, info: RequestInfo, _ms: number, head: readonly Field[]): void {
    if (this.#isQuiet || !info.isResource || info.kind !== "plain") return;
    this.#forgetOld(this.#clock.now());
    const status = Number(head[0]?.value);
    if (!showNothing.includes(status) && !isBuiltIn(info.group)) this.#reached(backend, info.group);
    if (status < 300 && isWrite(info)) this.#called(backend, writeKey(info));
  }

  /** True if nothing has failed lately. */
  get #isQuiet(): boolean {
    return this.#groups.isEmpty && this.#webhooks.isEmpty && this.#unreachable.size === 0;
  }

  #called(backend: string, key: string): void {
    for (const subject of this.#webhooks.subjects)
      if (subject.startsWith(`${key} `)) this.#webhooks.succeeded(subject, backend, this.#clock.now());
  }

  #reached(backend: string, group: string): void {
    this.#groups.succeeded(group, backend, this.#clock.now());
    const api = cleaned(group);
    const one = this.#unreachable.get(api)?.get(backend);
    if (one === undefined) return;
    one.successes += 1;
    // The backend may reach the API again, so the next read tests the backend, without another pause.
    one.testAt = this.#clock.now();
    if (one.successes < apiFailureLimits.trials) return;
    this.#forget((other) => other === one);
    this.#journal.write({ kind: "backend.api_reachable", backend, api });
  }

  // --- aggregated APIs ---

  /** Records that a request to an aggregated API has failed at `backend`. `failure`: how it failed. */
  failed(info: RequestInfo, backend: string, failure: ApiFailure): void {
    const now = this.#clock.now();
    const api = cleaned(info.group);
    this.#count(backend, api, failure);
    this.#forgetOld(now);
    const outlier = this.#groups.failed(info.group, backend, now);
    const backends = this.#unreachable.get(api) ?? new Map<string, Avoided>();
    if (outlier === undefined && !backends.has(backend)) return;
    const testAt = now + apiFailureLimits.avoidMs;
    backends.set(backend, { testAt, endsAt: testAt + apiFailureLimits.forgetMs, successes: 0 });
    this.#unreachable.set(api, backends);
    if (outlier !== undefined && this.#isNews(`${backend} ${api}`, now))
      this.#journal.write({ kind: "backend.api_unreachable", api, failure, ...textsOf(outlier) });
  }

  /** Returns the groups of the aggregated APIs that this backend cannot reach. */
  unreachableFrom(backend: string): readonly string[] {
    return Array.from(this.#unreachable).flatMap(([api, backends]) => (backends.has(backend) ? [api] : []));
  }

  // --- webhooks ---

  /**
   * Returns the reader of a failed response's body; undefined unless the request is a write, because only writes call
   * webhooks.
   */
  readerOf(info: RequestInfo): StatusReader | undefined {
    return isWrite(info) ? new StatusReader((backend, text) => this.#read(backend, info, text)) : undefined;
  }

  #read(backend: string, info: RequestInfo, text: string): void {
    const name = ofWebhook.exec(text)?.[1];
    if (name === undefined) return;
    const now = this.#clock.now();
    const webhook = cleaned(name);
    this.#forgetOld(now);
    const subject = `${writeKey(info)} ${webhook}`;
    const outlier = this.#webhooks.failed(subject, backend, now);
    if (outlier === undefined || !this.#isNews(`${backend} ${subject}`, now)) return;
    this.#journal.write({
      kind: "backend.webhook_failing",
      webhook,
      resource: cleaned(resourceKey(info)),
      failure: ofTimeout.test(text) ? "unanswered" : "refused",
      ...textsOf(outlier),
    });
  }

  // --- APIs without a route ---

  /**
   * True if a 404 is held back until its body shows whether the backend has a route for the path. Only a read may be
   * sent again after a 404. A proxied path, or one of an aggregated API, is not the apiserver's own.
   */
  mayJudge(context: RequestContext, info: Resource, origins: Pick<Origins, "of">): boolean {
    const path = apiPath.exec(context.target);
    if (path === null || !isRepeatable(context)) return false;
    const { isForeign, isKnown } = origins.of(
      info.isResource ? info : { group: path[1] ?? "", version: path[2] ?? "" },
    );
    return !(isForeign && isKnown);
  }

  /**
   * Records a response that has arrived completely. If the request goes to another backend, returns the backends whose
   * routers have answered it with 404; `lacking`: those before this response. Undefined: the client gets this response.
   * `other`: a backend that can be asked.
   */
  leave(
    info: RequestInfo,
    { complaint, attempt: { backend } }: Held,
    lacking = none,
    other?: string,
  ): readonly string[] | undefined {
    if (complaint === "unreachable")
      return this.#leavesUnreached(info, backend) && this.#mayAsk(other) ? lacking : undefined;
    if (complaint === "no-object") this.#served(info, backend, lacking);
    if (complaint !== "no-route") return undefined;
    const routers = [...lacking, backend];
    if (this.#mayAsk(other)) return routers;
    this.#notServed(info, routers);
    return undefined;
  }

  #mayAsk(other: string | undefined): boolean {
    return other !== undefined && this.#budget.take();
  }

  /** Records that a backend could not reach an API's server. True if another backend may be asked instead. */
  #leavesUnreached(info: RequestInfo, backend: string): boolean {
    if (!isElsewhere(info)) return false;
    this.failed(info, backend, "refused");
    return this.mayAvoid;
  }

  /** Records that another backend answered the hedge of the slow `attempt` first, with `status`. */
  lostHedge(info: RequestInfo, attempt: Attempt, status: number): void {
    const waitedMs = attempt.sinceSent(this.#clock.now());
    if (status < 500 && waitedMs >= requestLimits.foreignHedgeMs && isElsewhere(info))
      this.failed(info, attempt.backend, "unanswered");
  }

  /**
   * Records how a backend answered a read. `lacking`: the backends whose routers answered the same read with 404. Apart
   * from 2xx and a 404 that names an object (`leave`), no status shows that a backend serves the resource:
   * apiservers send 401, 403, 429 and 5xx before they look up the path.
   */
  readAnswered(info: Resource, backend: string, status: number, lacking: readonly string[] = none): void {
    if (status < 300 && lacking.length + this.#gaps.size > 0) this.#served(info, backend, lacking);
  }

  #served(info: Resource, servedBy: string, lacking: readonly string[]): void {
    if (!info.isResource) return;
    const gaps = this.#gapsOf(info) ?? new Map<string, Avoided>();
    gaps.delete(servedBy);
    const now = this.#clock.now();
    for (const backend of lacking) {
      if (backend === servedBy) continue;
      if (now >= (gaps.get(backend)?.testAt ?? 0)) this.#journalGap(info, backend, servedBy);
      const { missingMs, missingTestMs } = requestLimits;
      gaps.set(backend, { testAt: now + missingTestMs, endsAt: now + missingMs, successes: 0 });
    }
    if (gaps.size > 0) this.#gaps.set(keyOf(info), gaps);
    else this.#gaps.delete(keyOf(info));
  }

  #journalGap({ group, version, resource }: Resource, backend: string, servedBy: string): void {
    const api = group === "" ? version : `${group}/${version}`;
    this.#journal.write({ kind: "backend.api_missing", backend, api, resource, servedBy });
  }

  /** `routers`: the backends whose routers answered the read with 404. */
  #notServed(info: Resource, routers: readonly string[]): void {
    const gaps = this.#gapsOf(info);
    if (gaps !== undefined && (routers.length > 1 || !gaps.has(routers[0] ?? "")))
      this.#gaps.delete(keyOf(info));
  }

  #gapsOf(info: Resource): Map<string, Avoided> | undefined {
    return this.#gaps.size === 0 ? undefined : this.#gaps.get(keyOf(info));
  }

  // --- limits ---

  #isNews(key: string, now: number): boolean {
    if (now - (this.#reportedAt.get(key) ?? Number.NEGATIVE_INFINITY) < apiFailureLimits.reportMs)
      return false;
    this.#reportedAt.set(key, now);
    return true;
  }

  #count(backend: string, api: string, failure: ApiFailure): void {
    const labels = [backend, api, failure];
    const key = labels.join(" ");
    const known = this.counts.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.counts.size < limits.familySeries) this.counts.set(key, { labels, count: 1 });
  }

  #forgetOld(now: number): void {
    if (now - this.#lookedAt < apiFailureLimits.lookMs) return;
    this.#lookedAt = now;
    this.#groups.forgetOld(now);
    this.#webhooks.forgetOld(now);
    this.#forget(({ endsAt }) => endsAt <= now);
    for (const [key, at] of this.#reportedAt)
      if (now - at >= apiFailureLimits.reportMs) this.#reportedAt.delete(key);
  }

  reconcile(names: readonly string[]): void {
    this.#names = names;
    this.#groups.reconcile(names);
    this.#webhooks.reconcile(names);
    this.#forget((_, backend) => !names.includes(backend));
    for (const [key, { labels }] of this.counts)
      if (!names.includes(labels[0] ?? "")) this.counts.delete(key);
  }

  /** Deletes backends that cannot reach an API. */
  #forget(isOver: (one: Avoided, backend: string) => boolean): void {
    for (const [api, backends] of this.#unreachable) {
      for (const [backend, one] of backends) if (isOver(one, backend)) backends.delete(backend);
      if (backends.size === 0) this.#unreachable.delete(api);
    }
  }
}

/** The statuses that do not show that a request has reached the API. */
const showNothing: readonly number[] = [401, 403, 429, 503, 504];

function isWrite({ isResource, kind, verb }: RequestInfo): boolean {
  return isResource && kind === "plain" && verb !== "get" && verb !== "list";
}

/** Returns a key that is equal for writes that most probably call the same webhooks. */
function writeKey(info: RequestInfo): string {
  const { verb, namespace, subresource } = info;
  return cleaned(`${verb}/${resourceKey(info)}/${subresource}/${namespace}`);
}

/** Cuts the name, and replaces all but visible ASCII by "?", because a client may write anything into a path. */
function cleaned(name: string): string {
  return name.slice(0, apiFailureLimits.nameChars).replace(/[^\x21-\x7e]/g, "?");
}

type OutlierTexts = Outcomes & { peer: string; peerFailed: number; peerTotal: number };

function textsOf({ backend, failed, total, peer }: Outlier): OutlierTexts {
  return { backend, failed, total, peer: peer.backend, peerFailed: peer.failed, peerTotal: peer.total };
}

/** Collects the first bytes of an error response's body, and calls `read` once with their text. */
export class StatusReader {
  readonly #read: (backend: string, text: string) => void;
  #backend = "";
  #text = "";
  #isOver = false;

  constructor(read: (backend: string, text: string) => void) {
    this.#read = read;
  }

  answered(backend: string): boolean {
    this.#backend = backend;
    return false;
  }

  read(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isOver) return;
    this.#text += bytes.toString("latin1", start, Math.min(end, start + apiFailureLimits.statusBytes));
    if (!isLast && this.#text.length < apiFailureLimits.statusBytes) return;
    this.#isOver = true;
    this.#read(this.#backend, this.#text);
    this.#text = "";
  }
}

/** True if an aggregated API's own server, not the apiserver, may answer the request. */
function isElsewhere({ isResource, group }: RequestInfo): boolean {
  return isResource && !isBuiltIn(group);
}

/** Names are cut to a maximum length, because a client may request names of any length. */
const keyOf = ({ group, version, resource, subresource }: Resource): string =>
  clipped(`${group}/${version}/${resource}/${subresource}`, limits.resourceChars);
