/** `/api/v1/clients`: the clients of the backends. */
import type { Caller } from "../../ledger/caller.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Talk } from "../../proxy/observe/ledger-tap.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { callerView } from "./caller-view.ts";

/** The ledger of one cluster; "" is the name of the only one. */
export type Talking = { readonly cluster: string; readonly talk: Pick<Talk, "ledger" | "locks"> };

type Row = { readonly cluster: string; readonly caller: Caller; readonly ledger: Ledger };

export function clientListing(talks: () => readonly Talking[], { now, timeOf, ageOf }: Times): Listing<Row> {
  const anomalies = ({ caller, ledger }: Row): readonly string[] =>
    caller.oddities(now(), ledger.isWarm(now()));
  return {
    kind: "ClientList",
    rows: () =>
      talks().flatMap(({ cluster, talk: { ledger } }) =>
        ledger.all.map((caller) => ({ cluster, caller, ledger })),
      ),
    sort: "-requests",
    columns: {
      cluster: ({ cluster }) => cluster,
      client: ({ caller }) => caller.address,
      agent: ({ caller }) => caller.agent,
      subject: ({ caller }) => caller.subject.name,
      subjectSource: ({ caller }) => caller.subject.source,
      pod: ({ caller }) => caller.subject.pod,
      anomalies: (row) => anomalies(row).join(),
      since: ({ caller }) => caller.since,
      lastSeen: ({ caller }) => caller.lastAt,
      requests: ({ caller }) => caller.requests,
      active: ({ caller }) => caller.active,
      watches: ({ caller }) => caller.watches,
      relists: ({ caller }) => caller.relists,
      errors: ({ caller }) => caller.errors,
      bytes: ({ caller }) => caller.bytes,
    },
    view: (row) => ({
      cluster: row.cluster,
      ...callerView(row.caller),
      since: timeOf(row.caller.since),
      lastSeenAgeMs: ageOf(row.caller.lastAt),
      requests: row.caller.requests,
      active: row.caller.active,
      watches: row.caller.watches,
      relists: row.caller.relists,
      errors: row.caller.errors,
      bytes: row.caller.bytes,
      anomalies: anomalies(row),
    }),
  };
}
