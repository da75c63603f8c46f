/** Sees when many callers list again what they had watched, all within a few seconds: something has broken their watches. */
import { limits } from "../base/limits.ts";
import type { Caller } from "./caller.ts";

type Relist = { readonly caller: Caller; readonly resource: string; readonly at: number };

export type Storm = {
  readonly relists: number;
  readonly resource: string;
  readonly clients: readonly string[];
};

export class RelistStorm {
  /** Each caller and resource once, the oldest first; no more than a storm needs. */
  #relists: Relist[] = [];
  #toldAt = Number.NEGATIVE_INFINITY;

  /** Undefined unless this one makes it a storm, or shows that it goes on. */
  take(caller: Caller, resource: string, at: number): Storm | undefined {
    const isOther = (one: Relist): boolean => one.caller !== caller || one.resource !== resource;
    this.#relists = this.#relists.filter((one) => at - one.at < limits.stormMs && isOther(one));
    this.#relists.push({ caller, resource, at });
    if (this.#relists.length > limits.stormRelists) this.#relists.shift();
    const callers = new Set(this.#relists.map((one) => one.caller));
    const isStorm = this.#relists.length >= limits.stormRelists && callers.size >= limits.stormCallers;
    if (!isStorm || at - this.#toldAt < limits.stormMs) return undefined;
    this.#toldAt = at;
    const clients = new Set(Array.from(callers, ({ address, agent }) => `${address} ${agent}`));
    return {
      relists: this.#relists.length,
      resource: mostOf(this.#relists),
      clients: [...clients].slice(0, limits.incidentClients / 4),
    };
  }
}

function mostOf(relists: readonly Relist[]): string {
  const counts = new Map<string, number>();
  for (const { resource } of relists) counts.set(resource, (counts.get(resource) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? "";
}
