/** The admin page: active incidents and backends first, then watches, clients, leases and certificates. */
import { figures, list } from "./api.js";
import { Header } from "./header.js";
import { html, render, useEffect, useRef, useState } from "./html.js";
import { usePolled } from "./polled.js";
import { Backends } from "./views/backends.js";
import { Certificates } from "./views/certificates.js";
import { Charts } from "./views/charts.js";
import { Incidents } from "./views/incidents.js";
import { grown } from "./views/rates.js";
import { Clients, Leases } from "./views/talk.js";
import { entriesOf, Timeline } from "./views/timeline.js";
import { Watches } from "./views/watches.js";

/** @typedef {import("./table.js").View} View */
/** @typedef {import("./rows.d.ts").Incident} Incident */
/** @typedef {import("./rows.d.ts").Backend} Backend */
/** @typedef {import("./rows.d.ts").Watch} Watch */
/** @typedef {import("./rows.d.ts").ClientRow} ClientRow */
/** @typedef {import("./rows.d.ts").Lease} Lease */
/** @typedef {import("./rows.d.ts").CertificateRow} CertificateRow */

const summaryEveryMs = 1_000;
const listEveryMs = 2_000;
const certificatesEveryMs = 15_000;

function App() {
  const [filter, setFilter] = useState("");
  const [theme, setTheme] = useTheme();
  useKeys(
    () => setTheme(theme === "dark" ? "light" : "dark"),
    () => setFilter(""),
  );
  const backends = usePolled(() => list("backends", { limit: 100 }), summaryEveryMs, "");
  const incidents = usePolled(() => list("incidents", { limit: 100 }), summaryEveryMs, "");
  const rates = useRates();
  const rows = backends.value?.items ?? [];
  const told = incidents.value?.items ?? [];
  return html`
    <${Header} figures=${rates.figures} backends=${rows} failure=${backends.failure} filter=${filter}
      onFilter=${setFilter} theme=${theme} onTheme=${() => setTheme(theme === "dark" ? "light" : "dark")} />
    <main>
      <${Incidents} incidents=${told.filter(({ state }) => state === "active")} />
      <${Backends} backends=${rows} now=${Date.parse(backends.value?.at ?? "") || 0} />
      <div class="beside wide"><${WatchesNow} filter=${filter} /><${Timeline} entries=${entriesOf(rows, told)} /></div>
      <div class="beside"><${ClientsNow} filter=${filter} /><${LeasesNow} filter=${filter} /></div>
      <${CertificatesNow} />
      <${Charts} points=${rates.points} theme=${theme} />
    </main>`;
}

/**
 * Reads one page of a list, with the order and the offset that the user has chosen. A changed filter resets the offset.
 * @param {string} name
 * @param {View} first
 * @param {string} filter
 */
function useListing(name, first, filter) {
  const [view, setView] = useState(first);
  const asked = useRef(filter);
  const offset = asked.current === filter ? view.offset : 0;
  useEffect(() => {
    asked.current = filter;
    setView((before) => ({ ...before, offset: 0 }));
  }, [filter]);
  const query = { ...view, offset, q: filter };
  const { value } = usePolled(() => list(name, query), listEveryMs, JSON.stringify(query));
  return { list: value, view: { ...view, offset }, onView: setView };
}

/** @param {{ filter: string }} props */
function WatchesNow({ filter }) {
  const listing = useListing("watches", { sort: "-idleMs", offset: 0, limit: 20 }, filter);
  const hung = usePolled(() => list("watches", { state: "hung", limit: 1 }), listEveryMs, "");
  return html`<${Watches} ...${listing} hung=${hung.value?.matching ?? 0} />`;
}

/** @param {{ filter: string }} props */
function ClientsNow({ filter }) {
  return html`<${Clients} ...${useListing("clients", { sort: "-requests", offset: 0, limit: 10 }, filter)} />`;
}

/** @param {{ filter: string }} props */
function LeasesNow({ filter }) {
  return html`<${Leases} ...${useListing("leases", { sort: "namespace", offset: 0, limit: 10 }, filter)} />`;
}

function CertificatesNow() {
  const { value } = usePolled(() => list("certificates", { limit: 100 }), certificatesEveryMs, "");
  return html`<${Certificates} certificates=${value?.items ?? []} />`;
}

function useRates() {
  const [points, setPoints] = useState(/** @type {readonly import("./views/rates.js").Point[]} */ ([]));
  const before = useRef(/** @type {import("./rows.d.ts").Stats | undefined} */ (undefined));
  const { value } = usePolled(figures, summaryEveryMs, "");
  useEffect(() => {
    if (value === undefined) return;
    const earlier = before.current;
    before.current = value;
    setPoints((known) => grown(known, earlier, value));
  }, [value]);
  return { figures: value, points };
}

/** Returns the theme and a function that sets it. The user's choice is stored; the default is the system's theme. */
function useTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? system);
  // Set during rendering, because the charts, which are drawn afterwards, read their colours from the theme.
  document.documentElement.dataset["theme"] = theme;
  useEffect(() => localStorage.setItem("theme", theme), [theme]);
  return /** @type {const} */ ([theme, setTheme]);
}

/**
 * Handles keys: `/` focuses the filter, Escape clears and leaves it, `t` changes the theme, `i` opens the newest
 * incident.
 * @param {() => void} changeTheme
 * @param {() => void} clearFilter
 */
function useKeys(changeTheme, clearFilter) {
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      const filter = document.getElementById("filter");
      if (event.ctrlKey || event.metaKey || event.altKey || filter === null) return;
      if (event.target !== filter) return keys[event.key]?.(event, filter, changeTheme);
      if (event.key !== "Escape") return;
      clearFilter();
      filter.blur();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
}

/** @type {Readonly<Record<string, (event: KeyboardEvent, filter: HTMLElement, changeTheme: () => void) => void>>} */
const keys = {
  "/": (event, filter) => {
    event.preventDefault();
    filter.focus();
  },
  t: (_event, _filter, changeTheme) => changeTheme(),
  i: () => openNewest(),
};

function openNewest() {
  const newest = document.querySelector("#incidents details");
  if (!(newest instanceof HTMLDetailsElement)) return;
  newest.open = true;
  newest.querySelector("summary")?.focus();
}

const place = document.getElementById("app");
if (place !== null) render(html`<${App} />`, place);
