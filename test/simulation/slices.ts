/** Short slices: the walks of the proxy (base/slices.ts) yield after a few entries, as on a busy machine. */
import { sliceLimits } from "../../src/base/slices.ts";

const usual = sliceLimits.sliceEntries;

/** Sets how many entries a slice visits in the run with this seed: 1, 2 or 3, and as usual in every second run. */
export function setSlicesOf(seed: number): void {
  const limits: { sliceEntries: number } = sliceLimits;
  limits.sliceEntries = seed % 2 === 0 ? usual : 1 + (seed % 3);
}
