/**
 * The APIs for which requests avoid a backend, because another backend can answer them. Either the backend does not
 * serve the resource, as in the middle of an upgrade of the apiservers (enhancements#4020):
 *
 *     a backend's router answers 404     doubted: requests for the resource avoid this backend
 *     another backend serves it          missing: requests still avoid it, and the journal names both
 *     another backend answers 404, too   dropped: no backend serves it
 *     `missingMs` later                  the backend is asked again
 *
 * Or the backend cannot reach the server of an aggregated API, and other backends can (api-failures.ts).
 */
import type { Clock } from "../../base/clock.ts";
import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { Journal } from "../../events/journal.ts";
import { isBuiltIn } from "../../kube/api-origin.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { isApiPath, isRepeatable, type RequestContext } from "../context/request-context.ts";
import { ApiFailures } from "../observe/api-failures.ts";
import type { Attempt } from "../upstream/attempt.ts";
import type { HeldResponse } from "./held-response.ts";
import { requestLimits } from "./limits.ts";

type Gap = {
  /** Clock reading until which the backend is avoided. */
  until: number;
  /** True if another backend serves the resource. */
  isConfirmed: boolean;
  /**
   * True if an entry in the journal says that the backend does not serve the resource, and the backend was not asked
   * since.
   */
  isJournaled: boolean;
};

type Complaint = Pick<HeldResponse, "complaint"> & { readonly attempt: { readonly backend: string } };

type Resource = Pick<RequestInfo, "isResource" | "group" | "version" | "resource">;

export class AvoidedApis {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly failures: ApiFailures;
  /** Which backends do not serve a resource. Outer key: the resource; inner key: the backend. */
  readonly #gaps = new Lru<string, Map<string, Gap>>(requestLimits.missingResources);
  readonly #budget: TokenBucket;

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
    this.failures = new ApiFailures(clock, journal);
    this.#budget = new TokenBucket(clock, requestLimits.missingAskBurst, requestLimits.missingAsksPerSecond);
  }

  /**
   * True if the request may go to another backend because of this backend's 404. A write may do so only if it is known
   * that the backend does not serve the API: a 404 alone does not prove that nothing was executed.
   */
  maySendAgain(context: RequestContext, info: Resource, backend: string): boolean {
    return isApiPath(context) && (isRepeatable(context) || this.#isMissing(info, backend));
  }

  /**
   * Records a refusal that has arrived completely. Returns true if the request may be sent to another backend, which
   * may give a better response.
   */
  mayLeave(info: RequestInfo, { attempt: { backend }, complaint }: Complaint): boolean {
    if (complaint === "unreachable" && isElsewhere(info)) {
      this.failures.failed(info, backend, "refused");
      return this.failures.mayAvoid && this.#budget.take();
    }
    if (complaint !== "no-route" || !this.#budget.take()) return false;
    if (info.isResource) this.#doubt(info, backend);
    return true;
  }

  /** Records that another backend answered the hedge of the slow `attempt` first, with `status`. */
  lostHedge(info: RequestInfo, attempt: Attempt, status: number): void {
    const waitedMs = attempt.sinceSent(this.#clock.now());
    if (status < 500 && waitedMs >= requestLimits.foreignHedgeMs && isElsewhere(info))
      this.failures.failed(info, attempt.backend, "unanswered");
  }

  #doubt(info: Resource, backend: string): void {
    const key = keyOf(info);
    const gaps = this.#gaps.get(key) ?? new Map<string, Gap>();
    const isConfirmed = gaps.get(backend)?.isConfirmed === true;
    gaps.set(backend, {
      until: this.#clock.now() + requestLimits.missingMs,
      isConfirmed,
      isJournaled: false,
    });
    this.#gaps.set(key, gaps);
  }

  /**
   * Records how another backend answered a request that was sent to it because of a 404. `servedBy`: this other
   * backend.
   */
  answered(info: Resource, servedBy: string, status: number): void {
    const key = keyOf(info);
    // A second 404 shows that no backend serves the resource. 401, 403, 429 and 5xx prove nothing: apiservers send them
    // before they look up the path.
    if (status === 404) this.#gaps.delete(key);
    if (status >= 400) return;
    for (const [backend, gap] of this.#gaps.get(key) ?? [])
      if (backend !== servedBy) this.#confirm(info, backend, gap, servedBy);
  }

  #confirm({ group, version, resource }: Resource, backend: string, gap: Gap, servedBy: string): void {
    gap.isConfirmed = true;
    if (gap.isJournaled) return;
    gap.isJournaled = true;
    const api = group === "" ? version : `${group}/${version}`;
    this.#journal.write({ kind: "backend.api_missing", backend, api, resource, servedBy });
  }

  #isMissing(info: Resource, backend: string): boolean {
    return this.#gaps.get(keyOf(info))?.get(backend)?.isConfirmed === true;
  }

  /**
   * True if requests of this API avoid some backend. If their client is bound to that backend, they go to another one.
   */
  isAvoiding(info: Resource): boolean {
    return this.failures.isAvoiding(info) || this.#missingAt(info).length > 0;
  }

  /** Returns the backends that a new request avoids: they are asked only if no other backend can be asked. */
  avoided(info: Resource): readonly string[] {
    const unreachable = this.failures.avoided(info);
    const missing = this.#missingAt(info);
    return missing.length === 0 ? unreachable : [...unreachable, ...missing];
  }

  #missingAt(info: Resource): readonly string[] {
    const gaps = this.#gaps.size === 0 ? undefined : this.#gaps.get(keyOf(info));
    if (gaps === undefined) return none;
    const now = this.#clock.now();
    return [...gaps].flatMap(([backend, { until }]) => (now < until ? [backend] : []));
  }
}

const none: readonly string[] = [];

/** True if an aggregated API's own server, not the apiserver, may answer the request. */
function isElsewhere({ isResource, group }: RequestInfo): boolean {
  return isResource && !isBuiltIn(group);
}

/** Names are cut to a maximum length, because a client may request names of any length. */
const keyOf = ({ group, version, resource }: Resource): string =>
  clipped(`${group}/${version}/${resource}`, limits.resourceChars);
