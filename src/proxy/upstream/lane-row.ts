/** Lanes of one backend, trust class and kind, and who waits for one of them. */
import type { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
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
 * Returns the idle lanes that close now, and whether the row needs a successor first. Lanes beyond `keep` warm ones, and
 * beyond the last one, close soon; the last lane of a row that is not kept warm closes after a minute. A warm lane gets a
 * successor before it closes: an apiserver ends a session after 90 s without a stream, PING or not, and if all of them
 * ended at once, the backend would look as if it were leaving.
 */
export function idleIn(
  { lanes }: Row,
  keep: number,
  now: number,
): { readonly isWanting: boolean; readonly going: readonly Lane[] } {
  // A silent lane is no reason to close the one that answers: it would take its backend's last word with it.
  const taking = lanes.filter((lane) => lane.isOpened && !lane.isRetiring && !lane.isSuspect);
  const idleFor = (ms: number): Lane[] =>
    taking.filter((lane) => lane.openCount === 0 && now - lane.idleSince > ms);
  const spare = idleFor(limits.spareLaneMs).slice(0, Math.max(0, taking.length - Math.max(1, keep)));
  const old = idleFor(limits.idleLaneMs);
  return {
    isWanting: old.length > 0 && taking.length <= keep,
    going: spare.length === 0 && keep === 0 ? old : spare,
  };
}
