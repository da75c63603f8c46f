/** Decides whether a journal entry opens an incident, adds evidence to one, or ends one. No I/O. */

import { limits } from "../base/limits.ts";
import type { Entry, EntryOf } from "../events/journal.ts";
import type { EvidenceRow } from "./incident.ts";
import type { IncidentKind } from "./kinds.ts";
import type { Finding } from "./store.ts";

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

const readers: Readers = {
  "watch.hung"(entry, at) {
    const { resource, backend, silentMs: value, limitMs: threshold } = entry;
    const text = `A watch of ${resource} on ${backend} has sent nothing for ${Math.round(value / 1000)} s, not even a bookmark`;
    return {
      kind: "watch-hung",
      subject: backend,
      backend,
      summary: text,
      startedAt: at - value,
      evidence: [{ at, detector: "bookmarks", value, threshold, unit: "ms", text }],
      client: nameOf(entry),
    };
  },
  "watches.ended"({ reason, from, count }, at) {
    if (reason !== "deadline_missed") return undefined;
    const text = `${count} watches were not ended by ${from} at their client's deadline`;
    const row = { at, detector: "deadline", value: count, threshold: 1, unit: "times" as const, text };
    return { kind: "watch-hung", subject: from, backend: from, summary: text, evidence: [row] };
  },
  "watch.delayed"({ backend, resource, delayMs: value, limitMs: threshold, othersMs, resources }, at) {
    const late = `${backend} delivers ${resourceIn(resource)} ${inSeconds(value)} late`;
    const others = othersMs < 0 ? "" : `; other backends: ${inSeconds(othersMs)}`;
    const more = resources > 1 ? `; ${resources} resources are late` : "";
    const text = `${late}${more}${others}`;
    return {
      kind: "watch-delayed",
      subject: backend,
      backend,
      summary: text,
      startedAt: at - value,
      evidence: [{ at, detector: "writes", value, threshold, unit: "ms", text }],
      replacesSummary: true,
    };
  },
  "backend.api_missing"({ backend, api, resource, servedBy }, at) {
    const text = `${backend} does not serve ${resource} of ${api}, and ${servedBy} does`;
    return {
      kind: "backend-api-missing",
      subject: `${backend} ${api}`,
      backend,
      summary: `${backend} lacks ${api}, which ${servedBy} serves`,
      evidence: [said(at, "peers", text)],
    };
  },
  "backend.api_unreachable"(entry, at) {
    const { backend, api, failure, failed: value } = entry;
    const ending = failure === "refused" ? "" : " in time";
    const text = `${backend} cannot reach ${api}${ending} (${countsIn(entry)})`;
    return {
      kind: "backend-api-unreachable",
      subject: `${backend} ${api}`,
      backend,
      summary: text,
      evidence: [{ at, detector: "peers", value, threshold: 0, unit: "times", text }],
      replacesSummary: true,
    };
  },
  "backend.webhook_failing"(entry, at) {
    const { backend, webhook, resource, failure, failed: value } = entry;
    const what = failure === "refused" ? "cannot be called" : "times out";
    const text = `webhook ${webhook} ${what} from ${backend} only (writes of ${resourceIn(resource)}: ${countsIn(entry)})`;
    return {
      kind: "backend-webhook-failing",
      subject: `${backend} ${webhook}`,
      backend,
      summary: text,
      evidence: [{ at, detector: "peers", value, threshold: 0, unit: "times", text }],
      replacesSummary: true,
    };
  },
  "watch.replay_loop"(entry, at) {
    const { resource, version, times: value } = entry;
    const client = nameOf(entry);
    const text = `${client} watched ${resource} ${value} times within ${limits.replayMs / 1000} s, each time from version ${version}`;
    const row = { at, detector: "replays", value, threshold: limits.replays, unit: "times" as const, text };
    const subject = `${client} ${resource}`;
    return { kind: "watch-replay-loop", subject, summary: text, evidence: [row], culprit: client };
  },
  "event.version_regressed"(entry, at) {
    const { resource, backend, type, version, seen } = entry;
    const text = `${backend} sent ${type} of ${resource} at version ${version}, after ${seen}`;
    return {
      kind: "version-regression",
      subject: `${backend} ${resource}`,
      backend,
      summary: text,
      evidence: [said(at, "event", text)],
      client: nameOf(entry),
    };
  },
  "history.unchecked"({ backend, uncheckedMs }, at) {
    const text = `No client is left that may list, so the etcd history of ${backend} is unchecked for ${Math.round(uncheckedMs / 60_000)} min. To accept it, remove ${backend} from the configuration, reload, and add it again`;
    return {
      kind: "backend-dead",
      subject: backend,
      backend,
      summary: text,
      evidence: [said(at, "history", text)],
    };
  },
  "stale_read_guard.bypassed"(entry, at) {
    const { resource, seen } = entry;
    const client = nameOf(entry);
    const text = `No backend could answer ${client} for ${resource} from version ${seen}: it may get older state`;
    const subject = `${client} ${resource}`;
    return {
      kind: "version-regression",
      subject,
      summary: text,
      evidence: [said(at, "floor", text)],
      client,
    };
  },
  "relist_storm.detected"({ relists: value, limit: threshold, withinMs, resource, clients }, at) {
    const text = `${value} clients listed again within ${withinMs / 1000} s, most of them ${resource}: ${clients.join(", ")}`;
    const row = { at, detector: "relists", value, threshold, unit: "times" as const, text };
    return { kind: "relist-storm", subject: "", summary: text, startedAt: at - withinMs, evidence: [row] };
  },
  "certificate.refused"({ name, problem }, at) {
    const evidence = [said(at, "certificate", problem)];
    return { kind: "certificate-refused", subject: name, summary: `${name}: ${problem}`, evidence };
  },
  "identity.refused"({ name, backend, file, certificate, problem }, at) {
    const text = `${name}: "${file}" (${certificate}) at backend ${backend}: ${problem}`;
    const evidence = [said(at, "canary", text)];
    const subject = `${name} ${backend}`;
    return { kind: "identity-refused", subject, backend, summary: text, evidence, replacesSummary: true };
  },
  "certificate.expiring"({ purpose, name, notAfter, leftMs: value, limitMs: threshold }, at) {
    const expiryKind = value <= 0 ? "certificate-expired" : "certificate-expiring";
    const left = value < 0 ? `expired ${inDays(-value)} ago` : `expires in ${inDays(value)}`;
    const text = `The ${purpose} certificate of ${name} ${left}: not after ${notAfter}`;
    return {
      kind: purpose === "backend-loopback" ? "loopback-certificate-expiring" : expiryKind,
      subject: `${purpose} ${name}`,
      backend: purpose.startsWith("backend") ? name : "",
      summary: text,
      evidence: [{ at, detector: "notAfter", value, threshold, unit: "ms", text }],
      replacesSummary: true,
    };
  },
  "lease.suspect"(entry, at) {
    const { verdict, lease, holder, reason, detector, valueMs: value, limitMs: threshold, auditId } = entry;
    return {
      kind: leaseKinds[verdict],
      subject: lease,
      summary: `${lease}, held as ${holder}: ${reason}`,
      evidence: [{ at, detector, value, threshold, unit: threshold > 0 ? "ms" : "", text: reason, auditId }],
      culprit: nameOf(entry),
    };
  },
  "config.refused"({ file, problems }, at) {
    const evidence = problems.slice(0, 8).map((problem) => said(at, "config", problem));
    const [first = "it was rejected"] = problems;
    const summary = first.startsWith(`${file}:`) ? first : `${file}: ${first}`;
    return { kind: "config-refused", subject: file, summary, evidence };
  },
  "discovery.failed"({ from, reason }, at) {
    const evidence = [said(at, "discovery", reason)];
    return {
      kind: "discovery-failed",
      subject: from,
      summary: `Discovery from ${from}: ${reason}`,
      evidence,
    };
  },
  "listener.lost"({ listener, reason }, at) {
    const evidence = [said(at, "bind", reason)];
    return { kind: "listener-lost", subject: listener, summary: `${listener}: ${reason}`, evidence };
  },
  "request.failed"(entry, at) {
    const { code, message, auditId } = entry;
    if (code !== "overload") return undefined;
    const row = { ...said(at, "buffers", message), auditId };
    return { kind: "overload", subject: "", summary: message, evidence: [row], client: nameOf(entry) };
  },
  "limit.added"({ limit, allows, by, reason, endsAt }, at) {
    const why = reason === "" ? "" : `: ${reason}`;
    const row = said(at, "operator", `${by} limits ${allows} until ${endsAt}${why}`);
    return { kind: "operator-limit", subject: limit, summary: `${limit}: ${allows}`, evidence: [row] };
  },
  "limit.refused"(entry, at) {
    const { limit, origin, allows, refused: value } = entry;
    const client = nameOf(entry);
    const text = `${limit} (${allows}) has refused ${value} requests, the latest of ${client}`;
    const row = { at, detector: "limit", value, threshold: 1, unit: "times" as const, text };
    const kind = origin === "config" ? "requests-limited" : "operator-limit";
    return { kind, subject: limit, summary: `${limit}: ${allows}`, evidence: [row], client };
  },
  "internal.error"({ scope, message }, at) {
    const row = said(at, scope, message);
    return { kind: "internal-error", subject: scope, summary: `${scope}: ${message}`, evidence: [row] };
  },
};

