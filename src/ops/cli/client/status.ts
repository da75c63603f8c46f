/** `watchkeeper status`: prints the backends, counts and active incidents on one screen. */

import { Failure } from "../../../base/failure.ts";
import { adminLimits } from "../../admin/http/limits.ts";
import { yamlTextOf } from "../../config/yaml-document.ts";
import {
  listOf,
  numberAt,
  type Row,
  type RowList,
  rowOf,
  rowsAt,
  shown,
  textAt,
  wordsAt,
} from "../commands/rows.ts";
import { json, type Screen } from "../commands/screen.ts";
import { type AdminClient, apiCommand } from "./admin-client.ts";
import { views } from "./columns.ts";
import { answersIn, failuresIn, fromAll, type OfReplica, replicaColumn, reportFailures } from "./replicas.ts";
import { type Column, tableOf } from "./table.ts";
import { age, amount, counted, marked } from "./words.ts";

/**
 * The lists that `status` reads from the API: path, query, and maximum number of rows. The maximum is 1 if `status`
 * needs only the total number of rows.
 */
const lists = {
  backends: ["backends", {}, adminLimits.apiPageMost],
  incidents: ["incidents", { state: "active" }, adminLimits.apiPageMost],
  watches: ["watches", {}, 1],
  hung: ["watches", { state: "hung" }, 1],
  clients: ["clients", {}, 1],
  leases: ["leases", {}, adminLimits.apiPageMost],
  certificates: ["certificates", {}, adminLimits.apiPageMost],
} as const;

type StatusParts = Readonly<Record<keyof typeof lists, RowList>> & { readonly stats: Row };

/**
 * Exit codes: 0 no problem, 1 an incident is active, no backend is ready or a changed setting needs a restart, 2 usage
 * error, 3 the API or a replica is unreachable.
 */
export const status = apiCommand("status", async ({ options, client, screen }) => {
  const format = options.text("output");
  const textOf = format === "json" ? json : format === "yaml" ? yamlTextOf : undefined;
  if (options.has("all-replicas")) return statusOfAll(client, textOf, screen);
  const known = await readAll(client);
  if (known instanceof Failure) return known;
  screen.print(textOf?.({ kind: "Status", isWell: isWell(known), ...known }) ?? screenOf(known));
  return isWell(known) ? 0 : 1;
});

/** Prints a line for each replica, and then the incidents of all replicas. */
async function statusOfAll(
  client: AdminClient,
  textOf: ((value: unknown) => string) | undefined,
  screen: Screen,
): Promise<number | Failure> {
  const all = await fromAll(client, readAll);
  if (all instanceof Failure) return all;
  const answers = answersIn(all);
  if (textOf !== undefined) {
    const items = answers.map(({ name, answer }) => ({ replica: name, isWell: isWell(answer), ...answer }));
    screen.print(textOf({ kind: "StatusList", items, unreachable: failuresIn(all) }));
  } else {
    screen.print(tableOf(replicaColumns, all.map(lineOf), { isWide: false, hasHeads: true }));
    const wrong = answers.map(({ name, answer }) => wrongAt(name, answer)).filter((text) => text !== "");
    screen.print(`\n${wrong.length === 0 ? "✓ no active incidents\n" : wrong.join("")}`);
  }
  const code = reportFailures(all, screen);
  if (code !== 0) return code;
  return answers.every(({ answer }) => isWell(answer)) ? 0 : 1;
}

const replicaColumns: readonly Column[] = [
  replicaColumn,
  { head: "STATE", of: (row) => marked(textAt(row, "state")) },
  { head: "VERSION", of: (row) => textAt(row, "version") },
  { head: "UP", of: (row) => age(numberAt(row, "uptimeMs")) },
  { head: "READY", of: (row) => textAt(row, "ready") },
  { head: "WATCHES", of: (row) => amount(numberAt(row, "watches")) },
  { head: "CLIENTS", of: (row) => amount(numberAt(row, "clients")) },
  { head: "INCIDENTS", of: (row) => amount(numberAt(row, "incidents")) },
  { head: "REASON", of: (row) => textAt(row, "reason") },
];

/** Returns the table row of a replica. If the replica did not answer, the row shows the reason. */
function lineOf({ name, row, outcome }: OfReplica<StatusParts>): Row {
  const { state, version } = row;
  const known = { replica: name, state, version };
  if (outcome instanceof Failure) {
    const isLive = state === "live";
    return { ...known, state: isLive ? "unknown" : state, reason: outcome.message.split("\n")[0] ?? "" };
  }
  const { backends, watches, clients, incidents, stats } = outcome;
  return {
    ...known,
    uptimeMs: numberAt(stats, "uptimeMs"),
    ready: `${backends.items.filter((one) => one["state"] === "ready").length}/${backends.total}`,
    watches: watches.total,
    clients: clients.total,
    incidents: incidents.matching,
  };
}

function wrongAt(name: string, known: StatusParts): string {
  const incidents = known.incidents.items.map((one) => incidentLines(one, name));
  const settings = restartRequiredIn(known).map(
    (setting) => `! ${shown(name)}: ${setting} takes effect only after a restart\n`,
  );
  return [...incidents, ...settings].join("");
}

