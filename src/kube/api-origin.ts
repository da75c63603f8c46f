/**
 * What is known of an API from its group and version: whose resourceVersions its events have (watch.md §1.4). The
 * apiserver's own and custom resources are in its etcd. An aggregated API is another server's: its versions need not be
 * etcd's, and each of its replicas may count for itself, so its watches are never resumed or compared. A group whose kind
 * is not known yet is taken for another server's.
 */
import { limits } from "../base/limits.ts";

const events = new Set(["", "events.k8s.io"]);

/** Leases of `events` expire in batches, each deleting many at one version (§5.3). Such a resource has no watch cache. */
export function isRepeating(group: string, resource: string): boolean {
  return resource === "events" && events.has(group);
}

/** The groups that kube-apiserver serves itself (kubernetes 1.36, pkg/controlplane/instance.go, and those it served before). */
const builtIn = [
  ..."apps autoscaling batch extensions policy".split(" "),
  ..."admissionregistration apiextensions apiregistration authentication authorization certificates coordination"
    .split(" ")
    .map((name) => `${name}.k8s.io`),
  ..."discovery events networking node resource scheduling settings storage storagemigration"
    .split(" ")
    .map((name) => `${name}.k8s.io`),
  ..."auditregistration.k8s.io flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io rbac.authorization.k8s.io".split(
    " ",
  ),
];
const own: ReadonlySet<string> = new Set(["", ...builtIn]);

/** True if kube-apiserver itself serves the group; "" is the core group. */
export function isBuiltIn(group: string): boolean {
  return own.has(group);
}

/** Groups that are always an APIService's. */
export const aggregatedGroups: readonly string[] = [
  "metrics.k8s.io",
  "custom.metrics.k8s.io",
  "external.metrics.k8s.io",
  "projectcalico.org",
  "porch.kpt.dev",
  "packages.operators.coreos.com",
];

/** One group and version, shared by all its watches: what is learnt of it later holds for those that live. */
export type Origin = {
  /** True if its versions mean nothing to us, or may not. */
  isForeign: boolean;
  /** False while nothing has shown which it is. */
  isKnown: boolean;
};

export const ownOrigin: Origin = Object.freeze({ isForeign: false, isKnown: true });
export const foreignOrigin: Origin = Object.freeze({ isForeign: true, isKnown: true });
/** Of all that no backend has answered a watch of. */
export const unseenOrigin: Origin = Object.freeze({ isForeign: true, isKnown: false });

export type OriginRules = {
  /** Groups of other servers. */
  readonly aggregatedAPIGroups?: readonly string[];
  /** Groups of custom resources. */
  readonly customResourceAPIGroups?: readonly string[];
};

export class Origins {
  readonly #foreign: ReadonlySet<string>;
  readonly #own: ReadonlySet<string>;
  readonly #seen = new Map<string, Origin>();

  constructor({ aggregatedAPIGroups: more = [], customResourceAPIGroups = [] }: OriginRules = {}) {
    this.#foreign = new Set([...aggregatedGroups, ...more]);
    this.#own = new Set(customResourceAPIGroups);
  }

  /** `unseenOrigin` unless something is known, or is being asked for. */
  of({ group, version }: { readonly group: string; readonly version: string }): Origin {
    if (isBuiltIn(group) || this.#own.has(group)) return ownOrigin;
    // A custom resource's group has a dot.
    if (this.#foreign.has(group) || !group.includes(".")) return foreignOrigin;
    return this.#seen.get(`${group}/${version}`) ?? unseenOrigin;
  }

  /** A backend has answered a watch of it: from now on it is remembered. Of too many the last ones stay foreign. */
  met(api: { readonly group: string; readonly version: string }): Origin {
    const known = this.of(api);
    if (known !== unseenOrigin || this.#seen.size >= limits.apiOrigins) return known;
    const origin: Origin = { isForeign: true, isKnown: false };
    this.#seen.set(`${api.group}/${api.version}`, origin);
    return origin;
  }

  /** How many there are of each kind, for metrics; the built-in and the configured ones are not among them. */
  get counts(): { readonly custom: number; readonly aggregated: number; readonly unknown: number } {
    const all = [...this.#seen.values()];
    const unknown = all.filter(({ isKnown }) => !isKnown).length;
    const custom = all.filter(({ isForeign }) => !isForeign).length;
    return { custom, aggregated: all.length - custom - unknown, unknown };
  }
}

/** How the apiserver begins the OpenAPI of a group and version, and what it calls that of a CRD (apiextensions-apiserver, controller/openapi/builder). */
const titled = /^\{"openapi":"3[^"\\]*","info":\{"title":"([^"\\]*)"/;
const customTitle = "Kubernetes CRD Swagger";

/** The beginning of `/openapi/v3/apis/GROUP/VERSION`: `version` is "custom" or "aggregated", "" until it is known. */
export class OpenApiTitle {
  #head = "";
  version: "" | "custom" | "aggregated" = "";

  feed(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.version !== "") return;
    this.#head += bytes.toString(
      "latin1",
      start,
      Math.min(end, start + limits.openApiTitleBytes - this.#head.length),
    );
    const title = titled.exec(this.#head)?.[1];
    if (title === customTitle) this.version = "custom";
    else if (title !== undefined || isLast || this.#head.length >= limits.openApiTitleBytes)
      this.version = "aggregated";
  }
}
