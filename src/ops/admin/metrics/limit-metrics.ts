/**
 * Declares the metrics of request limits and of shields. A shield (proxy/limits/shield.ts) limits the expensive list
 * requests to one backend.
 */
import { backendIn } from "./labels.ts";
import type { Metric } from "./metric.ts";

export const limitMetrics: readonly Metric[] = [
  {
    name: "requests_limited_total",
    help: "Requests that got 429 because of a limit, by its name; operator: all that operators have set",
    labels: ["limit"],
    cluster: ({ label, path: { limits } }) =>
      Array.from(limits.refused, ([name, count]) => [backendIn(label, name), count]),
  },
  {
    name: "limits",
    help: "Limits of requests in force, by where they were set: config or operator",
    labels: ["origin"],
    process: ({ clusters, operatorLimits }) => [
      ["config", clusters().reduce((sum, { path }) => sum + path.limits.own.length, 0)],
      ["operator", operatorLimits.all.length],
    ],
  },
  {
    name: "limit_sharers",
    help: "Replicas among which limits of scope AllReplicas are divided, this one included",
    process: ({ replicas }) => replicas.count,
  },
  {
    name: "backend_shield_cap",
    help: "Most concurrent lists at a backend that has just started or is overloaded; 0: not limited",
    labels: ["backend"],
    cluster: ({ backendStatuses }) => backendStatuses.map(({ name, shield }) => [[name], shield.cap]),
  },
  {
    name: "shield_waiting",
    help: "Lists that wait for their turn at a backend that has just started or is overloaded",
    cluster: ({ backendStatuses }) => backendStatuses.reduce((sum, { shield }) => sum + shield.waiting, 0),
  },
  {
    name: "shield_refused_total",
    help: "Lists that got 429 because a backend has just started or is overloaded",
    cluster: ({ path }) => path.shields.refused,
  },
];
