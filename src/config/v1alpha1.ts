/**
 * The changes of the configuration from v1alpha1 to v1alpha2. A v1alpha1 file is rejected, and so is a v1alpha1 key in
 * a v1alpha2 file; the message names the replacement of each key. `watchkeeper config --convert` prints a file with the
 * replacements made.
 */
import { configLimits } from "./limits.ts";
import { inReadingOrder, type Problem, quote } from "./problem.ts";
import {
  fieldOf,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  pointerTo,
  type Scalar,
  type YAMLMap,
  type YamlDocument,
} from "./yaml-document.ts";

const was = "watchkeeper.dev/v1alpha1";
const is = "watchkeeper.dev/v1alpha2";

type Change = {
  /** The new key; "a/b": key b in a map a; default: the key does not change. */
  readonly key?: string;
  /** Another v1alpha1 key beside this key. The values of both keys move into one new map. */
  readonly joins?: string;
  /** True if the value becomes the only entry of a list. */
  readonly isListed?: true;
  /** The new value for each v1alpha1 value; undefined: the value is the default now, so the key is removed. */
  readonly values?: Readonly<Record<string, string | boolean | undefined>>;
};

const clientCerts: Change = {
  values: {
    reject: "Reject",
    "front-proxy": "FrontProxy",
    impersonate: "Impersonate",
    lend: "ActAsImpersonator",
  },
};

/**
 * The changes by the old key's JSON pointer. "*" stands for each entry of a list. A pointer under `upstreams` also
 * applies under `upstream` and `clusters`.
 */
const changes: ReadonlyMap<string, Change> = new Map<string, Change>([
  ["/listeners/*/mode", { values: { http: "HTTP", passthrough: "Passthrough" } }],
  ["/listeners/*/upstream", { key: "cluster" }],
  ["/listeners/*/routes/*/upstream", { key: "cluster" }],
  ["/listeners/*/hosts/*/upstream", { key: "cluster" }],
  ["/listeners/*/hosts/*/names", { key: "serverNames" }],
  ["/listeners/*/hosts/*/identity/clientCerts", clientCerts],
  ["/listeners/*/identity/clientCerts", clientCerts],
  ["/listeners/*/trustedForwarders", { key: "trustedForwarderCIDRs" }],
  [
    "/listeners/*/proxyProtocol/mode",
    { values: { off: "Disabled", accept: "Optional", require: "Required" } },
  ],
  ["/listeners/*/proxyProtocol/trusted", { key: "trustedCIDRs" }],
  ["/listeners/*/connectionsPerSource", { key: "maxConnectionsPerSource" }],
  ["/upstream", { key: "clusters", isListed: true }],
  ["/upstreams", { key: "clusters" }],
  [
    "/upstreams/*/discovery/from",
    { key: "type", values: { dns: "DNS", file: "File", endpointslice: "EndpointSlice", leases: "Lease" } },
  ],
  ["/upstreams/*/discovery/name", { key: "hostname" }],
  ["/upstreams/*/tls/frontProxy/extraHeadersPrefix", { key: "extraHeaderPrefixes" }],
  ["/upstreams/*/lanes", { key: "connectionPool" }],
  ["/upstreams/*/lanes/streams", { key: "maxStreamsPerConnection" }],
  ["/upstreams/*/lanes/warm", { key: "minIdleConnections" }],
  [
    "/upstreams/*/sharing",
    { key: "connectionPool/perClient", joins: "lanes", values: { lanes: false, none: true } },
  ],
  [
    "/upstreams/*/proxyProtocol",
    { key: "proxyProtocol/version", values: { off: undefined, v1: "V1", v2: "V2" } },
  ],
  ["/watches/bookmarks", { key: "alwaysRequestBookmarks", values: { always: true, "as-asked": false } }],
  [
    "/watches/timeTravelGuard",
    { key: "staleReadGuard", values: { observe: "Observe", enforce: "Enforce", off: "Disabled" } },
  ],
  ["/watches/aggregatedGroups", { key: "aggregatedAPIGroups" }],
  ["/watches/customGroups", { key: "customResourceAPIGroups" }],
  ["/health/ping/deadAfterAll", { key: "deadAfterWhenAllSilent" }],
  ["/health/keepalive", { key: "tcpKeepalive" }],
  ["/health/keepalive/idle", { key: "idleTime" }],
  ["/health/keepalive/count", { key: "probes" }],
  ["/drain/readyDelay", { key: "shutdownDelay" }],
  ["/admin/operations", { key: "readOnly", values: { on: false, off: true } }],
  ["/admin/authorization/mode", { values: { off: "AlwaysAllow", kubernetes: "Webhook" } }],
  ["/admin/authorization/upstream", { key: "cluster" }],
  ["/logging/format", { values: { json: "JSON", text: "Text" } }],
  [
    "/logging/accessLog",
    { values: { off: "None", errors: "Errors", longrunning: "LongRunning", all: "All" } },
  ],
]);

