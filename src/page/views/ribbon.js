/** The last hour of a backend as a ribbon of states. Pure. */

const hourMs = 3_600_000;

/**
 * Returns segments from an hour ago to now, each with its share of the hour in per cent. Before the first known change the
 * state is that change's `from`.
 * @param {Pick<import("../rows.d.ts").Backend, "state" | "history">} backend
 * @param {number} now milliseconds since 1970
 */
export function ribbonOf({ state, history }, now) {
  const from = now - hourMs;
  const changes = history.map((change) => ({ ...change, ms: Date.parse(change.at) }));
  const first = changes.find(({ ms }) => ms > from);
  /** @type {{ state: string, percent: number, text: string }[]} */
  const segments = [];
  let begun = from;
  let current = { state: first?.from ?? state, reason: "" };
  const close = (/** @type {number} */ end) => {
    const percent = ((end - begun) / hourMs) * 100;
    const text = current.reason === "" ? current.state : `${current.state}: ${current.reason}`;
    if (percent > 0) segments.push({ state: current.state, percent, text });
  };
  for (const { ms, to, reason } of changes) {
    if (ms > from) {
      close(Math.min(ms, now));
      begun = Math.min(ms, now);
    }
    if (ms > from || first === undefined) current = { state: to, reason };
  }
  close(now);
  return segments;
}
