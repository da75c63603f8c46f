/** Converts counters to rates per second, for the charts. */

/** Maximum number of points: 15 minutes at one point a second. */
const mostPoints = 900;

/** @typedef {{ at: number, values: readonly number[] }} Point */

/**
 * Adds a point, made from two reads of the counters, unless the proxy was restarted between them.
 * @param {readonly Point[]} points
 * @param {import("../rows.d.ts").Stats | undefined} before
 * @param {import("../rows.d.ts").Stats} now
 * @returns {readonly Point[]}
 */
export function grown(points, before, now) {
  if (before === undefined) return points;
  const ms = Date.parse(now.at) - Date.parse(before.at);
  if (ms <= 0 || now.uptimeMs < before.uptimeMs) return points;
  const rate = (/** @type {number} */ to, /** @type {number} */ from) => Math.max(0, to - from) / (ms / 1000);
  const values = [
    rate(total(now), total(before)),
    rate(failed(now), failed(before)),
    rate(now.watchEvents, before.watchEvents),
    rate(now.cpuMs, before.cpuMs) / 10,
    now.eventLoopDelayMs,
  ];
  return [...points, { at: Date.parse(now.at) / 1000, values }].slice(-mostPoints);
}

/** @param {import("../rows.d.ts").Stats} figures */
function failed({ requests }) {
  return requests["5xx"] ?? 0;
}

/** @param {import("../rows.d.ts").Stats} figures */
function total({ requests }) {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
}
