/**
 * Finds out whether an API belongs to a CRD or to an aggregated server (kube/api-origin.ts), after a backend has
 * accepted the first watch of the API. If kube-aggregator forwarded another server's response, both servers have added
 * their header fields, so some fields occur twice. Otherwise the proxy requests the API's OpenAPI document. It does so
 * with the identity of the watch's client, because all authenticated users may read the document (ClusterRole
 * system:discovery). The first 100 bytes show the origin; the proxy cancels the rest.
 */

import type { Clock } from "../../base/clock.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { OpenApiTitle, type Origin, type OriginRules, type Origins } from "../../kube/api-origin.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { ActiveRequests } from "../../proxy/request/active-requests.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import { watchLimits } from "../limits.ts";
import { barePath } from "../session/watch-context.ts";
import type { WatchSession } from "../session/watch-session.ts";
import { listAs } from "./list-request.ts";

type OriginChecksParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly origins: Origins;
  readonly pools: PoolSet;
  readonly exchanges: ActiveRequests;
};

type Api = Pick<RequestInfo, "group" | "version">;

const unanswered = new Set([0, 404, 429, 500, 502, 503, 504]);

export class OriginChecks {
  readonly #parts: OriginChecksParts;
  readonly #openApiRequestedAt = new WeakMap<Origin, number>();

  constructor(parts: OriginChecksParts) {
    this.#parts = parts;
  }

  /** Returns the origin of an API. Called when a backend has answered 200 to a watch of one of the API's resources. */
  answered(api: Api, head: readonly Field[]): Origin {
    const origin = this.#parts.origins.met(api);
    if (!origin.isFixed && !Object.isFrozen(origin) && isProxied(head)) {
      this.#learn(origin, true);
      this.#openApiRequestedAt.set(origin, this.#parts.clock.now());
    }
    return origin;
  }

  /** Requests the API's OpenAPI document with the identity of the watch's client, unless the API's origin is known. */
  check(api: Api, origin: Origin, watch: WatchSession): void {
    if (origin.isFixed || Object.isFrozen(origin) || (origin.isKnown && !origin.isForeign)) return;
    const { clock } = this.#parts;
    // An aggregated API is checked again, because a CRD may define the API later. A CRD's API is not checked again: if
    // it becomes an aggregated one, the response head of a watch shows it (`isProxied`).
    const pauseMs = origin.isKnown ? watchLimits.originAgainMs : watchLimits.originPauseMs;
    const sentAt = this.#openApiRequestedAt.get(origin);
    if (sentAt === undefined || clock.now() - sentAt >= pauseMs) this.#send(api, origin, { watch, pauseMs });
  }

  #send(
    { group, version }: Api,
    origin: Origin,
    { watch, pauseMs }: { readonly watch: WatchSession; readonly pauseMs: number },
  ): void {
    const { clock } = this.#parts;
    const backend = watch.attempt?.backend;
    if (backend === undefined) return;
    this.#openApiRequestedAt.set(origin, clock.now());
    listAs(
      watch,
      {
        backend,
        context: barePath(watch.context, `/openapi/v3/apis/${group}/${version}`),
        reading: () => new OpenApiTitle(),
        onAnswer: ({ status, version: kind }) => {
          if (kind !== "") this.#learn(origin, kind === "aggregated");
          // Tries again if there was no usable response, because the OpenAPI document of a new CRD appears only after a
          // second. Does not try again after a 403, because only this client lacks the permission.
          else if (unanswered.has(status) && !origin.isKnown && pauseMs < watchLimits.originAgainMs)
            clock.after(pauseMs, () => {
              if (!origin.isKnown && watch.attempt !== undefined)
                this.#send({ group, version }, origin, { watch, pauseMs: 2 * pauseMs });
            });
        },
      },
      this.#parts,
    );
  }

  #learn(origin: Origin, isForeign: boolean): void {
    // A reload may have set the origin while the request was pending.
    if (origin.isFixed) return;
    const isNews = !isForeign && origin.isForeign;
    origin.isForeign = isForeign;
    origin.isKnown = true;
    if (isNews) this.#notify([origin]);
  }

  /** Applies changed rules about the origins of APIs, also to open watches. */
  configure(rules: OriginRules): void {
    this.#notify(this.#parts.origins.configure(rules));
  }

  /** Notifies the open watches of these APIs, because it is now known that no aggregated server answers them. */
  #notify(origins: readonly Origin[]): void {
    if (origins.length === 0) return;
    const { clock, exchanges } = this.#parts;
    inSlices(clock, exchanges.live, ({ watch, isEnded }) => {
      if (!isEnded) for (const origin of origins) watch?.isOwnAfterAll(origin);
    });
  }
}

/**
 * True if two servers have added header fields to this response head. If kube-aggregator forwards the response of an
 * aggregated server, its Go ReverseProxy adds its own fields to that server's fields.
 */
function isProxied(head: readonly Field[]): boolean {
  const count = (name: string): number => head.filter((field) => field.name === name).length;
  return count("audit-id") > 1 || count("x-kubernetes-pf-flowschema-uid") > 1;
}
