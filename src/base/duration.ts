const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** The JSON Schema of the configuration contains the same pattern; a test compares the two. */
export const durationPattern = /^([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h)){1,8}$/;

/** Returns the milliseconds in "1s", "500ms", "1m30s" or "1.5h", as Go writes them; undefined for other text. */
export function parseDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  let sumMs = 0;
  for (const [, count, unit] of text.matchAll(/([\d.]{1,19})(ms|s|m|h)/g)) {
    sumMs += Number(count) * (unitMs[unit ?? ""] ?? 0);
  }
  return Math.round(sumMs);
}
