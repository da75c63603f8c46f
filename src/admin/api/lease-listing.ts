/** `/api/v1/leases`: the holders of leader leases, and the clients that renew them. */
import type { Lock, Renewer } from "../../ledger/lock.ts";
import type { Json, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { callerView } from "./caller-view.ts";
import type { Talking } from "./client-listing.ts";

type Row = { readonly cluster: string; readonly lock: Lock };

export function leaseListing(talks: () => readonly Talking[], times: Times): Listing<Row> {
  const verdictOf = ({ lock }: Row): string => lock.verdictAt(times.now())?.verdict ?? "ok";
  return {
    kind: "LeaseList",
    rows: () => talks().flatMap(({ cluster, talk }) => talk.locks.all.map((lock) => ({ cluster, lock }))),
    sort: "namespace",
    columns: {
      cluster: ({ cluster }) => cluster,
      resource: ({ lock }) => lock.name.resource,
      namespace: ({ lock }) => lock.name.namespace,
      name: ({ lock }) => lock.name.name,
      holder: ({ lock }) => lock.holder,
      client: ({ lock }) => lock.renewers.at(-1)?.caller.address ?? "",
      subject: ({ lock }) => lock.renewers.at(-1)?.caller.subject.name ?? "",
      agent: ({ lock }) => lock.renewers.at(-1)?.caller.agent ?? "",
      verdict: verdictOf,
      state: ({ lock }) => stateOf(lock, times.now()),
      renewedAt: ({ lock }) => lock.renewedAt,
      renewals: ({ lock }) => lock.renewals,
      heldSince: ({ lock }) => lock.heldSince,
    },
    view: (row) => viewOf(row, times),
  };
}

/** "lapsed": no renewal has passed through this proxy for the lease's whole duration. */
function stateOf({ holder, renewedAt, durationMs }: Lock, now: number): string {
  if (holder === "") return "free";
  return durationMs > 0 && now - renewedAt > durationMs ? "lapsed" : "held";
}

function viewOf({ cluster, lock }: Row, times: Times): Json {
  const { timeOf, ageOf, now } = times;
  const judgement = lock.verdictAt(now());
  const last = lock.renewers.at(-1);
  return {
    cluster,
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
