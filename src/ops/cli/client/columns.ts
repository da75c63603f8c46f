/** Declares the columns that `get` prints for each kind of row. */
import type { Kind } from "../commands/commands.ts";
import { at, numberAt, type Row, rowsAt, textAt, wordsAt } from "../commands/rows.ts";
import type { Column } from "./table.ts";
import { age, amount, left, marked, milliseconds, percent } from "./words.ts";

export type View = {
  /** The field of the API that `get KIND NAME` compares with NAME. */
  readonly key: string;
  readonly columns: readonly Column[];
};

function text(head: string, path: string): Column {
  return { head, of: (row) => textAt(row, path) };
}

function number(head: string, path: string, write: (value: number | undefined) => string): Column {
  return { head, of: (row) => write(numberAt(row, path)) };
}

function state(head: string, path: string): Column {
  return { head, of: (row) => marked(textAt(row, path)) };
}

function wide(column: Column): Column {
  return { ...column, isWide: true };
}

const cluster: Column = { ...text("CLUSTER", "cluster"), isRare: true };

function whoIs(row: Row, at_ = ""): string {
  const [subject, pod, agent, client] = ["subject", "pod", "agent", "client"].map((name) =>
    textAt(row, at_ + name),
  );
  return subject || pod || agent || client || "unknown";
}

function firstExpiryOf(row: Row, purpose: string): string {
  const all = rowsAt(row, "certificates").filter((one) => one["purpose"] === purpose);
  const ends = all.map((one) => numberAt(one, "leftMs")).filter((ms) => ms !== undefined);
  return left(ends.length === 0 ? undefined : Math.min(...ends));
}

const clientColumns: readonly Column[] = [
  wide(text("AGENT", "agent")),
  wide(text("SUBJECT-SOURCE", "subjectSource")),
  wide(text("POD", "pod")),
  wide(text("NODE", "node")),
];

