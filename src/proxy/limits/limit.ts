/**
 * One limit on requests, set by the configuration or by an operator. It defines which requests count, and how many of
 * them may pass.
 */
import { type Networks, networksOf } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { TokenBucket } from "../../base/token-bucket.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { LimitConfig } from "../../ops/config/limit.ts";

/** Who set a limit at run time, and until when; times in ms since 1970. */
export type LimitOrigin = {
  readonly by: string;
  readonly reason: string;
  readonly startedMs: number;
  readonly endsMs: number;
};

/** The properties of a caller that limits can match. An unverified caller has no user and no groups. */
export type LimitedCaller = {
  readonly user: string | undefined;
  readonly groups: readonly string[];
  readonly agent: string;
  readonly address: string;
};

export type LimitedInfo = Pick<RequestInfo, "verb" | "group" | "resource">;

/** The number of watchkeeper processes among which limits of scope AllReplicas are divided. */
export class ReplicaCount {
  #count = 1;

  /** Number of processes that share the limits. It is at least 1, because this process is one of them. */
  get count(): number {
    return this.#count;
  }

  /** Sets the number of processes. Takes effect with the next request that a shared limit counts. */
  set(count: number): void {
    this.#count = Math.max(1, count);
  }
}

/** One process that shares its limits with no other. */
const alone = new ReplicaCount();

export class Limit {
  readonly config: LimitConfig;
  /** The operator who set the limit at run time; undefined for a limit of the configuration. */
  readonly origin: LimitOrigin | undefined;
  /** Number of requests that have begun and not ended; counted only if `maxInFlight` is set. */
  inFlight = 0;
  passed = 0;
  refused = 0;
  readonly #networks: Networks;
  readonly #verbs: ReadonlySet<string>;
  readonly #resources: ReadonlySet<string>;
  readonly #bucket: TokenBucket | undefined;
  readonly #replicas: { readonly count: number };
  /**
   * Share of the limit that this process allows: above 0, at most 1. It is below 1 only in a worker, whose siblings
   * allow the rest.
   */
  share = 1;
  /** The number by which the bucket's rate and burst are divided now. */
  #divisor = 1;

  /** `replicas`: the number of replicas that share a limit of scope AllReplicas; default: this process alone. */
  constructor(
    config: LimitConfig,
    clock: Clock,
    {
      origin,
      replicas = alone,
    }: { readonly origin?: LimitOrigin; readonly replicas?: { readonly count: number } } = {},
  ) {
    this.config = config;
    this.origin = origin;
    this.#replicas = replicas;
    this.#networks = networksOf(config.sourceCIDRs);
    this.#verbs = new Set(config.verbs);
    this.#resources = new Set(config.resources);
    const { perSecond, burst } = config;
    this.#bucket = perSecond === undefined ? undefined : new TokenBucket(clock, burst, perSecond);
    this.#divide();
  }

  /** The number of processes that share the limit. */
  get sharers(): number {
    return this.config.scope === "AllReplicas" ? this.#replicas.count : 1;
  }

  /**
   * Adapts the bucket to the number of replicas. The rate is divided exactly. The burst is rounded down, but never
   * below 1, because a bucket that cannot hold one token would never let a request pass.
   */
  #divide(): void {
    const divisor = this.sharers / this.share;
    if (divisor === this.#divisor) return;
    this.#divisor = divisor;
    const { burst, perSecond = 0 } = this.config;
    this.#bucket?.resize(Math.max(1, Math.floor(burst / divisor)), perSecond / divisor);
  }

  get name(): string {
    return this.config.name;
  }

  /** True if the limit counts requests of this caller. */
  appliesTo(caller: LimitedCaller): boolean {
    const { user, groups, agent, address } = caller;
    const { config } = this;
    return (
      !this.#exempts(caller) &&
      (config.users.length === 0 || (user !== undefined && isIn(config.users, user))) &&
      (config.groups.length === 0 || groups.some((group) => isIn(config.groups, group))) &&
      (config.userAgents.length === 0 || isIn(config.userAgents, agent)) &&
      (config.sourceCIDRs.length === 0 || this.#networks.has(address))
    );
  }

  /**
   * True for the operator who has set the limit and for cluster administrators, unless the limit names them in full:
   * they must be able to act while it is in force.
   */
  #exempts({ user, groups }: LimitedCaller): boolean {
    const { config, origin } = this;
    if (user === undefined || config.users.includes(user)) return false;
    if (groups.includes(administrators) && !config.groups.includes(administrators)) return true;
    return origin !== undefined && user === operatorIn(origin.by);
  }

