/** What is known of a watch's events from the resource that it is of, before the first has come (watch.md §1.4). */

export type Watched = {
  /** Do several events share one version? Leases of `events` expire in batches, each deleting many at once (§5.3). */
  readonly isRepeating: boolean;
  /** Is it another server's, whose versions need not be etcd's? Then it is timed, and never asked for elsewhere. */
  readonly isForeign: boolean;
};

const events = new Set(["", "events.k8s.io"]);

/** The groups without a dot that kube-apiserver serves itself; a custom resource's always has one. */
const own = new Set(["", "apps", "autoscaling", "batch", "extensions", "policy"]);

/**
 * Groups that are always an APIService's. Versions that are not decimal give such a server away too, but only once
 * the first event has come.
 */
export const aggregatedGroups: readonly string[] = [
  "metrics.k8s.io",
  "custom.metrics.k8s.io",
  "external.metrics.k8s.io",
  "projectcalico.org",
  "porch.kpt.dev",
  "packages.operators.coreos.com",
];

/** `aggregated`: the groups that an APIService sends to another server, as far as they are known. */
export function versionsOf(group: string, resource: string, aggregated: ReadonlySet<string>): Watched {
  return {
    isRepeating: resource === "events" && events.has(group),
    isForeign: aggregated.has(group) || !(group.includes(".") || own.has(group)),
  };
}
