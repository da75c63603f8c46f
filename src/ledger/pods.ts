/**
 * What clients' requests reveal about pods: which pods sent requests with their own token, and which were deleted.
 * Bounded: the oldest entries are evicted first. The proxy sends no requests of its own to learn this.
 */

import { Lru } from "../base/lru.ts";
import { ledgerLimits } from "./limits.ts";

export class Pods {
  /** The pods that sent a request, by namespace and name. */
  readonly #seen = new Lru<string, true>(ledgerLimits.pods);
  /** When each pod was deleted without a grace period: finally by its kubelet, by the garbage collector, or by force. */
  readonly #deleted = new Lru<string, number>(ledgerLimits.pods);

  seen(namespace: string, name: string): void {
    if (name !== "") this.#seen.set(`${namespace}/${name}`, true);
  }

  isSeen(namespace: string, name: string): boolean {
    return this.#seen.has(`${namespace}/${name}`);
  }

  /** The pod object is deleted. Its containers may still run. */
  deleted(namespace: string, name: string, at: number): void {
    this.#deleted.set(`${namespace}/${name}`, at);
  }

  /** Forgets a deletion: the pod was bound to a node, or a kubelet wrote its status, so a pod of that name exists. */
  exists(namespace: string, name: string): void {
    this.#deleted.delete(`${namespace}/${name}`);
  }

  /** Returns when the pod was deleted; undefined: the pod may still exist. */
  deletedAt(namespace: string, name: string): number | undefined {
    return this.#deleted.get(`${namespace}/${name}`);
  }
}

/**
 * Returns the pod that a holder name contains: client-go writes "name_uuid", many other clients the pod's name alone.
 */
export function podNamedBy(holder: string): string {
  const at = holder.indexOf("_");
  return at < 0 ? holder : holder.slice(0, at);
}

/** True if a holder name begins with this pod's or node's name. Some clients append words of their own. */
export function isNamed(holder: string, name: string): boolean {
  if (name === "") return false;
  const next = holder.charAt(name.length);
  return holder.startsWith(name) && (next === "" || !/[a-z0-9]/i.test(next));
}

/** Suffixes of the pods of one workload: an ordinal, or five letters without vowels (apimachinery, util/rand). */
const suffixes = [/^(.+)-\d+$/, /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/];

/** True if both pods belong to one workload, judged by the names that workloads give to their pods. */
export function isSibling(one: string, other: string): boolean {
  if (one === other) return false;
  return suffixes.some((suffix) => {
    const stem = suffix.exec(one)?.[1];
    return stem !== undefined && stem === suffix.exec(other)?.[1];
  });
}
