/** The table of open watches, by default the longest silent one first. Silence is no error: a watch may be idle. */
import { html } from "../html.js";
import { Mark, Table } from "../table.js";
import { age, amount, markOf, whoIs } from "../words.js";

/** @typedef {import("../rows.d.ts").Watch} Watch */
/** @typedef {import("../table.js").Column<Watch>} Column */

/** @type {readonly Column[]} */
const columns = [
  {
    title: "resource",
    column: "resource",
    isLong: true,
    cell: (watch) => html`<span title=${watch.path}>${watch.resource}</span>`,
  },
  {
    title: "client",
    column: "client",
    isLong: true,
    cell: (watch) => html`<span title=${watch.auditId}>${whoIs(watch)}</span>`,
  },
  { title: "agent", column: "agent", cell: ({ agent }) => agent },
  { title: "backend", column: "backend", cell: ({ backend }) => backend },
  { title: "resource version", isNumber: true, cell: ({ resourceVersion }) => resourceVersion },
  { title: "state", column: "state", cell: (watch) => html`<${State} watch=${watch} />` },
  { title: "silent", column: "idleMs", isNumber: true, cell: (watch) => age(silenceOf(watch)) },
  { title: "events", column: "events", isNumber: true, cell: ({ events }) => amount(events) },
  { title: "moves", column: "moves", isNumber: true, cell: ({ moves }) => String(moves) },
  { title: "open", column: "ageMs", isNumber: true, cell: ({ ageMs }) => age(ageMs) },
];

/**
 * Returns the milliseconds since the last event or bookmark; null if there was none.
 * @param {Pick<Watch, "lastEventAgeMs" | "lastBookmarkAgeMs">} watch
 */
export function silenceOf({ lastEventAgeMs, lastBookmarkAgeMs }) {
  if (lastEventAgeMs === null) return lastBookmarkAgeMs;
  return lastBookmarkAgeMs === null ? lastEventAgeMs : Math.min(lastEventAgeMs, lastBookmarkAgeMs);
}

/** @param {{ watch: Watch }} props */
function State({ watch: { state, session } }) {
  return html`<${Mark} mark=${markOf(state)}>${state}${session === "" || session === "streaming" || session === state ? "" : `, ${session}`}<//>`;
}

/**
 * @param {{
 *   list: import("../rows.d.ts").List<Watch> | undefined,
 *   view: import("../table.js").View,
 *   onView: (view: import("../table.js").View) => void,
 *   hung: number,
 * }} props
 */
export function Watches({ list, view, onView, hung }) {
  return html`<section aria-labelledby="watches-title">
    <h2 id="watches-title">
      Watches <span class="count">${amount(list?.total ?? 0)}</span>
      <${Mark} mark=${markOf(hung > 0 ? "hung" : "ok")}>hung ${hung}<//>
    </h2>
    <${Table} label="watches" columns=${columns} list=${list} view=${view} onView=${onView}
      keyOf=${(/** @type {Watch} */ { auditId }) => auditId} empty="No watch is open" />
  </section>`;
}
