/**
 * Finds *grey* backends. A grey backend is ready, but cannot reach the server of an aggregated API, or a webhook, that
 * other backends reach. Requests are counted only after a first failure, so a healthy cluster costs nothing.
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { isBuiltIn } from "../../kube/api-origin.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { resourceKey } from "../../watch/session/watch-context.ts";
import { type Outlier, PeerOutcomes } from "./peer-outcomes.ts";

export const apiFailureLimits = {
  /**
   * Ms for which the requests of an API avoid a backend that cannot reach the API. Then one request tests the backend
   * again.
   */
  avoidMs: 30_000,
  /** Ms that the proxy waits for the result of the request that tests an avoided backend. */
  trialMs: 10_000,
  /** Ms after which an avoided backend is forgotten if no request of the API has come since its avoidance ended. */
  forgetMs: 300_000,
  /**
   * Number of consecutive requests that must reach the API through an avoided backend before it is no longer avoided.
   */
  trials: 3,
  /** Maximum number of entries, each for one backend that the requests of one API avoid. */
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
 * A backend that the requests of one API avoid. `successes`: number of consecutive requests that have reached the API
 * through this backend.
 */
type Grey = { readonly backend: string; readonly api: string; until: number; successes: number };

/**
 * The error text of kube-apiserver's webhook admission (k8s.io/apiserver, admission/plugin/webhook/errors): in a JSON
 * Status, where quotes are escaped, or in a protobuf Status.
 */
const ofWebhook = /Internal error occurred: failed calling webhook \\?"([^"\\]{1,253})\\?":/;
const ofTimeout = /context deadline exceeded|Client\.Timeout|i\/o timeout/;

export class ApiFailures {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #groups = new PeerOutcomes();
  readonly #webhooks = new PeerOutcomes();
  /** One entry for each pair of a backend and an API group whose requests avoid this backend. */
  readonly #grey = new Map<string, Grey>();
  readonly #reportedAt = new Map<string, number>();
  #names: readonly string[] = [];
  #lookedAt = 0;
  /** Failures since the process started, by backend, API group and kind of failure (`ApiFailure`). */
  readonly counts = new Map<string, { readonly labels: readonly string[]; count: number }>();
  /** If false, a backend that cannot reach an API is reported, but still gets the API's requests. */
  mayAvoid = true;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  // --- as an observer of all requests ---

  began(): void {}

  ended(): void {}

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
    return this.#groups.isEmpty && this.#webhooks.isEmpty && this.#grey.size === 0;
  }

  #called(backend: string, key: string): void {
    for (const subject of this.#webhooks.subjects)
      if (subject.startsWith(`${key} `)) this.#webhooks.succeeded(subject, backend, this.#clock.now());
  }

  #reached(backend: string, group: string): void {
    this.#groups.succeeded(group, backend, this.#clock.now());
    const key = keyOf(backend, group);
    const grey = this.#grey.get(key);
    if (grey === undefined) return;
    grey.successes += 1;
    // The backend may reach the API again, so the next request tests the backend, without another pause.
    grey.until = this.#clock.now();
    if (grey.successes < apiFailureLimits.trials) return;
    this.#grey.delete(key);
    this.#journal.write({ kind: "backend.api_reachable", backend, api: grey.api });
  }

  // --- aggregated APIs ---

  /** Records that a request to an aggregated API has failed at `backend`. `failure`: how it failed. */
  failed(info: RequestInfo, backend: string, failure: ApiFailure): void {
    const now = this.#clock.now();
    const api = cleaned(info.group);
    this.#count(backend, api, failure);
    this.#forgetOld(now);
    const outlier = this.#groups.failed(info.group, backend, now);
    const key = keyOf(backend, info.group);
    const known = this.#grey.get(key);
    if (known === undefined && outlier === undefined) return;
    if (known !== undefined || this.#grey.size < apiFailureLimits.avoided)
      this.#grey.set(key, { backend, api, until: now + apiFailureLimits.avoidMs, successes: 0 });
    if (outlier === undefined) return;
    if (this.#isNews(key, now))
      this.#journal.write({ kind: "backend.api_unreachable", api, failure, ...textsOf(outlier) });
  }

  /**
   * True if requests of this API avoid some backend. If their client is bound to that backend, they go to another one.
   */
  isAvoiding({ group }: Pick<RequestInfo, "group">): boolean {
    if (this.#grey.size === 0 || !this.mayAvoid) return false;
    const api = cleaned(group);
    return this.#grey.values().some((grey) => grey.api === api);
  }

  /**
   * Returns the backends that a new request of this API avoids. When the avoidance of a backend has lasted for
   * `avoidMs`, one request tests whether this backend reaches the API again. To send the test request to this backend,
   * all other backends are returned. If the test fails, the request is sent again to another backend.
   */
  avoided({ group }: Pick<RequestInfo, "group">): readonly string[] {
    if (this.#grey.size === 0 || !this.mayAvoid || isBuiltIn(group)) return none;
    const now = this.#clock.now();
    const api = cleaned(group);
    const avoided: string[] = [];
    for (const grey of this.#grey.values()) {
      if (grey.api !== api) continue;
      if (now < grey.until) avoided.push(grey.backend);
      else {
        grey.until = now + apiFailureLimits.trialMs;
        return this.#names.filter((name) => name !== grey.backend);
      }
    }
    return avoided;
  }

  /** Returns the groups of the aggregated APIs that this backend cannot reach. */
  unreachableFrom(backend: string): readonly string[] {
    return this.#grey
      .values()
      .filter((grey) => grey.backend === backend)
      .map(({ api }) => api)
      .toArray();
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
    for (const [key, { until }] of this.#grey)
      if (now - until >= apiFailureLimits.forgetMs) this.#grey.delete(key);
    for (const [key, at] of this.#reportedAt)
      if (now - at >= apiFailureLimits.reportMs) this.#reportedAt.delete(key);
  }

  reconcile(names: readonly string[]): void {
    this.#names = names;
    this.#groups.reconcile(names);
    this.#webhooks.reconcile(names);
    for (const [key, { backend }] of this.#grey) if (!names.includes(backend)) this.#grey.delete(key);
    for (const [key, { labels }] of this.counts)
      if (!names.includes(labels[0] ?? "")) this.counts.delete(key);
  }
}

const none: readonly string[] = [];

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

function keyOf(backend: string, group: string): string {
  return `${backend} ${cleaned(group)}`;
}

/** Cuts the name, and replaces all but visible ASCII by "?", because a client may write anything into a path. */
function cleaned(name: string): string {
  return name.slice(0, apiFailureLimits.nameChars).replace(/[^\x21-\x7e]/g, "?");
}

type OutlierTexts = {
  readonly backend: string;
  readonly failed: number;
  readonly total: number;
  readonly peer: string;
  readonly peerFailed: number;
  readonly peerTotal: number;
};

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
