/**
 * Records which server assigns the resourceVersions of each API (watch.md §1.4). For built-in and custom resources,
 * this is the apiserver, and the versions come from the cluster's etcd. An aggregated API is served by another server.
 * Its versions need not come from etcd, and each replica of that server may assign versions of its own. So the proxy
 * neither resumes nor compares watches of an aggregated API. An API of an unknown group is treated as aggregated until
 * a response shows that it is not.
 */

export const originLimits = {
  /** Maximum number of APIs whose origin is remembered; an API is a group and a version. Large clusters have 500. */
  apiOrigins: 2000,
  /** Number of bytes read of an API's OpenAPI document. The title is within the first 60 (Kubernetes 1.24 to 1.36). */
  openApiTitleBytes: 512,
} as const;

const events = new Set(["", "events.k8s.io"]);

/**
 * True for the resource `events`. Apiservers have no watch cache for it, and up to a thousand of its objects expire
 * together, so that their deletions have the same version (watch.md §5.3).
 */
export function repeatsVersions(group: string, resource: string): boolean {
  return resource === "events" && events.has(group);
}

/**
 * The groups that kube-apiserver itself serves, except the core group (kubernetes 1.36, pkg/controlplane/instance.go,
 * and earlier releases).
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

/** True if kube-apiserver itself serves the group. "" is the core group. */
export function isBuiltIn(group: string): boolean {
  return own.has(group);
}

export const aggregatedGroups: readonly string[] = [
  "metrics.k8s.io",
  "custom.metrics.k8s.io",
  "external.metrics.k8s.io",
  "projectcalico.org",
  "porch.kpt.dev",
  "packages.operators.coreos.com",
];

/**
 * Which server assigns the resource versions of an API's objects: the apiserver, from etcd, or an aggregated API
 * server. All watches of the API share one `Origin`, so that a change reaches all of them.
 */
export type Origin = {
  /** True if the versions are not etcd's, or if it is unknown which server assigns them. */
  isForeign: boolean;
  isKnown: boolean;
  /** True if the group itself or the configuration decides the origin, so that no backend is asked. */
  isFixed: boolean;
};

export const ownOrigin: Origin = Object.freeze({ isForeign: false, isKnown: true, isFixed: true });
export const foreignOrigin: Origin = Object.freeze({ isForeign: true, isKnown: true, isFixed: true });
/**
 * The origin of an API whose group does not show where its versions come from, until a backend has accepted a watch of
 * the API.
 */
export const unseenOrigin: Origin = Object.freeze({ isForeign: true, isKnown: false, isFixed: false });

export type OriginRules = {
  readonly aggregatedAPIGroups?: readonly string[];
  readonly customResourceAPIGroups?: readonly string[];
};

type Api = { readonly group: string; readonly version: string };

export class Origins {
  /** The origin of each group that the configuration names or that is well known. */
  #fixed: ReadonlyMap<string, Origin>;
  /**
   * The origins of the watched APIs, by "group/version". An API is added when a backend has accepted the first watch of
   * one of its resources.
   */
  readonly #seen = new Map<string, { readonly group: string; readonly origin: Origin }>();

  constructor(rules: OriginRules = {}) {
    this.#fixed = fixedBy(rules);
  }

  /**
   * Returns an API's origin. Returns `unseenOrigin` if neither the group nor a response to a watch has shown the
   * origin.
   */
  of({ group, version }: Api): Origin {
    if (isBuiltIn(group)) return ownOrigin;
    return this.#seen.get(`${group}/${version}`)?.origin ?? this.#originOf(group);
  }

  /**
   * Called when a backend has accepted a watch of one of the API's resources. Adds the API, unless `apiOrigins` APIs
   * are remembered already. Returns the API's origin.
   */
  met(api: Api): Origin {
    const { group, version } = api;
    const key = `${group}/${version}`;
    const known = this.of(api);
    if (isBuiltIn(group) || this.#seen.has(key) || this.#seen.size >= originLimits.apiOrigins) return known;
    const origin = { ...known };
    this.#seen.set(key, { group, origin });
    return origin;
  }

  /**
   * Replaces the configured rules. The new rules also apply to open watches. Returns the origins whose `isForeign` has
   * become false.
   */
  configure(rules: OriginRules): readonly Origin[] {
    this.#fixed = fixedBy(rules);
    const noLongerForeign: Origin[] = [];
    for (const { group, origin } of this.#seen.values()) {
      const now = this.#originOf(group);
      // Neither the old nor the new rules name this group, so the origin that a backend's response has shown stays
      // valid.
      if (!now.isFixed && !origin.isFixed) continue;
      if (origin.isForeign && !now.isForeign) noLongerForeign.push(origin);
      Object.assign(origin, now);
    }
    return noLongerForeign;
  }

  #originOf(group: string): Origin {
    // The group of a custom resource always contains a dot.
    return this.#fixed.get(group) ?? (group.includes(".") ? unseenOrigin : foreignOrigin);
  }

  /** Number of watched APIs by origin. APIs whose group or configuration decides the origin are not counted. */
  get counts(): { readonly custom: number; readonly aggregated: number; readonly unknown: number } {
    const all = Array.from(this.#seen.values(), ({ origin }) => origin).filter(({ isFixed }) => !isFixed);
    const unknown = all.filter(({ isKnown }) => !isKnown).length;
    const custom = all.filter(({ isForeign }) => !isForeign).length;
    return { custom, aggregated: all.length - custom - unknown, unknown };
  }
}

function fixedBy({
  aggregatedAPIGroups = [],
  customResourceAPIGroups = [],
}: OriginRules): Map<string, Origin> {
  const foreign = [...aggregatedGroups, ...aggregatedAPIGroups];
  return new Map([
    ...foreign.map((group) => [group, foreignOrigin] as const),
    ...customResourceAPIGroups.map((group) => [group, ownOrigin] as const),
  ]);
}

const titled = /^\{"openapi":"3[^"\\]*","info":\{"title":"([^"\\]*)"/;
const customTitle = "Kubernetes CRD Swagger";

/** Finds out whether an API is custom or aggregated, by the title of the document `/openapi/v3/apis/GROUP/VERSION`. */
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
