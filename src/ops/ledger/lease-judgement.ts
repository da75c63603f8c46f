/** Judges each renewal of a lease by the lease's earlier requests. A correct leader election causes no judgement. */

import type { Caller } from "./caller.ts";
import { type Judgement, kindOf, type Lease } from "./lease.ts";
import { ledgerLimits } from "./limits.ts";
import { isNamed, isSibling, type Pods, podNamedBy } from "./pods.ts";

export type Renewal = {
  readonly caller: Caller;
  readonly session: number;
  readonly holder: string;
  readonly isCreate: boolean;
  readonly at: number;
};

export function judgeRenewal(lease: Lease, renewal: Renewal, pods: Pods): Judgement | undefined {
  if (renewal.holder === "") return undefined;
  return (
    ghost(lease, renewal, pods) ??
    alternating(lease, renewal) ??
    taken(lease, renewal) ??
    stranger(lease, renewal)
  );
}

/**
 * Finds a renewal whose holder is a deleted pod. Also finds a renewal whose token belongs to another pod than the
 * holder (incident 002).
 */
function ghost(lease: Lease, { caller, holder, at }: Renewal, pods: Pods): Judgement | undefined {
  const { pod, node, namespace } = caller.subject;
  const named = podNamedBy(holder);
  const gone = goneOf(pods, [
    [lease.name.namespace, named],
    [namespace, named],
    [namespace, pod],
  ]);
  if (gone !== undefined && at - gone.at > ledgerLimits.podGoneMs) {
    const ms = Math.round(at - gone.at);
    const reason = `Pod ${gone.pod} was deleted ${seconds(ms)} ago, but still renews from ${caller.address}`;
    return {
      verdict: "ghost",
      detector: "deleted-pod",
      was: gone.pod,
      valueMs: ms,
      limitMs: ledgerLimits.podGoneMs,
      reason,
    };
  }
  // A renewal is suspect only if the holder's name is the name of another known pod, because other names may have any
  // format.
  const isOther = pods.isSeen(namespace, named) || isSibling(named, pod);
  if (pod === "" || isNamed(holder, pod) || isNamed(holder, node) || !isOther) return undefined;
  const reason = `Lease names pod ${named} but is renewed with the token of pod ${namespace}/${pod} from ${caller.address}`;
  return { verdict: "ghost", detector: "pod", was: pod, valueMs: 0, limitMs: 0, reason };
}

type DeletedPod = { readonly pod: string; readonly at: number };

function goneOf(pods: Pods, names: readonly (readonly [string, string])[]): DeletedPod | undefined {
  for (const [namespace, pod] of names) {
    const at = pods.deletedAt(namespace, pod);
    if (at !== undefined) return { pod: `${namespace}/${pod}`, at };
  }
  return undefined;
}

/** Finds two clients that renew in turn under one holder name, which a restarted process cannot cause. */
function alternating(lease: Lease, { caller, session, holder, at }: Renewal): Judgement | undefined {
  const last = lease.renewers.at(-1);
  const own = lease.renewers.find(
    (one) => one.caller === caller && one.session === session && one.holder === holder,
  );
  if (own === undefined || last === undefined || last === own || last.holder !== holder) return undefined;
  const limitMs = 2 * Math.max(lease.durationMs, ledgerLimits.leaseLeastMs);
  const valueMs = Math.round(at - own.lastAt);
  if (valueMs > limitMs) return undefined;
  const other = textOf(last.caller);
  const reason = `Lease is renewed by two clients under one holder name: ${textOf(caller)} and ${other}`;
  return { verdict: "contested", detector: "alternation", was: other, valueMs, limitMs, reason };
}

/**
 * Finds a client that took the lease although its holder had not released it and it had not expired. Also finds two
 * holders that take the lease from each other in turn.
 */
function taken(lease: Lease, { caller, holder, isCreate, at }: Renewal): Judgement | undefined {
  const before = lease.holder;
  if (before === "" || before === holder || isCreate) return undefined;
  const last = lease.renewers.at(-1);
  const was = last === undefined ? before : textOf(last.caller);
  const valueMs = Math.round(at - lease.renewedAt);
  // A takeover just before the expiry is allowed, because clocks differ and renewals may reach the proxy late. If the
  // lease states no duration (0), any takeover is allowed: client-go always states one, and another program's rule for
  // the expiry is unknown. With an assumed duration, such a program's correct takeovers would be reported.
  const limitMs = Math.round(lease.durationMs * ledgerLimits.leaseShare);
  if (valueMs < limitMs) {
    const reason = `Lease was taken from ${before} ${seconds(valueMs)} after its renewal, by ${textOf(caller)} as ${holder}`;
    return { verdict: "contested", detector: "takeover", was, valueMs, limitMs, reason };
  }
  const back = lease.handovers.findLast((one) => one.from === holder && !one.isReleased);
  if (back === undefined || at - back.at > ledgerLimits.leaseTurnsMs) return undefined;
  const reason = `${holder} and ${before} take the lease from each other by turns`;
  const turnMs = Math.round(at - back.at);
  return {
    verdict: "contested",
    detector: "turns",
    was,
    valueMs: turnMs,
    limitMs: ledgerLimits.leaseTurnsMs,
    reason,
  };
}

/** Finds a holder whose identity and program have not held the lease before. */
function stranger(lease: Lease, { caller }: Renewal): Judgement | undefined {
  if (lease.renewals < ledgerLimits.leaseRenewals || lease.knownKinds.includes(kindOf(caller)))
    return undefined;
  const last = lease.renewers.at(-1);
  const was = last === undefined ? "" : textOf(last.caller);
  const reason = `${textOf(caller)} has never held the lease; the last holder was ${was}`;
  return { verdict: "unknown", detector: "identity", was, valueMs: 0, limitMs: 0, reason };
}

function textOf({ subject, agent, address }: Caller): string {
  const name = subject.name === "" ? "" : `${subject.name}, `;
  return `${agent} (${name}${address})`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
