/** The results of a storm as text, and which of them break watchkeeper's promise. */
import type { Outcome } from "../load/storm.ts";
import { quantile } from "../rig/table.ts";

/**
 * Ends of watches that are not the proxy's fault: the client requested the timeout, or the version was compacted, so
 * that only the client can list again (watch.md §5.1).
 */
const gone = /^ended: error 410 /;
const own = /^ended: (own time-out|for a true 410|error 410 .*)$/;

/**
 * Returns the results that break the promise. `mostDelayMs`: the promised delay is a second; on a shared machine, a
 * test allows more. `mayEnd` matches ends of watches that the proxy cannot decode.
 */
export function misses(outcome: Outcome, mostDelayMs = 1_000, mayEnd = /^never$/): string[] {
  const { watches, gone: inquiries, informers, kubectlMissing, kubectlLives, pythonMissing, gets } = outcome;
  const missed: string[] = [];
  const none = (what: string, count: number): void => {
    if (count > 0) missed.push(`${what}: ${count}`);
  };
  for (const [how, count] of watches.ends)
    if (!own.test(how) && !mayEnd.test(how)) none(`watches ${how}`, count);
  none("events missing", watches.missing);
  none("events doubled", watches.doubled);
  none("events out of order", watches.reordered);
  none("events that etcd knows nothing of", watches.invented);
  const trueGone = [...watches.ends]
    .filter(([how]) => gone.test(how))
    .reduce((sum, [, count]) => sum + count, 0);
  for (const { what, isTrue } of inquiries) if (!isTrue) missed.push(`an untrue 410: ${what}`);
  none("relists by watches without a 410", watches.relists - trueGone);
  none("relists by informers", informers.relists);
  none("informers gone backwards", informers.backwards);
  none("informers whose store is not etcd's", informers.unequal);
  none("events that kubectl get -w missed", kubectlMissing);
  if (!kubectlLives) missed.push("kubectl get -w ended");
  none("events that the Python client missed", pythonMissing);
  if (gets.failures !== "") missed.push(`GETs failed: ${gets.failures}`);
  const slow = quantile(watches.delays, 0.999);
  if (slow > mostDelayMs) missed.push(`p99.9 of events' delays ${slow} ms, not ${mostDelayMs}`);
  return missed;
}

export type Trouble = { readonly at: number; readonly name: string };

/** For each fault, returns how many events were more than a second late during or after it, and the longest delay. */
export function lateness({ watches }: Outcome, troubles: readonly Trouble[]): string[] {
  const found = new Map<Trouble | undefined, number[]>();
  for (const { at, ms } of watches.late) {
    const trouble = troubles.findLast((one) => one.at <= at + ms);
    found.set(trouble, [...(found.get(trouble) ?? []), ms]);
  }
  return [...found].map(([trouble, all]) => {
    const what =
      trouble === undefined ? "before any trouble" : `${new Date(trouble.at).toISOString()} ${trouble.name}`;
    return `late: ${what}: ${all.length} events, up to ${Math.max(...all)} ms`;
  });
}

export function summary({
  watches,
  gone: inquiries,
  reasons,
  informers,
  gets,
  writes,
  kubectlMissing,
  pythonMissing,
}: Outcome): string {
  const { delays } = watches;
  const shares = [0.5, 0.99, 0.999, 1].map((share) => quantile(delays, share)).join(" / ");
  return [
    `${watches.watches} watches, ${watches.events} events of ${writes.seen} changes (${writes.failed} writes failed)`,
    `ends: ${[...watches.ends].map(([how, count]) => `${how} ×${count}`).join("; ") || "none"}`,
    `the proxy's reasons: ${[...reasons].map(([reason, count]) => `${reason} ×${count}`).join("; ") || "none"}`,
    `410s: ${inquiries.length}, of them untrue ${inquiries.filter(({ isTrue }) => !isTrue).length}`,
    `missing ${watches.missing}, doubled ${watches.doubled}, out of order ${watches.reordered}, invented ${watches.invented}`,
    `relists: ${watches.relists} by watches, ${informers.relists} by informers; ${informers.unequal} stores unequal`,
    `delay behind etcd's own record, ms: p50 / p99 / p99.9 / worst ${shares}`,
    `kubectl missed ${kubectlMissing}, Python missed ${pythonMissing}`,
    `GETs: ${gets.sent}, slowest ${gets.slowestMs} ms, failed: ${gets.failures || "none"}`,
    ...inquiries.map(({ what, isTrue }) => `410 ${isTrue ? "true" : "UNTRUE"}: ${what}`),
    ...watches.examples,
  ].join("\n");
}
