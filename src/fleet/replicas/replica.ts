/**
 * What one replica tells the others about itself at `/replicaz`. Every client that can connect may read it, so it
 * contains no names of backends, clients or incidents.
 */
import { isRecord, textAt } from "../../base/json.ts";

export type ReplicaFacts = {
  /** Random for each process, so that a process recognises its own answer at any address. */
  readonly id: string;
  /** The host's name, which in a pod is the name of the pod; "" if it is not usable as a replica's name. */
  readonly name: string;
  readonly version: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly clusters: readonly string[];
  readonly activeIncidents: number;
};

export const replicaPath = "/replicaz";

/** Returns a host's name if it is usable as a replica's name, else "". Such a name cannot be an address (no colon). */
export function replicaName(text: string): string {
  return /^[A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?$/.test(text) ? text : "";
}

export function replicaAnswer(facts: ReplicaFacts): object {
  return { kind: "Replica", ...facts };
}

const mostClusters = 64;

/**
 * Returns the facts in an answer; undefined if the answer is not a replica's. Checks each field, because any server may
 * listen at the address.
 */
export function factsIn(answer: unknown): ReplicaFacts | undefined {
  if (!isRecord(answer) || answer["kind"] !== "Replica") return undefined;
  const id = textAt(answer, "id");
  const version = textAt(answer, "version");
  const startedAt = textAt(answer, "startedAt");
  const { clusters, activeIncidents } = answer;
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return undefined;
  if (!/^[\w.+-]{1,64}$/.test(version) || !/^[\dT:.Z-]{20,30}$/.test(startedAt)) return undefined;
  if (!Array.isArray(clusters) || clusters.length > mostClusters || !clusters.every(isClusterName))
    return undefined;
  if (!isCount(activeIncidents)) return undefined;
  return { id, name: replicaName(textAt(answer, "name")), version, startedAt, clusters, activeIncidents };
}

function isClusterName(value: unknown): value is string {
  return typeof value === "string" && /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
