/** `/api/v1/clients`: who talks to the backends. */
import type { Caller } from "../ledger/caller.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { callerView } from "./caller-view.ts";
import type { Listing } from "./listing.ts";
import type { Times } from "./times.ts";

export function clientListing(ledger: Ledger, { now, timeOf, ageOf }: Times): Listing<Caller> {
  const odd = (caller: Caller): readonly string[] => caller.oddities(now(), ledger.isWarm(now()));
  return {
    kind: "ClientList",
    rows: () => ledger.all,
    sort: "-requests",
    columns: {
      client: ({ address }) => address,
      agent: ({ agent }) => agent,
      subject: ({ subject }) => subject.name,
      subjectSource: ({ subject }) => subject.source,
      pod: ({ subject }) => subject.pod,
      odd: (caller) => odd(caller).join(),
      since: ({ since }) => since,
      lastSeen: ({ lastAt }) => lastAt,
      requests: ({ requests }) => requests,
      active: ({ active }) => active,
      watches: ({ watches }) => watches,
      relists: ({ relists }) => relists,
      errors: ({ errors }) => errors,
      bytes: ({ bytes }) => bytes,
    },
    view: (caller) => ({
      ...callerView(caller),
      since: timeOf(caller.since),
      lastSeenAgeMs: ageOf(caller.lastAt),
      requests: caller.requests,
      active: caller.active,
      watches: caller.watches,
      relists: caller.relists,
      errors: caller.errors,
      bytes: caller.bytes,
      odd: odd(caller),
    }),
  };
}
