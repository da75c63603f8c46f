/** `/api/v1/locks`: who holds the leader locks, and who renews them from where. */
import type { Lock, Renewer } from "../ledger/lock.ts";
import { callerView } from "./caller-view.ts";
import type { Json, Listing } from "./listing.ts";
import type { Times } from "./times.ts";

export function lockListing(all: () => readonly Lock[], times: Times): Listing<Lock> {
  const verdictOf = (lock: Lock): string => lock.verdictAt(times.now())?.verdict ?? "ok";
  return {
    kind: "LockList",
    rows: all,
    sort: "namespace",
    columns: {
      resource: ({ name }) => name.resource,
      namespace: ({ name }) => name.namespace,
      name: ({ name }) => name.name,
      holder: ({ holder }) => holder,
      client: ({ renewers }) => renewers.at(-1)?.caller.address ?? "",
      subject: ({ renewers }) => renewers.at(-1)?.caller.subject.name ?? "",
      agent: ({ renewers }) => renewers.at(-1)?.caller.agent ?? "",
      verdict: verdictOf,
      state: (lock) => stateOf(lock, times.now()),
      renewedAt: ({ renewedAt }) => renewedAt,
      renewals: ({ renewals }) => renewals,
      heldSince: ({ heldSince }) => heldSince,
    },
    view: (lock) => viewOf(lock, times),
  };
}

/** "lapsed": nobody has renewed it through us for as long as it lasts. */
function stateOf({ holder, renewedAt, durationMs }: Lock, now: number): string {
  if (holder === "") return "free";
  return durationMs > 0 && now - renewedAt > durationMs ? "lapsed" : "held";
}

function viewOf(lock: Lock, times: Times): Json {
  const { timeOf, ageOf, now } = times;
  const judgement = lock.verdictAt(now());
  const last = lock.renewers.at(-1);
  return {
    ...lock.name,
    holder: lock.holder,
    state: stateOf(lock, now()),
    durationMs: lock.durationMs,
    heldSince: timeOf(lock.heldSince),
    renewedAt: timeOf(lock.renewedAt),
    renewedAgeMs: ageOf(lock.renewedAt),
    renewals: lock.renewals,
    renewedBy: last === undefined ? null : callerView(last.caller),
    verdict: judgement?.verdict ?? "ok",
    reason: judgement?.reason ?? "",
    detector: judgement?.detector ?? "",
    renewers: lock.renewers.map((renewer) => renewerView(renewer, times)),
    handovers: lock.handovers.map(({ from, to, at, isReleased }) => ({
      at: timeOf(at),
      from,
      to,
      isReleased,
    })),
  };
}

function renewerView({ caller, session, holder, since, lastAt, renewals }: Renewer, times: Times): Json {
  const { timeOf, ageOf } = times;
  return {
    ...callerView(caller),
    session,
    holder,
    since: timeOf(since),
    lastAgeMs: ageOf(lastAt),
    renewals,
  };
}
