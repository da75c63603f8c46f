/**
 * Records which pods sent requests with their own token and which pods were deleted, as far as clients' requests show.
 * Remembers at most `ledgerLimits.pods` of each, and evicts the oldest.
 */

import { Lru } from "../../base/lru.ts";
import { ledgerLimits } from "./limits.ts";

export class Pods {
  readonly #seen = new Lru<string, true>(ledgerLimits.pods);
  /**
   * Clock reading (ms) at which each pod's object was deleted with grace period 0: by its kubelet, the garbage
   * collector or a forced delete.
   */
  readonly #deleted = new Lru<string, number>(ledgerLimits.pods);

  seen(namespace: string, name: string): void {
    if (name !== "") this.#seen.set(`${namespace}/${name}`, true);
  }

  isSeen(namespace: string, name: string): boolean {
    return this.#seen.has(`${namespace}/${name}`);
  }

  /** Records that a pod's object was deleted. The pod's containers may still run. */
  deleted(namespace: string, name: string, at: number): void {
    this.#deleted.set(`${namespace}/${name}`, at);
  }

  /** Called when a pod is bound to a node, or when a kubelet writes the pod's status. Both show that the pod exists. */
  exists(namespace: string, name: string): void {
    this.#deleted.delete(`${namespace}/${name}`);
  }

  /** Returns the clock reading (ms) of the pod's deletion; undefined: the pod may still exist. */
  deletedAt(namespace: string, name: string): number | undefined {
    return this.#deleted.get(`${namespace}/${name}`);
  }
}

/** Returns the pod in a holder name: client-go writes "name_uuid"; many other clients write only the pod's name. */
export function podNamedBy(holder: string): string {
  const at = holder.indexOf("_");
  return at < 0 ? holder : holder.slice(0, at);
}

/**
 * True if `holder` is `name`, the name of a pod or node, or begins with it. Some clients append text of their own to
 * the name.
 */
export function isNamed(holder: string, name: string): boolean {
  if (name === "") return false;
  const next = holder.charAt(name.length);
  return holder.startsWith(name) && (next === "" || !/[a-z0-9]/i.test(next));
}

/** Endings of pod names within one workload: a number, or five characters of apimachinery's util/rand. */
const suffixes = [/^(.+)-\d+$/, /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/];

/** True if both names look like pods of one workload, such as "web-0" and "web-1". */
export function isSibling(one: string, other: string): boolean {
  if (one === other) return false;
  return suffixes.some((suffix) => {
    const stem = suffix.exec(one)?.[1];
    return stem !== undefined && stem === suffix.exec(other)?.[1];
  });
}
