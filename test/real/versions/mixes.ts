/** Combinations of versions of Kubernetes behind one proxy. */
import type { ApiserverKind } from "../rig/apiserver.ts";
import { type Version, versions } from "../rig/parts.ts";

/** In the matrix, the first apiserver fails, and the last one never does. */
export type Mix = readonly [Version, Version];

const alone: readonly Mix[] = versions.map((version) => [version, version]);

/** Two versions, the older one first: with the next version, and with the one after it. */
export const skewed: readonly Mix[] = [...pairs(1), ...pairs(2)];

/**
 * Each version alone, and two different versions. For two consecutive versions, both orders are included, so that
 * either can be the one that fails.
 */
export const mixes: readonly Mix[] = [...alone, ...skewed, ...pairs(1).map(([old, now]): Mix => [now, old])];

/** Combinations for tests in which each apiserver fails in turn, so that the order does not matter. */
export const unordered: readonly Mix[] = [...alone, ...skewed];

/** Returns each version with the version `step` later. */
export function pairs(step: number): readonly Mix[] {
  return versions.flatMap((old, at): Mix[] => {
    const now = versions[at + step];
    return now === undefined ? [] : [[old, now]];
  });
}

export function nameOf([first, last]: Mix): string {
  return first === last ? first : `${first}+${last}`;
}

export function kindsOf(mix: Mix, flags: readonly string[] = []): readonly ApiserverKind[] {
  return mix.map((version) => ({ version, flags }));
}

/**
 * The names that `--only` selects: "1.35+1.36" selects this mix in every part, "1.36: CBOR on" selects one row of a
 * part.
 */
export class Selection {
  readonly #names: readonly string[];
  readonly #matched = new Set<string>();

  /** `only` has names separated by commas. "" selects everything. */
  constructor(only: string) {
    this.#names = only.split(",").filter((name) => name !== "");
  }

  has(name: string): boolean {
    const matching = this.#names.filter((one) => name === one || name.startsWith(`${one}:`));
    for (const one of matching) this.#matched.add(one);
    return this.#names.length === 0 || matching.length > 0;
  }

  /** The versions that the selection needs. */
  get versions(): readonly Version[] {
    return versions.filter(
      (version) => this.#names.length === 0 || this.#names.some((name) => name.includes(version)),
    );
  }

  /** The names that have selected nothing. */
  get unmatched(): readonly string[] {
    return this.#names.filter((name) => !this.#matched.has(name));
  }
}