export const views: Readonly<Record<Kind, View>> = {
  backends: {
    key: "name",
    columns: [
      text("BACKEND", "name"),
      state("STATE", "state"),
      number("FOR", "sinceAgeMs", age),
      number("PING-P99", "pingP99Ms", milliseconds),
      number("WATCH-DELAY", "watchDelayMs", milliseconds),
      number("WATCHES", "requests.watches", amount),
      {
        head: "REQUESTS",
        of: (row) =>
          amount((numberAt(row, "requests.plain") ?? 0) + (numberAt(row, "requests.longRunning") ?? 0)),
      },
      {
        head: "CONNECTIONS",
        of: (row) =>
          amount(
            rowsAt(row, "upstreamConnections").reduce((sum, pool) => sum + (numberAt(pool, "open") ?? 0), 0),
          ),
      },
      { head: "LOOPBACK-CERT", of: (row) => firstExpiryOf(row, "backend-loopback") },
      text("REASON", "reason"),
      wide(text("ADDRESS", "address")),
      wide(text("VERSION", "version")),
      wide({ head: "IDENTITIES", of: (row) => wordsAt(row, "identities").join("; ") }),
      wide(text("DETECTOR", "detector")),
      wide(number("SUSPECT-TIME", "suspectMs", milliseconds)),
      wide({ head: "CERT", of: (row) => firstExpiryOf(row, "backend") }),
      wide({
        head: "PROBES",
        of: (row) => `${textAt(row, "probes.ok")} ok, ${textAt(row, "probes.failed")} failed`,
      }),
      wide({
        head: "SHIELD",
        of: (row) =>
          numberAt(row, "shield.cap") === 0
            ? ""
            : `${textAt(row, "shield.cap")} lists, ${textAt(row, "shield.waiting")} waiting`,
      }),
      wide(number("LOAD", "load.streams", amount)),
      wide(number("CAPACITY", "load.capacity", percent)),
      wide(number("UTILIZATION", "load.utilization", percent)),
      wide(text("STALLED", "stalledResources")),
      wide(text("UNREACHABLE", "unreachableAPIs")),
    ],
  },
  watches: {
    key: "auditId",
    columns: [
      text("RESOURCE", "resource"),
      { head: "IDENTITY", of: (row) => whoIs(row) },
      text("CLIENT", "client"),
      text("BACKEND", "backend"),
      state("STATE", "state"),
      text("SESSION", "session"),
      number("AGE", "ageMs", age),
      number("LAST-EVENT", "lastEventAgeMs", age),
      text("RESOURCE-VERSION", "resourceVersion"),
      number("EVENTS", "events", amount),
      number("MOVES", "moves", amount),
      wide(text("AUDIT-ID", "auditId")),
      ...clientColumns,
      wide(text("PROTOCOL", "protocol")),
      wide(number("BYTES", "bytes", amount)),
      wide(number("QUEUED", "queuedBytes", amount)),
      wide(number("LAST-BOOKMARK", "lastBookmarkAgeMs", age)),
      wide(text("RESUMABLE", "isResumable")),
      wide(text("PATH", "path")),
    ],
  },
  clients: {
    key: "client",
    columns: [
      { head: "IDENTITY", of: (row) => whoIs(row) },
      cluster,
      text("CLIENT", "client"),
      number("REQUESTS", "requests", amount),
      number("ACTIVE", "active", amount),
      number("WATCHES", "watches", amount),
      number("RELISTS", "relists", amount),
      number("ERRORS", "errors", amount),
      number("BYTES", "bytes", amount),
      number("LAST-SEEN", "lastSeenAgeMs", age),
      { head: "ANOMALIES", of: (row) => textAt(row, "anomalies") || "none" },
      ...clientColumns,
    ],
  },
  leases: {
    key: "name",
    columns: [
      text("NAMESPACE", "namespace"),
      cluster,
      text("NAME", "name"),
      state("VERDICT", "verdict"),
      text("HOLDER", "holder"),
      state("STATE", "state"),
      number("RENEWED", "renewedAgeMs", age),
      { head: "RENEWED-BY", of: (row) => (at(row, "renewedBy") === null ? "" : whoIs(row, "renewedBy.")) },
      text("FROM", "renewedBy.client"),
      text("REASON", "reason"),
      wide(text("RESOURCE", "resource")),
      wide(number("RENEWALS", "renewals", amount)),
      wide(text("HELD-SINCE", "heldSince")),
      wide(text("AGENT", "renewedBy.agent")),
      wide(text("POD", "renewedBy.pod")),
      wide(text("DETECTOR", "detector")),
    ],
  },
  limits: {
    key: "name",
    columns: [
      text("LIMIT", "name"),
      cluster,
      // The rate is at the end of the text.
      { ...text("ALLOWS", "allows"), isWhole: true },
      number("IN-FLIGHT", "inFlight", amount),
      number("PASSED", "passed", amount),
      number("REFUSED", "refused", amount),
      number("LEFT", "leftMs", left),
      text("BY", "by"),
      text("REASON", "reason"),
      wide(text("ORIGIN", "origin")),
      wide(text("ENDS-AT", "endsAt")),
    ],
  },
  certificates: {
    key: "name",
    columns: [
      text("PURPOSE", "purpose"),
      text("NAME", "name"),
      {
        head: "EXPIRY",
        of: (row) =>
          textAt(row, "refused") === ""
            ? marked(textAt(row, "level"))
            : `! refused, last valid: ${textAt(row, "level")}`,
      },
      number("LEFT", "leftMs", left),
      wide(text("NOT-AFTER", "notAfter")),
      text("REFUSED", "refused"),
    ],
  },
  replicas: {
    key: "name",
    columns: [
      text("NAME", "name"),
      state("STATE", "state"),
      number("FOR", "sinceAgeMs", age),
      text("VERSION", "version"),
      number("INCIDENTS", "activeIncidents", amount),
      text("ADDRESS", "address"),
      { head: "SELF", of: (row) => (at(row, "isSelf") === true ? "✓" : "") },
      text("LAST-ERROR", "lastError"),
      wide(text("STARTED", "startedAt")),
      wide(text("CLUSTERS", "clusters")),
      wide(text("ID", "id")),
    ],
  },
  incidents: {
    key: "id",
    columns: [
      text("ID", "id"),
      text("KIND", "kind"),
      text("SUBJECT", "subject"),
      state("SEVERITY", "severity"),
      text("STATE", "state"),
      text("STARTED", "startedAt"),
      number("LASTED", "durationMs", age),
      number("KNOWN-AFTER", "detectionMs", age),
      number("MOVED", "impact.watchesMoved", amount),
      number("AFFECTED", "affected.count", amount),
      text("SUMMARY", "summary"),
      wide(text("BACKEND", "backend")),
      wide(number("WATCHES-ENDED", "impact.watchesEnded", amount)),
      wide(number("TUNNELS-ENDED", "impact.tunnelsEnded", amount)),
      wide(number("REQUESTS-FAILED", "impact.requestsFailed", amount)),
      wide(text("RESOLUTION", "resolution")),
    ],
  },
};
