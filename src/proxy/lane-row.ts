/** Lanes of one backend, trust class and kind, and who waits for one of them. */
import type { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Lane } from "./lane.ts";
import type { LaneKey } from "./lane-key.ts";

/** Someone who waits for a lane: told exactly one of `ready` and `refused`. None of these throws. */
export type Waiter = {
  /** Where it waits. */
  key: LaneKey;
  /** Which lanes it may use by now: a credential may be proven while it waits. */
  wanted(): LaneKey;
  ready(lane: Lane): void;
  /** The wait is long, or in vain: it may go elsewhere. Told again at every tick. */
  suspected(): void;
  refused(failure: Failure): void;
};

export type Row = {
  readonly key: LaneKey;
  readonly lanes: Lane[];
  /** With the time since when each waits. */
  readonly waiting: Map<Waiter, number>;
};

/** Nobody who waits here gets a lane. */
export function refuse({ waiting }: Row, failure: Failure): void {
  const waiters = Array.from(waiting.keys());
  waiting.clear();
  for (const waiter of waiters) waiter.refused(failure);
}

/** The certificate that its lanes show was replaced. Is any lane concerned? */
export function outdate({ lanes }: Row): boolean {
  for (const lane of lanes) lane.isOutdated = true;
  return lanes.length > 0;
}

/** Do any still take requests under the old certificate? */
export function hasOutdated({ lanes }: Row): boolean {
  return lanes.some(({ isOutdated, isRetiring }) => isOutdated && !isRetiring);
}

/** A lane with the new one is open. What is on the old ones lives on; nothing new joins it. */
export function retireOutdated({ lanes }: Row): void {
  for (const lane of lanes.filter(({ isOutdated }) => isOutdated)) lane.yield();
}

/**
 * What is idle beyond `keep` warm ones goes. A warm one gets a successor first and goes then: an apiserver ends a session
 * after 90 s without a stream, PING or not, and with all of them gone at once it would look as if it were leaving.
 */
export function idleIn(
  { lanes }: Row,
  keep: number,
  now: number,
): { readonly isWanting: boolean; readonly going: readonly Lane[] } {
  const idle = lanes.filter((lane) => lane.openCount === 0 && now - lane.idleSince > limits.idleLaneMs);
  const spare = lanes.filter((lane) => lane.isOpened && !lane.isRetiring).length - keep;
  return { isWanting: idle.length > 0 && spare <= 0, going: idle.slice(0, Math.max(0, spare)) };
}