const enders: Enders = {
  "backend.api_reachable": ({ backend, api }) => ({
    kinds: ["backend-api-unreachable"],
    subject: `${backend} ${api}`,
    ending: `${backend} reaches ${api} again`,
  }),
  "identity.proven": ({ name, backend }) => ({
    kinds: ["identity-refused"],
    subject: `${name} ${backend}`,
    ending: "The backend accepts the asserted identities",
  }),
  "identity.dropped": ({ name, backend }) => ({
    kinds: ["identity-refused"],
    subject: `${name} ${backend}`,
    ending: "The certificate was replaced, or the backend is gone",
  }),
  "certificate.loaded": ({ name, notAfter }) => ({
    kinds: ["certificate-refused"],
    subject: name,
    ending: `A valid certificate is in use until ${notAfter}`,
  }),
  "certificate.expiring": ({ purpose, name, leftMs }) =>
    leftMs > 0
      ? undefined
      : {
          kinds: ["certificate-expiring"],
          subject: `${purpose} ${name}`,
          ending: "The certificate has expired",
        },
  "certificate.renewed": ({ purpose, name, notAfter }) => ({
    kinds:
      purpose === "backend-loopback"
        ? ["loopback-certificate-expiring"]
        : ["certificate-expiring", "certificate-expired"],
    subject: `${purpose} ${name}`,
    ending: notAfter === "" ? "The certificate is no longer used" : `Renewed until ${notAfter}`,
  }),
  "config.reloaded": ({ file }) => ({
    kinds: ["config-refused"],
    subject: file,
    ending: "The configuration was loaded",
  }),
  "discovery.recovered": ({ from }) => ({
    kinds: ["discovery-failed"],
    subject: from,
    ending: "Discovery succeeds again, or its source is no longer used",
  }),
  "limit.removed": ({ limit, refused, reason }) => ({
    kinds: ["operator-limit"],
    subject: limit,
    ending: `${reason}. The limit has refused ${refused} requests`,
  }),
  "listener.opened": ({ listener, address }) => ({
    kinds: ["listener-lost"],
    subject: listener,
    ending: `The listener is open on ${address} again`,
  }),
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