/** Returns one problem for each key that must be replaced in a v1alpha1 file; an empty list for other files. */
export function replacements(document: YamlDocument, file: string): readonly Problem[] {
  if (document.tree.get("apiVersion") !== was) return [];
  const message = `is ${quote(was)}, which is no longer read: "watchkeeper config --convert ${file}" prints the file as ${quote(is)}`;
  const headline = { at: document.positionOf("/apiVersion"), field: "apiVersion", message };
  const all = [headline, ...new Conversion(document).problems];
  return all.toSorted(inReadingOrder).slice(0, configLimits.configProblems);
}

type Replaced = Problem & { readonly pointer: string };

/** Returns the problems of v1alpha1 keys in a v1alpha2 file. `unknown`: JSON pointers to its unknown keys. */
export function replacementsOf(unknown: ReadonlySet<string>, document: YamlDocument): readonly Replaced[] {
  if (unknown.size === 0) return [];
  return new Conversion(document).problems.filter(({ pointer }) => {
    let at = pointer;
    while (at !== "" && !unknown.has(at)) at = at.slice(0, at.lastIndexOf("/"));
    return at !== "";
  });
}

/** Returns the file's text with the replacements made; a text that is not v1alpha1 stays unchanged. */
export function converted(document: YamlDocument): string {
  if (document.tree.get("apiVersion") !== was) return document.text;
  return new Conversion(document).text
    .replaceAll(was, is)
    .replaceAll("watchkeeper.v1alpha1.json", "watchkeeper.v1alpha2.json");
}

type KeyedMap = YAMLMap<Scalar<string>, Node | null>;
type KeyedPair = Pair<Scalar<string>, Node | null>;
type Replacement = {
  readonly first: string;
  readonly inner: string;
  readonly value: string | boolean;
  readonly joins: string | undefined;
};

/** Returns the message about a replaced value. `field`: the path of the new key; "": the key has not changed. */
function newValue(old: string, value: string | boolean | undefined, field: string): string {
  if (value === undefined) return "is the default now: remove it";
  return field === ""
    ? `${JSON.stringify(old)} is now ${JSON.stringify(value)}`
    : `is now ${field}: ${String(value)}`;
}

/** The conversion of one file. It edits the text, because printing the parsed document would move comments. */
class Conversion {
  readonly problems: Replaced[] = [];
  readonly #document: YamlDocument;
  readonly #edits: { readonly from: number; readonly to: number; readonly text: string }[] = [];

  constructor(document: YamlDocument) {
    this.#document = document;
    this.#convert(document.tree.contents, "", "");
  }

  get text(): string {
    const { text } = this.#document;
    // Sorts the edits by position. At the same position, an insertion comes before a removal. Edits inside removed text
    // are dropped.
    const edits = this.#edits.toSorted((one, other) => one.from - other.from || one.to - other.to);
    let [next, end] = ["", 0];
    for (const edit of edits)
      if (edit.from >= end) {
        next += text.slice(end, edit.from) + edit.text;
        end = edit.to;
      }
    return next + text.slice(end);
  }

