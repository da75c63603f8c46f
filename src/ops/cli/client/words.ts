/** Formats ages, numbers and states for a terminal, as the admin page does. */

const missing = "-";

/** Returns a duration in one unit: "0.2s", "41s", "4m", "3h", "846d". */
export function age(ms: number | undefined): string {
  if (ms === undefined) return missing;
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  if (seconds < 120) return `${Math.round(seconds)}s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** Returns the time left in one unit, such as "4m"; "over" if none is left. */
export function left(ms: number | undefined): string {
  return ms !== undefined && ms <= 0 ? "over" : age(ms);
}

/** Returns a number in short form: "812", "1.1k", "23M". */
export function amount(count: number | undefined): string {
  if (count === undefined) return missing;
  const units = ["", "k", "M", "G", "T"];
  let rest = count;
  let unit = 0;
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${unit > 0 && rest < 9.95 ? rest.toFixed(1) : Math.round(rest)}${units[unit] ?? ""}`;
}

/** Returns a rate, with one decimal if it is below ten: "0", "<0.1", "0.3", "12", "1.1k". */
export function rate(perSecond: number): string {
  if (perSecond === 0 || perSecond >= 9.95) return amount(perSecond);
  return perSecond < 0.05 ? "<0.1" : perSecond.toFixed(1);
}

/** Returns a share as a percentage; "-" if it is missing or negative. */
export function percent(share: number | undefined): string {
  return share === undefined || share < 0 ? missing : `${Math.round(share * 100)}%`;
}

/** Returns a number and a noun: "1 watch", "2 watches". `one` is the singular, `many` the plural. */
export function counted(count: number | undefined, one: string, many = `${one}s`): string {
  return `${amount(count)} ${count === 1 ? one : many}`;
}

export function milliseconds(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? missing : `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)}ms`;
}

const signs = new Map([
  ...["ready", "ok", "held", "live", "ended"].map((state) => [state, "✓"] as const),
  ...["dead", "silent", "hung", "now", "over", "none", "critical", "ghost", "contested"].map(
    (state) => [state, "✗"] as const,
  ),
  ...["suspect", "unknown"].map((state) => [state, "?"] as const),
  ...["stale", "soon", "warning", "active", "lapsed"].map((state) => [state, "!"] as const),
  ["draining", "⇣"] as const,
]);

/** Returns a state with its sign: "✗ dead". */
export function marked(state: string): string {
  return state === "" ? missing : `${signs.get(state) ?? "·"} ${state}`;
}
