/** Series with which tests of the alert rules describe an incident. */
import type { Series } from "./promtool.ts";

/** Returns the labels that Prometheus adds to each series of an instance. */
export function from(instance = "wk-1"): string {
  return `job="watchkeeper", instance="${instance}"`;
}

/** The series of an active incident. "1x90" lasts for 15 minutes, because promtool scrapes every 10 s here. */
export function active(kind: string, { backend = "", values = "1x90", instance = "wk-1" } = {}): Series {
  return {
    series: `watchkeeper_incident_active{${from(instance)}, kind="${kind}", ${labelsOf(backend)}}`,
    values,
  };
}

export function ready(backend: string, values: string, instance = "wk-1"): Series {
  return { series: `watchkeeper_backend_ready{${from(instance)}, ${labelsOf(backend)}}`, values };
}

/** Returns the labels of a backend. A name such as "eu/cp-1" belongs to an instance that serves several clusters. */
export function labelsOf(backend: string): string {
  const [cluster = "", name] = backend.split("/");
  return `backend="${backend}"${name === undefined ? "" : `, cluster="${cluster}"`}`;
}

export function expiry(purpose: string, name: string, seconds: number, instance = "wk-1"): Series {
  return {
    series: `watchkeeper_certificate_expiry_timestamp_seconds{${from(instance)}, purpose="${purpose}", name="${name}"}`,
    values: `${seconds}x90`,
  };
}
