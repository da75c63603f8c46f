/** `/api/v1/leases`: the holders of leader leases, and the clients that renew them. */
import type { Handover, Lease, Renewer } from "../../ledger/lease.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { type ClusterLedger, callerFields, clusterField } from "./client-listing.ts";
import {
  age,
  count,
  type Fields,
  flag,
  list,
  listingOf,
  maybe,
  oneOf,
  text,
  time,
  within,
} from "./fields.ts";

type LeaseRow = { readonly cluster: string; readonly lease: Lease };

const renewerFields = {
  ...within(callerFields, ({ caller }: Renewer) => caller),
  session: count("The client's port, if it uses HTTP/2; 0 over HTTP/1.1.", "session"),
  holder: text("The holder that its renewals name.", "holder"),
  since: time("When this client first renewed the lease.", "since"),
  lastAgeMs: age("Time since the last renewal by this client.", "lastAt"),
  renewals: count("Renewals in total.", "renewals"),
} satisfies Fields<Renewer>;

const handoverFields = {
  at: time("When the holder changed.", "at"),
  from: text('The previous holder; "" if the lease was free.', "from"),
  to: text("The new holder.", "to"),
  isReleased: flag("True if the previous holder had released the lease.", "isReleased"),
} satisfies Fields<Handover>;

const lastCaller = ({ lease }: LeaseRow): Renewer["caller"] | undefined => lease.renewers.at(-1)?.caller;

export const leaseFields = {
  cluster: clusterField,
  resource: oneOf(
    "The resource of the lease's object.",
    ["leases", "configmaps", "endpoints"],
    ({ lease }) => lease.name.resource,
  ),
  namespace: text("Namespace of the lease's object.", ({ lease }) => lease.name.namespace),
  name: text("Name of the lease's object.", ({ lease }) => lease.name.name),
  holder: text('The current holder; "" if the lease is free.', ({ lease }) => lease.holder),
  state: oneOf("Whether the lease is held.", ["held", "free", "lapsed"], stateOf),
  durationMs: count("How long a renewal is valid, in ms.", ({ lease }) => lease.durationMs),
  heldSince: time("When this holder acquired the lease.", ({ lease }) => lease.heldSince),
  renewedAt: time("When the lease was last renewed.", ({ lease }) => lease.renewedAt),
  renewedAgeMs: age("Time since the last renewal.", ({ lease }) => lease.renewedAt),
  renewals: count("Renewals that passed through this proxy.", ({ lease }) => lease.renewals),
  renewedBy: maybe("The client that renewed the lease last.", callerFields, lastCaller),
  verdict: oneOf(
    "Whether the renewals of the lease are as expected; lapsed: its holder no longer renews it.",
    ["ok", "contested", "ghost", "unknown", "lapsed"],
    (row, times) =>
      row.lease.verdictAt(times.now())?.verdict ?? (stateOf(row, times) === "lapsed" ? "lapsed" : "ok"),
  ),
  reason: text(
    "Why the renewals are not as expected.",
    ({ lease }, { now }) => lease.verdictAt(now())?.reason ?? "",
  ),
  detector: text("What detected that.", ({ lease }, { now }) => lease.verdictAt(now())?.detector ?? ""),
  renewers: list(
    "The last eight clients that renewed the lease.",
    renewerFields,
    ({ lease }) => lease.renewers,
  ),
  handovers: list("The last eight changes of holder.", handoverFields, ({ lease }) => lease.handovers),
} satisfies Fields<LeaseRow>;

export function leaseListing(ledgers: () => readonly ClusterLedger[], times: Times): Listing<LeaseRow> {
  return listingOf(
    {
      kind: "LeaseList",
      rows: () =>
        ledgers().flatMap(({ cluster, ledgerTap }) =>
          ledgerTap.leases.all.map((lease) => ({ cluster, lease })),
        ),
      sort: "namespace",
      fields: leaseFields,
      by: "cluster resource namespace name holder verdict state renewedAt renewals heldSince",
      columns: {
        client: (row) => lastCaller(row)?.address ?? "",
        subject: (row) => lastCaller(row)?.subject.name ?? "",
        agent: (row) => lastCaller(row)?.agent ?? "",
      },
    },
    times,
  );
}

/**
 * Returns the lease's state. "lapsed": the lease has a holder, but the last renewal that passed through this proxy is
 * older than the lease's duration.
 */
function stateOf({ lease: { holder, renewedAt, durationMs } }: LeaseRow, { now }: Times): string {
  if (holder === "") return "free";
  return durationMs > 0 && now() - renewedAt > durationMs ? "lapsed" : "held";
}
