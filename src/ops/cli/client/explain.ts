/** `watchkeeper explain [INCIDENT|KIND]`: prints what an incident means, its evidence, and its effect on clients. */
import { Failure } from "../../../base/failure.ts";
import { incidentKinds } from "../../incidents/kinds.ts";
import { type Given, usage } from "../commands/options.ts";
import { numberAt, type Row, rowsAt, shown, textAt, wordsAt } from "../commands/rows.ts";
import { complain, json, type Screen } from "../commands/screen.ts";
import { type AdminClient, apiCommand } from "./admin-client.ts";
import { nextCommands } from "./next-commands.ts";
import { answersIn, failuresIn, fromAll, reportFailures } from "./replicas.ts";
import { tableOf } from "./table.ts";
import { age, counted, marked } from "./words.ts";

/**
 * Exit codes: 0 explained, or there is no incident at all; 1 no incident has this number or kind, 2 usage error, 3 the
 * API or a replica is unreachable.
 */
export const explain = apiCommand("explain", async ({ options, client, screen }) => {
  const asked = askedIn(options);
  if (asked instanceof Failure) return asked;
  const { number, query } = asked;
  const codeOfNone = options.words.length === 0 ? 0 : 1;
  const isJson = options.text("output") === "json";
  if (options.has("all-replicas")) return explainAll(client, query, { isJson, codeOfNone, screen });
  const incident = await (number === undefined
    ? newestIncident(client, query)
    : client.one(`incidents/${number}`));
  if (incident instanceof Failure) return incident;
  if (incident === undefined) return complain("No incidents", codeOfNone, screen);
  screen.print(isJson ? json(incident) : explained(incident, await setupOf(client, incident)));
  return 0;
});

/** What to explain: the incident with this number; undefined: the newest incident that matches the query. */
type Asked = { readonly number: string | undefined; readonly query: Record<string, string> };

function askedIn(options: Given): Asked | Failure {
  const [word] = options.words;
  if (word === undefined) return { number: undefined, query: {} };
  const [, number] = /^#?(\d{1,9})$/.exec(word) ?? [];
  if (number !== undefined && options.has("all-replicas"))
    return usage("A number names an incident of one replica: use --replica NAME, or a kind");
  if (number === undefined && !Object.hasOwn(incidentKinds, word))
    return usage("Invalid INCIDENT: must be a number or a kind, as in `get incidents`");
  return { number, query: { kind: word } };
}

type Printing = {
  readonly isJson: boolean;
  /** Exit code if no replica has a matching incident. */
  readonly codeOfNone: number;
  readonly screen: Screen;
};

/** Explains the newest incident of each replica. */
async function explainAll(
  client: AdminClient,
  query: Record<string, string>,
  { isJson, codeOfNone, screen }: Printing,
): Promise<number | Failure> {
  const all = await fromAll(client, async (one) => {
    const incident = await newestIncident(one, query);
    return incident instanceof Failure || incident === undefined
      ? incident
      : { incident, setup: await setupOf(one, incident) };
  });
  if (all instanceof Failure) return all;
  const answers = answersIn(all).flatMap(({ name, answer }) =>
    answer === undefined ? [] : [{ name, ...answer }],
  );
  if (isJson) {
    const items = answers.map(({ name, incident }) => ({ replica: name, ...incident }));
    screen.print(json({ kind: "IncidentList", items, unreachable: failuresIn(all) }));
  } else
    screen.print(
      answers
        .map(({ name, incident, setup }) => `REPLICA ${shown(name)}\n${explained(incident, setup)}`)
        .join("\n"),
    );
  for (const { name, answer } of answersIn(all))
    if (answer === undefined) screen.complain(`${shown(name)}: No incidents\n`);
  return reportFailures(all, screen) || (answers.length > 0 ? 0 : codeOfNone);
}

/** Times of at least this many milliseconds are printed in hours or days. */
const longMs = 7_200_000;

/**
 * Returns the newest active incident that matches. If none is active, returns the newest that has ended; undefined:
 * there is none.
 */
async function newestIncident(
  client: AdminClient,
  query: Record<string, string>,
): Promise<Row | Failure | undefined> {
  const active = await client.list("incidents", { ...query, state: "active" }, 1);
  const list =
    active instanceof Failure || active.items.length > 0 ? active : await client.list("incidents", query, 1);
  return list instanceof Failure ? list : list.items[0];
}

/**
 * The ports of the listeners of the process that reports an incident, and the address of the incident's backend. Both
 * are empty if the process is too old to report them, or does not answer.
 */
type Setup = { readonly ports: readonly string[]; readonly address: string };

async function setupOf(client: AdminClient, incident: Row): Promise<Setup> {
  const stats = await client.one("stats");
  const listeners = stats instanceof Failure ? [] : rowsAt(stats, "listeners");
  const name = textAt(incident, "backend");
  const backends = name === "" ? undefined : await client.list("backends", { name }, 1);
  const [backend = {}] = backends === undefined || backends instanceof Failure ? [] : backends.items;
  return {
    ports: listeners.map((row) => shown(textAt(row, "address").split(":").at(-1) ?? "")),
    address: text(backend, "address"),
  };
}

