/**
 * Decides, from pairs of short runs, whether the ratio of two proxies' CPU times has become worse than the recorded
 * one.
 */
import { median } from "./report.ts";

export type Judgement = "passed" | "failed" | "not judged";

/** Maximum factor by which a ratio may be worse than the recorded one. */
export const tolerance = 1.1;
/**
 * If other processes use more cores than this, the result depends on CPU caches and the host as much as on the proxy.
 */
const mostOthersCores = 0.5;
/**
 * The upper of the two bounds (`boundsOf`) must be less than the lower one times this factor. Otherwise a change of a
 * tenth could not be distinguished from noise.
 */
const widest = 1.2;

/**
 * Returns bounds between which the true median lies with a confidence of at least 90 %, whatever the distribution of
 * the ratios. The bounds are two order statistics, which follow from the binomial distribution.
 */
export function boundsOf(ratios: readonly number[]): readonly [low: number, high: number] {
  const sorted = ratios.toSorted((a, b) => a - b);
  const count = sorted.length;
  let skipped = 0;
  let tail = 0.5 ** count;
  let next = tail;
  while (2 * (tail + next * ((count - skipped) / (skipped + 1))) <= 0.1) {
    next *= (count - skipped) / (skipped + 1);
    tail += next;
    skipped += 1;
  }
  return [sorted[skipped] ?? Number.NaN, sorted[count - 1 - skipped] ?? Number.NaN];
}

export function isTooWide(ratios: readonly number[]): boolean {
  const [low, high] = boundsOf(ratios);
  return !(high / low < widest);
}

/**
 * Returns "not judged" if other processes used too much CPU time or if the ratios differ too much. Otherwise returns
 * "failed" if the median exceeds `recorded` by more than `tolerance` and both bounds of the median exceed `recorded`,
 * and "passed" if not.
 */
export function judge(ratios: readonly number[], othersCores: number, recorded: number): Judgement {
  if (othersCores > mostOthersCores || isTooWide(ratios)) return "not judged";
  const [low] = boundsOf(ratios);
  return median(ratios) > tolerance * recorded && low > recorded ? "failed" : "passed";
}
