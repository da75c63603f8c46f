/** Rules by which watches of a custom resource fail a test, and by which a run that tested nothing fails. */
import type { Event, WatchEnd, Watching } from "../load/watching.ts";

/**
 * A fault of an apiserver or an edit of the CRD, with the writes during it according to the writer and according to
 * etcd.
 */
export type Step = {
  readonly name: string;
  readonly isEdit: boolean;
  /** Unix milliseconds. */
  readonly from: number;
  readonly until: number;
  /** Number of writes that were sent to the apiserver without a fault. */
  readonly sent: number;
  /** Number of changes of objects in etcd. */
  readonly changed: number;
  /** Reasons of failed writes with their counts; "" if none failed. */
  readonly failures: string;
};

/**
 * Returns the steps that prove nothing, because too few events were due. A step needs at least half of `perSecond`
 * writes in each second; the other half is a margin for a slow machine.
 */
export function idle(steps: readonly Step[], perSecond: number): string[] {
  return steps.flatMap(({ name, from, until, sent, changed, failures }) => {
    const due = Math.floor((perSecond * (until - from)) / 2_000);
    return [
      ...(failures === "" ? [] : [`${name}: writes failed: ${failures}`]),
      ...(sent >= due ? [] : [`${name}: ${sent} writes were sent, not ${due}`]),
      ...(changed >= sent ? [] : [`${name}: etcd has ${changed} changes of ${sent} writes`]),
    ];
  });
}

export type Watched = Pick<Watching, "events" | "ends" | "gaps">;

/**
 * Compares a watch with etcd's record. `changes` are the versions that were written, and `from` is the version at which
 * the watch began. Returns what is wrong.
 */
export function untrue(watch: Watched, from: number, changes: readonly number[]): string[] {
  const due = changes.filter((at) => at > from);
  const isInGap = (at: number): boolean => watch.gaps.some(({ after, until }) => at > after && at <= until);
  const told = watch.events.map((event: Event) => event.version);
  const missing = due.filter((at) => !told.includes(at) && !isInGap(at)).length;
  const unordered = told.filter((at, index) => index > 0 && at <= (told[index - 1] ?? 0)).length;
  const invented = told.filter((at) => !due.includes(at)).length;
  return [
    ...(due.length === 0 ? ["nothing was written"] : []),
    ...(missing + unordered + invented === 0
      ? []
      : [`${missing} missing, ${unordered} doubled or out of order, ${invented} invented`]),
  ];
}

/** Returns how watches ended during this step, and how many in each way. */
export function waysOf(
  ends: readonly WatchEnd[],
  { from, until }: Pick<Step, "from" | "until">,
): Map<string, number> {
  const ways = new Map<string, number>();
  for (const { at, how, detail } of ends) {
    const way = `${how} ${detail}`.trim();
    if (at >= from && at < until) ways.set(way, (ways.get(way) ?? 0) + 1);
  }
  return ways;
}

/** Ends of the watches through the proxy, and of equally many direct watches, at the same edits. */
export type Compared = {
  readonly through: ReadonlyMap<string, number>;
  readonly direct: ReadonlyMap<string, number>;
};

/** Returns the ways in which more watches ended through the proxy than directly at the apiservers. */
export function worse({ through, direct }: Compared): string[] {
  return [...through].flatMap(([way, count]) => {
    const directly = direct.get(way) ?? 0;
    return count <= directly
      ? []
      : [`after an edit of the CRD, ${count} watches ended as ${way}, directly ${directly}`];
  });
}

/** Returns the ends of watches outside of edits. There should be none. */
export function unprovoked(ends: readonly WatchEnd[], steps: readonly Step[]): string[] {
  const isDue = ({ at }: WatchEnd): boolean =>
    steps.some(({ isEdit, from, until }) => isEdit && at >= from && at < until);
  return ends
    .filter((end) => !isDue(end))
    .map(({ how, detail }) => `a watch ended without an edit of the CRD: ${how} ${detail}`.trim());
}
