/**
 * What clients ask for, by the apiservers' audit log: the same judge for each client library and each proxy. watchkeeper
 * sends a request that it repeats or moves with one Audit-ID, so such a request counts once.
 */
import { readFileSync, writeFileSync } from "node:fs";
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
  /** The latest such time. */
  readonly latestMs: number;
  /** True if the watch had ended before the faults began. */
  readonly isOver: boolean;
};

/** A watch without a timeout of its own ends after 30 to 60 minutes (--min-request-timeout). */
const untimedMs = 30 * 60_000;
/** fabric8's reflector asks for ten minutes, and ends each watch itself after five to ten (io.fabric8…cache.Reflector). */
const endedByClient = { agent: "fabric8-kubernetes-client/", afterMs: 5 * 60_000 };
/** A watch that ends so long before its timeout has reached it: the apiserver counts from a later moment. */
const slackMs = 2_000;
/** client-go opens a watch again within this time, even if it backs off. Later, no watch takes the place of the one that ended. */
const reopenedMs = 60_000;

const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  // A request counts by its arrival, so that it counts even if its response never comes.
  omitStages: ["ResponseStarted", "Panic"],
  rules: [
    { level: "None", users: ["system:apiserver", "admin"] },
    { level: "Metadata", verbs: ["list"], omitStages: ["ResponseComplete"] },
    { level: "Metadata", verbs: ["watch"] },
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
  readonly stage: "RequestReceived" | "ResponseComplete";
  readonly verb: "list" | "watch";
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly userAgent?: string;
  readonly requestReceivedTimestamp: string;
  /** When it reached the stage. */
  readonly stageTimestamp: string;
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

export function asked(entry: Entry, isOver = false): Asked {
  const { pathname, searchParams } = new URL(entry.requestURI, "https://apiserver");
  const { verb, user, userAgent = "" } = entry;
  const timeout = Number(searchParams.get("timeoutSeconds") ?? 0);
  // A streaming list is a watch that begins with all objects.
  const isList = verb === "list" || searchParams.get("sendInitialEvents") === "true";
  const from = searchParams.get("resourceVersion") ?? "";
  for (const name of ownParameters) searchParams.delete(name);
  const [askedMs, latestMs] = timeout === 0 ? [untimedMs, 2 * untimedMs] : [timeout * 1_000, timeout * 1_000];
  const isEndedByClient = userAgent.startsWith(endedByClient.agent);
  const isWatch = verb === "watch";
  return {
    at: Date.parse(entry.requestReceivedTimestamp),
    user: user.username,
    kind: isList ? "list" : "watch",
    what: `${userAgent.split(" ")[0] ?? ""} ${pathname}?${searchParams.toString()}`,
    from,
    timeoutMs: isWatch ? Math.min(askedMs, isEndedByClient ? endedByClient.afterMs : askedMs) : 0,
    latestMs: isWatch ? latestMs : 0,
    isOver,
  };
}

/**
 * In the order of their arrival; requests with one Audit-ID are one. `since`: when the faults began. Throws if there is no
 * log, or if a line of it cannot be read.
 */
export function readAudit(logFile: string, since: number): readonly Asked[] {
  return requestsOf(readFileSync(logFile, "utf8"), since);
}

export function requestsOf(log: string, since: number): readonly Asked[] {
  const entries = log
    .split("\n")
    .slice(0, -1) // "", or a line that is being written
    .map((line) => JSON.parse(line) as Entry)
    .toSorted((one, other) => (one.requestReceivedTimestamp < other.requestReceivedTimestamp ? -1 : 1));
  const first = new Map<string, Entry>();
  /**
   * The proxy can send a watch to several apiservers: it is over when all of them have ended it. Lists with the same Audit-ID
   * are the proxy's own.
   */
  const open = new Map<string, number>();
  for (const entry of entries) {
    const { auditID, verb, stage, stageTimestamp } = entry;
    const isArrival = stage === "RequestReceived";
    if (isArrival && !first.has(auditID)) first.set(auditID, entry);
    if (verb === "watch" && Date.parse(stageTimestamp) < since)
      open.set(auditID, (open.get(auditID) ?? 0) + (isArrival ? 1 : -1));
  }
  return [...first].map(([auditID, entry]) => asked(entry, open.get(auditID) === 0));
}

/** Those of `users` that opened no watch: the log says nothing about them. */
export function unwatching(all: readonly Asked[], users: readonly string[]): readonly string[] {
  const watching = new Set(all.filter(({ timeoutMs }) => timeoutMs > 0).map(({ user }) => user));
  return users.filter((user) => !watching.has(user));
}

export type Judged = { readonly relists: readonly Asked[]; readonly closed: readonly Asked[] };

/** When a watch reaches its timeout: not before `from`, and not after `to`. */
type Due = { readonly from: number; readonly to: number };

/**
 * What clients asked for from `since` to `until` although they had it: lists, and watches in the place of one that had not
 * reached its timeout. `closed` has the watches that the clients opened instead. A watch takes the place of the equal one
 * that is due first.
 */
export function judge(all: readonly Asked[], since: number, until: number): Judged {
  const relists: Asked[] = [];
  const closed: Asked[] = [];
  /** The open watches of each informer. */
  const open = new Map<string, readonly Due[]>();
  for (const one of all) {
    const key = `${one.user} ${one.what}`;
    const known = open.get(key);
    const mine = stillOpen(known ?? [], one.at);
    const isCounted = known !== undefined && one.at >= since && one.at < until;
    // The first list is none anew: the garbage collector finds a new resource half a minute late.
    if (isCounted && one.kind === "list") relists.push(one);
    const [first] = mine;
    const isWatch = one.timeoutMs > 0;
    const isClosed = isCounted && isWatch && first !== undefined && first.from > one.at + slackMs;
    if (isClosed) closed.push(one);
    const takesPlace =
      isWatch && one.at >= since && (isClosed || (first?.from ?? Infinity) <= one.at + slackMs);
    open.set(key, [...(takesPlace ? mine.slice(1) : mine), ...dueOf(one)]);
  }
  return { relists, closed };
}

/** In the order of their timeouts. */
function stillOpen(watches: readonly Due[], at: number): readonly Due[] {
  return watches.filter(({ to }) => to + reopenedMs > at).toSorted((one, other) => one.from - other.from);
}

function dueOf({ at, timeoutMs, latestMs, isOver }: Asked): readonly Due[] {
  return timeoutMs === 0 || isOver ? [] : [{ from: at + timeoutMs, to: at + latestMs }];
}
