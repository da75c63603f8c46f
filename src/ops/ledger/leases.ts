/** The leader leases that clients renew through the proxy. The least recently renewed lease is evicted first. */

import { clipped } from "../../base/detach.ts";
import { Lru } from "../../base/lru.ts";
import type { Caller } from "./caller.ts";
import { type Judgement, kindOf, Lease, type LeaseName, type Renewer } from "./lease.ts";
import type { LeaseRecord } from "./lease-body.ts";
import { judgeRenewal, type Renewal } from "./lease-judgement.ts";
import { ledgerLimits } from "./limits.ts";
import { Pods } from "./pods.ts";

/** A write to a lease that a backend has accepted. */
export type LeaseWrite = {
  readonly name: LeaseName;
  readonly record: LeaseRecord;
  readonly caller: Caller;
  readonly session: number;
  readonly isCreate: boolean;
};

/**
 * Namespace of the leases by which nodes report that they are alive. They elect no leader, so a caller that renews one
 * gets no higher urgency.
 */
const nodeLeases = "kube-node-lease";

export type LeaseReport = { readonly lease: Lease; readonly judgement: Judgement };

export class Leases {
  readonly pods = new Pods();
  readonly #leases = new Lru<string, Lease>(ledgerLimits.leases);

  get all(): readonly Lease[] {
    return [...this.#leases.values()];
  }

  /**
   * Records a write. If the write is suspect, returns a report, unless a recent report of the lease had the same
   * verdict.
   */
  written({ name, record, caller, session, isCreate }: LeaseWrite, at: number): LeaseReport | undefined {
    const lease = this.#of(name);
    this.pods.seen(caller.subject.namespace, caller.subject.pod);
    const holder = clipped(record.holder ?? lease.holder, ledgerLimits.holderChars);
    if (record.durationMs !== undefined) lease.durationMs = record.durationMs;
    if (holder === "") return this.#released(lease, at);
    // A write that neither renews the lease nor changes its holder is ignored. For example, it may only set labels.
    if (!record.isRenewal && holder === lease.holder) return undefined;
    const renewal = { caller, session, holder, isCreate, at };
    const judgement = judgeRenewal(lease, renewal, this.pods);
    this.#keep(lease, renewal);
    if (name.namespace !== nodeLeases) caller.urgency = 0;
    return judgement === undefined ? undefined : this.#judged(lease, judgement, at);
  }

  #of(name: LeaseName): Lease {
    const key = `${name.resource} ${name.namespace}/${name.name}`;
    const lease = this.#leases.get(key) ?? new Lease(name);
    this.#leases.set(key, lease);
    return lease;
  }

  #released(lease: Lease, at: number): undefined {
    lease.holder = "";
    lease.heldSince = at;
    lease.renewedAt = at;
  }

  #keep(lease: Lease, { caller, session, holder, isCreate, at }: Renewal): void {
    if (holder !== lease.holder) {
      const isReleased = lease.holder === "" || isCreate;
      const from = lease.handovers.at(-1)?.to ?? "";
      lease.handovers = [...lease.handovers, { from, to: holder, at, isReleased }].slice(
        -ledgerLimits.leaseHandovers,
      );
      lease.heldSince = at;
      lease.holder = holder;
    }
    lease.renewedAt = at;
    lease.renewals += 1;
    const isSame = (one: Renewer): boolean =>
      one.caller === caller && one.session === session && one.holder === holder;
    const own = lease.renewers.find(isSame) ?? {
      caller,
      session,
      holder,
      since: at,
      lastAt: at,
      renewals: 0,
    };
    own.lastAt = at;
    own.renewals += 1;
    if (lease.renewers.at(-1) !== own)
      lease.renewers = [...lease.renewers.filter((one) => one !== own), own].slice(
        -ledgerLimits.leaseRenewers,
      );
    const kind = kindOf(caller);
    if (!lease.knownKinds.includes(kind))
      lease.knownKinds = [...lease.knownKinds, kind].slice(-ledgerLimits.leaseRenewers);
  }

  #judged(lease: Lease, judgement: Judgement, at: number): LeaseReport | undefined {
    const isNews =
      judgement.verdict !== lease.verdictAt(at)?.verdict ||
      at - lease.reportedAt >= ledgerLimits.leaseReportMs;
    lease.judgement = judgement;
    lease.judgedAt = at;
    if (!isNews) return undefined;
    lease.reportedAt = at;
    return { lease, judgement };
  }
}