async function readAll(client: AdminClient): Promise<StatusParts | Failure> {
  const stats = await client.one("stats");
  if (stats instanceof Failure) return stats;
  let failure: Failure | undefined;
  const list = async (name: keyof typeof lists): Promise<RowList> => {
    const [path, query, most] = lists[name];
    const outcome = await client.list(path, query, most);
    if (!(outcome instanceof Failure)) return outcome;
    failure = outcome;
    return listOf({});
  };
  const known = {
    stats,
    backends: await list("backends"),
    incidents: await list("incidents"),
    watches: await list("watches"),
    hung: await list("hung"),
    clients: await list("clients"),
    leases: await list("leases"),
    certificates: await list("certificates"),
  };
  return failure ?? known;
}

function isWell(known: StatusParts): boolean {
  const { backends, incidents } = known;
  const isServing = backends.items.some(({ state }) => state === "ready");
  return incidents.matching === 0 && isServing && restartRequiredIn(known).length === 0;
}

function restartRequiredIn({ stats }: StatusParts): readonly string[] {
  const settings = stats["restartRequired"];
  return Array.isArray(settings) ? settings.map((one) => shown(String(one))) : [];
}

function screenOf(known: StatusParts): string {
  const { backends, incidents } = known;
  const look = { isWide: false, hasHeads: true };
  const wrong = incidents.items.map((one) => incidentLines(one)).join("");
  return [
    headOf(known.stats),
    listenersOf(known.stats),
    "\n",
    backends.items.length === 0 ? "No backends\n" : tableOf(views.backends.columns, backends.items, look),
    "\n",
    countsOf(known),
    "\n",
    wrong === "" ? "✓ no active incidents\n" : wrong,
    ...gapsIn(known).map((gap) => `! ${gap}\n`),
    ...restartRequiredIn(known).map((setting) => `! ${setting} takes effect only after a restart\n`),
  ].join("");
}

/** Returns what proven backends do not take of the identities that the proxy asserts. */
function gapsIn({ backends }: StatusParts): readonly string[] {
  return backends.items.flatMap((row) =>
    wordsAt(row, "identities")
      .filter((one) => one.includes(": proven, "))
      .map((one) => shown(`${textAt(row, "name")}: ${one}`)),
  );
}

function headOf(stats: Row): string {
  const requests = Object.entries(rowOf(stats["requests"]));
  const answered = requests.reduce((sum, [, count]) => sum + (typeof count === "number" ? count : 0), 0);
  const bad = numberAt(stats, "requests.5xx") ?? 0;
  const words = [
    `watchkeeper ${textAt(stats, "version")}`,
    shown(textAt(stats, "name")),
    `up ${age(numberAt(stats, "uptimeMs"))}`,
    `${counted(answered, "request")} (${amount(bad)} 5xx)`,
    counted(numberAt(stats, "watchEvents"), "watch event"),
    `${amount(numberAt(stats, "rssBytes"))}B memory`,
  ];
  return `${words.filter((word) => word !== "").join("  ")}\n`;
}

/** Returns a line with all listeners; "" if none is open, or if the process is too old to report them. */
function listenersOf(stats: Row): string {
  const listeners = rowsAt(stats, "listeners").map(
    (row) => `${shown(textAt(row, "address"))} (${shown(textAt(row, "name"))})`,
  );
  return listeners.length === 0 ? "" : `listens on ${listeners.join(", ")}\n`;
}

function countsOf({ watches, hung, clients, leases, certificates }: StatusParts): string {
  const lapsed = leases.items.filter(({ verdict }) => verdict === "lapsed").length;
  const odd = leases.items.filter(({ verdict }) => verdict !== "ok").length - lapsed;
  const near = certificates.items.filter(({ level }) => level !== "ok").length;
  return [
    `${counted(watches.total, "watch", "watches")} (${amount(hung.matching)} hung)`,
    counted(clients.total, "client"),
    `${counted(leases.total, "lease")} (${amount(odd)} suspect${lapsed === 0 ? "" : `, ${amount(lapsed)} lapsed`})`,
    `${counted(certificates.total, "certificate")} (${amount(near)} expiring)\n`,
  ].join("   ");
}

/**
 * Returns the lines about an incident. `replica`: name of the replica that reports the incident; "": only one replica
 * was asked.
 */
function incidentLines(incident: Row, replica = ""): string {
  const text = (path: string): string => shown(textAt(incident, path));
  const what = `${text("kind")} ${text("subject")}`.trimEnd();
  const lasted = age(numberAt(incident, "durationMs"));
  const known = age(numberAt(incident, "detectionMs"));
  const [at, option] = replica === "" ? ["", ""] : [` at ${shown(replica)}`, ` --replica ${shown(replica)}`];
  return [
    `${marked(text("severity"))}: ${what}${at}, active for ${lasted}, detected after ${known}\n`,
    `    ${text("summary")}\n`,
    `    watchkeeper explain ${text("id")}${option}\n`,
  ].join("");
}
