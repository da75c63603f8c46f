/** A table that shows one page of a list. The API filters and sorts the rows. */
import { html } from "./html.js";
import { amount } from "./words.js";

/**
 * @template Row
 * A column of a table. `isRare`: the column is omitted if no row has a value in it.
 * @typedef {{
 *   title: string,
 *   column?: string,
 *   isNumber?: boolean,
 *   isLong?: boolean,
 *   isRare?: boolean,
 *   cell: (row: Row) => unknown,
 * }} Column
 */

/** @typedef {{ sort: string, offset: number, limit: number }} View */

/**
 * Returns the view of a table (sort order and page) that the parameters of the browser's address describe.
 * @param {Readonly<Record<string, string>>} params
 * @param {{ sort: string, limit: number }} usual
 * @returns {View}
 */
export function viewIn({ sort, offset }, usual) {
  return { sort: sort ?? usual.sort, offset: Number(offset ?? 0) || 0, limit: usual.limit };
}

/**
 * Returns the parameters of the browser's address that describe a view.
 * @param {View} view
 */
export function paramsOf({ sort, offset }) {
  return { sort, offset: offset === 0 ? "" : String(offset) };
}

/**
 * @template Row
 * @param {{
 *   label: string,
 *   columns: readonly Column<Row>[],
 *   list: import("./data/rows.d.ts").List<Row> | undefined,
 *   view: View,
 *   onView: (view: View) => void,
 *   keyOf: (row: Row) => string,
 *   empty: string,
 *   selected?: string,
 * }} props `selected`: the key of the row that is shown elsewhere in detail
 */
export function Table({ label, columns, list, view, onView, keyOf, empty, selected = "" }) {
  const rows = list?.items ?? [];
  const shown = columns.filter(({ isRare, cell }) => isRare !== true || rows.some((row) => cell(row) !== ""));
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead>
        <tr>${shown.map((column) => html`<${Head} column=${column} view=${view} onView=${onView} />`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${keyOf(row)} class=${keyOf(row) === selected ? "selected" : ""}>
            ${shown.map(({ title, cell, isNumber, isLong }) => html`<td class=${isNumber ? "number" : isLong ? "long" : ""} data-label=${title}>${cell(row)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
    ${rows.length === 0 && html`<p class="empty">${list === undefined ? "Not read yet" : empty}</p>`}
    <${Pages} list=${list} view=${view} onView=${onView} label=${label} />
  </div>`;
}

/**
 * The heading of a column. A click sorts by the column, a second click reverses the order.
 * @param {{ column: Column<any>, view: View, onView: (view: View) => void }} props
 */
function Head({ column: { title, column, isNumber }, view, onView }) {
  const kind = isNumber ? "number" : "";
  if (column === undefined) return html`<th scope="col" class=${kind}>${title}</th>`;
  const isUp = view.sort === column;
  const isDown = view.sort === `-${column}`;
  const order = isUp ? "ascending" : isDown ? "descending" : "none";
  const next = isDown ? column : isUp ? `-${column}` : isNumber ? `-${column}` : column;
  return html`<th scope="col" class=${kind} aria-sort=${order}>
    <button type="button" class="head" onClick=${() => onView({ ...view, sort: next, offset: 0 })}>
      ${title}${isUp ? " ▴" : isDown ? " ▾" : ""}
    </button>
  </th>`;
}

/**
 * @param {{ list: import("./data/rows.d.ts").List<unknown> | undefined, view: View, onView: (view: View) => void, label: string }} props
 */
function Pages({ list, view, onView, label }) {
  if (list === undefined || list.matching <= view.limit) return null;
  const { offset, limit } = view;
  const go = (/** @type {number} */ to) => onView({ ...view, offset: to });
  return html`<p class="pages">
    <button type="button" disabled=${offset === 0} onClick=${() => go(Math.max(0, offset - limit))}
      aria-label=${`Previous rows of ${label}`}>‹</button>
    ${offset + 1}–${Math.min(offset + limit, list.matching)} of ${amount(list.matching)}
    <button type="button" disabled=${offset + limit >= list.matching} onClick=${() => go(offset + limit)}
      aria-label=${`Next rows of ${label}`}>›</button>
  </p>`;
}

/**
 * A text with the sign and the colour of a state.
 * @param {{ mark: { sign: string, tone: string }, children?: unknown }} props
 */
export function Mark({ mark: { sign, tone }, children }) {
  return html`<span class=${`mark ${tone}`}><span aria-hidden="true">${sign}</span> ${children}</span>`;
}
