/** Decides whether a journal entry opens an incident, adds evidence to one, or ends one. No I/O. */

import { limits } from "../../base/limits.ts";
import type { Entry, EntryOf } from "../../events/journal.ts";
import type { EvidenceRow } from "./incident.ts";
import type { IncidentKind } from "./kinds.ts";
import { type Finding, findingOf } from "./store.ts";

/** Ends the active incidents of these kinds about this subject. */
export type Ending = {
  readonly kinds: readonly IncidentKind[];
  readonly subject: string;
  readonly ending: string;
};

type Readers = {
  readonly [K in Entry["kind"]]?: (entry: EntryOf<K>, at: number) => Finding | undefined;
};
type Enders = { readonly [K in Entry["kind"]]?: (entry: EntryOf<K>) => Ending | undefined };

const said = (at: number, detector: string, text: string): EvidenceRow => ({
  at,
  detector,
  value: 0,
  threshold: 0,
  unit: "",
  text,
});

type Caller = { readonly client?: string; readonly userAgent?: string };

const nameOf = ({ client = "", userAgent = "" }: Caller): string => `${client} ${userAgent}`.trim();

const leaseKinds = {
  contested: "lease-contested",
  ghost: "lease-ghost-holder",
  unknown: "lease-unknown-client",
} as const;

