/**
 * What the JSON API answers, as JSON Schema (2020-12): the one source of /openapi.json. Each field is one word for its type
 * and one sentence; test/admin/api/openapi.test.ts holds the answers of a live path to it, so none is missing and none too many.
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

/** Every field is there in every answer, and there are no others. */
export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const caller = {
  client: text("The address of its socket."),
  agent: text("The product of its User-Agent."),
  subject: text('Who it is; verified by the proxy only where `subjectSource` is "vouched".'),
  subjectSource: oneOf("What `subject` was read from.", "jwt", "vouched", "bearer", "basic", "none"),
  pod: text('"namespace/name" that its token is bound to, by its own claims.'),
  node: text("The node that its token is bound to, by its own claims."),
};

const certificate = object({
  purpose: oneOf(
    "Whose it is.",
    "serving",
    "backend",
    "backend-loopback",
    "backend-ca",
    "client-ca",
    "client",
  ),
  name: text("Of the listener, the backend, or the credential."),
  notAfter: maybeTime("Until when it is valid; null while there is no good one."),
  leftMs: maybeMs("Until then, in ms; negative when it is over."),
  level: oneOf("How near its end is.", "ok", "soon", "now", "over", "none"),
  refused: text("Why what its files hold now is not taken; empty while it is."),
});

const evidence = object({
  at: time("When it was seen."),
  detector: text("What saw it."),
  value: number("What was measured."),
  threshold: number("Against what."),
  unit: oneOf("Of both; where it is empty `text` says it all.", "ms", "times", ""),
  text: text("The same in words."),
  auditId: text('Of the request that showed it; "" when none did.'),
});

const incident = object({
  id: count("Counts from 1 since the process began."),
  kind: text("One of docs/admin-api.md's table."),
  severity: oneOf("How bad it is.", "critical", "warning"),
  state: oneOf("Does it last?", "active", "ended"),
  subject: text("Who, or what, is to blame."),
  backend: text('The backend that it is about; "" when none.'),
  summary: text("In a sentence."),
  startedAt: time("When the cause began, as far as that was measured."),
  detectedAt: time("When it was known to be an incident."),
  detectionMs: count("From one to the other."),
  lastSeenAt: time("When the latest of it was seen."),
  endedAt: maybeTime("When it was over."),
  durationMs: count("Until it was over, or now."),
  resolution: text('Why it is over; "" while it lasts.'),
  impact: object({
    watchesMoved: count("Watches that went on elsewhere, unseen."),
    slowestMoveMs: number("The slowest of those moves."),
    watchesEnded: count("Watches that could not."),
    tunnelsEnded: count("exec, attach and port-forward that ended."),
    requestsFailed: count("Requests that were answered with an error."),
  }),
  affected: object({ count: count("Clients."), names: words("The first of them.") }),
  evidence: list(evidence, "What proves it, the oldest first."),
  evidenceOmitted: count("Rows between the first and the last that were not kept."),
});

const backend = object({
  name: text("As the configuration or discovery has it."),
  address: text('"host:port".'),
  state: oneOf("The verdict.", "unknown", "ready", "suspect", "dead", "draining"),
  since: maybeTime("When that began."),
  sinceAgeMs: maybeMs("How long ago."),
  reason: text("Why."),
  detector: text("What showed it."),
  pingP99Ms: number("What 99 of 100 PINGs take at most."),
  isDrained: flag("An operator wants it let go, however it is."),
  suspectMs: count("How long it was suspect in all."),
  probes: object({
    ok: count("Probes that were answered well."),
    failed: count("Probes that were not."),
    lastMs: count("What the last one took."),
  }),
  upstreamConnections: list(
    object({
      class: text("Of trust."),
      kind: text("Of requests: long or plain."),
      open: count("Sessions."),
      streams: count("Requests on them."),
    }),
    "Sessions to it, by class and kind.",
  ),
  requests: object({
    watches: count("Open watches."),
    plain: count("Other requests."),
    longRunning: count("logs -f and the like."),
  }),
  stalledResources: words("Resources with which its cache stands still."),
  certificates: list(ref("Certificate"), "Those that it shows."),
  history: list(
    object({
      at: time("When."),
      from: text("The state before."),
      to: text("The state after."),
      detector: text("What showed it."),
      valueMs: number("What was measured."),
      limitMs: number("Against what."),
      reason: text("Why."),
    }),
    "The last 64 changes of state, the oldest first.",
  ),
});

