/**
 * What clients ask for, by the apiservers' audit log: the same judge for each client library and each proxy. watchkeeper
 * sends a request that it repeats or moves with one Audit-ID, so such a request counts once.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type Asked = {
  readonly at: number;
  readonly user: string;
  readonly kind: "list" | "watch";
  /** Which of the client's informers asks: the path and its selectors. */
  readonly what: string;
  /** Where it begins, as the client says it: a version, or "" for all that there is. */
  readonly from: string;
  /** The time after which the apiserver, or the client, ends the watch. 0: it is no watch. */
  readonly timeoutMs: number;
};

/** A watch without a timeout of its own ends after 30 to 60 minutes (--min-request-timeout). */
const longestMs = 30 * 60_000;
/** fabric8's reflector asks for ten minutes, and ends each watch itself after five to ten (io.fabric8…cache.Reflector). */
const endedByClient = { agent: "fabric8-kubernetes-client/", afterMs: 5 * 60_000 };
/** A watch that ends so long before its timeout has reached it: the apiserver counts from a later moment. */
const slackMs = 2_000;

const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  // Only the arrival of a request, so that a request counts even if its response never comes.
  omitStages: ["ResponseStarted", "ResponseComplete", "Panic"],
  rules: [
    { level: "None", users: ["system:apiserver", "admin"] },
    { level: "Metadata", verbs: ["list", "watch"] },
    { level: "None" },
  ],
};

/** Returns an apiserver's flags; all apiservers append to one file. */
export function auditFlags(folder: string): { readonly flags: readonly string[]; readonly logFile: string } {
  const policyFile = join(folder, "audit-policy.yaml");
  const logFile = join(folder, "audit.log");
  writeFileSync(policyFile, JSON.stringify(policy));
  const flags = [`--audit-policy-file=${policyFile}`, `--audit-log-path=${logFile}`];
  // Megabytes. One apiserver must not rename the file under the others: an hour through watchkeeper takes 50.
  return { flags: [...flags, "--audit-log-maxsize=10000"], logFile };
}

type Entry = {
  readonly auditID: string;
  readonly verb: "list" | "watch";
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly userAgent?: string;
  readonly requestReceivedTimestamp: string;
};

/** Not part of what a watch is about. */
const ownParameters = [
  "resourceVersion",
  "resourceVersionMatch",
  "timeoutSeconds",
  "timeout",
  "watch",
  "allowWatchBookmarks",
  "sendInitialEvents",
  "limit",
  "continue",
];

export function asked(entry: Entry): Asked {
  const { pathname, searchParams } = new URL(entry.requestURI, "https://apiserver");
  const { verb, user, userAgent = "" } = entry;
  const timeout = Number(searchParams.get("timeoutSeconds") ?? 0);
  // A streaming list is a watch that begins with all objects.
  const isList = verb === "list" || searchParams.get("sendInitialEvents") === "true";
  const from = searchParams.get("resourceVersion") ?? "";
  for (const name of ownParameters) searchParams.delete(name);
  const askedMs = timeout === 0 ? longestMs : timeout * 1_000;
  const isEndedByClient = userAgent.startsWith(endedByClient.agent);
  return {
    at: Date.parse(entry.requestReceivedTimestamp),
    user: user.username,
    kind: isList ? "list" : "watch",
    what: `${userAgent.split(" ")[0] ?? ""} ${pathname}?${searchParams.toString()}`,
    from,
    timeoutMs: verb === "list" ? 0 : isEndedByClient ? Math.min(askedMs, endedByClient.afterMs) : askedMs,
  };
}

/** In the order of their arrival; requests with one Audit-ID are one. */
export function readAudit(logFile: string): readonly Asked[] {
  if (!existsSync(logFile)) return [];
  const seen = new Set<string>();
  const entries = readFileSync(logFile, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Entry)
    .toSorted((one, other) => (one.requestReceivedTimestamp < other.requestReceivedTimestamp ? -1 : 1));
  return entries.filter(({ auditID }) => !seen.has(auditID) && seen.add(auditID)).map(asked);
}

export type Judged = { readonly relists: readonly Asked[]; readonly closed: readonly Asked[] };

/**
 * What clients asked for from `since` to `until` although they had it: lists, and watches in the place of one that had not
 * reached its timeout. `closed` has the watches that the clients opened instead.
 */
export function judge(all: readonly Asked[], since: number, until: number): Judged {
  const relists: Asked[] = [];
  const closed: Asked[] = [];
  /** When the watches of each informer reach their timeouts. */
  const due = new Map<string, number[]>();
  for (const one of all) {
    const key = `${one.user} ${one.what}`;
    const mine = due.get(key);
    const isCounted = mine !== undefined && one.at >= since && one.at < until;
    // The first list is none anew: the garbage collector finds a new resource half a minute late.
    if (isCounted && one.kind === "list") relists.push(one);
    const isClosed = isCounted && isEarly(mine, one);
    if (isClosed) closed.push(one);
    due.set(key, replaced(mine ?? [], one, isClosed));
  }
  return { relists, closed };
}

function isEarly(due: readonly number[], { at, timeoutMs }: Asked): boolean {
  return timeoutMs > 0 && due.length > 0 && due.every((dueAt) => dueAt > at + slackMs);
}

/** The watch takes the place of the one that is due first, if that one is due or was closed. */
function replaced(due: readonly number[], { at, timeoutMs }: Asked, isClosed: boolean): number[] {
  if (timeoutMs === 0) return [...due];
  const [first = Number.POSITIVE_INFINITY, ...others] = due.toSorted((one, other) => one - other);
  return isClosed || first <= at + slackMs ? [...others, at + timeoutMs] : [...due, at + timeoutMs];
}
