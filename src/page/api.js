/** Asks the JSON API; nothing else on this page talks to anybody. */

const patienceMs = 4_000;

/**
 * A list of the API.
 * @template Row
 * @param {string} name "watches"
 * @param {Readonly<Record<string, string | number>>} [query] what is "" is left out
 * @returns {Promise<import("./rows.d.ts").List<Row>>}
 * @throws {Error} no answer within four seconds, or another than 200: the message says what the API says
 */
export function list(name, query = {}) {
  const filled = Object.entries(query).filter(([, value]) => value !== "");
  const params = new URLSearchParams(filled.map(([key, value]) => [key, String(value)]));
  return ask(`/api/v1/${name}?${params}`);
}

/**
 * @returns {Promise<import("./rows.d.ts").Figures>}
 */
export function figures() {
  return ask("/api/v1/figures");
}

/**
 * @template Answer
 * @param {string} path
 * @returns {Promise<Answer>}
 */
async function ask(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(patienceMs), cache: "no-store" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message ?? `${path}: ${response.status}`);
  return answer;
}
