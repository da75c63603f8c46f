/**
 * What requests show of pods: which have asked with a token of their own, and which were deleted for good. Bounded; the
 * oldest are forgotten first. Nobody is asked.
 */

import { Lru } from "../base/lru.ts";
import { ledgerLimits } from "./limits.ts";

export class Pods {
  /** By namespace and name. */
  readonly #seen = new Lru<string, true>(ledgerLimits.pods);
  /** When each was deleted without any grace: by its kubelet at the very end, by the garbage collector, or by force. */
  readonly #deleted = new Lru<string, number>(ledgerLimits.pods);

  seen(namespace: string, name: string): void {
    if (name !== "") this.#seen.set(`${namespace}/${name}`, true);
  }

  isSeen(namespace: string, name: string): boolean {
    return this.#seen.has(`${namespace}/${name}`);
  }

  /** It is gone, whatever still runs. */
  deleted(namespace: string, name: string, at: number): void {
    this.#deleted.set(`${namespace}/${name}`, at);
  }

  /** It was bound to a node, or its kubelet wrote its status: one of that name exists. */
  exists(namespace: string, name: string): void {
    this.#deleted.delete(`${namespace}/${name}`);
  }

  /** Undefined for one that may well be there. */
  deletedAt(namespace: string, name: string): number | undefined {
    return this.#deleted.get(`${namespace}/${name}`);
  }
}

/** The pod that a lock's holder names: client-go's holders are "name_uuid", many are the pod's name alone. */
export function podNamedBy(holder: string): string {
  const at = holder.indexOf("_");
  return at < 0 ? holder : holder.slice(0, at);
}

/** Does a holder name this pod, or this node? Some put words of their own behind it. */
export function isNamed(holder: string, name: string): boolean {
  if (name === "") return false;
  const next = holder.charAt(name.length);
  return holder.startsWith(name) && (next === "" || !/[a-z0-9]/i.test(next));
}

/** Behind a workload's name: an ordinal, or five letters that make no word (apimachinery, util/rand). */
const suffixes = [/^(.+)-\d+$/, /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/];

/** Are these two pods of one workload, by the names that a StatefulSet, a ReplicaSet or a DaemonSet gives? */
export function isSibling(one: string, other: string): boolean {
  if (one === other) return false;
  return suffixes.some((suffix) => {
    const stem = suffix.exec(one)?.[1];
    return stem !== undefined && stem === suffix.exec(other)?.[1];
  });
}
