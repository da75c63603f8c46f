/** Which versions of Kubernetes stand behind one proxy. */
import type { ApiserverKind } from "../rig/apiserver.ts";
import { type Version, versions } from "../rig/parts.ts";

/** The first apiserver is the one that fails in the matrix; the last is never touched there. */
export type Mix = readonly [Version, Version];

const alone: readonly Mix[] = versions.map((version) => [version, version]);

/** Of two versions, the older first: with the next version, and with the one after it. */
export const skewed: readonly Mix[] = [...pairs(1), ...pairs(2)];

/** Each version alone; two versions, of which either fails if one follows the other. */
export const mixes: readonly Mix[] = [...alone, ...skewed, ...pairs(1).map(([old, now]): Mix => [now, old])];

/** Where each apiserver fails in turn, the order is of no account. */
export const unordered: readonly Mix[] = [...alone, ...skewed];

/** Each version, and the one `step` later. */
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

/** The names that `--only` selects: "1.35+1.36" of any part, or "1.36: CBOR on" of one. */
export class Selection {
  readonly #names: readonly string[];
  readonly #matched = new Set<string>();

  /** Separated by commas; "": everything is selected. */
  constructor(only: string) {
    this.#names = only.split(",").filter((name) => name !== "");
  }

  has(name: string): boolean {
    const matching = this.#names.filter((one) => name === one || name.startsWith(`${one}:`));
    for (const one of matching) this.#matched.add(one);
    return this.#names.length === 0 || matching.length > 0;
  }

  /** The versions that are needed for it. */
  get versions(): readonly Version[] {
    return versions.filter(
      (version) => this.#names.length === 0 || this.#names.some((name) => name.includes(version)),
    );
  }

  /** Names that selected nothing. */
  get unmatched(): readonly string[] {
    return this.#names.filter((name) => !this.#matched.has(name));
  }
}
