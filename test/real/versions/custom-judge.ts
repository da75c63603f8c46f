/** What counts against watches of a custom resource, and against a run that has tested nothing. */
import type { Event, WatchEnd, Watching } from "../load/watching.ts";

/** A fault of an apiserver, or an edit of the CRD: what was written meanwhile, in etcd's record and in the writer's. */
export type Step = {
  readonly name: string;
  readonly isEdit: boolean;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
  /** Writes sent, at an apiserver to which nothing is done. */
  readonly sent: number;
  /** Changes of objects in etcd. */
  readonly changed: number;
  /** Of writes that failed, with how often each; "" for none. */
  readonly failures: string;
};

/** A step proves something only if events were due throughout: `perSecond` writes, of which half allow for a slow machine. */
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

/** A watch against etcd's record: `changes` are the versions that were written, `from` the one that the watch began at. */
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

/** The ways in which watches end at an edit of a CRD, with how often each: of one edit, and all watches of one kind. */
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

/** The same number of watches in each, over the same edits. */
export type Compared = {
  readonly through: ReadonlyMap<string, number>;
  readonly direct: ReadonlyMap<string, number>;
};

/** After an edit, no end may be more frequent through the proxy than directly at the apiservers. */
export function worse({ through, direct }: Compared): string[] {
  return [...through].flatMap(([way, count]) => {
    const directly = direct.get(way) ?? 0;
    return count <= directly
      ? []
      : [`after an edit of the CRD, ${count} watches ended as ${way}, directly ${directly}`];
  });
}

/** Outside of edits, no watch may end. */
export function unprovoked(ends: readonly WatchEnd[], steps: readonly Step[]): string[] {
  const isDue = ({ at }: WatchEnd): boolean =>
    steps.some(({ isEdit, from, until }) => isEdit && at >= from && at < until);
  return ends
    .filter((end) => !isDue(end))
    .map(({ how, detail }) => `a watch ended without an edit of the CRD: ${how} ${detail}`.trim());
}
