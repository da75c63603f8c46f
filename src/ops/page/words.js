/** Formats numbers, durations and states for the whole page. */

/**
 * Returns a duration in one unit: "0.2 s", "41 s", "4 m", "3 h", "846 d"; "–" for null.
 * @param {number | null | undefined} ms
 */
export function age(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} m`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/**
 * Returns a number in short form: "812", "1.1 k", "23 M".
 * @param {number} count
 */
export function amount(count) {
  const units = ["", " k", " M", " G", " T"];
  let left = count;
  let at = 0;
  while (left >= 999.5 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  return `${at > 0 && left < 9.95 ? left.toFixed(1) : Math.round(left)}${units[at] ?? ""}`;
}

/**
 * Returns a number with its noun: "1 watch", "12 k watches".
 * @param {number} count
 * @param {readonly [one: string, several: string]} noun
 */
export function counted(count, [one, several]) {
  return `${amount(count)} ${count === 1 ? one : several}`;
}

/**
 * Returns the time of day in the browser's time zone: "16:42:07.1".
 * @param {string} time RFC 3339
 */
export function clockTime(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  const tenth = Math.floor(date.getMilliseconds() / 100);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${tenth}`;
}

/** @param {number} value */
function two(value) {
  return String(value).padStart(2, "0");
}

/** The sign and the colour of each state. Signs are for users who cannot tell the colours apart. */
const marks = new Map([
  ["ready", { sign: "✓", tone: "good" }],
  ["ok", { sign: "✓", tone: "good" }],
  ["held", { sign: "✓", tone: "good" }],
  ["live", { sign: "✓", tone: "good" }],
  ["suspect", { sign: "?", tone: "warn" }],
  ["draining", { sign: "⇣", tone: "warn" }],
  ["parked", { sign: "…", tone: "warn" }],
  ["stale", { sign: "!", tone: "bad" }],
  ["soon", { sign: "!", tone: "warn" }],
  ["warning", { sign: "!", tone: "warn" }],
  ["unknown", { sign: "·", tone: "calm" }],
  ["dead", { sign: "✗", tone: "bad" }],
  ["silent", { sign: "✗", tone: "bad" }],
  ["hung", { sign: "✗", tone: "bad" }],
  ["now", { sign: "✗", tone: "bad" }],
  ["over", { sign: "✗", tone: "bad" }],
  ["none", { sign: "✗", tone: "bad" }],
  ["refused", { sign: "✗", tone: "bad" }],
  ["critical", { sign: "✗", tone: "bad" }],
  ["ghost", { sign: "✗", tone: "bad" }],
  ["contested", { sign: "✗", tone: "bad" }],
]);

/**
 * Returns the sign and the colour of a state. For an unknown state, both are neutral.
 * @param {string} state
 */
export function markOf(state) {
  return marks.get(state) ?? { sign: "·", tone: "calm" };
}

/**
 * Returns the first of a client's identity, pod, program and address that is known.
 * @param {import("./data/rows.d.ts").Caller} caller
 */
export function whoIs({ subject, pod, agent, client }) {
  return subject || pod || agent || client || "unknown";
}