function inDays(ms: number): string {
  const days = ms / 86_400_000;
  return Math.abs(days) < 2 ? `${(ms / 3_600_000).toFixed(1)} h` : `${Math.floor(days)} days`;
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

type Counts = Pick<
  EntryOf<"backend.api_unreachable">,
  "failed" | "total" | "peer" | "peerFailed" | "peerTotal"
>;

function countsIn({ failed, total, peer, peerFailed, peerTotal }: Counts): string {
  return `${failed} of ${total} failed; ${peer}: ${peerFailed} of ${peerTotal}`;
}

/** Returns "secrets" for "/secrets" of the core group, and "deployments.apps" for "apps/deployments". */
function resourceIn(key: string): string {
  const [group = "", resource = ""] = key.split("/", 2);
  return group === "" ? resource : `${resource}.${group}`;
}

type Counted = readonly [count: number, limit: number];

/** Returns a row of evidence with a count. */
function counted(at: number, detector: string, [value, threshold]: Counted, text: string): EvidenceRow {
  return { at, detector, value, threshold, unit: "times", text };
}

const readers: Readers = {
  "watch.hung"(entry, at) {
    const { resource, backend, silentMs: value, limitMs: threshold } = entry;
    const text = `A watch of ${resource} on ${backend} has sent nothing for ${Math.round(value / 1000)} s, not even a bookmark`;
    const row: EvidenceRow = { at, detector: "bookmarks", value, threshold, unit: "ms", text };
    return findingOf("watch-hung", backend, row, { backend, startedAt: at - value, client: nameOf(entry) });
  },
  "watches.ended"({ reason, from, count }, at) {
    if (reason !== "deadline_missed") return undefined;
    const text = `${count} watches were not ended by ${from} at their client's deadline`;
    return findingOf("watch-hung", from, counted(at, "deadline", [count, 1], text), { backend: from });
  },
  "watch.delayed"({ backend, resource, delayMs: value, limitMs: threshold, othersMs, resources }, at) {
    const late = `${backend} delivers ${resourceIn(resource)} ${inSeconds(value)} late`;
    const others = othersMs < 0 ? "" : `; other backends: ${inSeconds(othersMs)}`;
    const more = resources > 1 ? `; ${resources} resources are late` : "";
    const text = `${late}${more}${others}`;
    const row: EvidenceRow = { at, detector: "writes", value, threshold, unit: "ms", text };
    return findingOf("watch-delayed", backend, row, {
      backend,
      startedAt: at - value,
      replacesSummary: true,
    });
  },
  "backend.api_missing"({ backend, api, resource, servedBy }, at) {
    const row = said(at, "peers", `${backend} does not serve ${resource} of ${api}, and ${servedBy} does`);
    const summary = `${backend} lacks ${api}, which ${servedBy} serves`;
    return findingOf("backend-api-missing", `${backend} ${api}`, row, { backend, summary });
  },
  "backend.api_unreachable"(entry, at) {
    const { backend, api, failure, failed } = entry;
    const ending = failure === "refused" ? "" : " in time";
    const row = counted(
      at,
      "peers",
      [failed, 0],
      `${backend} cannot reach ${api}${ending} (${countsIn(entry)})`,
    );
    return findingOf("backend-api-unreachable", `${backend} ${api}`, row, { backend, replacesSummary: true });
  },
  "backend.webhook_failing"(entry, at) {
    const { backend, webhook, resource, failure, failed } = entry;
    const what = failure === "refused" ? "cannot be called" : "times out";
    const text = `webhook ${webhook} ${what} from ${backend} only (writes of ${resourceIn(resource)}: ${countsIn(entry)})`;
    const row = counted(at, "peers", [failed, 0], text);
    return findingOf("backend-webhook-failing", `${backend} ${webhook}`, row, {
      backend,
      replacesSummary: true,
    });
  },
  "watch.replay_loop"(entry, at) {
    const { resource, version, times } = entry;
    const client = nameOf(entry);
    const text = `${client} watched ${resource} ${times} times within ${limits.replayMs / 1000} s, each time from version ${version}`;
    const row = counted(at, "replays", [times, limits.replays], text);
    return findingOf("watch-replay-loop", `${client} ${resource}`, row, { culprit: client });
  },
  "event.version_regressed"(entry, at) {
    const { resource, backend, type, version, seen } = entry;
    const row = said(
      at,
      "event",
      `${backend} sent ${type} of ${resource} at version ${version}, after ${seen}`,
    );
    return findingOf("version-regression", `${backend} ${resource}`, row, { backend, client: nameOf(entry) });
  },
  "history.unchecked"({ backend, uncheckedMs }, at) {
    const text = `No client is left that may list, so the etcd history of ${backend} is unchecked for ${Math.round(uncheckedMs / 60_000)} min. To accept it, remove ${backend} from the configuration, reload, and add it again`;
    return findingOf("backend-dead", backend, said(at, "history", text), { backend });
  },
  "stale_read_guard.bypassed"(entry, at) {
    const { resource, seen } = entry;
    const client = nameOf(entry);
    const text = `No backend could answer ${client} for ${resource} from version ${seen}: it may get older state`;
    return findingOf("version-regression", `${client} ${resource}`, said(at, "floor", text), { client });
  },
  "relist_storm.detected"({ relists, limit, withinMs, resource, clients }, at) {
    const text = `${relists} clients listed again within ${withinMs / 1000} s, most of them ${resource}: ${clients.join(", ")}`;
    const row = counted(at, "relists", [relists, limit], text);
    return findingOf("relist-storm", "", row, { startedAt: at - withinMs });
  },
  "certificate.refused"({ name, problem }, at) {
    const summary = `${name}: ${problem}`;
    return findingOf("certificate-refused", name, said(at, "certificate", problem), { summary });
  },
  "identity.refused"({ name, backend, file, certificate, problem }, at) {
    const row = said(at, "canary", `${name}: "${file}" (${certificate}) at backend ${backend}: ${problem}`);
    return findingOf("identity-refused", `${name} ${backend}`, row, { backend, replacesSummary: true });
  },
  "certificate.expiring"({ purpose, name, notAfter, leftMs: value, limitMs: threshold }, at) {
    const expiryKind = value <= 0 ? "certificate-expired" : "certificate-expiring";
    const kind = purpose === "backend-loopback" ? "loopback-certificate-expiring" : expiryKind;
    const left = value < 0 ? `expired ${inDays(-value)} ago` : `expires in ${inDays(value)}`;
    const text = `The ${purpose} certificate of ${name} ${left}: not after ${notAfter}`;
    const backend = purpose.startsWith("backend") ? name : "";
    const row: EvidenceRow = { at, detector: "notAfter", value, threshold, unit: "ms", text };
    return findingOf(kind, `${purpose} ${name}`, row, { backend, replacesSummary: true });
  },
  "lease.suspect"(entry, at) {
    const { verdict, lease, holder, reason, detector, valueMs: value, limitMs: threshold, auditId } = entry;
    const unit = threshold > 0 ? "ms" : "";
    const row: EvidenceRow = { at, detector, value, threshold, unit, text: reason, auditId };
    const summary = `${lease}, held as ${holder}: ${reason}`;
    return findingOf(leaseKinds[verdict], lease, row, { summary, culprit: nameOf(entry) });
  },
  "config.refused"({ file, problems }, at) {
    const evidence = problems.slice(0, 8).map((problem) => said(at, "config", problem));
    const [first = "it was rejected"] = problems;
    const summary = first.startsWith(`${file}:`) ? first : `${file}: ${first}`;
    return { kind: "config-refused", subject: file, summary, evidence };
  },
  "discovery.failed"({ from, reason }, at) {
    const summary = `Discovery from ${from}: ${reason}`;
    return findingOf("discovery-failed", from, said(at, "discovery", reason), { summary });
  },
  "listener.lost"({ listener, reason }, at) {
    const summary = `${listener}: ${reason}`;
    return findingOf("listener-lost", listener, said(at, "bind", reason), { summary });
  },
  "request.failed"(entry, at) {
    const { code, message, auditId } = entry;
    if (code !== "overload") return undefined;
    return findingOf("overload", "", { ...said(at, "buffers", message), auditId }, { client: nameOf(entry) });
  },
  "limit.added"({ limit, allows, by, reason, endsAt }, at) {
    const why = reason === "" ? "" : `: ${reason}`;
    const row = said(at, "operator", `${by} limits ${allows} until ${endsAt}${why}`);
    return findingOf("operator-limit", limit, row, { summary: `${limit}: ${allows}` });
  },
  "limit.refused"(entry, at) {
    const { limit, origin, allows, refused } = entry;
    const client = nameOf(entry);
    const text = `${limit} (${allows}) has refused ${refused} requests, the latest of ${client}`;
    const kind = origin === "config" ? "requests-limited" : "operator-limit";
    return findingOf(kind, limit, counted(at, "limit", [refused, 1], text), {
      summary: `${limit}: ${allows}`,
      client,
    });
  },
  "internal.error"({ scope, message }, at) {
    return findingOf("internal-error", scope, said(at, scope, message), { summary: `${scope}: ${message}` });
  },
};

/** Ends the incident of this kind about this subject. */
const ended = (kind: IncidentKind, subject: string, ending: string): Ending => ({
  kinds: [kind],
  subject,
  ending,
});

const enders: Enders = {
  "backend.api_reachable": ({ backend, api }) =>
    ended("backend-api-unreachable", `${backend} ${api}`, `${backend} reaches ${api} again`),
  "identity.proven": ({ name, backend }) =>
    ended("identity-refused", `${name} ${backend}`, "The backend accepts the asserted identities"),
  "identity.dropped": ({ name, backend }) =>
    ended("identity-refused", `${name} ${backend}`, "The certificate was replaced, or the backend is gone"),
  "certificate.loaded": ({ name, notAfter }) =>
    ended("certificate-refused", name, `A valid certificate is in use until ${notAfter}`),
  "certificate.expiring": ({ purpose, name, leftMs }) =>
    leftMs > 0
      ? undefined
      : ended("certificate-expiring", `${purpose} ${name}`, "The certificate has expired"),
  "certificate.renewed": ({ purpose, name, notAfter }) => ({
    kinds:
      purpose === "backend-loopback"
        ? ["loopback-certificate-expiring"]
        : ["certificate-expiring", "certificate-expired"],
    subject: `${purpose} ${name}`,
    ending: notAfter === "" ? "The certificate is no longer used" : `Renewed until ${notAfter}`,
  }),
  "config.reloaded": ({ file }) => ended("config-refused", file, "The configuration was loaded"),
  "discovery.recovered": ({ from }) =>
    ended("discovery-failed", from, "Discovery succeeds again, or its source is no longer used"),
  "limit.removed": ({ limit, refused, reason }) =>
    ended("operator-limit", limit, `${reason}. The limit has refused ${refused} requests`),
  "listener.opened": ({ listener, address }) =>
    ended("listener-lost", listener, `The listener is open on ${address} again`),
};

export function findingIn(entry: Entry, at: number): Finding | undefined {
  return foundBy(entry.kind, entry, at);
}

/** This is a separate function, because TypeScript needs a type parameter to relate `entry` to `readers[kind]`. */
function foundBy<K extends Entry["kind"]>(kind: K, entry: EntryOf<K>, at: number): Finding | undefined {
  const read: Readers[K] = readers[kind];
  return read?.(entry, at);
}

export function endingIn(entry: Entry): Ending | undefined {
  return endedBy(entry.kind, entry);
}

function endedBy<K extends Entry["kind"]>(kind: K, entry: EntryOf<K>): Ending | undefined {
  const read: Enders[K] = enders[kind];
  return read?.(entry);
}
