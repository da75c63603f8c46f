/** `/api/v1/clients`: the clients of the backends. */
import type { Caller } from "../../ledger/caller.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { LedgerTap } from "../../proxy/observe/ledger-tap.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { age, count, type Fields, listingOf, oneOf, text, time, within, words } from "./fields.ts";

/** The ledger of one cluster; "" is the name of the only one. */
export type ClusterLedger = {
  readonly cluster: string;
  readonly ledgerTap: Pick<LedgerTap, "ledger" | "leases">;
};

type Row = { readonly cluster: string; readonly caller: Caller; readonly ledger: Ledger };

/** The client's fields, the same in every list. */
export const callerFields = {
  client: text("The address of its connection.", "address"),
  agent: text("The product in its User-Agent.", "agent"),
  subject: text(
    'Its identity; verified by the proxy only if `subjectSource` is "vouched".',
    ({ subject }) => subject.name,
  ),
  subjectSource: oneOf(
    "What `subject` was read from.",
    ["jwt", "vouched", "bearer", "basic", "none"],
    ({ subject }) => subject.source,
  ),
  pod: text('"namespace/name" that its token is bound to, by its own claims.', ({ subject }) =>
    subject.pod === "" ? "" : `${subject.namespace}/${subject.pod}`,
  ),
  node: text("The node that its token is bound to, by its own claims.", ({ subject }) => subject.node),
} satisfies Fields<Caller>;

export const clusterField = text<{ readonly cluster: string }>(
  "The cluster; empty if there is only one.",
  "cluster",
);

export const clientFields = {
  cluster: clusterField,
  ...within(callerFields, ({ caller }: Row) => caller),
  since: time("When its first request came.", ({ caller }) => caller.since),
  lastSeenAgeMs: age("Time since its last request.", ({ caller }) => caller.lastAt),
  requests: count("Requests in total.", ({ caller }) => caller.requests),
  active: count("Requests in progress.", ({ caller }) => caller.active),
  watches: count("Watches that it has opened.", ({ caller }) => caller.watches),
  relists: count("Lists of resources that it had a watch of.", ({ caller }) => caller.relists),
  errors: count("Responses from 400 on, and requests without a response.", ({ caller }) => caller.errors),
  bytes: count("Bytes sent to it.", ({ caller }) => caller.bytes),
  anomalies: words(
    "Anomalies: new, no-agent, anonymous, failing, relisting, re-watching.",
    ({ caller, ledger }, { now }) => caller.oddities(now(), ledger.isWarm(now())),
  ),
} satisfies Fields<Row>;

export function clientListing(ledgers: () => readonly ClusterLedger[], times: Times): Listing<Row> {
  return listingOf(
    {
      kind: "ClientList",
      rows: () =>
        ledgers().flatMap(({ cluster, ledgerTap: { ledger } }) =>
          ledger.all.map((caller) => ({ cluster, caller, ledger })),
        ),
      sort: "-requests",
      fields: clientFields,
      by: "cluster client agent subject subjectSource pod anomalies since requests active watches relists errors bytes",
      columns: { lastSeen: ({ caller }) => caller.lastAt },
    },
    times,
  );
}
