/** Declares every histogram. */
import type { Histogram } from "../../../base/histogram.ts";
import { verbLabel } from "../../../kube/verb-label.ts";
import type { HistogramMetric, LiveCluster } from "./metric.ts";

function perBackendHistogram(
  of: (backend: ReturnType<LiveCluster["path"]["measurementsOf"]>) => Histogram | undefined,
): HistogramMetric["cluster"] {
  return ({ path }) =>
    path.backends.views.flatMap(({ name }) => {
      const histogram = of(path.measurementsOf(name));
      return histogram === undefined ? [] : [[[name], histogram] as const];
    });
}

/**
 * Maximum number of histograms of a metric that has one histogram for each backend. Most control planes have fewer
 * backends than this.
 */
const backendHistograms = 12;

/** Maximum number of histograms of watch delays: enough for three backends with a dozen API groups each. */
const delayHistograms = 36;

function byLabel(rows: Iterable<readonly [string, Histogram]>): ReturnType<HistogramMetric["cluster"]> {
  return Array.from(rows, ([label, histogram]) => [[label], histogram] as const);
}

export const histograms: readonly HistogramMetric[] = [
  {
    name: "request_duration_seconds",
    help: "Time from the header fields of a request to the end of its response; without long-running requests",
    labels: ["verb"],
    cap: 8,
    cluster: ({ path }) =>
      Array.from(path.exchanges.durations, ([verb, histogram]) => [[verbLabel(verb)], histogram]),
  },
  {
    name: "request_overhead_seconds",
    help: "Time added to a request: request (from its header fields until they were written to a backend), queued (the same, if it had to wait for a connection or backend), response (from the response's header fields until they were written to the client)",
    labels: ["phase"],
    cap: 3,
    cluster: ({ path }) => byLabel(Object.entries(path.overhead.histograms)),
  },
  {
    name: "backend_detection_seconds",
    help: "Time from a ready backend's last sign of life until it was found suspect or dead",
    labels: ["state"],
    cap: 3,
    cluster: ({ path }) => byLabel(Object.entries(path.backends.detections)),
  },
  {
    name: "backend_ping_duration_seconds",
    help: "Round-trip time of answered PINGs on upstream connections",
    labels: ["backend"],
    cap: backendHistograms,
    cluster: perBackendHistogram(({ pings }) => pings),
  },
  {
    name: "backend_probe_duration_seconds",
    help: "Duration of probes that reached the backend, from the SYN to the response or timeout",
    labels: ["backend"],
    cap: backendHistograms,
    cluster: perBackendHistogram(({ probes }) => probes.durations),
  },
  {
    name: "watch_move_duration_seconds",
    help: "Time from the loss or suspicion of a watch's upstream stream until the watch continued at another backend, by reason of the move",
    labels: ["reason"],
    cap: 12,
    cluster: ({ path }) => byLabel(path.migrations.moveDurations),
  },
  {
    name: "watch_delay_seconds",
    help: "Time from the response to a write until a watch of the whole resource delivered the written version, by backend of the watch and API group of the resource; 0 if the watch was earlier. Further series count as other",
    labels: ["backend", "group"],
    cap: delayHistograms,
    cluster: ({ path }) =>
      Array.from(path.caches.writeDelays.histograms).flatMap(([backend, groups]) =>
        Array.from(groups, ([group, histogram]) => [[backend, group], histogram] as const),
      ),
  },
];
