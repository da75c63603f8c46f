/**
 * What holds for each kind of journal entry: its level in the log, the field that contains its error message, and, if
 * clients can cause entries of the kind, how many of them the log and the event stream get.
 */
import type { ProxyEvent } from "./proxy-event.ts";

export const levels = ["Error", "Warning", "Info", "Debug"] as const;
export type Level = (typeof levels)[number];

/**
 * Within `paceMs`, the log and the event stream get at most `most` entries of the kind, and at most `mostOfOne` of one
 * client. The entry "entries.omitted" then counts the others.
 */
export type Pace = { readonly most: number; readonly mostOfOne: number };

export const paceMs = 10_000;

/** `error`: the field that the log names `err`, as klog does. `pace`: set if a client can cause entries of the kind. */
export type EventKind = { readonly level: Level; readonly error?: string; readonly pace?: Pace };

/** With 20 lines of one client in 10 s, an operator sees what the client does; a log of 50 MB lasts for ten hours. */
const pace: Pace = { most: 100, mostOfOne: 20 };
/** Requests that `logging.accessLog` selects. With `All`, the operator wants each one, and the log has no limit. */
const requests: Pace = { most: 1000, mostOfOne: 1000 };

const [info, warning] = [{ level: "Info" }, { level: "Warning" }] as const;

/** An entry with a client's address or with the audit ID of a request is one that a client can cause. */
type Row<E> = E extends { auditId: string } | { client: string } | { clients: readonly string[] }
  ? EventKind & { readonly pace: Pace }
  : EventKind;

export const eventKinds: { readonly [E in ProxyEvent as E["kind"]]: Row<E> } = {
  "process.started": info,
  "listener.opened": info,
  "listener.lost": { level: "Error", error: "reason" },
  "backend.changed": info,
  "cluster.added": info,
  "cluster.removed": info,
  "backend.added": info,
  "backend.removed": info,
  "backend.probed": info,
  "backend.api_missing": { level: "Warning", pace },
  "backend.api_unreachable": { level: "Info", pace },
  "backend.api_reachable": { level: "Info", pace },
  "backend.webhook_failing": { level: "Info", pace },
  "backend.version_changed": info,
  "upstream_connection.opened": { level: "Debug", pace },
  "upstream_connection.closed": { level: "Info", pace },
  "downstream_connection.refused": { level: "Warning", error: "reason", pace },
  "request.refused": { level: "Warning", error: "reason", pace },
  "request.failed": { level: "Warning", error: "message", pace },
  "request.ended": { level: "Info", pace: requests },
  "tunnel.opened": { level: "Info", pace: requests },
  "tunnel.ended": { level: "Info", pace: requests },
  "passthrough.ended": { level: "Info", pace: requests },
  "passthrough.refused": { level: "Warning", error: "message", pace },
  "metrics.unprotected": { level: "Info", error: "reason" },
  "config.reloaded": info,
  "config.refused": { level: "Error", error: "problems" },
  "discovery.changed": info,
  "discovery.backends_retained": warning,
  "discovery.failed": { level: "Warning", error: "reason" },
  "discovery.recovered": info,
  "replica.joined": info,
  "replica.lost": { level: "Warning", error: "reason" },
  "certificate.loaded": info,
  "certificate.observed": info,
  "certificate.refused": { level: "Error", error: "problem" },
  "identity.proven": info,
  "identity.refused": { level: "Error", error: "problem" },
  "identity.dropped": info,
  "certificate.expiring": warning,
  "certificate.renewed": info,
  "internal.error": { level: "Error", error: "message", pace },
  "probe.changed": info,
  "successor.started": info,
  "successor.ready": info,
  "successor.failed": { level: "Error", error: "reason" },
  "peer_sockets.passed": info,
  "peer_sockets.received": info,
  "peer_sockets.failed": { level: "Warning", error: "reason" },
  "worker.started": info,
  "worker.ready": info,
  "worker.lost": { level: "Error", error: "reason" },
  "watches.moved": info,
  "watches.ended": { level: "Warning", pace },
  "cache.stalled": warning,
  "cache.recovered": info,
  "cache.progress_delayed": warning,
  "cache.progress_restored": info,
  "watch.delayed": info,
  "history.unchecked": warning,
  "response.stale": { level: "Warning", pace },
  "stale_read_guard.bypassed": { level: "Warning", pace },
  "watch.hung": { level: "Warning", pace },
  "event.version_regressed": { level: "Warning", pace },
  "relist_storm.detected": { level: "Warning", pace },
  "lease.suspect": { level: "Warning", pace },
  "incident.opened": info,
  "incident.ended": info,
  "watch.replay_loop": { level: "Warning", pace },
  "operation.done": info,
  "operation.refused": { level: "Warning", error: "reason", pace },
  "limit.added": info,
  "limit.removed": info,
  "limit.refused": { level: "Info", pace },
  "review.failed": { level: "Warning", error: "reason", pace },
  "tracing.failed": { level: "Warning", error: "reason" },
  "entries.omitted": { level: "Warning", pace },
  "drain.started": info,
  "drain.ended": info,
};
