/** The tables of clients and of leader leases. */
import { html } from "../html.js";
import { Mark, Table } from "../table.js";
import { age, amount, markOf, whoIs } from "../words.js";

/** @typedef {import("../data/rows.d.ts").ClientRow} ClientRow */
/** @typedef {import("../data/rows.d.ts").Lease} Lease */

/** @type {readonly import("../table.js").Column<ClientRow>[]} */
const clientColumns = [
  { title: "who", column: "subject", isLong: true, cell: (row) => html`<${Who} row=${row} />` },
  { title: "cluster", column: "cluster", isRare: true, cell: ({ cluster }) => cluster },
  { title: "agent", column: "agent", cell: ({ agent }) => agent },
  { title: "from", column: "client", cell: ({ client }) => client },
  { title: "requests", column: "requests", isNumber: true, cell: ({ requests }) => amount(requests) },
  { title: "watches", column: "watches", isNumber: true, cell: ({ watches }) => amount(watches) },
  { title: "re-lists", column: "relists", isNumber: true, cell: ({ relists }) => amount(relists) },
  { title: "errors", column: "errors", isNumber: true, cell: ({ errors }) => amount(errors) },
  { title: "seen", isNumber: true, cell: ({ lastSeenAgeMs }) => age(lastSeenAgeMs) },
];

/**
 * The identity of a client. A question mark follows an identity from a token's claims, which the proxy does not verify.
 * @param {{ row: ClientRow }} props
 */
function Who({ row }) {
  const unverified =
    row.subjectSource === "jwt" ? html`<span title="claims of the token, not verified">?</span>` : "";
  const anomalies =
    row.anomalies.length === 0
      ? ""
      : html`<${Mark} mark=${markOf("warning")}>${row.anomalies.join(", ")}<//>`;
  return html`${whoIs(row)}${unverified} ${anomalies}`;
}

/** @type {readonly import("../table.js").Column<Lease>[]} */
const leaseColumns = [
  { title: "lease", column: "name", cell: ({ namespace, name }) => `${namespace}/${name}` },
  { title: "cluster", column: "cluster", isRare: true, cell: ({ cluster }) => cluster },
  { title: "holder", column: "holder", cell: ({ holder }) => holder || "none" },
  { title: "verdict", column: "verdict", cell: (lease) => html`<${Verdict} lease=${lease} />` },
  {
    title: "renewed by",
    column: "client",
    cell: ({ renewedBy }) => (renewedBy === null ? "–" : whoIs(renewedBy)),
  },
  { title: "from", column: "client", cell: ({ renewedBy }) => renewedBy?.client ?? "–" },
  { title: "renewed", column: "renewedAt", isNumber: true, cell: ({ renewedAgeMs }) => age(renewedAgeMs) },
];

/** @param {{ lease: Lease }} props */
function Verdict({ lease: { verdict, state, reason } }) {
  const word = verdict === "ok" ? state : verdict;
  return html`<span title=${reason}><${Mark} mark=${markOf(word)}>${word === "ghost" ? "GHOST" : word}<//></span>
    ${verdict !== "ok" && html`<span class="reason">${reason}</span>`}`;
}

/**
 * @template Row
 * @typedef {{
 *   list: import("../data/rows.d.ts").List<Row> | undefined,
 *   view: import("../table.js").View,
 *   onView: (view: import("../table.js").View) => void,
 * }} Props
 */

/** @param {Props<ClientRow>} props */
export function Clients({ list, view, onView }) {
  return html`<section aria-labelledby="clients-title">
    <h2 id="clients-title">Clients <span class="count">${amount(list?.total ?? 0)}</span></h2>
    <${Table} label="clients" columns=${clientColumns} list=${list} view=${view} onView=${onView}
      keyOf=${(/** @type {ClientRow} */ row) => `${row.cluster} ${row.client} ${row.agent} ${row.subject}`} empty="No clients yet" />
  </section>`;
}

/** @param {Props<Lease>} props */
export function Leases({ list, view, onView }) {
  return html`<section aria-labelledby="leases-title">
    <h2 id="leases-title">Leader leases <span class="count">${amount(list?.total ?? 0)}</span></h2>
    <${Table} label="leader leases" columns=${leaseColumns} list=${list} view=${view} onView=${onView}
      keyOf=${(/** @type {Lease} */ lease) => `${lease.cluster} ${lease.resource} ${lease.namespace}/${lease.name}`}
      empty="No leader leases yet" />
  </section>`;
}
