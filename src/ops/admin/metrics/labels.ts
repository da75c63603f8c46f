/** Label values that several metrics use. */
import { limits } from "../../../base/limits.ts";
import type { Metric } from "./metric.ts";

/**
 * Maximum number of values of the label `backend`: the discovered backends, the configured fallback of discovery, and
 * "other".
 */
export const backendCap = limits.discoveredBackends + 2;

/** Returns the maximum number of series of a metric. */
export function capOf({
  cap,
  labels = [],
}: {
  cap?: Metric["cap"] | undefined;
  labels?: readonly string[];
}): number {
  return cap ?? (labels.length === 1 && labels[0] === "backend" ? backendCap : limits.familySeries);
}

/** Returns the label of a status code; "other" for 0 (no response) and for numbers that are not an HTTP status code. */
export function codeOf(code: number): string {
  return code >= 100 && code <= 599 ? String(code) : "other";
}

/** Returns a backend's name with its cluster's name. `label`: the cluster's name; "" if there is only one cluster. */
export function backendIn(label: string, backend: string): string {
  return label === "" || backend.startsWith(`${label}/`) ? backend : `${label}/${backend}`;
}
