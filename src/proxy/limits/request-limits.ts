/**
 * Refuses requests above a limit before they are sent to a backend: with 429 and Retry-After, as API Priority and
 * Fairness does. The limits are those of the cluster's configuration, and those that operators have set at run time.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { LimitConfig } from "../../ops/config/limit.ts";
import type { Caller } from "../../ops/ledger/caller.ts";
import type { Client } from "../../upstream/context/client.ts";
import { Limit, type LimitedCaller, type LimitedInfo, titleOf } from "./limit.ts";
import { operatorLimits } from "./limits.ts";
import type { OperatorLimits } from "./operator-limits.ts";

export type LimitedRequest = {
  readonly info: LimitedInfo;
  readonly client: Client;
  readonly caller: Caller;
  /**
   * True if the proxy has verified the caller's identity, or a backend has accepted its token. Without this condition,
   * a client could use up another user's limit with an invented token that names that user.
   */
  readonly isVerified: boolean;
};

/** Remembered for each client (connection): the caller of its latest request, and the limits that apply to this caller. */
type Memo = Pick<LimitedRequest, "caller" | "isVerified"> & { readonly limits: readonly Limit[] };

const none: readonly Limit[] = [];

export class RequestLimits {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #operators: OperatorLimits | undefined;
  #own: readonly Limit[] = none;
  #all: readonly Limit[] = none;
  /** True if no limit is in force, so that a request needs no further check. */
  isEmpty = true;
  #memos = new WeakMap<Client, Memo>();
  /** Number of refused requests by the limit's name; "operator" stands for all limits that operators have set. */
  readonly refused = new Map<string, number>();
  /** Names of the limits whose refusals were journaled in the last `reportMs`. */
  readonly #reported = new Set<string>();
  readonly stop: () => void;

  constructor(
    { clock, journal }: { readonly clock: Clock; readonly journal: Journal },
    configs: readonly LimitConfig[] = [],
    operators?: OperatorLimits,
  ) {
    this.#clock = clock;
    this.#journal = journal;
    this.#operators = operators;
    this.stop = operators?.subscribe(() => this.#collect()) ?? (() => {});
    this.configure(configs);
  }

  /** Applies the limits of another configuration. A limit that is in both configurations keeps its counts. */
  configure(configs: readonly LimitConfig[]): void {
    const before = new Map(this.#own.map((limit) => [JSON.stringify(limit.config), limit]));
    const shared = this.#operators === undefined ? {} : { replicas: this.#operators.replicas };
    this.#own = configs.map(
      (config) => before.get(JSON.stringify(config)) ?? new Limit(config, this.#clock, shared),
    );
    this.#collect();
  }

  #collect(): void {
    this.#all = [...this.#own, ...(this.#operators?.all ?? none)];
    this.isEmpty = this.#all.length === 0;
    this.#memos = new WeakMap();
  }

  /** The limits of the configuration. */
  get own(): readonly Limit[] {
    return this.#own;
  }

  /**
   * Counts a request that begins. Returns the limits that count the request until `endAll` is called with them. If a
   * limit is exceeded, returns the refusal instead. Called only if limits are in force.
   */
  begin(request: LimitedRequest): readonly Limit[] | Failure {
    const applying = this.#applyingTo(request);
    let counting = none;
    for (const limit of applying) {
      if (!limit.counts(request.info)) continue;
      if (!limit.isOpen) return this.#refuse(limit, request.caller);
      counting = counting === none ? [limit] : [...counting, limit];
    }
    for (const limit of counting) limit.begin();
    return counting;
  }

  #applyingTo({ client, caller, isVerified }: LimitedRequest): readonly Limit[] {
    const memo = this.#memos.get(client);
    if (memo?.caller === caller && memo.isVerified === isVerified) return memo.limits;
    const limited = limitedCallerOf(client, caller, isVerified);
    const limits = this.#all.filter((limit) => limit.appliesTo(limited));
    this.#memos.set(client, { caller, isVerified, limits });
    return limits;
  }

  #refuse(limit: Limit, caller: Caller): Failure {
    limit.refused += 1;
    const name = limit.origin === undefined ? limit.name : "operator";
    this.refused.set(name, (this.refused.get(name) ?? 0) + 1);
    this.#report(limit, caller);
    return new Failure(
      "limited",
      "proxy",
      `Too many requests, please try again later: ${titleOf(limit)} allows ${limit.toString()}`,
    );
  }

  /** Journals a limit's first refusal, and after that the number of refusals at most every ten seconds. */
  #report(limit: Limit, { address, agent, subject }: Caller): void {
    const title = titleOf(limit);
    if (this.#reported.has(title)) return;
    this.#reported.add(title);
    this.#clock.after(operatorLimits.reportMs, () => this.#reported.delete(title));
    this.#journal.write({
      kind: "limit.refused",
      limit: title,
      origin: limit.origin === undefined ? "config" : "operator",
      allows: String(limit),
      refused: limit.refused,
      client: address,
      userAgent: agent,
      user: subject.name,
    });
  }
}

export function endAll(limits: readonly Limit[]): void {
  for (const limit of limits) limit.end();
}

const serviceAccount = /^system:serviceaccount:([^:]+):[^:]+$/;

/** Returns the properties of a caller that limits and shields use. */
export function limitedCallerOf(
  { identity }: Client,
  { subject, agent, address }: Caller,
  isVerified: boolean,
): LimitedCaller {
  if (subject.source === "none")
    return { user: "system:anonymous", groups: ["system:unauthenticated"], agent, address };
  if (!isVerified) return { user: undefined, groups: [], agent, address };
  const certified = subject.source === "vouched" && identity.kind === "asserted" ? identity.groups : [];
  const namespace = serviceAccount.exec(subject.name)?.[1];
  const ofAccount =
    namespace === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  const user = subject.name === "" ? undefined : subject.name;
  return { user, groups: [...certified, ...ofAccount, "system:authenticated"], agent, address };
}
