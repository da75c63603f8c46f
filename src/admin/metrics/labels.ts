/** Values of labels that several metrics have. */
import { limits } from "../../base/limits.ts";

/** Maximum number of values of the label `backend`: all backends of a configuration, a fallback and "other". */
export const backendCap = limits.discoveredBackends + 2;

/** Returns the label of a status code; "other" for 0 (no response) and for codes that HTTP does not have. */
export function codeOf(code: number): string {
  return code >= 100 && code <= 599 ? String(code) : "other";
}

/** Returns the label of a backend. `label`: prefix of the cluster's backends, or "" if there is only one cluster. */
export function backendIn(label: string, backend: string): string {
  return label === "" || backend.startsWith(`${label}/`) ? backend : `${label}/${backend}`;
}
