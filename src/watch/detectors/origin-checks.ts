/**
 * Finds out whether an API is a CRD's or another server's (versions-of.ts), once a backend has answered a watch of it.
 * The response's head shows what kube-aggregator relayed from another apiserver: both have written their fields, so these
 * are there twice. Otherwise the API's OpenAPI is requested with the identity of the watch's client: all authenticated
 * users may read that (ClusterRole system:discovery), and a CRD's is recognizable in its first 100 bytes. The rest is
 * cancelled.
 */

import type { Clock } from "../../base/clock.ts";
import { inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { OpenApiTitle, type Origin, type Origins } from "../../kube/api-origin.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { ActiveRequests } from "../../proxy/request/active-requests.ts";
import type { PoolSet } from "../../proxy/upstream/pool-set.ts";
import { watchLimits } from "../cache/limits.ts";
import { barePath } from "../session/watch-context.ts";
import type { WatchSession } from "../session/watch-session.ts";
import { listAs } from "./list-request.ts";

export type OriginChecksParts = {
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
  /** When each was requested last: a clock reading. */
  readonly #sentAt = new WeakMap<Origin, number>();

  constructor(parts: OriginChecksParts) {
    this.#parts = parts;
  }

  /** A backend has answered a watch of this API with 200. */
  answered(api: Api, head: readonly Field[]): Origin {
    const origin = this.#parts.origins.met(api);
    if (!Object.isFrozen(origin) && isProxied(head)) {
      this.#learn(origin, true);
      this.#sentAt.set(origin, this.#parts.clock.now());
    }
    return origin;
  }

  /** The watch is open: requests with its client's identity are possible. */
  check(api: Api, origin: Origin, watch: WatchSession): void {
    if (Object.isFrozen(origin) || (origin.isKnown && !origin.isForeign)) return;
    const { clock } = this.#parts;
    // Another server's API may become a CRD's; the opposite is visible in the head of a watch.
    const pauseMs = origin.isKnown ? watchLimits.originAgainMs : watchLimits.originPauseMs;
    const sentAt = this.#sentAt.get(origin);
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
    this.#sentAt.set(origin, clock.now());
    listAs(
      watch,
      {
        backend,
        context: barePath(watch.context, `/openapi/v3/apis/${group}/${version}`),
        reading: () => new OpenApiTitle(),
        onAnswer: ({ status, version: kind }) => {
          if (kind !== "") this.#learn(origin, kind === "aggregated");
          // A new CRD's OpenAPI is there a second after it. If one client may not read it, another may.
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
    const isNews = !isForeign && origin.isForeign;
    origin.isForeign = isForeign;
    origin.isKnown = true;
    const { clock, exchanges } = this.#parts;
    if (!isNews) return;
    inSlices(clock, exchanges.live, ({ watch, isEnded }) => {
      if (!isEnded) watch?.isOwnAfterAll(origin);
    });
  }
}

/** True if two apiservers have written this head: ReverseProxy adds the fields of the second to those of the first. */
function isProxied(head: readonly Field[]): boolean {
  const count = (name: string): number => head.filter((field) => field.name === name).length;
  return count("audit-id") > 1 || count("x-kubernetes-pf-flowschema-uid") > 1;
}