  /** True if the limit counts requests with this verb and resource. */
  counts(info: LimitedInfo): boolean {
    if (this.#verbs.size > 0 && !this.#verbs.has(info.verb)) return false;
    if (this.#resources.size === 0) return !isExempt(info);
    const { resource, group } = info;
    if (resource === "") return false;
    return this.#resources.has(resource) || (group !== "" && this.#resources.has(`${resource}.${group}`));
  }

  /** True if one more request may begin now. */
  get isOpen(): boolean {
    this.#divide();
    const { maxInFlight } = this.config;
    // This process's part of the limit is rounded down, so that the replicas together do not exceed the limit. It is at
    // least 1, because 0 would refuse all requests.
    if (maxInFlight !== undefined && this.inFlight >= Math.max(1, Math.floor(maxInFlight / this.#divisor)))
      return false;
    return this.#bucket?.isOpen !== false;
  }

  /** Counts a request that begins, and takes its token from the bucket. */
  begin(): void {
    this.passed += 1;
    this.#bucket?.take();
    if (this.config.maxInFlight !== undefined) this.inFlight += 1;
  }

  /** Counts a request that has ended. */
  end(): void {
    if (this.config.maxInFlight !== undefined) this.inFlight -= 1;
  }

  /** Returns the limit in the words of the command line: "user=jane verb=list, 10/s, at most 5 at once". */
  toString(): string {
    const { config } = this;
    const match = [
      ...words("user", config.users),
      ...words("group", config.groups),
      ...words("agent", config.userAgents),
      ...words("source", config.sourceCIDRs),
      ...words("verb", config.verbs),
      ...words("resource", config.resources),
    ].join(" ");
    const rate = config.perSecond === undefined ? [] : [rateText(config.perSecond)];
    const most = config.maxInFlight === undefined ? [] : [`at most ${config.maxInFlight} at once`];
    const { sharers } = this;
    const shared =
      config.scope === "AllReplicas" ? [`shared by ${sharers} replica${sharers === 1 ? "" : "s"}`] : [];
    return [match, ...rate, ...most, ...shared].join(", ");
  }
}

/** Returns a limit's key, the same in all processes. `cluster`: the cluster's label; "" for an operator's limit. */
export function limitKey(cluster: string, { name, origin }: Pick<Limit, "name" | "origin">): string {
  return `${cluster} ${origin === undefined ? "config" : "operator"} ${name}`;
}

/** Returns "limit 3" for the third limit that operators have set, or "limit ci-lists" for one in the configuration. */
export function titleOf({ name }: Limit): string {
  return `limit ${name}`;
}

/**
 * Returns a rate as text, per second if that is a whole number ("10/s"), otherwise per minute if that is a whole number
 * ("90/m"), and otherwise per hour ("100/h").
 */
export function rateText(perSecond: number): string {
  if (isWhole(perSecond)) return `${Math.round(perSecond)}/s`;
  return isWhole(perSecond * 60) ? `${Math.round(perSecond * 60)}/m` : `${Math.round(perSecond * 3600)}/h`;
}

/** True for a whole number, and for one that the division by 60 or 3600 has made inexact. */
function isWhole(value: number): boolean {
  return Math.abs(value - Math.round(value)) < 1e-6;
}

function words(key: string, values: readonly string[]): string[] {
  return values.map((one) => `${key}=${one}`);
}

/** The group whose members kube-apiserver exempts from its own limits (API Priority and Fairness), too. */
const administrators = "system:masters";

/** Returns the name of the operator in `by`, such as "alice at 10.0.0.1" or "alice (watchkeeper CLI) at 127.0.0.1". */
function operatorIn(by: string): string {
  return by.replace(/ at \S*$/, "").replace(/ \(watchkeeper CLI\)$/, "");
}

/**
 * True for requests that a limit counts only if it names their resource. Without its Lease, a controller loses its
 * leadership and a node becomes NotReady. Without reviews, kubelets, webhooks and the proxy's own admin ports cannot
 * tell who may do what.
 */
function isExempt({ group, resource }: LimitedInfo): boolean {
  if (group === "coordination.k8s.io") return resource === "leases";
  return (
    (group === "authentication.k8s.io" || group === "authorization.k8s.io") && resource.endsWith("reviews")
  );
}

function isIn(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
