/** Sends all requests of the page to the JSON API: reads of lists, and operations. */

const patienceMs = 4_000;

/**
 * Reads a list of the API.
 * @template Row
 * @param {string} name such as "watches"
 * @param {Readonly<Record<string, string | number>>} [query] empty values are omitted
 * @returns {Promise<import("./rows.d.ts").List<Row>>}
 * @throws {Error} the API does not answer within four seconds, or refuses; the message is its reason
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
  const headers = { "content-type": "application/json", "x-watchkeeper-operator": "the admin page" };
  return ask(`/api/v1/${path}`, { method: "POST", headers, body: "{}" });
}

/**
 * @template Answer
 * @param {string} path
 * @param {RequestInit} [how]
 * @returns {Promise<Answer>}
 */
export async function ask(path, how = {}) {
  const response = await fetch(path, { ...how, signal: AbortSignal.timeout(patienceMs), cache: "no-store" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message ?? `${path}: ${response.status}`);
  return answer;
}
