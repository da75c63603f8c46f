/**
 * The history of the process and of the backends (`/api/v1/history`), as series with one value for each time step. The
 * page reads the new steps at intervals.
 */

import { useRef } from "../html.js";
import { ask } from "./api.js";
import { usePolled } from "./polled.js";

/** @typedef {import("./rows.d.ts").Columns} Columns */
/** @typedef {import("./rows.d.ts").Recorded} Recorded */

const everyMs = 5_000;
const maxSteps = 720;

/** @type {Recorded} */
export const nothing = { startedMs: 0, stepMs: 5_000, first: 0, next: 0, process: {}, backends: new Map() };

/** The names of backends' states. The series `state` contains indices of this array. */
export const stateNames = ["ready", "unknown", "draining", "suspect", "dead"];

/** @returns {Recorded} */
export function useRecorded() {
  const known = useRef(nothing);
  const { value } = usePolled(
    async () => {
      const { next } = known.current;
      const answer = await ask(`/api/v1/history${next === 0 ? "" : `?after=${next - 1}`}`);
      // If a new process answers, for example after a restart, all steps are read again, because each process numbers
      // its steps from 0.
      const isAnother = next > 0 && Date.parse(answer.startedAt) !== known.current.startedMs;
      known.current = isAnother
        ? extended(nothing, await ask("/api/v1/history"))
        : extended(known.current, answer);
      return known.current;
    },
    everyMs,
    "",
  );
  return value ?? nothing;
}

/**
 * Returns `known` with the steps of an answer added, and without steps that are older than an hour. If the answer does
 * not continue `known`, returns the answer's steps only.
 * @param {Recorded} known
 * @param {import("./rows.d.ts").HistoryAnswer} answer
 * @returns {Recorded}
 */
export function extended(known, { startedAt, stepMs, first, next, process, backends }) {
  const isWhole = known.next === 0 || known.next !== first;
  const base = isWhole ? nothing : known;
  const kept = isWhole ? 0 : known.next - known.first;
  const dropped = Math.max(0, kept + (next - first) - maxSteps);
  const join = (/** @type {Columns | undefined} */ before, /** @type {Columns} */ more) =>
    Object.fromEntries(
      Object.entries(more).map(([name, values]) => {
        const old = before?.[name] ?? Array.from({ length: kept }, () => null);
        return [name, old.slice(dropped).concat(values.slice(Math.max(0, dropped - old.length)))];
      }),
    );
  const named = backends.map(({ name, series }) => {
    return /** @type {const} */ ([name, join(base.backends.get(name), series)]);
  });
  return {
    startedMs: Date.parse(startedAt),
    stepMs,
    first: (isWhole ? first : known.first) + dropped,
    next,
    process: join(base.process, process),
    backends: new Map(named),
  };
}

/**
 * Returns the index, in a column, of the step at the time `ms`; -1: the time is before the first step.
 * @param {Recorded} recorded
 * @param {number} ms since 1970
 */
export function indexAt({ startedMs, stepMs, first, next }, ms) {
  const step = Math.floor((ms - startedMs) / stepMs);
  return step < first ? -1 : Math.min(step, next - 1) - first;
}

/**
 * Returns when the last step ended, in ms since 1970.
 * @param {Recorded} recorded
 */
export function endOf({ startedMs, stepMs, next }) {
  return startedMs + next * stepMs;
}
