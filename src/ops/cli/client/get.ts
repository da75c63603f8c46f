/** `watchkeeper get KIND [NAME]... [COLUMN=VALUE]...`: prints a list of the API in one of several formats. */

import { Failure } from "../../../base/failure.ts";
import { adminLimits } from "../../admin/http/limits.ts";
import { yamlTextOf } from "../../config/yaml-document.ts";
import { type Kind, kinds, singularOf } from "../commands/commands.ts";
import { type Given, usage } from "../commands/options.ts";
import { type RowList, shown, textAt } from "../commands/rows.ts";
import { json, type Screen } from "../commands/screen.ts";
import { type AdminClient, apiCommand } from "./admin-client.ts";
import { views } from "./columns.ts";
import { answersIn, failuresIn, fromAll, replicaColumn, reportFailures } from "./replicas.ts";
import { tableOf } from "./table.ts";

const maxLimit = 50_000;
/** Maximum length of a query, so that the API does not refuse the request's headers. */
const maxQueryBytes = adminLimits.adminHeaderBytes / 2;

type GetRequest = {
  readonly kind: Kind;
  readonly names: readonly string[];
  readonly query: URLSearchParams;
};

/** The list to print. `report` prints an error for each replica that has not answered, and returns the exit code. */
type Lists = {
  readonly list: RowList & { readonly unreachable?: ReturnType<typeof failuresIn> };
  readonly report: () => number;
};

/** Exit codes: 0 listed, 1 no row has one of the names, 2 usage error, 3 the API or a replica is unreachable. */
export const get = apiCommand("get", async ({ options, client, screen }) => {
  const asked = askedIn(options);
  if (asked instanceof Failure) return asked;
  const most = options.whole("limit", adminLimits.apiPage, [1, maxLimit]);
  if (most instanceof Failure) return most;
  const read = await (options.has("all-replicas") ? listsOf : listOf)(client, asked, most, screen);
  if (read instanceof Failure) return read;
  const { list, report } = read;
  const absent = absentIn(asked, list);
  if (absent.length === 0 || list.items.length > 0) show(asked.kind, list, options, screen);
  for (const name of absent) screen.complain(`${singularOf(asked.kind)} ${JSON.stringify(name)} not found\n`);
  return report() || (absent.length === 0 ? 0 : 1);
});

/** Returns the names that no row has. If --limit has cut the list, returns none, because a later row may have the name. */
function absentIn({ kind, names }: GetRequest, { items, matching }: RowList): readonly string[] {
  if (matching > items.length) return [];
  const found = new Set(items.map((row) => textAt(row, views[kind].key)));
  return names.filter((name) => !found.has(name));
}

async function listOf(
  client: AdminClient,
  { kind, query }: GetRequest,
  most: number,
): Promise<Lists | Failure> {
  const list = await client.list(kind, query, most);
  return list instanceof Failure ? list : { list, report: () => 0 };
}

/** Reads at most `most` rows of each replica. Each row gets the name of its replica. */
async function listsOf(
  client: AdminClient,
  { kind, query }: GetRequest,
  most: number,
  screen: Screen,
): Promise<Lists | Failure> {
  const all = await fromAll(client, (one) => one.list(kind, query, most));
  if (all instanceof Failure) return all;
  const answers = answersIn(all);
  const sum = (of: (list: RowList) => number): number =>
    answers.reduce((total, { answer }) => total + of(answer), 0);
  const list = {
    kind: answers[0]?.answer.kind ?? "",
    total: sum(({ total }) => total),
    matching: sum(({ matching }) => matching),
    items: answers.flatMap(({ name, answer }) => answer.items.map((row) => ({ replica: name, ...row }))),
    unreachable: failuresIn(all),
  };
  return { list, report: () => reportFailures(all, screen) };
}

function askedIn(options: Given): GetRequest | Failure {
  const [kind, ...rest] = options.words;
  // The default only satisfies the type checker: the parser of arguments has already rejected unknown kinds.
  const known = kinds.find((one) => one === kind) ?? "backends";
  const names = new Set(rest.filter((word) => !word.includes("=")));
  const query = new URLSearchParams();
  for (const word of rest.filter((one) => one.includes("="))) {
    const cut = word.indexOf("=");
    query.append(word.slice(0, cut), word.slice(cut + 1));
  }
  for (const name of names) query.append(views[known].key, name);
  for (const [option, parameter] of [["query", "q"] as const, ["sort", "sort"] as const]) {
    const value = options.text(option);
    if (value !== undefined) query.set(parameter, value);
  }
  const bytes = query.toString().length;
  if (bytes > maxQueryBytes)
    return usage(
      `Too many arguments: the query has ${bytes} bytes, and at most ${maxQueryBytes} are allowed`,
    );
  return { kind: known, names: [...names], query };
}

function show(kind: Kind, list: RowList, options: Given, screen: Screen): void {
  const format = options.text("output") ?? "table";
  if (format === "json") return screen.print(json(list));
  if (format === "yaml") return screen.print(yamlTextOf(list));
  const look = { isWide: format === "wide", hasHeads: !options.has("no-headers") };
  const { columns, key } = views[kind];
  const all = options.has("all-replicas") ? [replicaColumn, ...columns] : columns;
  if (format === "name") screen.print(list.items.map((row) => `${shown(textAt(row, key))}\n`).join(""));
  else if (list.items.length > 0) screen.print(tableOf(all, list.items, look));
  const { matching, items } = list;
  // These messages go to stderr, so that `wc -l` counts only rows.
  if (items.length === 0) screen.complain(`No ${kind} found\n`);
  else if (matching > items.length) screen.complain(`${items.length} of ${matching}: --limit shows more\n`);
}
