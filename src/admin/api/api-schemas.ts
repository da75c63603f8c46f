/**
 * The JSON API's responses as JSON Schema (2020-12), the only source of /openapi.json: one line with type and description
 * for each field. test/admin/api/openapi.test.ts checks responses against it, so that no field is missing or unlisted.
 */
import { watchStates } from "../../watch/session/watch-state.ts";

export type Schema = Readonly<Record<string, unknown>>;

const text = (description: string): Schema => ({ type: "string", description });
const time = (description: string): Schema => ({ type: "string", format: "date-time", description });
const maybeTime = (description: string): Schema => ({
  type: ["string", "null"],
  format: "date-time",
  description,
});
const count = (description: string): Schema => ({ type: "integer", minimum: 0, description });
const number = (description: string): Schema => ({ type: "number", description });
const maybeMs = (description: string): Schema => ({ type: ["number", "null"], description });
const flag = (description: string): Schema => ({ type: "boolean", description });
const words = (description: string): Schema => ({ type: "array", items: { type: "string" }, description });
const oneOf = (description: string, ...values: readonly string[]): Schema => ({
  type: "string",
  enum: values,
  description,
});
const list = (items: Schema, description: string): Schema => ({ type: "array", items, description });

/** Every field is required, and no other is allowed. */
export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const caller = {
  client: text("The address of its connection."),
  agent: text("The product in its User-Agent."),
  subject: text('Its identity; verified by the proxy only if `subjectSource` is "vouched".'),
  subjectSource: oneOf("What `subject` was read from.", "jwt", "vouched", "bearer", "basic", "none"),
  pod: text('"namespace/name" that its token is bound to, by its own claims.'),
  node: text("The node that its token is bound to, by its own claims."),
};

const certificate = object({
  purpose: oneOf(
    "What it is for.",
    "serving",
    "backend",
    "backend-loopback",
    "backend-ca",
    "client-ca",
    "client",
  ),
  name: text("Name of the listener, the backend or the credential."),
  notAfter: maybeTime("When it expires; null if there is no valid one."),
  leftMs: maybeMs("Time until it expires; negative after that."),
  level: oneOf("How soon it expires.", "ok", "soon", "now", "over", "none"),
  refused: text("Why the current content of its files could not be loaded; empty if it was."),
});

const evidence = object({
  at: time("When it was observed."),
  detector: text("What detected it."),
  value: number("The measured value."),
  threshold: number("The limit."),
  unit: oneOf("Unit of both; empty if only `text` applies.", "ms", "times", ""),
  text: text("The same as a sentence."),
  auditId: text('Audit ID of the request that showed it; "" if none did.'),
});

const incident = object({
  id: count("Counts from 1 since the process began."),
  kind: text("A kind from the table in docs/admin-api.md."),
  severity: oneOf("Severity.", "critical", "warning"),
  state: oneOf("Whether it is over.", "active", "ended"),
  subject: text("The cause: a backend, a client or a part of the proxy."),
  backend: text('The affected backend; "" if none.'),
  summary: text("A one-sentence summary."),
  startedAt: time("When the cause began, as far as it was measured."),
  detectedAt: time("When it was detected."),
  detectionMs: count("From startedAt to detectedAt, in ms."),
  lastSeenAt: time("When the latest evidence was observed."),
  endedAt: maybeTime("When it ended; null while it is active."),
  durationMs: count("Time until it ended, or until now, in ms."),
  resolution: text('Why it ended; "" while it is active.'),
  impact: object({
    watchesMoved: count("Watches that continued on another backend without an interruption."),
    slowestMoveMs: number("The slowest of those moves, in ms."),
    watchesEnded: count("Watches that ended instead."),
    tunnelsEnded: count("exec, attach and port-forward that ended."),
    requestsFailed: count("Requests that got an error."),
  }),
  affected: object({ count: count("Number of clients."), names: words("The first of them.") }),
  evidence: list(evidence, "The evidence, oldest first."),
  evidenceOmitted: count("Rows that were dropped between the first and the last."),
});

const backend = object({
  name: text("Its name in the configuration or discovery."),
  address: text('"host:port".'),
  state: oneOf("The verdict.", "unknown", "ready", "suspect", "dead", "draining"),
  since: maybeTime("When the state began."),
  sinceAgeMs: maybeMs("Time since then."),
  reason: text("Why it has this state."),
  detector: text("What detected it."),
  pingP99Ms: number("99th percentile of PING round trips, in ms."),
  isDrained: flag("True if an operator drains it."),
  suspectMs: count("Total time as a suspect, in ms."),
  probes: object({
    ok: count("Successful probes."),
    failed: count("Failed probes."),
    lastMs: count("Duration of the last probe, in ms."),
  }),
  upstreamConnections: list(
    object({
      class: text("Trust class."),
      kind: text("Kind of requests: long or plain."),
      open: count("Open connections."),
      streams: count("Requests on those connections."),
    }),
    "Connections to it, by class and kind.",
  ),
  requests: object({
    watches: count("Open watches."),
    plain: count("Other requests."),
    longRunning: count("logs -f and the like."),
  }),
  stalledResources: words("Resources whose watch cache has stalled."),
  certificates: list(ref("Certificate"), "The certificates that it presents."),
  history: list(
    object({
      at: time("When."),
      from: text("The state before."),
      to: text("The state after."),
      detector: text("What detected it."),
      valueMs: number("The measured value, in ms."),
      limitMs: number("The limit, in ms."),
      reason: text("Why the state changed."),
    }),
    "The last 64 changes of state, oldest first.",
  ),
});

