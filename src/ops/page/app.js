/**
 * The admin page: an overview (the incidents, the path from clients to backends, and the backends), and lists of
 * watches, clients, leases and certificates.
 */
import { askReplica, figures, list, replicas as readReplicas } from "./data/api.js";
import { usePolled } from "./data/polled.js";
import { endOf, indexAt, useRecorded } from "./data/recorded.js";
import { useReplica } from "./data/replica.js";
import { Header } from "./header.js";
import { html, render, useEffect, useMemo, useRef, useState } from "./html.js";
import { hashOf, tabs, useRoute } from "./route.js";
import { paramsOf, viewIn } from "./table.js";
import { Certificates } from "./views/certificates.js";
import { Clients, Leases } from "./views/clients-and-leases.js";
import { IncidentPage } from "./views/incident.js";
import { Incidents } from "./views/incidents.js";
import { LastHour, momentIn, useHover } from "./views/lanes.js";
import { PathPicture } from "./views/path-picture.js";
import { LostReplica, Replicas } from "./views/replicas.js";
import { stateAt, statesOf } from "./views/states.js";
import { entriesOf, Timeline } from "./views/timeline.js";
import { WatchesPage } from "./views/watches.js";

/** @typedef {Readonly<Record<string, string>>} Params */
/** @typedef {{ params: Params, onParams: (params: Params) => void }} Addressed */

const summaryEveryMs = 1_000;
const listEveryMs = 2_000;
const figuresEveryMs = 5_000;
const certificatesEveryMs = 15_000;
const replicasEveryMs = 5_000;

/**
 * Shows one replica. When the user chooses another one, the changed `key` makes Preact rebuild the whole page, so that
 * data of two replicas are never mixed.
 */
function Page() {
  const [shown, onShow] = useReplica();
  const { value } = usePolled(readReplicas, replicasEveryMs, "");
  const replicas = value?.items ?? [];
  const isSelf = replicas.some((one) => one.isSelf && (one.name === shown || one.address === shown));
  const name = isSelf ? "" : shown;
  askReplica(name);
  // The control with which the user chose the replica has been rebuilt, so the keyboard focus is moved to the new
  // control.
  const last = useRef(shown);
  useEffect(() => {
    if (last.current !== shown) document.getElementById("replica")?.focus();
    last.current = shown;
  }, [shown]);
  return html`<${App} key=${name} choice=${{ replicas, shown: name, onShow }} />`;
}

