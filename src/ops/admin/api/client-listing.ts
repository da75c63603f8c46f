/** `/api/v1/clients`: the clients that send requests to the backends, and how many they send. */

import type { LedgerTap } from "../../../proxy/observe/ledger-tap.ts";
import type { Caller } from "../../ledger/caller.ts";
import { clientKinds } from "../../ledger/client-kind.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { age, count, type Fields, listingOf, oneOf, text, time, within, words } from "./fields.ts";

/** The recorded clients of one cluster. `cluster`: the cluster's name; "" if there is only one cluster. */
export type ClusterLedger = {
  readonly cluster: string;
  readonly ledgerTap: Pick<LedgerTap, "ledger" | "leases">;
};

type ClientRow = { readonly cluster: string; readonly caller: Caller; readonly ledger: Ledger };

/** The fields that identify a client, the same in the lists of clients, watches and leases. */
export const callerFields = {
  client: text("The address that the client connects from.", "address"),
  agent: text("The product in its User-Agent.", "agent"),
  clientKind: oneOf("What the client is, by its agent and subject.", clientKinds, "kind"),
  subject: text(
    'The identity of the client; verified by the proxy only if `subjectSource` is "vouched".',
    ({ subject }) => subject.name,
  ),
  subjectSource: oneOf(
    "What `subject` was read from.",
    ["jwt", "vouched", "bearer", "basic", "none"],
    ({ subject }) => subject.source,
  ),
  pod: text('"namespace/name" of the pod that the token names; not verified.', ({ subject }) =>
    subject.pod === "" ? "" : `${subject.namespace}/${subject.pod}`,
  ),
  node: text("The node that the token names; not verified.", ({ subject }) => subject.node),
} satisfies Fields<Caller>;

export const clusterField = text<{ readonly cluster: string }>(
  "The cluster; empty if there is only one.",
  "cluster",
);

export const clientFields = {
  cluster: clusterField,
  ...within(callerFields, ({ caller }: ClientRow) => caller),
  since: time("When the first request arrived.", ({ caller }) => caller.since),
  lastSeenAgeMs: age("Time since the last request.", ({ caller }) => caller.lastAt),
  requests: count("Requests in total.", ({ caller }) => caller.requests),
  active: count("Requests in progress.", ({ caller }) => caller.active),
  watches: count("Watches that the client has opened.", ({ caller }) => caller.watches),
  relists: count("Lists of a resource that the client had watched before.", ({ caller }) => caller.relists),
  errors: count(
    "Responses with a status of 400 or more, and requests without a response.",
    ({ caller }) => caller.errors,
  ),
  bytes: count("Bytes sent to the client.", ({ caller }) => caller.bytes),
  anomalies: words(
    "Anomalies: new, no-agent, anonymous, failing, relisting, re-watching.",
    ({ caller, ledger }, { now }) => caller.oddities(now(), ledger.warmAt),
  ),
} satisfies Fields<ClientRow>;

export function clientListing(ledgers: () => readonly ClusterLedger[], times: Times): Listing<ClientRow> {
  return listingOf(
    {
      kind: "ClientList",
      rows: () =>
        ledgers().flatMap(({ cluster, ledgerTap: { ledger } }) =>
          ledger.all.map((caller) => ({ cluster, caller, ledger })),
        ),
      sort: "-requests",
      fields: clientFields,
      by: "cluster client agent clientKind subject subjectSource pod anomalies since requests active watches relists errors bytes",
      columns: { lastSeen: ({ caller }) => caller.lastAt },
    },
    times,
  );
}
