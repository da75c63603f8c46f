/** Collects, for one cluster, the data that both the JSON API and several metrics use. */
import type { Clock } from "../../../base/clock.ts";
import type { BackendStatus, ClusterView, LeaseFacts, LiveCluster } from "./metric.ts";

export function viewOf(cluster: LiveCluster, clock: Clock): ClusterView {
  return { ...cluster, backendStatuses: backendStatusesOf(cluster), leases: leasesOf(cluster, clock) };
}

export function backendStatusesOf({ path }: Pick<LiveCluster, "path">): readonly BackendStatus[] {
  return path.backends.views.map(({ name, state }) => ({
    name,
    state,
    connections: (path.pools.poolOf(name)?.shards ?? []).map(({ key, connections }) => ({
      trust: key.trust,
      kind: key.kind,
      open: connections.length,
      streams: connections.reduce((sum, { openCount }) => sum + openCount, 0),
    })),
    ...path.measurementsOf(name),
  }));
}

/** Returns the leader leases. Omits the leases of nodes, because there may be 5,000. */
function leasesOf({ label, path: { ledgerTap } }: LiveCluster, clock: Clock): readonly LeaseFacts[] {
  const now = clock.now();
  return ledgerTap.leases.all
    .filter(({ name }) => name.namespace !== "kube-node-lease")
    .map((lease) => ({
      namespace: label === "" ? lease.name.namespace : `${label}/${lease.name.namespace}`,
      name: lease.name.name,
      holder: lease.holder,
      source: lease.renewers.at(-1)?.caller.address ?? "",
      renewedAtMs: clock.wall() - (now - lease.renewedAt),
      verdict: lease.verdictAt(now)?.verdict ?? "ok",
    }));
}