const watch = object({
  auditId: text("Audit ID: identifies it for a move, and in the apiserver's audit log."),
  ...caller,
  port: count("The port of its connection."),
  protocol: text('The ALPN protocol; "" without ALPN.'),
  resource: text('"group/name"; the core group is empty.'),
  path: text("The request's path and query, without tokens."),
  backend: text("The backend that serves it now."),
  state: oneOf(
    "Its state.",
    "pending",
    "opening",
    "listing",
    "live",
    "opaque",
    "hung",
    "stale",
    "parked",
    "ended",
  ),
  startedAt: time("When the request came."),
  ageMs: maybeMs("Time since then."),
  bytes: count("Bytes sent to its client."),
  queuedBytes: count("Bytes that wait until its client reads."),
  startResourceVersion: text("The resourceVersion of the request."),
  resourceVersion: text("The version that it has reached."),
  lastEventAgeMs: maybeMs("Time since its latest event."),
  lastBookmarkAgeMs: maybeMs("Time since its latest bookmark."),
  events: count("Events delivered."),
  moves: count("Moves from one backend to another."),
  session: oneOf(
    "The state of its upstream streams; empty if no response has come or its bytes cannot be read.",
    ...watchStates,
    "",
  ),
  isResumable: flag("True if it could continue on another backend now, without a lost or repeated event."),
  versionRegressions: count("Events with a lower version than an earlier one."),
});

const cluster = text("The cluster; empty if there is only one.");

const client = object({
  cluster,
  ...caller,
  since: time("When its first request came."),
  lastSeenAgeMs: maybeMs("Time since its last request."),
  requests: count("Requests in total."),
  active: count("Requests in progress."),
  watches: count("Watches that it has opened."),
  relists: count("Lists of resources that it had a watch of."),
  errors: count("Responses from 400 on, and requests without a response."),
  bytes: count("Bytes sent to it."),
  anomalies: words("Anomalies: new, no-agent, anonymous, failing, relisting, re-watching."),
});

const lease = object({
  cluster,
  resource: oneOf("The resource of the lease's object.", "leases", "configmaps", "endpoints"),
  namespace: text("Namespace of the lease's object."),
  name: text("Name of the lease's object."),
  holder: text('The holder that it names; "" if it is free.'),
  state: oneOf("Whether it is held.", "held", "free", "lapsed"),
  durationMs: count("How long a renewal is valid, in ms."),
  heldSince: time("When this holder acquired it."),
  renewedAt: time("When it was last renewed."),
  renewedAgeMs: maybeMs("Time since then."),
  renewals: count("Renewals that passed through this proxy."),
  renewedBy: { anyOf: [object(caller), { type: "null" }], description: "The client that renewed it last." },
  verdict: oneOf("Whether its renewals are as expected.", "ok", "contested", "ghost", "unknown"),
  reason: text("Why they are not."),
  detector: text("What detected it."),
  renewers: list(
    object({
      ...caller,
      session: count("The port of its HTTP/2 session; 0 over HTTP/1.1."),
      holder: text("The holder that it names."),
      since: time("When it first renewed the lease."),
      lastAgeMs: maybeMs("Time since its last renewal."),
      renewals: count("Renewals in total."),
    }),
    "The last eight clients that renewed it.",
  ),
  handovers: list(
    object({
      at: time("When."),
      from: text('The holder before; "" if it was free.'),
      to: text("The holder after."),
      isReleased: flag("True if the holder before had released it."),
    }),
    "The last eight changes of holder.",
  ),
});

const stats = object({
  kind: { const: "Stats" },
  version: text("Version of watchkeeper."),
  requests: {
    type: "object",
    additionalProperties: { type: "integer" },
    description: 'Since the start, by class of code ("2xx"); "none": without a response.',
  },
  watchEvents: count("Watch events delivered since the start."),
  at: time("Time of this response."),
  name: text("metadata.name of the configuration."),
  uptimeMs: count("Time since the start, in ms."),
  cpuMs: count("CPU time of all threads, in ms."),
  eventLoopDelayMs: number("The longest delay of the event loop since the last request for this, in ms."),
  rssBytes: count("Resident memory."),
});

const failure = object({ kind: { const: "Failure" }, message: text("The reason.") });

const operation = object({
  kind: { const: "Operation" },
  operation: oneOf("The operation.", "drain", "undrain", "move", "reload"),
  target: text("What it was applied to."),
  outcome: text("The result, in a sentence."),
});

const index = object({ kind: { const: "Index" }, paths: words("Paths of the API.") });

/** By their names in /openapi.json. */
export const schemas: Readonly<Record<string, Schema>> = {
  Incident: incident,
  Backend: backend,
  Watch: watch,
  Client: client,
  Lease: lease,
  Certificate: certificate,
  Stats: stats,
  Failure: failure,
  Operation: operation,
  Index: index,
};
