/** The states of a backend over time, and its state at one moment. */

import { stateNames } from "../data/recorded.js";
import { html } from "../html.js";
import { markOf } from "../words.js";

/** @typedef {{ state: string, from: number, to: number, text: string }} Piece */
/** @typedef {Pick<import("../data/rows.d.ts").Backend, "state" | "history">} Judged */

/**
 * Derives the states between two times, each with its beginning and its end, from the backend's latest state changes.
 * Until the first known change, the state is the one in that change's field `from`.
 * @param {Judged} backend
 * @param {number} from milliseconds since 1970
 * @param {number} to
 * @returns {readonly Piece[]}
 */
export function piecesOf({ state, history }, from, to) {
  const changes = history.map((change) => ({ ...change, ms: Date.parse(change.at) }));
  const first = changes.find(({ ms }) => ms > from);
  /** @type {Piece[]} */
  const pieces = [];
  let begun = from;
  let current = { state: first?.from ?? state, reason: "" };
  const close = (/** @type {number} */ end) => {
    const text = current.reason === "" ? current.state : `${current.state}: ${current.reason}`;
    if (end > begun) pieces.push({ state: current.state, from: begun, to: end, text });
  };
  for (const { ms, to: next, reason } of changes) {
    if (ms > from) {
      close(Math.min(ms, to));
      begun = Math.max(begun, Math.min(ms, to));
    }
    if (ms > from || first === undefined) current = { state: next, reason };
  }
  close(to);
  return pieces;
}

/**
 * Number of state changes that the API keeps for each backend. If a backend has this many, the API may have dropped
 * earlier ones.
 */
const keptChanges = 64;

/**
 * Returns the states between two times. They are exact if the state changes that the API keeps reach back far enough.
 * Otherwise, they are taken from the recorded history, which has one state for each step.
 * @param {Judged | undefined} backend
 * @param {import("../data/rows.d.ts").Recorded} recorded
 * @param {{ name: string, from: number, to: number }} where
 */
export function statesOf(backend, recorded, { name, from, to }) {
  const oldest = Date.parse(backend?.history[0]?.at ?? "");
  const isExact = backend !== undefined && (backend.history.length < keptChanges || oldest <= from);
  // The process knows no states from before its start.
  const begun = Math.max(from, recorded.startedMs);
  return isExact ? piecesOf(backend, begun, to) : piecesBySteps(recorded, { name, from, to });
}

/**
 * @param {import("../data/rows.d.ts").Recorded} recorded
 * @param {{ name: string, from: number, to: number }} where
 * @returns {readonly Piece[]}
 */
function piecesBySteps({ backends, startedMs, stepMs, first }, { name, from, to }) {
  /** @type {Piece[]} */
  const pieces = [];
  for (const [at, number] of (backends.get(name)?.["state"] ?? []).entries()) {
    const begun = Math.max(from, startedMs + (first + at) * stepMs);
    const end = Math.min(to, startedMs + (first + at + 1) * stepMs);
    if (number === null || end <= begun) continue;
    const state = stateNames[number] ?? "unknown";
    const last = pieces.at(-1);
    if (last?.state === state && last.to === begun) last.to = end;
    else pieces.push({ state, from: begun, to: end, text: state });
  }
  return pieces;
}

/**
 * @param {readonly Piece[]} pieces
 * @param {number} ms
 */
export function stateAt(pieces, ms) {
  return pieces.findLast(({ from }) => from <= ms) ?? { state: "unknown", text: "" };
}

/**
 * A horizontal band that shows a backend's states over time, each in its colour.
 * @param {{ label: string, pieces: readonly Piece[], from: number, to: number }} props
 */
export function Band({ label, pieces, from, to }) {
  const share = (/** @type {number} */ ms) => `${((ms / (to - from)) * 100).toFixed(3)}%`;
  const words = `${label}: ${pieces.map(({ state }) => state).join(", ")}`;
  return html`<span class="band" role="img" aria-label=${words}>
    ${pieces.map(
      (piece) => html`<span class=${markOf(piece.state).tone} title=${piece.text}
        style=${{ left: share(piece.from - from), width: share(piece.to - piece.from) }}></span>`,
    )}
  </span>`;
}