  /** Converts one node of the file. `now`: the JSON pointer that the node has after the conversion. */
  #convert(node: unknown, pointer: string, now: string): void {
    if (isSeq(node))
      for (const [index, item] of node.items.entries())
        this.#convert(item, pointerTo(pointer, index), pointerTo(now, index));
    if (!isMap<Scalar<string>, Node | null>(node)) return;
    for (const pair of node.items) {
      const at = pointerTo(pointer, pair.key.value);
      const general = at.replaceAll(/\/\d+(?=\/)/g, "/*");
      const change = changes.get(general.replace(/^\/(upstream|clusters\/\*)\//, "/upstreams/*/"));
      const place = `${now}/${change?.key ?? pair.key.value}${change?.isListed === true ? "/0" : ""}`;
      this.#convert(pair.value, at, place);
      if (change === undefined) continue;
      const message = this.#replace(node, pair, { ...change, field: fieldOf(place) });
      this.problems.push({ pointer: at, at: this.#document.keyPositionOf(at), field: fieldOf(at), message });
    }
  }

  #replace(map: KeyedMap, pair: KeyedPair, change: Change & { readonly field: string }): string {
    const { key = pair.key.value, values = {}, field } = change;
    const [first = "", inner = ""] = key.split("/");
    const old = isScalar(pair.value) ? String(pair.value.value) : "";
    if (!Object.hasOwn(values, old)) {
      this.#write(pair.key, first);
      return `is now ${field}${change.isListed === true ? this.#list(pair.value) : ""}`;
    }
    const value = values[old];
    if (value === undefined) this.#remove(map, pair);
    else this.#replaceValue(map, pair, { first, inner, value, joins: change.joins });
    return newValue(old, value, key === pair.key.value ? "" : field);
  }

  #replaceValue(map: KeyedMap, pair: KeyedPair, { first, inner, value, joins }: Replacement): void {
    const joined = map.items.find((one) => one.key.value === joins)?.value;
    if (isMap(joined)) {
      this.#remove(map, pair);
      this.#insert(joined, `${inner}: ${String(value)}`);
    } else {
      this.#write(pair.key, first);
      this.#write(pair.value, inner === "" ? value : `{${inner}: ${String(value)}}`);
    }
  }

  /**
   * Turns the map into a list of one entry, and names the entry "default" if it has no name. Returns the end of the
   * problem's message, which tells the operator this name; "" if the entry had a name.
   */
  #list(map: Node | null): string {
    if (!isMap(map)) return "";
    const from = startOf(map);
    const name = map.has("name") ? "" : "name: default";
    if (map.flow === true) {
      this.#edit(endOf(map), endOf(map), "]");
      this.#edit(from, from, "[");
      if (name !== "") this.#insert(map, name);
    } else {
      this.#edit(from, from, name === "" ? "- " : `- ${name}\n${this.#indentAt(from)}  `);
      const rest = this.#document.text.slice(from);
      for (const { index } of rest.slice(0, rest.search(/\n[^\s#]|$/)).matchAll(/(?<=\n)(?= +\S)/g))
        this.#edit(from + index, from + index, "  ");
    }
    return name === "" ? "" : `, with "${name}"`;
  }

  #indentAt(offset: number): string {
    const { text } = this.#document;
    return " ".repeat(offset - text.lastIndexOf("\n", offset - 1) - 1);
  }

  #insert(map: YAMLMap, text: string): void {
    const isEmpty = map.items.length === 0;
    const at = isEmpty ? startOf(map) + 1 : startOf(firstKeyOf(map));
    const end = map.flow === true ? ", " : `\n${this.#indentAt(at)}`;
    this.#edit(at, at, isEmpty ? text : text + end);
  }

  #write(node: Node | null, value: string | boolean): void {
    const isQuoted = typeof value === "string" && /["']/.test(this.#document.text[startOf(node)] ?? "");
    this.#edit(startOf(node), endOf(node), isQuoted ? JSON.stringify(value) : String(value));
  }

  /**
   * Removes a pair with its line. Keeps the line of a map's first pair, because that line may begin with the "-" of a
   * list entry.
   */
  #remove(map: KeyedMap, pair: KeyedPair): void {
    const { text } = this.#document;
    const index = map.items.indexOf(pair);
    const [before, next] = [map.items[index - 1], map.items[index + 1]];
    const [from, to] = [startOf(pair.key), endOf(pair.value)];
    if (before !== undefined && map.flow !== true)
      this.#edit(text.lastIndexOf("\n", from), to + text.slice(to).search(/\n|$/), "");
    else if (next !== undefined) this.#edit(from, startOf(next.key), "");
    else this.#edit(before === undefined ? from : endOf(before.value), to, "");
  }

  #edit(from: number, to: number, text: string): void {
    this.#edits.push({ from, to, text });
  }
}

const startOf = (node: Node | null): number => node?.range?.[0] ?? 0;
const endOf = (node: Node | null): number => node?.range?.[1] ?? 0;
const firstKeyOf = (map: YAMLMap): Node | null => {
  const [first] = map.items;
  return isScalar(first?.key) ? first.key : null;
};
