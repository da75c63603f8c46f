/** `/api/v1/replicas`: the watchkeeper processes in front of the same apiservers. */

import { type ReplicaRow, replicaStates } from "../../../fleet/replicas/replicas.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { age, count, type Fields, flag, listingOf, oneOf, text, time, words } from "./fields.ts";

export const replicaFields = {
  name: text(
    "Name of the replica in paths and commands: its host name if it is unique, else its address.",
    ({ name }: ReplicaRow) => name,
  ),
  address: text('Admin address, as host:port; "": this process is not among admin.replicas.', "address"),
  id: text('Random identifier of the process; "": it has never answered.', ({ facts }) => facts?.id ?? ""),
  isSelf: flag("True for the process that answers this request.", "isSelf"),
  state: oneOf(
    "live: has answered in the last 15 s; silent: has not; unknown: has not been asked for 15 s yet.",
    replicaStates,
    "state",
  ),
  since: time("When the state began.", "since"),
  sinceAgeMs: age("Time since then.", "since"),
  answeredAgeMs: age("Time since the last answer; null: none yet.", "answeredAt"),
  version: text('Version of watchkeeper; "": unknown.', ({ facts }) => facts?.version ?? ""),
  startedAt: text('When the process began, in UTC; "": unknown.', ({ facts }) => facts?.startedAt ?? ""),
  clusters: words("Names of its clusters.", ({ facts }) => facts?.clusters ?? []),
  activeIncidents: count(
    "Number of its active incidents at its last answer.",
    ({ facts }) => facts?.activeIncidents ?? 0,
  ),
  lastError: text('Why the last request to it failed; "": it succeeded.', "lastError"),
} satisfies Fields<ReplicaRow>;

export function replicaListing(rows: () => readonly ReplicaRow[], times: Times): Listing<ReplicaRow> {
  return listingOf(
    {
      kind: "ReplicaList",
      rows,
      sort: "name",
      fields: replicaFields,
      by: "name address id state sinceAgeMs answeredAgeMs version startedAt activeIncidents lastError",
    },
    times,
  );
}