function explained(incident: Row, { ports, address }: Setup): string {
  return [
    head(incident, address),
    meaning(incident),
    evidence(incident),
    impact(incident),
    clients(incident, "affected", "AFFECTED"),
    clients(incident, "causedBy", "CAUSED BY"),
    nextCommands(incident, ports),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function text(row: Row, path: string): string {
  return shown(textAt(row, path));
}

function head(incident: Row, address: string): string {
  const lasted = age(numberAt(incident, "durationMs"));
  const isActive = textAt(incident, "state") === "active";
  const ending = text(incident, "resolution");
  const state = isActive
    ? `active for ${lasted}`
    : `resolved after ${lasted}${ending === "" ? "" : `: ${ending}`}`;
  return [
    `${`#${text(incident, "id")}  ${text(incident, "kind")}  ${text(incident, "subject")}`.trimEnd()}\n`,
    `${marked(text(incident, "severity"))}, ${state}\n`,
    `${beginning(incident)}\n`,
    address === "" ? "" : `backend ${text(incident, "backend")}: ${address}\n`,
  ].join("");
}

/**
 * Returns a text with the time at which the incident's cause began. For some incidents, such as those about an expiring
 * certificate, only the time of the detection is known.
 */
function beginning(incident: Row): string {
  const startedAt = text(incident, "startedAt");
  const detectionMs = numberAt(incident, "detectionMs") ?? 0;
  if (detectionMs === 0) return `found ${startedAt}; the cause may be older`;
  return `started ${startedAt}, detected ${age(detectionMs)} later`;
}

/** Returns the incident's meaning and summary. Omits the meaning of a kind that only a newer watchkeeper knows. */
function meaning(incident: Row): string {
  const about = Object.entries(incidentKinds).find(([kind]) => kind === incident["kind"])?.[1].about;
  return `${about === undefined ? "" : `${about}.\n`}${text(incident, "summary")}\n`;
}

function evidence(incident: Row): string {
  const rows = rowsAt(incident, "evidence");
  if (rows.length === 0) return "";
  const table = tableOf(
    [
      { head: "AT", of: (row) => textAt(row, "at").replace(/^.*T|Z$/g, "") },
      { head: "DETECTOR", of: (row) => textAt(row, "detector") },
      { head: "MEASURED", of: measured("value") },
      { head: "THRESHOLD", of: measured("threshold") },
      { head: "FINDING", of: finding },
      { head: "AUDIT-ID", of: (row) => textAt(row, "auditId"), isRare: true },
    ],
    rows,
    { isWide: true, hasHeads: true },
  );
  const omitted = numberAt(incident, "evidenceOmitted") ?? 0;
  return `EVIDENCE (times in UTC)\n${table}${omitted === 0 ? "" : `${omitted} rows in between were not kept\n`}`;
}

function finding(row: Row): string {
  const repeats = numberAt(row, "repeats") ?? 0;
  const equal = `(${counted(repeats, "equal finding")} since the row above)`;
  return `${textAt(row, "text")}${repeats === 0 ? "" : ` ${equal}`}`;
}

function measured(path: string): (row: Row) => string {
  return (row) => {
    const value = numberAt(row, path) ?? 0;
    const unit = textAt(row, "unit");
    const isMeasured = value !== 0 || (numberAt(row, "threshold") ?? 0) !== 0;
    if (unit === "" || !isMeasured) return "";
    return unit === "ms" ? measuredTime(value) : `${value} ${unit}`;
  };
}

/**
 * Returns a duration as text: a short one in milliseconds, and a long one, such as the time until an expiry, in hours
 * or days.
 */
function measuredTime(ms: number): string {
  const isLong = Math.abs(ms) >= longMs;
  return isLong ? `${ms < 0 ? "-" : ""}${age(Math.abs(ms))}` : `${Math.round(ms)}ms`;
}

function impact(incident: Row): string {
  const costs = [
    [
      "watchesMoved",
      "watch moved without its client noticing",
      "watches moved without their clients noticing",
    ],
    ["watchesEnded", "watch ended between two events", "watches ended between two events"],
    ["tunnelsEnded", "exec, attach or port-forward ended", "exec, attach, port-forward ended"],
    ["requestsFailed", "request failed", "requests failed"],
  ] as const;
  const slowest = numberAt(incident, "impact.slowestMoveMs") ?? 0;
  const told = costs.flatMap(([path, one, many]) => {
    const count = numberAt(incident, `impact.${path}`) ?? 0;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}\n`];
  });
  if (slowest > 0) told.push(`the slowest move took ${age(slowest)}\n`);
  return told.length === 0 ? "" : `IMPACT\n${told.join("")}`;
}

function clients(incident: Row, field: string, heading: string): string {
  const count = numberAt(incident, `${field}.count`) ?? 0;
  if (count === 0) return "";
  const lines = wordsAt(incident, `${field}.names`).map((name) => `${shown(name)}\n`);
  const more = count - lines.length;
  return `${heading} (${count})\n${lines.join("")}${more > 0 ? `and ${more} more\n` : ""}`;
}
