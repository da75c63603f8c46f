/**
 * Lists and watches of clients, read from the apiservers' audit log, so that every client library and every proxy is
 * judged in the same way. When watchkeeper repeats a request or moves a watch, it keeps the Audit-ID, so the request
 * counts once.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type Asked = {
  readonly at: number;
  readonly user: string;
  readonly kind: "list" | "watch";
  /** The path and the selectors, which identify the client's informer. */
  readonly what: string;
  /** The resourceVersion in the client's request; "" if it has none and so asks for all objects. */
  readonly from: string;
  /** Earliest time after which the apiserver or the client ends the watch. 0 if it is no watch. */
  readonly timeoutMs: number;
  /** Latest time after which the apiserver or the client ends the watch. */
  readonly latestMs: number;
  /** True if the watch had ended before the faults began. */
  readonly isOver: boolean;
};

/** A watch without a timeout of its own ends after 30 to 60 minutes (--min-request-timeout). */
const untimedMs = 30 * 60_000;
/**
 * fabric8's reflector requests a timeout of ten minutes, and ends each watch itself after five to ten minutes
 * (io.fabric8…cache.Reflector).
 */
const endedByClient = { agent: "fabric8-kubernetes-client/", afterMs: 5 * 60_000 };
/**
 * A watch that ends at most this long before its timeout counts as ended by the timeout, because the apiserver starts
 * its timer a little later.
 */
const slackMs = 2_000;
/**
 * client-go reopens a watch within this time, even if it backs off. A watch that opens later does not replace an
 * earlier one.
 */
const reopenedMs = 60_000;

const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  // RequestReceived is logged, so that a request counts even if its response never comes.
  omitStages: ["ResponseStarted", "Panic"],
  rules: [
    { level: "None", users: ["system:apiserver", "admin"] },
    { level: "Metadata", verbs: ["list"], omitStages: ["ResponseComplete"] },
    { level: "Metadata", verbs: ["watch"] },
    { level: "None" },
  ],
};

/** Returns the flags of an apiserver, and its audit log. All apiservers append to one file. */
export function auditFlags(folder: string): { readonly flags: readonly string[]; readonly logFile: string } {
  const policyFile = join(folder, "audit-policy.yaml");
  const logFile = join(folder, "audit.log");
  writeFileSync(policyFile, JSON.stringify(policy));
  const flags = [`--audit-policy-file=${policyFile}`, `--audit-log-path=${logFile}`];
  // Maximum size in megabytes, large enough that no apiserver renames the file while the others write to it. An hour
  // through watchkeeper takes 50 MB.
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
  /** When the request reached the stage. */
  readonly stageTimestamp: string;
};

/** Query parameters that do not belong to the identity of an informer. */
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
  // A streaming list is a watch that begins with all objects, so it counts as a list.
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
 * Returns the requests in the order of their arrival. Requests with the same Audit-ID are one. `since` is when the
 * faults began. Throws if there is no log, or if a line cannot be parsed.
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
   * The proxy may send one watch to several apiservers, so the watch is over when all of them have ended it. Lists with
   * the watch's Audit-ID are the proxy's own.
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

/** Returns the users that opened no watch. The log proves nothing about their clients. */
export function unwatching(all: readonly Asked[], users: readonly string[]): readonly string[] {
  const watching = new Set(all.filter(({ timeoutMs }) => timeoutMs > 0).map(({ user }) => user));
  return users.filter((user) => !watching.has(user));
}

export type Judged = { readonly relists: readonly Asked[]; readonly closed: readonly Asked[] };

/** When a watch reaches its timeout: between `from` and `to`, in Unix milliseconds. */
type Due = { readonly from: number; readonly to: number };

/**
 * Returns the requests from `since` to `until` that no client should have needed: lists of an informer that had listed
 * before (`relists`), and watches that replaced a watch whose timeout had not passed (`closed`). A new watch replaces
 * the open watch with the same user, path and selectors that is due first.
 */
export function judge(all: readonly Asked[], since: number, until: number): Judged {
  const relists: Asked[] = [];
  const closed: Asked[] = [];
  /** The open watches of each user's informer. */
  const open = new Map<string, readonly Due[]>();
  for (const one of all) {
    const key = `${one.user} ${one.what}`;
    const known = open.get(key);
    const mine = stillOpen(known ?? [], one.at);
    const isCounted = known !== undefined && one.at >= since && one.at < until;
    // The first list of an informer does not count, even during the faults: the garbage collector finds a new resource
    // half a minute late.
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

/** Returns the watches that may still be replaced at this time, in the order of their timeouts. */
function stillOpen(watches: readonly Due[], at: number): readonly Due[] {
  return watches.filter(({ to }) => to + reopenedMs > at).toSorted((one, other) => one.from - other.from);
}

function dueOf({ at, timeoutMs, latestMs, isOver }: Asked): readonly Due[] {
  return timeoutMs === 0 || isOver ? [] : [{ from: at + timeoutMs, to: at + latestMs }];
}
