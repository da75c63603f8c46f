/**
 * Keeps in the browser's address which replica the page shows: `?replica=NAME`, or no such parameter for the replica
 * that serves the page.
 */
import { useEffect, useState } from "../html.js";
import { routeOf } from "../route.js";

/** @typedef {import("./rows.d.ts").Replica} Replica */

/**
 * Returns the name of the replica in the address's query; "": the replica that serves the page.
 * @param {string} search
 */
export function replicaIn(search) {
  return new URLSearchParams(search).get("replica") ?? "";
}

/**
 * Returns the address at which the page shows this replica. The tab stays the same, but the page of an incident is
 * replaced by the overview, because each replica numbers its own incidents.
 * @param {{ pathname: string, hash: string }} address
 * @param {string} name
 */
export function addressOf({ pathname, hash }, name) {
  const search = name === "" ? "" : `?${new URLSearchParams({ replica: name })}`;
  return `${pathname}${search}${routeOf(hash).tab === "incidents" ? "#/" : hash}`;
}

/**
 * Returns the name of the replica that is shown, and a function that shows another one.
 * @returns {readonly [name: string, show: (name: string) => void]}
 */
export function useReplica() {
  const [name, setName] = useState(replicaIn(location.search));
  useEffect(() => {
    const moved = () => setName(replicaIn(location.search));
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const show = (/** @type {string} */ next) => {
    history.pushState(null, "", addressOf(location, next));
    setName(next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  return [name, show];
}

/**
 * Returns why the page cannot show a replica; "": it can, or the list of replicas has not been read yet.
 * @param {readonly Replica[]} replicas
 * @param {string} name
 */
export function problemOf(replicas, name) {
  if (name === "" || replicas.length === 0) return "";
  const replica = replicas.find((one) => one.name === name || one.address === name);
  if (replica === undefined) return `There is no replica ${name}.`;
  if (replica.state !== "silent") return "";
  const { answeredAgeMs, lastError } = replica;
  const since =
    answeredAgeMs === null
      ? "has not answered yet"
      : `has not answered for ${Math.round(answeredAgeMs / 1000)} s`;
  return `Replica ${name} ${since}${lastError === "" ? "" : `: ${lastError}`}.`;
}