const watch = object({
  auditId: text("By which it is moved, and found in the apiserver's audit log."),
  ...caller,
  port: count("Of its socket."),
  protocol: text('ALPN\'s name; "" without.'),
  resource: text('"group/name", the core group empty.'),
  path: text("As it was asked, tokens left out."),
  backend: text("Who serves it now."),
  state: oneOf(
    "How it is.",
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
  startedAt: time("When it was asked for."),
  ageMs: maybeMs("How long ago."),
  bytes: count("Sent to its client."),
  queuedBytes: count("That wait for its client."),
  startResourceVersion: text("The version that it was asked from."),
  resourceVersion: text("How far it has come."),
  lastEventAgeMs: maybeMs("Since its latest event."),
  lastBookmarkAgeMs: maybeMs("Since its latest bookmark."),
  events: count("Delivered."),
  moves: count("From backend to backend."),
  session: oneOf(
    "The state of its upstream streams; empty if no response has come or its bytes cannot be read.",
    ...watchStates,
    "",
  ),
  isResumable: flag("Could it go on elsewhere now, with nothing lost and nothing twice?"),
  versionRegressions: count("Events older than one before."),
});

const cluster = text("Whose; empty where there is but one.");

const client = object({
  cluster,
  ...caller,
  since: time("When it was seen first."),
  lastSeenAgeMs: maybeMs("Since it asked last."),
  requests: count("In all."),
  active: count("That are being answered."),
  watches: count("That it has begun."),
  relists: count("Lists of what it had a watch of."),
  errors: count("Answers from 400 on, and none at all."),
  bytes: count("Sent to it."),
  anomalies: words("What looks anomalies: new, no-agent, anonymous, failing, relisting, re-watching."),
});

const lock = object({
  cluster,
  resource: oneOf("What holds the lock.", "leases", "configmaps", "endpoints"),
  namespace: text("Of it."),
  name: text("Of it."),
  holder: text('Who it names; "" when it is free.'),
  state: oneOf("Is it held?", "held", "free", "lapsed"),
  durationMs: count("How long a renewal holds."),
  heldSince: time("Since when by this holder."),
  renewedAt: time("When it was renewed last."),
  renewedAgeMs: maybeMs("How long ago."),
  renewals: count("Seen through this proxy."),
  renewedBy: { anyOf: [object(caller), { type: "null" }], description: "Who renewed it last." },
  verdict: oneOf("Is that as it should be?", "ok", "contested", "ghost", "unknown"),
  reason: text("Why not."),
  detector: text("What showed it."),
  renewers: list(
    object({
      ...caller,
      session: count("The port of its HTTP/2 session; 0 over HTTP/1.1."),
      holder: text("As whom."),
      since: time("Its first renewal."),
      lastAgeMs: maybeMs("Since its last one."),
      renewals: count("In all."),
    }),
    "The last eight.",
  ),
  handovers: list(
    object({
      at: time("When."),
      from: text('The holder before; "" when it was free.'),
      to: text("The holder after."),
      isReleased: flag("Had the one before let it go?"),
    }),
    "The last eight changes of holder.",
  ),
});

const stats = object({
  kind: { const: "Stats" },
  version: text("Of this program."),
  requests: {
    type: "object",
    additionalProperties: { type: "integer" },
    description: 'Since the start, by class of code ("2xx"); "none" without an answer.',
  },
  watchEvents: count("Delivered since the start."),
  at: time("When this was said."),
  name: text("metadata.name of the configuration."),
  uptimeMs: count("Since the start."),
  cpuMs: count("Of the processor, all threads together."),
  eventLoopDelayMs: number("How late the event loop was at worst since this was asked last."),
  rssBytes: count("Resident memory."),
});

const failure = object({ kind: { const: "Failure" }, message: text("Why.") });

const operation = object({
  kind: { const: "Operation" },
  operation: oneOf("What was done.", "drain", "undrain", "move", "reload"),
  target: text("To what."),
  outcome: text("In a sentence."),
});

const index = object({ kind: { const: "Index" }, paths: words("What can be asked for.") });

/** By their names in /openapi.json. */
export const schemas: Readonly<Record<string, Schema>> = {
  Incident: incident,
  Backend: backend,
  Watch: watch,
  Client: client,
  Lock: lock,
  Certificate: certificate,
  Stats: stats,
  Failure: failure,
  Operation: operation,
  Index: index,
};
