/** Declares the metrics of each backend's load (proxy/load). */
import type { Sample } from "./exposition.ts";
import type { BackendStatus, ClusterView, Metric } from "./metric.ts";

function perBackend(value: (backend: BackendStatus) => number): (cluster: ClusterView) => readonly Sample[] {
  return ({ backendStatuses }) => backendStatuses.map((backend) => [[backend.name], value(backend)]);
}

export const loadMetrics: readonly Metric[] = [
  {
    name: "backend_load_streams",
    help: "Load by which backends are compared: open streams, and requests and bytes as streams of as much work",
    labels: ["backend"],
    cluster: perBackend(({ load }) => load.streams),
  },
  {
    name: "backend_capacity_ratio",
    across: "min",
    help: "Share of its weight that the backend can serve; below 1 while its reads take much longer than elsewhere, or it reports a higher utilisation",
    labels: ["backend"],
    cluster: perBackend(({ load }) => load.capacity),
  },
  {
    name: "backend_utilization_ratio",
    across: "max",
    help: "Utilisation that the backend reports in endpoint-load-metrics (ORCA)",
    labels: ["backend"],
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, load: { utilization } }): Sample[] =>
        utilization === undefined ? [] : [[[name], utilization]],
      ),
  },
];
