/**
 * What requests reveal about pods: which sent requests with their own token, and which were deleted. Bounded; the
 * oldest are evicted first. The proxy sends no requests of its own for this.
 */

import { Lru } from "../base/lru.ts";
import { ledgerLimits } from "./limits.ts";

export class Pods {
  /** By namespace and name. */
  readonly #seen = new Lru<string, true>(ledgerLimits.pods);
  /**
   * When each was deleted without a grace period: by its kubelet at the very end, by the garbage collector, or by
   * force.
   */
  readonly #deleted = new Lru<string, number>(ledgerLimits.pods);

  seen(namespace: string, name: string): void {
    if (name !== "") this.#seen.set(`${namespace}/${name}`, true);
  }

  isSeen(namespace: string, name: string): boolean {
    return this.#seen.has(`${namespace}/${name}`);
  }

  /** The pod object is gone, whatever still runs. */
  deleted(namespace: string, name: string, at: number): void {
    this.#deleted.set(`${namespace}/${name}`, at);
  }

  /** It was bound to a node, or its kubelet wrote its status: a pod of that name exists. */
  exists(namespace: string, name: string): void {
    this.#deleted.delete(`${namespace}/${name}`);
  }

  /** Undefined for a pod that may still exist. */
  deletedAt(namespace: string, name: string): number | undefined {
    return this.#deleted.get(`${namespace}/${name}`);
  }
}

/** Returns the pod named by a lock's holder: client-go's holders are "name_uuid", many are the pod's name alone. */
export function podNamedBy(holder: string): string {
  const at = holder.indexOf("_");
  return at < 0 ? holder : holder.slice(0, at);
}

/** True if a holder names this pod or this node. Some holders append words of their own. */
export function isNamed(holder: string, name: string): boolean {
  if (name === "") return false;
  const next = holder.charAt(name.length);
  return holder.startsWith(name) && (next === "" || !/[a-z0-9]/i.test(next));
}

/** The suffix after a workload's name: an ordinal, or five letters without vowels (apimachinery, util/rand). */
const suffixes = [/^(.+)-\d+$/, /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/];

/** True if two pods belong to one workload, by the names that a StatefulSet, a ReplicaSet or a DaemonSet gives. */
export function isSibling(one: string, other: string): boolean {
  if (one === other) return false;
  return suffixes.some((suffix) => {
    const stem = suffix.exec(one)?.[1];
    return stem !== undefined && stem === suffix.exec(other)?.[1];
  });
}
