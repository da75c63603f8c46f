/** The top of the page: the proxy's name, the backends' state, the filter, and the switch of the theme. */
import { html } from "./html.js";
import { hashOf } from "./route.js";
import { Mark } from "./table.js";
import { ReplicaChoice } from "./views/replicas.js";
import { age, markOf } from "./words.js";

/**
 * Returns the worst state of any backend, and a text with the number of backends in this state: "1 of 2 backends dead",
 * or "all 2 backends ready".
 * @param {readonly { readonly state: string }[]} backends
 */
export function standing(backends) {
  if (backends.length === 0) return { state: "unknown", text: "no backends" };
  const worst = ["dead", "suspect", "draining", "unknown"].find((state) =>
    backends.some((backend) => backend.state === state),
  );
  if (worst === undefined) return { state: "ready", text: `all ${backends.length} backends ready` };
  const count = backends.filter(({ state }) => state === worst).length;
  return { state: worst, text: `${count} of ${backends.length} backends ${worst}` };
}

/** @type {readonly (readonly [tab: string, label: string])[]} */
const labels = [
  ["overview", "Overview"],
  ["watches", "Watches"],
  ["clients", "Clients"],
  ["leases", "Leases"],
  ["certificates", "Certificates"],
];

/**
 * @param {{
 *   figures: import("./data/rows.d.ts").Stats | undefined,
 *   backends: readonly import("./data/rows.d.ts").Backend[],
 *   failure: string,
 *   tab: string,
 *   filter: string,
 *   onFilter: (filter: string) => void,
 *   theme: string,
 *   onTheme: () => void,
 *   choice: import("./views/replicas.js").Choice,
 * }} props
 */
export function Header({ figures, backends, failure, tab, filter, onFilter, theme, onTheme, choice }) {
  const { state, text } = standing(backends);
  return html`<header>
    <h1>watchkeeper <span class="name">${figures?.name ?? ""}</span></h1>
    <${ReplicaChoice} ...${choice} />
    <p class="standing" role="status">
      ${failure === "" ? html`<${Mark} mark=${markOf(state)}>${text}<//>` : html`<${Mark} mark=${markOf("critical")}>No answer: ${failure}<//>`}
    </p>
    <nav aria-label="pages">
      ${labels.map(([name, label]) => html`<a href=${hashOf({ tab: name })} aria-current=${name === tab ? "page" : null}>${label}</a>`)}
    </nav>
    <span class="age version">${figures !== undefined && html`v${figures.version}, up ${age(figures.uptimeMs)}`}</span>
    <label>
      <span class="hidden">Search watches, clients and leases</span>
      <input id="filter" type="search" placeholder="/ search" value=${filter} maxlength="200"
        onInput=${(/** @type {InputEvent & { currentTarget: HTMLInputElement }} */ event) => onFilter(event.currentTarget.value)} />
    </label>
    <button type="button" onClick=${onTheme} title="t">${theme === "dark" ? "light" : "dark"}</button>
  </header>`;
}
