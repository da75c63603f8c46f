/** The open watches: counted by resource, client or backend, filtered by text, and one of them in detail. */
import { list as read } from "../data/api.js";
import { usePolled } from "../data/polled.js";
import { html } from "../html.js";
import { usePaced } from "../paced.js";
import { Mark, paramsOf, Table, viewIn } from "../table.js";
import { age, amount, markOf, whoIs } from "../words.js";
import { State, silenceOf, WatchPanel } from "./watch.js";

/** @typedef {import("../data/rows.d.ts").Watch} Watch */
/** @typedef {import("../table.js").Column<Watch>} Column */
/** @typedef {Readonly<Record<string, string>>} Params */

const everyMs = 2_000;
const limit = 50;

/** The columns by which watches can be grouped, with their labels. A click on a group filters by the group's value. */
const groupings = new Map([
  ["resource", "resource"],
  ["clientKind", "kind of client"],
  ["agent", "program"],
  ["subject", "identity"],
  ["client", "address"],
  ["backend", "backend"],
  ["state", "state"],
]);

/**
 * @param {(watch: Watch) => void} onOpen
 * @returns {readonly Column[]}
 */
function columnsOf(onOpen) {
  return [
    {
      title: "resource",
      column: "resource",
      isLong: true,
      cell: (watch) =>
        html`<button type="button" class="link" title=${watch.path} onClick=${() => onOpen(watch)}>${watch.resource}</button>`,
    },
    { title: "client", column: "subject", isLong: true, cell: (watch) => whoIs(watch) },
    { title: "agent", column: "agent", cell: ({ agent }) => agent },
    { title: "backend", column: "backend", cell: ({ backend }) => backend },
    { title: "version", isNumber: true, cell: ({ resourceVersion }) => resourceVersion },
    { title: "state", column: "state", cell: (watch) => html`<${State} watch=${watch} />` },
    { title: "silent", column: "idleMs", isNumber: true, cell: (watch) => age(silenceOf(watch)) },
    { title: "events", column: "events", isNumber: true, cell: ({ events }) => amount(events) },
    { title: "moves", column: "moves", isNumber: true, cell: ({ moves }) => String(moves) },
    { title: "open", column: "ageMs", isNumber: true, cell: ({ ageMs }) => age(ageMs) },
  ];
}

/**
 * Returns what the parameters of the address describe: the grouping, the filters, and the page of the list.
 * @param {Params} params
 */
function queryIn(params) {
  const { q = "", group = "" } = params;
  const filters = Object.fromEntries([...groupings.keys()].map((name) => [name, params[name] ?? ""]));
  return {
    ...viewIn(params, { sort: "-idleMs", limit }),
    ...filters,
    q,
    group: groupings.has(group) ? group : "resource",
  };
}

/** @param {{ params: Params, onParams: (params: Params) => void }} props */
export function WatchesPage({ params, onParams }) {
  const query = queryIn(params);
  const { value: list } = usePolled(() => read("watches", query), everyMs, JSON.stringify(query));
  const { watch = "" } = params;
  return html`<section aria-labelledby="watches-title">
    <${Head} list=${list} params=${params} onParams=${onParams} />
    ${watch !== "" && html`<${WatchPanel} auditId=${watch} onClose=${() => onParams({ watch: "" })} />`}
    <div class="beside narrow">
      <${Groups} list=${list} group=${query.group} params=${params} onParams=${onParams} />
      <${Table} label="watches" columns=${columnsOf(({ auditId }) => onParams({ watch: auditId }))} list=${list} view=${query}
        onView=${(/** @type {import("../table.js").View} */ view) => onParams(paramsOf(view))}
        keyOf=${(/** @type {Watch} */ { auditId }) => auditId} empty="No watch is open" selected=${watch} />
    </div>
  </section>`;
}

/**
 * The heading of the list: the number of watches, the number of hung watches, and for each active filter a button that
 * removes the filter.
 * @param {{ list: import("../data/rows.d.ts").List<Watch> | undefined, params: Params, onParams: (params: Params) => void }} props
 */
function Head({ list, params, onParams }) {
  const hung =
    usePolled(() => read("watches", { state: "hung", limit: 1 }), everyMs, "").value?.matching ?? 0;
  const chosen = [...groupings].filter(([name]) => (params[name] ?? "") !== "");
  const { matching = 0, total = 0 } = list ?? {};
  return html`<div class="section-head">
    <h2 id="watches-title">
      Watches <span class="count">${amount(matching)} of ${amount(total)}</span>
      <${Mark} mark=${markOf(hung > 0 ? "hung" : "ok")}>hung ${hung}<//>
    </h2>
    ${chosen.map(
      ([
        name,
        label,
      ]) => html`<button type="button" class="chip" onClick=${() => onParams({ [name]: "", offset: "" })}
        aria-label=${`Remove the filter ${label} ${params[name]}`}>${label}: ${params[name]} <span aria-hidden="true">×</span></button>`,
    )}
  </div>`;
}

const shownGroups = 100;

/**
 * @param {{ list: import("../data/rows.d.ts").List<Watch> | undefined, group: string, params: Params, onParams: (params: Params) => void }} props
 */
function Groups({ list, group, params, onParams }) {
  // When the page opens, the table is drawn in one frame and the groups in the next, so that no frame takes long.
  const hasTurn = usePaced(list !== undefined, 1) === true;
  const groups = hasTurn ? (list?.groups ?? []) : [];
  const most = groups[0]?.rows ?? 1;
  const chosen = (/** @type {InputEvent & { currentTarget: HTMLSelectElement }} */ event) =>
    onParams({ group: event.currentTarget.value });
  return html`<div class="groups">
    <label>by <select value=${group} onChange=${chosen}>
      ${Array.from(groupings, ([name, label]) => html`<option value=${name} selected=${name === group}>${label}</option>`)}
    </select></label>
    <ul class="scroll" tabindex="0" aria-label=${`watches by ${groupings.get(group)}`}>
      ${groups.slice(0, shownGroups).map(
        ({ value, rows }) => html`<li key=${value}>
          <button type="button" disabled=${value === ""} aria-pressed=${String(params[group] === value && value !== "")}
            onClick=${() => onParams({ [group]: params[group] === value ? "" : value, offset: "" })}>
            <span class="group-name">${value || "none"}</span> <span class="group-count">${amount(rows)}</span>
            <span class="bar-of" aria-hidden="true"><span style=${{ width: `${(rows / most) * 100}%` }}></span></span>
          </button>
        </li>`,
      )}
    </ul>
    ${groups.length > shownGroups && html`<p class="empty">and ${amount(groups.length - shownGroups)} more</p>`}
  </div>`;
}
