/** Converts a limit of requests: an entry of `clusters[].limits`, or the body of an operation of the admin API. */
import type { Written, WrittenLimit } from "../../../config/schema/written.ts";
import { parseDuration } from "../../base/duration.ts";
import { Failure } from "../../base/failure.ts";
import type { Breach } from "./problem.ts";
import type { Placed } from "./schema.ts";

/**
 * A limit on requests. It counts the requests that match every list of this object. An empty list matches all requests.
 */
export type LimitConfig = {
  readonly name: string;
  /**
   * Names of users. A name that ends in "*" matches all names with this beginning; so do entries of `groups` and
   * `userAgents`.
   */
  readonly users: readonly string[];
  readonly groups: readonly string[];
  /** The product names in User-Agent fields, such as "kubelet". */
  readonly userAgents: readonly string[];
  readonly sourceCIDRs: readonly string[];
  readonly verbs: readonly string[];
  /** Resources, such as "secrets" (in all API groups) or "deployments.apps" (in the group "apps"). */
  readonly resources: readonly string[];
  /** Number of requests per second; undefined: not limited. */
  readonly perSecond: number | undefined;
  /** Burst of the token bucket whose rate is `perSecond`. */
  readonly burst: number;
  /** Number of concurrent requests; undefined: not limited. */
  readonly maxInFlight: number | undefined;
  /** Replica: each process allows the whole limit. AllReplicas: all watchkeeper processes together allow it. */
  readonly scope: NonNullable<WrittenLimit["scope"]>;
};

const matchKeys = ["users", "groups", "userAgents", "sourceCIDRs", "verbs", "resources"] as const;

export function limitOf(written: WrittenLimit): LimitConfig {
  const { name, rate, maxInFlight, scope = "Replica" } = written;
  const perSecond = rate === undefined ? undefined : perSecondOf(rate);
  const burst = written.burst ?? Math.max(1, Math.ceil(perSecond ?? 1));
  return { name, ...matchOf(written), perSecond, burst, maxInFlight, scope };
}

function matchOf(written: WrittenLimit): Pick<LimitConfig, (typeof matchKeys)[number]> {
  const { users = [], groups = [], userAgents = [], sourceCIDRs = [], verbs = [], resources = [] } = written;
  return { users, groups, userAgents, sourceCIDRs, verbs, resources };
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/** Returns the number per second of a rate such as "10/s", "30/m" or "100/h", which the schema has accepted. */
function perSecondOf(rate: string): number {
  const [count = "", unit = ""] = rate.split("/");
  return Number(count) / (unitSeconds[unit] ?? 1);
}

/** Returns the problem of a limit that limits nothing, or that matches all requests by mistake; undefined: none. */
export function limitProblem(written: WrittenLimit): string | undefined {
  if (written.rate === undefined && written.maxInFlight === undefined)
    return 'needs a "rate" or "maxInFlight"';
  if (written.rate === undefined && written.burst !== undefined) return 'has a "burst", but no "rate"';
  const { all = false } = written;
  if (matchesAll(written) === all) return undefined;
  return all
    ? 'has "all: true", but matches only some requests'
    : `matches all requests: it needs at least one of ${matchKeys.join(", ")} that excludes some, or "all: true" (--all)`;
}

/** True if no list excludes requests. */
function matchesAll(written: WrittenLimit): boolean {
  const { users, groups, userAgents, sourceCIDRs, verbs, resources } = matchOf(written);
  return (
    [users, userAgents].every((names) => names.length === 0 || names.includes("*")) &&
    (groups.length === 0 || groups.some(isOfEveryone)) &&
    (sourceCIDRs.length === 0 || coverAll(sourceCIDRs)) &&
    (verbs.length === 0 || allVerbs.every((verb) => verbs.includes(verb))) &&
    resources.length === 0
  );
}

/** True if the pattern matches the group that every authenticated user is in. */
function isOfEveryone(pattern: string): boolean {
  const name = "system:authenticated";
  return pattern === name || (pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1)));
}

const allVerbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"];

/** True if the networks together have as many addresses as IPv4 or IPv6. IPv4 may be written as ::ffff:0:0/96. */
function coverAll(networks: readonly string[]): boolean {
  const shares = { 4: 0, 6: 0 };
  for (const network of new Set(networks)) {
    const [address = "", bits = ""] = network.toLowerCase().split("/");
    const isMapped = address.startsWith("::ffff:") && Number(bits) >= 96;
    const isLong = address.includes(":") && !isMapped;
    shares[isLong ? 6 : 4] += 2 ** ((isMapped ? 96 : 0) - Number(bits));
  }
  return shares[4] >= 1 || shares[6] >= 1;
}

export function limitBreaches({ cluster: { limits = [] }, pointer }: Placed): Breach[] {
  return limits.flatMap((limit, at) => {
    const message = limitProblem(limit);
    return message === undefined ? [] : [{ pointer: `${pointer}/limits/${at}`, message }];
  });
}

/**
 * Finds limits for all replicas together in a process that knows no other replica. Each process would allow the whole
 * limit.
 */
export function scopeBreaches({ cluster: { limits = [] }, pointer }: Placed, { admin }: Written): Breach[] {
  if (admin.replicas !== undefined) return [];
  const message = 'is "AllReplicas", but "admin.replicas" is missing';
  return limits.flatMap(({ scope }, at) =>
    scope === "AllReplicas" ? [{ pointer: `${pointer}/limits/${at}/scope`, message }] : [],
  );
}

/**
 * Minimum and maximum duration, in ms, of a limit that an operator sets in the admin API. A limit for a longer time
 * belongs in the configuration.
 */
const [leastMs, mostMs] = [1000, 86_400_000];

export function limitDuration(text: string): number | Failure {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= leastMs && ms <= mostMs) return ms;
  const shown = JSON.stringify(text.slice(0, 40));
  return new Failure("bad-file", "client", `The duration must be between 1s and 24h, is ${shown}`);
}
