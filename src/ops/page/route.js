/** Keeps in the browser's address what the page shows, so that a link opens the same tab, filter and selection. */
import { useEffect, useState } from "./html.js";

/** @typedef {{ tab: string, id: string, params: Readonly<Record<string, string>> }} Route */

export const tabs = ["overview", "watches", "clients", "leases", "certificates"];

/**
 * Returns the route of a hash such as "#/incidents/42?t=…" or "#/watches?group=resource&q=argocd".
 * @param {string} hash
 * @returns {Route}
 */
export function routeOf(hash) {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [tab = "", id = ""] = path.split("/");
  const isKnown = tabs.includes(tab) || tab === "incidents";
  return {
    tab: isKnown ? tab : "overview",
    id: isKnown ? decoded(id) : "",
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/**
 * Returns the hash of a route. Parameters with the value "" are omitted.
 * @param {{ tab: string, id?: string, params?: Readonly<Record<string, string>> }} route
 */
export function hashOf({ tab, id = "", params = {} }) {
  const filled = Object.entries(params).filter(([, value]) => value !== "");
  const query = filled.length === 0 ? "" : `?${new URLSearchParams(filled)}`;
  const path = tab === "overview" ? "" : tab;
  return `#/${path}${id === "" ? "" : `/${encodeURIComponent(id)}`}${query}`;
}

/**
 * Returns the current route, and a function that changes parameters without a new entry in the browser's history.
 * @returns {{ route: Route, change: (params: Readonly<Record<string, string>>) => void }}
 */
export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const route = routeOf(hash);
  const change = (/** @type {Readonly<Record<string, string>>} */ params) => {
    const next = hashOf({ ...route, params: { ...route.params, ...params } });
    history.replaceState(null, "", next);
    setHash(next);
  };
  return { route, change };
}
