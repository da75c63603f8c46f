/** `watchkeeper limit KEY=VALUE...`: limits requests for a given time, through the API of a running proxy. */
import { isIpAddress } from "../../../base/address.ts";
import { Failure } from "../../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { type Given, usage } from "../commands/options.ts";
import type { Row } from "../commands/rows.ts";
import { shown, textAt } from "../commands/rows.ts";
import type { Screen } from "../commands/screen.ts";
import { type AdminClient, apiCommand } from "./admin-client.ts";
import { nameIn } from "./next-commands.ts";
import { operator } from "./operate.ts";
import { answersIn, fromAll, reportFailures } from "./replicas.ts";

/** Maps an argument's key to the list in the request body that gets the value: `user=jane` adds "jane" to "users". */
const lists: ReadonlyMap<string, string> = new Map([
  ["user", "users"],
  ["group", "groups"],
  ["agent", "userAgents"],
  ["source", "sourceCIDRs"],
  ["verb", "verbs"],
  ["resource", "resources"],
]);

const mostCount = 100_000;

/** Exit codes: 0 the limit is in force, 1 refused, 2 usage error, 3 the API or a replica is unreachable. */
export const limit = apiCommand("limit", async ({ options, client, screen }) => {
  if (options.words.length === 0 && !options.has("all"))
    return usage("Missing KEY=VALUE; --all limits all requests");
  const asked = bodyOf(options);
  if (asked instanceof Failure) return asked;
  const body = options.has("all") ? { ...asked, all: true } : asked;
  if (options.has("all-replicas")) return limitAll(client, body, screen);
  const done = await client.post("limits", body, operator());
  if (done instanceof Failure) return done;
  screen.print(`${outcomeOf(done)}\n`);
  return 0;
});

/**
 * Sets a limit at every replica. The replicas divide the limit among themselves. A replica that starts later does not
 * get the limit.
 */
async function limitAll(client: AdminClient, body: object, screen: Screen): Promise<number | Failure> {
  const shared = { ...body, scope: "AllReplicas" };
  const all = await fromAll(client, (one) => one.post("limits", shared, operator()));
  if (all instanceof Failure) return all;
  const taken = answersIn(all);
  for (const { name, answer } of taken) {
    const outcome = outcomeOf(answer);
    const [, id = "NUMBER"] = /^limit (\d+) /.exec(outcome) ?? [];
    screen.print(`${shown(name)}: ${outcome}; watchkeeper unlimit ${id} --replica ${nameIn(name)}\n`);
  }
  screen.print(`${taken.length} of ${all.length} replicas have the limit\n`);
  return reportFailures(
    all.map(({ outcome, ...one }) => ({ ...one, outcome: unconfirmed(outcome) })),
    screen,
  );
}

/**
 * Returns the outcome unchanged, unless the request timed out. After a timeout, returns a Failure that says that the
 * limit may be in force, because the replica may have received the request.
 */
function unconfirmed(outcome: Row | Failure): Row | Failure {
  if (!(outcome instanceof Failure) || !/no answer in \d/.test(outcome.message)) return outcome;
  const { code, origin, message } = outcome;
  return new Failure(code, origin, `has not confirmed the limit, which may be in force there: ${message}`);
}

function outcomeOf(done: Row): string {
  return shown(textAt(done, "outcome"));
}

function bodyOf(options: Given): Record<string, unknown> | Failure {
  const matched = matchesIn(options.words);
  const burst = options.whole("burst", undefined, [1, mostCount]);
  const maxInFlight = options.whole("in-flight", undefined, [1, mostCount]);
  if (matched instanceof Failure) return matched;
  for (const one of [burst, maxInFlight]) if (one instanceof Failure) return one;
  const rate = options.text("rate");
  // The API refuses these as well, but names the fields of the configuration instead of the options.
  if (rate === undefined && maxInFlight === undefined) return usage("Missing --rate or --in-flight");
  if (rate === undefined && burst !== undefined) return usage("--burst needs --rate");
  return {
    ...matched,
    // JSON.stringify omits undefined values, so an option that is not given does not reach the API.
    burst,
    maxInFlight,
    rate,
    duration: options.text("for") ?? "1h",
    reason: options.text("reason") ?? "",
  };
}

function matchesIn(words: readonly string[]): Record<string, readonly string[]> | Failure {
  const matched: Record<string, readonly string[]> = {};
  for (const word of words) {
    const [, key = "", value = ""] = /^(\w+)=(.*)$/.exec(word) ?? [];
    const list = lists.get(key);
    if (list === undefined)
      return usage(`${quote(word)} must be KEY=VALUE, and KEY one of ${Array.from(lists.keys()).join(", ")}`);
    matched[list] = [...(matched[list] ?? []), list === "sourceCIDRs" ? networkOf(value) : value];
  }
  return matched;
}

/** Returns a network in CIDR notation: "10.0.0.1" becomes "10.0.0.1/32". Other text is returned unchanged. */
function networkOf(text: string): string {
  if (!isIpAddress(text)) return text;
  return `${text}/${text.includes(":") ? 128 : 32}`;
}
