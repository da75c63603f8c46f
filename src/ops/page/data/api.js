/** Sends all requests of the page to the JSON API: reads of lists, and operations. */

const patienceMs = 4_000;
/**
 * Timeout in ms for requests that the proxy forwards to another replica. They may take longer than those that it
 * answers itself.
 */
const forwardPatienceMs = 9_000;

const root = "/api/v1/";

let shownReplica = "";

/**
 * Sends all later requests to this replica, through the replica that serves the page.
 * @param {string} name "": the replica that serves the page
 */
export function askReplica(name) {
  shownReplica = name;
}

/** True if the page shows a replica other than the one that serves it. The page then runs no operations. */
export function isElsewhere() {
  return shownReplica !== "";
}

/**
 * Returns the path at which the replica that serves the page forwards requests to the replica that the page shows.
 * @param {string} path such as "/api/v1/stats"
 */
export function pathAtReplica(path) {
  if (shownReplica === "" || !path.startsWith(root)) return path;
  return `${root}replicas/${encodeURIComponent(shownReplica)}/${path.slice(root.length)}`;
}

/**
 * Reads the list of replicas from the one that serves the page.
 * @returns {Promise<import("./rows.d.ts").List<import("./rows.d.ts").Replica>>}
 */
export function replicas() {
  return send(`${root}replicas?limit=100`, {}, patienceMs);
}

/**
 * Reads a list of the API.
 * @template Row
 * @param {string} name such as "watches"
 * @param {Readonly<Record<string, string | number>>} [query] empty values are omitted
 * @returns {Promise<import("./rows.d.ts").List<Row>>}
 * @throws {Error} the API does not answer within 4 s (9 s if forwarded), or refuses; the message is the reason
 */
export function list(name, query = {}) {
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  const params = new URLSearchParams(filled.map(([key, value]) => [key, String(value)]));
  return ask(`/api/v1/${name}?${params}`);
}

/** @returns {Promise<import("./rows.d.ts").Stats>} */
export function figures() {
  return ask("/api/v1/stats");
}

/**
 * Runs an operation, such as "backends/cp-1/drain".
 * @param {string} path
 * @returns {Promise<{ outcome: string }>}
 * @throws {Error} the operation failed; the message is the reason
 */
export function post(path) {
  if (isElsewhere())
    return Promise.reject(new Error("Operations run only at the replica that serves the page"));
  const headers = { "content-type": "application/json", "x-watchkeeper-operator": "the admin page" };
  return ask(`/api/v1/${path}`, { method: "POST", headers, body: "{}" });
}

/**
 * @template Answer
 * @param {string} path
 * @param {RequestInit} [how]
 * @returns {Promise<Answer>}
 */
export function ask(path, how = {}) {
  return send(pathAtReplica(path), how, isElsewhere() ? forwardPatienceMs : patienceMs);
}

/**
 * @template Answer
 * @param {string} path
 * @param {RequestInit} how
 * @param {number} ms
 * @returns {Promise<Answer>}
 */
async function send(path, how, ms) {
  const response = await fetch(path, { ...how, signal: AbortSignal.timeout(ms), cache: "no-store" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message ?? `${path}: ${response.status}`);
  return answer;
}
