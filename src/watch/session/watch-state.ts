/**
 * The states of a watch session. A session reads one upstream stream, the *first*. At times a *second* stream is open
 * beside it.
 *
 *                 ┌─ compare ─▶ sentinel ───┐
 *                 ├─ refresh ─▶ refreshing ─┤ promote, drop                        end (from any)
 *     streaming ──┼─ hedge ───▶ hedged ─────┼─────────────▶ streaming      ending ◀──────────────
 *         ▲  │    └─ migrate ─▶ migrating ──┘                                 │
 *         │  │ lose                  │ lose                                   │ cancel (from any)
 *         │  ▼          ask          ▼                                        ▼
 *         │ parked ◀─────────▶ resuming ── promote ─▶ streaming             ended
 *                      drop
 */

import type { AskReason } from "./end-verdict.ts";

export const watchStates = [
  /** Only the first upstream stream is open. */
  "streaming",
  /** The first stream is suspect. A second stream is open on another connection; the events of both are merged. */
  "hedged",
  /** A second stream is open to compare two watch caches (D13). Only events of the first stream are forwarded. */
  "sentinel",
  /** A second stream is open on the same backend for a moment, to get one bookmark. */
  "refreshing",
  /** The first stream still delivers events, but a second stream on another backend will replace it. */
  "migrating",
  /** The first stream is lost, and another backend has been asked to continue the watch. */
  "resuming",
  /** The first stream is lost. The session waits for its turn, for a Retry-After, or for a backend to become ready. */
  "parked",
  /** The watch will end after a short wait, so that client-go does not treat its end as a failure (D5). */
  "ending",
  /** The client's stream is over. */
  "ended",
] as const;
export type WatchState = (typeof watchStates)[number];

export const watchInputs = [
  /** A second stream is requested: as a hedge, for comparison (D13), for a bookmark, or to replace the first stream. */
  "hedge",
  "compare",
  "refresh",
  "migrate",
  /** A stream is requested while none is open. */
  "ask",
  /** The second stream becomes the first. */
  "promote",
  /** The second stream is over, or is no longer needed. */
  "drop",
  /** The first stream is over. */
  "lose",
  /** The client's stream must end. */
  "end",
  /** The client's stream is over. */
  "cancel",
] as const;
export type WatchInput = (typeof watchInputs)[number];

/** Returns the input that requests a second stream for this reason. */
export function inputOf(reason: AskReason): WatchInput {
  if (reason === "suspect") return "hedge";
  if (reason === "sentinel") return "compare";
  return reason === "refreshed" ? "refresh" : "migrate";
}

type Transitions = Partial<Record<WatchInput, WatchState>>;

/** The transitions that "hedged", "sentinel" and "migrating" share. */
const second: Transitions = {
  promote: "streaming",
  drop: "streaming",
  lose: "resuming",
  end: "ending",
  cancel: "ended",
};

const table: Record<WatchState, Transitions> = {
  streaming: {
    hedge: "hedged",
    compare: "sentinel",
    refresh: "refreshing",
    migrate: "migrating",
    lose: "parked",
    end: "ending",
    cancel: "ended",
  },
  // After a false alarm, a sentinel's second stream is no longer a hedge. It serves only for comparison again.
  hedged: { ...second, compare: "sentinel" },
  sentinel: { ...second, hedge: "hedged" },
  // `lose` is impossible in this state. If the first stream is lost, the session drops the second stream, which was
  // opened only for a bookmark, before it applies `lose`.
  refreshing: { promote: "streaming", drop: "streaming", end: "ending", cancel: "ended" },
  migrating: second,
  resuming: { promote: "streaming", drop: "parked", end: "ending", cancel: "ended" },
  parked: { ask: "resuming", end: "ending", cancel: "ended" },
  // The first stream may end, or the client's deadline may pass, before the delayed end of the watch.
  ending: { lose: "ending", end: "ending", cancel: "ended" },
  ended: {},
};

/** Returns the next state; undefined if the input is impossible in this state, which is an internal fault. */
export function next(state: WatchState, input: WatchInput): WatchState | undefined {
  return table[state][input];
}

/**
 * True if a second stream may be requested. If a second stream is open only for a bookmark or a comparison, the new
 * stream replaces it.
 */
export function hasRoom(state: WatchState): boolean {
  return state === "streaming" || state === "sentinel" || state === "refreshing";
}

/** True if events of both streams may be forwarded, each event once. */
export function isMerging(state: WatchState): boolean {
  return state === "hedged" || state === "migrating" || state === "refreshing";
}

/** The facts that the invariants check. answered: a backend has accepted the stream's request with a 200. */
export type WatchFacts = {
  readonly state: WatchState;
  readonly first: "none" | "asked" | "answered";
  readonly second: "none" | "asked" | "answered";
  /** True if the second stream was requested for comparison (D13). */
  readonly isPosted: boolean;
  /** True if a timer or one of the queues of `Migrations` will continue the session. */
  readonly isWaiting: boolean;
  readonly heldBytes: number;
};

const one: readonly WatchState[] = ["streaming"];
const two: readonly WatchState[] = ["hedged", "sentinel", "refreshing", "migrating"];
const none: readonly WatchState[] = ["resuming", "parked"];

/** The conditions that hold whenever the session is not handling an input. */
export const invariants: readonly {
  readonly says: string;
  readonly holds: (facts: WatchFacts) => boolean;
}[] = [
  {
    says: "a session that streams has an answered first stream",
    holds: ({ state, first }) => !(one.includes(state) || two.includes(state)) || first === "answered",
  },
  {
    says: "a session that has lost its stream has no first stream",
    holds: ({ state, first }) => !none.includes(state) || first === "none",
  },
  {
    says: "a second stream is open in the states that name it, and in no other",
    holds: ({ state, second: it }) => (two.includes(state) || state === "resuming") === (it !== "none"),
  },
  {
    says: "a stream that is answered while there is no other is the first",
    holds: ({ state, second: it }) => state !== "resuming" || it === "asked",
  },
  {
    says: "a sentinel's second stream compares, or hedges",
    holds: ({ state, isPosted }) =>
      isPosted ? state === "sentinel" || state === "hedged" : state !== "sentinel",
  },
  {
    says: "a session without a stream waits for a timer or in a queue",
    holds: ({ state, isWaiting }) => !none.includes(state) || isWaiting,
  },
  {
    says: "a session that is over holds nothing",
    holds: ({ state, first, isWaiting, heldBytes }) =>
      state !== "ended" || (first === "none" && !isWaiting && heldBytes === 0),
  },
];

/** Returns the first invariant that does not hold; undefined: all hold. */
export function violated(facts: WatchFacts): string | undefined {
  return invariants.find(({ holds }) => !holds(facts))?.says;
}
