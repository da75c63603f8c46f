/**
 * The leader leases that are renewed through the proxy, up to a limit: the least recently renewed one is evicted first.
 */

import { clipped } from "../base/detach.ts";
import { Lru } from "../base/lru.ts";
import type { Caller } from "./caller.ts";
import { ledgerLimits } from "./limits.ts";
import { type Judgement, kindOf, Lock, type LockName, type Renewer } from "./lock.ts";
import type { LockRecord } from "./lock-body.ts";
import { judgeRenewal, type Renewal } from "./lock-judgement.ts";
import { Pods } from "./pods.ts";

/** A write to a lease that the backend has accepted. */
export type LockWrite = {
  readonly name: LockName;
  readonly record: LockRecord;
  readonly caller: Caller;
  readonly session: number;
  readonly isCreate: boolean;
};

/** A judgement that is to be reported, and its lease. */
export type LockReport = { readonly lock: Lock; readonly judgement: Judgement };

export class Locks {
  readonly pods = new Pods();
  readonly #locks = new Lru<string, Lock>(ledgerLimits.locks);

  get all(): readonly Lock[] {
    return [...this.#locks.values()];
  }

  /** Records a write. Returns a report if the write makes the lease suspect and the last report is old enough. */
  written({ name, record, caller, session, isCreate }: LockWrite, at: number): LockReport | undefined {
    const lock = this.#of(name);
    this.pods.seen(caller.subject.namespace, caller.subject.pod);
    const holder = clipped(record.holder ?? lock.holder, ledgerLimits.holderChars);
    if (record.durationMs !== undefined) lock.durationMs = record.durationMs;
    if (holder === "") return this.#released(lock, at);
    // Such a write only labels the lease, or changes its object for another reason.
    if (!record.isRenewal && holder === lock.holder) return undefined;
    const renewal = { caller, session, holder, isCreate, at };
    const judgement = judgeRenewal(lock, renewal, this.pods);
    this.#keep(lock, renewal);
    return judgement === undefined ? undefined : this.#judged(lock, judgement, at);
  }

  #of(name: LockName): Lock {
    const key = `${name.resource} ${name.namespace}/${name.name}`;
    const lock = this.#locks.get(key) ?? new Lock(name);
    this.#locks.set(key, lock);
    return lock;
  }

  #released(lock: Lock, at: number): undefined {
    lock.holder = "";
    lock.heldSince = at;
    lock.renewedAt = at;
  }

  #keep(lock: Lock, { caller, session, holder, isCreate, at }: Renewal): void {
    if (holder !== lock.holder) {
      const isReleased = lock.holder === "" || isCreate;
      const from = lock.handovers.at(-1)?.to ?? "";
      lock.handovers = [...lock.handovers, { from, to: holder, at, isReleased }].slice(
        -ledgerLimits.lockHandovers,
      );
      lock.heldSince = at;
      lock.holder = holder;
    }
    lock.renewedAt = at;
    lock.renewals += 1;
    const isSame = (one: Renewer): boolean =>
      one.caller === caller && one.session === session && one.holder === holder;
    const own = lock.renewers.find(isSame) ?? { caller, session, holder, since: at, lastAt: at, renewals: 0 };
    own.lastAt = at;
    own.renewals += 1;
    if (lock.renewers.at(-1) !== own)
      lock.renewers = [...lock.renewers.filter((one) => one !== own), own].slice(-ledgerLimits.lockRenewers);
    const kind = kindOf(caller);
    if (!lock.knownKinds.includes(kind))
      lock.knownKinds = [...lock.knownKinds, kind].slice(-ledgerLimits.lockRenewers);
  }

  #judged(lock: Lock, judgement: Judgement, at: number): LockReport | undefined {
    const isNews =
      judgement.verdict !== lock.verdictAt(at)?.verdict || at - lock.reportedAt >= ledgerLimits.lockReportMs;
    lock.judgement = judgement;
    lock.judgedAt = at;
    if (!isNews) return undefined;
    lock.reportedAt = at;
    return { lock, judgement };
  }
}