/** @param {{ choice: import("./views/replicas.js").Choice }} props */
function App({ choice }) {
  const [theme, setTheme] = useTheme();
  const { route, change } = useRoute();
  const { tab, params } = route;
  const q = params["q"] ?? "";
  const search = (/** @type {string} */ text) => {
    if (searchable.includes(tab)) change({ q: text, offset: "" });
    else location.hash = hashOf({ tab: "watches", params: { q: text } });
  };
  const changeTheme = () => setTheme(theme === "dark" ? "light" : "dark");
  useKeys(changeTheme, () => q !== "" && search(""));
  const backends = usePolled(() => list("backends", { limit: 100 }), summaryEveryMs, "");
  const incidents = usePolled(() => list("incidents", { limit: 100 }), summaryEveryMs, "");
  const { value: stats } = usePolled(figures, figuresEveryMs, "");
  const state = {
    backends: backends.value?.items ?? [],
    incidents: incidents.value?.items ?? [],
    recorded: useRecorded(),
    now: Date.parse(backends.value?.at ?? "") || 0,
  };
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <${Header} figures=${stats} backends=${state.backends} failure=${backends.failure} tab=${tab} filter=${q}
      onFilter=${search} theme=${theme} onTheme=${changeTheme} choice=${choice} />
    <main id="content" tabindex="-1">
      <${LostReplica} ...${choice} />
      <${View} route=${route} onParams=${change} state=${state} choice=${choice} />
    </main>`;
}

/** The tabs whose lists can be searched. */
const searchable = ["watches", "clients", "leases"];

/**
 * The data that all views show, read at intervals. `now`: the proxy's time, in ms since 1970.
 * @typedef {{
 *   backends: readonly import("./data/rows.d.ts").Backend[],
 *   incidents: readonly import("./data/rows.d.ts").Incident[],
 *   recorded: import("./data/rows.d.ts").Recorded,
 *   now: number,
 * }} State
 */

/**
 * @param {{
 *   route: import("./route.js").Route,
 *   onParams: (params: Params) => void,
 *   state: State,
 *   choice: import("./views/replicas.js").Choice,
 * }} props
 */
function View({ route: { tab, id, params }, onParams, state, choice }) {
  const addressed = { params, onParams };
  switch (tab) {
    case "incidents":
      return html`<${IncidentPage} ...${addressed} ...${state} id=${id} />`;
    case "watches":
      return html`<${WatchesPage} ...${addressed} />`;
    case "clients":
      return html`<${ClientsNow} ...${addressed} />`;
    case "leases":
      return html`<${LeasesNow} ...${addressed} />`;
    case "certificates":
      return html`<${CertificatesNow} />`;
    default:
      return html`<${Overview} ...${addressed} ...${state} choice=${choice} />`;
  }
}

/**
 * Moves the focus to the content. Does not follow the link, because the address's hash is the page's route.
 * @param {Event} event
 */
function skip(event) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

/** @param {Addressed & State & { choice: import("./views/replicas.js").Choice }} props */
function Overview({ params, onParams, backends, incidents, recorded, now, choice }) {
  const [hover, setHover] = useHover();
  const end = endOf(recorded);
  const moment = hover ?? momentIn(params, recorded.startedMs, end);
  const pathBackends = moment === undefined ? backends : [];
  const stateOf = (/** @type {string} */ name) => {
    const backend = backends.find((one) => one.name === name);
    if (moment === undefined && backend !== undefined) return backend.state;
    return stateAt(statesOf(backend, recorded, { name, from: end - 3_600_000, to: now }), moment ?? now)
      .state;
  };
  const active = useMemo(
    () => html`<${Incidents} incidents=${incidents.filter(({ state }) => state === "active")} />`,
    [incidents],
  );
  const timeline = useMemo(
    () => html`<${Timeline} entries=${entriesOf(backends, incidents)} />`,
    [backends, incidents],
  );
  return html`
    ${active}
    <${Replicas} ...${choice} now=${now} />
    <div class="beside wide">
      <${PathPicture} recorded=${recorded} index=${indexAt(recorded, moment ?? end)} stateOf=${stateOf} backends=${pathBackends} />
      ${timeline}
    </div>
    <${LastHour} recorded=${recorded} backends=${backends} incidents=${incidents} now=${now} params=${params} onParams=${onParams}
      onMoment=${setHover} moment=${moment} />`;
}

/**
 * Reads one page of a list at intervals. The browser's address keeps the sort order, the offset and the search text.
 * @param {string} name
 * @param {{ sort: string, limit: number }} usual
 * @param {Addressed} addressed
 */
function useListing(name, usual, { params, onParams }) {
  const view = viewIn(params, usual);
  const query = { ...view, q: params["q"] ?? "" };
  const { value } = usePolled(() => list(name, query), listEveryMs, JSON.stringify(query));
  const onView = (/** @type {import("./table.js").View} */ next) => onParams(paramsOf(next));
  return { list: value, view, onView };
}

/** @param {Addressed} props */
function ClientsNow(props) {
  return html`<${Clients} ...${useListing("clients", { sort: "-requests", limit: 50 }, props)} />`;
}

/** @param {Addressed} props */
function LeasesNow(props) {
  return html`<${Leases} ...${useListing("leases", { sort: "namespace", limit: 50 }, props)} />`;
}

function CertificatesNow() {
  const { value } = usePolled(() => list("certificates", { limit: 100 }), certificatesEveryMs, "");
  return html`<${Certificates} certificates=${value?.items ?? []} />`;
}

/** Returns the theme and a function that sets it. The user's choice is stored; the default is the system's theme. */
function useTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? system);
  document.documentElement.dataset["theme"] = theme;
  useEffect(() => localStorage.setItem("theme", theme), [theme]);
  return /** @type {const} */ ([theme, setTheme]);
}

/**
 * Handles keys: `/` focuses the search, Escape clears the search and leaves it, `t` changes the theme, `i` opens the
 * newest incident, `1` to `5` open the tabs.
 * @param {() => void} changeTheme
 * @param {() => void} clearFilter
 */
function useKeys(changeTheme, clearFilter) {
  const latest = useRef({ changeTheme, clearFilter });
  latest.current = { changeTheme, clearFilter };
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      const filter = document.getElementById("filter");
      if (event.ctrlKey || event.metaKey || event.altKey || filter === null) return;
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (!isTyping) return keys[event.key]?.(event, filter, latest.current.changeTheme);
      if (event.key !== "Escape" || event.target !== filter) return;
      latest.current.clearFilter();
      filter.blur();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

/** @type {Readonly<Record<string, (event: KeyboardEvent, filter: HTMLElement, changeTheme: () => void) => void>>} */
const keys = {
  "/": (event, filter) => {
    event.preventDefault();
    filter.focus();
  },
  t: (_event, _filter, changeTheme) => changeTheme(),
  i: () => openNewest(),
  ...Object.fromEntries(
    tabs.map((tab, at) => [String(at + 1), () => void (location.hash = hashOf({ tab }))]),
  ),
};

function openNewest() {
  const newest = document.querySelector("#incidents details");
  if (!(newest instanceof HTMLDetailsElement)) return;
  newest.open = true;
  newest.querySelector("summary")?.focus();
}

const place = document.getElementById("app");
if (place !== null) render(html`<${Page} />`, place);
