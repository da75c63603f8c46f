/**
 * What is known of an API by its group and version: which server assigns its resourceVersions (watch.md §1.4). The
 * apiserver's own resources and custom resources are in its etcd. An aggregated API belongs to another server: its
 * versions need not be etcd's, and each of its replicas may count on its own, so its watches are never resumed or
 * compared. A group of unknown origin is treated as aggregated.
 */

export const originLimits = {
  /**
   * APIs (one group and version each) for which the origin is remembered, CRD or aggregated server: large clusters have
   * 500.
   */
  apiOrigins: 2000,
  /** Bytes read of an API's OpenAPI document: the title is within the first 60 bytes (1.24 to 1.36). */
  openApiTitleBytes: 512,
} as const;

const events = new Set(["", "events.k8s.io"]);

/**
 * Leases of `events` expire in batches, each deleting many objects at one version (§5.3). Such a resource has no watch
 * cache.
 */
export function repeatsVersions(group: string, resource: string): boolean {
  return resource === "events" && events.has(group);
}

/**
 * The groups that kube-apiserver serves itself (kubernetes 1.36, pkg/controlplane/instance.go, and groups of earlier
 * releases).
 */
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

/** Groups that always belong to an APIService. */
export const aggregatedGroups: readonly string[] = [
  "metrics.k8s.io",
  "custom.metrics.k8s.io",
  "external.metrics.k8s.io",
  "projectcalico.org",
  "porch.kpt.dev",
  "packages.operators.coreos.com",
];

/** One group and version, shared by all its watches: later knowledge applies to existing watches as well. */
export type Origin = {
  /** True if its versions are not etcd's, or may not be. */
  isForeign: boolean;
  /** False while its origin is unknown. */
  isKnown: boolean;
};

export const ownOrigin: Origin = Object.freeze({ isForeign: false, isKnown: true });
export const foreignOrigin: Origin = Object.freeze({ isForeign: true, isKnown: true });
/** The origin of any API without an answered watch so far. */
export const unseenOrigin: Origin = Object.freeze({ isForeign: true, isKnown: false });

export type OriginRules = {
  /** Groups of aggregated servers. */
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

  /** Returns `unseenOrigin` unless the origin is known or being determined. */
  of({ group, version }: { readonly group: string; readonly version: string }): Origin {
    if (isBuiltIn(group) || this.#own.has(group)) return ownOrigin;
    // A custom resource's group contains a dot.
    if (this.#foreign.has(group) || !group.includes(".")) return foreignOrigin;
    return this.#seen.get(`${group}/${version}`) ?? unseenOrigin;
  }

  /** A backend has answered a watch of it: its origin is remembered from now on. Beyond the limit APIs stay foreign. */
  met(api: { readonly group: string; readonly version: string }): Origin {
    const known = this.of(api);
    if (known !== unseenOrigin || this.#seen.size >= originLimits.apiOrigins) return known;
    const origin: Origin = { isForeign: true, isKnown: false };
    this.#seen.set(`${api.group}/${api.version}`, origin);
    return origin;
  }

  /** The number of APIs of each origin, for metrics; built-in and configured ones are not included. */
  get counts(): { readonly custom: number; readonly aggregated: number; readonly unknown: number } {
    const all = [...this.#seen.values()];
    const unknown = all.filter(({ isKnown }) => !isKnown).length;
    const custom = all.filter(({ isForeign }) => !isForeign).length;
    return { custom, aggregated: all.length - custom - unknown, unknown };
  }
}

/**
 * The start of the OpenAPI document of a group and version, and the title of a CRD's document (apiextensions-apiserver,
 * controller/openapi/builder).
 */
const titled = /^\{"openapi":"3[^"\\]*","info":\{"title":"([^"\\]*)"/;
const customTitle = "Kubernetes CRD Swagger";

/** Parses the start of `/openapi/v3/apis/GROUP/VERSION`: `version` is "custom" or "aggregated", "" until known. */
export class OpenApiTitle {
  #head = "";
  version: "" | "custom" | "aggregated" = "";

  feed(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.version !== "") return;
    this.#head += bytes.toString(
      "latin1",
      start,
      Math.min(end, start + originLimits.openApiTitleBytes - this.#head.length),
    );
    const title = titled.exec(this.#head)?.[1];
    if (title === customTitle) this.version = "custom";
    else if (title !== undefined || isLast || this.#head.length >= originLimits.openApiTitleBytes)
      this.version = "aggregated";
  }
}
