/** Reads an incident from watchkeeper's JSON API, which is open to every client (docs/admin-api.md). */
import { request } from "node:http";
import { isList, type JsonMap, mapOf, parseJson, textOf } from "../objects/json.ts";

export type Told = {
  readonly kind: string;
  readonly subject: string;
  readonly backend: string;
  readonly summary: string;
  readonly isActive: boolean;
  /** The evidence, a sentence each. */
  readonly evidence: readonly string[];
  /** Time from the beginning of the story until the incident was there. */
  readonly afterMs: number;
};

/** Returns the latest incident of this kind; undefined if there is none. `address` is "host:port" of the API. */
export async function toldOf(address: string, kind: string): Promise<Told | undefined> {
  const answer = mapOf(parseJson(await get(`http://${address}/api/v1/incidents?kind=${kind}&limit=1`)));
  const { items } = answer;
  return isList(items) && items.length > 0 ? shownAs(mapOf(items[0])) : undefined;
}

/** Returns the number of watches on each backend, as watchkeeper reports it. */
export async function watchesOf(address: string): Promise<ReadonlyMap<string, number>> {
  const { items } = mapOf(parseJson(await get(`http://${address}/api/v1/watches?limit=500`)));
  const counts = new Map<string, number>();
  for (const row of isList(items) ? items : []) {
    const backend = textOf(mapOf(row)["backend"]);
    counts.set(backend, (counts.get(backend) ?? 0) + 1);
  }
  return counts;
}

/** Returns the largest event loop delay since the last call, in ms; 0 without a response. */
export async function latenessOf(address: string): Promise<number> {
  const { eventLoopDelayMs } = mapOf(parseJson(await get(`http://${address}/api/v1/stats`)));
  return typeof eventLoopDelayMs === "number" ? eventLoopDelayMs : 0;
}

function shownAs(row: JsonMap): Told {
  const { kind, subject, backend, summary, state, evidence } = row;
  return {
    kind: textOf(kind),
    subject: textOf(subject),
    backend: textOf(backend),
    summary: textOf(summary),
    isActive: textOf(state) === "active",
    evidence: isList(evidence) ? evidence.map((one) => textOf(mapOf(one)["text"])) : [],
    afterMs: 0,
  };
}

/** Returns "" without a response. */
function get(url: string): Promise<string> {
  return new Promise((resolve) => {
    const asked = request(url, { agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => (text += chunk));
      answer.on("close", () => resolve(text));
    });
    asked.on("error", () => resolve(""));
    asked.end();
  });
}
