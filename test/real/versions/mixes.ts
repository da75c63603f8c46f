/** Which versions of Kubernetes stand behind one proxy. */
import type { ApiserverKind } from "../rig/apiserver.ts";
import { type Version, versions } from "../rig/parts.ts";

/** The first apiserver is the one that fails in the matrix; the last is never touched there. */
export type Mix = readonly [Version, Version];

/** Each version alone; then with the one before it, either of them failing; then with the one before that. */
export const mixes: readonly Mix[] = [
  ...versions.map((version): Mix => [version, version]),
  ...pairs(1).flatMap(([old, now]): Mix[] => [
    [old, now],
    [now, old],
  ]),
  ...pairs(2),
];

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
