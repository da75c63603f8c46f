/** `watchkeeper get KIND [NAME] [COLUMN=VALUE]...`: prints a list of the API as a table or as JSON. */
import { adminLimits } from "../../admin/http/limits.ts";
import { Failure } from "../../base/failure.ts";
import { type Kind, kinds } from "../commands/commands.ts";
import { type Given, usage } from "../commands/options.ts";
import type { RowList } from "../commands/rows.ts";
import { json, type Screen } from "../commands/screen.ts";
import { apiCommand } from "./admin-client.ts";
import { views } from "./columns.ts";
import { tableOf } from "./table.ts";

const maxLimit = 50_000;

type GetRequest = {
  readonly kind: Kind;
  readonly name: string | undefined;
  readonly query: Record<string, string>;
};

/** Exit codes: 0 listed, 1 no row of that name, 2 usage error, 3 the API is unreachable. */
export const get = apiCommand("get", async ({ options, client, screen }) => {
  const asked = askedIn(options);
  if (asked instanceof Failure) return asked;
  const most = options.whole("limit", adminLimits.apiPage, [1, maxLimit]);
  const list = most instanceof Failure ? most : await client.list(asked.kind, asked.query, most);
  if (list instanceof Failure) return list;
  if (asked.name !== undefined && list.items.length === 0) {
    const kind = asked.kind === "watches" ? "watch" : asked.kind.slice(0, -1);
    screen.complain(`${kind} ${JSON.stringify(asked.name)} not found\n`);
    return 1;
  }
  show(asked.kind, list, options, screen);
  return 0;
});

function askedIn(options: Given): GetRequest | Failure {
  const [kind, ...rest] = options.words;
  // The default is never used: `given` has rejected unknown kinds.
  const known = kinds.find((one) => one === kind) ?? "backends";
  const names = rest.filter((word) => !word.includes("="));
  if (names.length > 1) return usage(`Too many NAMEs: ${names.join(" ")}`);
  const query: Record<string, string> = {};
  for (const word of rest.filter((one) => one.includes("="))) {
    const cut = word.indexOf("=");
    query[word.slice(0, cut)] = word.slice(cut + 1);
  }
  const [name] = names;
  if (name !== undefined) query[views[known].key] = name;
  for (const [option, parameter] of [["query", "q"] as const, ["sort", "sort"] as const]) {
    const value = options.text(option);
    if (value !== undefined) query[parameter] = value;
  }
  return { kind: known, name, query };
}

function show(kind: Kind, list: RowList, options: Given, screen: Screen): void {
  const format = options.text("output") ?? "table";
  if (format === "json") return screen.print(json(list));
  const look = { isWide: format === "wide", hasHeads: !options.has("no-headers") };
  if (list.items.length > 0) screen.print(tableOf(views[kind].columns, list.items, look));
  const { matching, items } = list;
  // Writes to stderr, so that `wc -l` counts only rows.
  if (items.length === 0) screen.complain(`No ${kind} found\n`);
  else if (matching > items.length) screen.complain(`${items.length} of ${matching}: --limit shows more\n`);
}
