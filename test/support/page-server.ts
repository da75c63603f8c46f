/** Serves the admin page on a real port, over an API whose responses the test sets. */
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { pageRoutes } from "../../src/ops/admin/http/page-files.ts";
import type { Reply } from "../../src/ops/admin/http/reply.ts";
import { startApi } from "../../src/ops/admin/server/server.ts";
import { backend, changeAt, figuresAt, historyAnswer, incident, noIdentity, now } from "./page.ts";

export type Canned = {
  readonly url: string;
  /** The POST requests, for example "backends/cp-1/drain by the admin page at 127.0.0.1". */
  readonly posted: readonly string[];
  /** While true, the API answers 503. */
  isSilent: boolean;
  /** The names of the replicas that the API reports as lost. */
  readonly lost: Set<string>;
  /**
   * Resolves when a request with this path and these query parameters arrives. "" means that the parameter must be
   * absent.
   */
  asked(path: string, query: Readonly<Record<string, string>>): Promise<void>;
  stop(): Promise<void>;
};

const unknownClient = { ...noIdentity, client: "10.0.0.7" };
const watch = {
  ...unknownClient,
  path: "/api/v1/pods?watch=true",
  resource: "/pods",
  backend: "cp-1",
  state: "live",
  ageMs: 120_000,
  resourceVersion: "1182733",
  startResourceVersion: "1182700",
  startedAt: "2026-11-22T11:58:00.000Z",
  port: 40_122,
  bytes: 812_345,
  queuedBytes: 0,
  isResumable: true,
  life: [],
  lastEventAgeMs: 210,
  lastBookmarkAgeMs: 41_000,
  events: 412,
  moves: 1,
  session: "streaming",
};
const lease = {
  cluster: "",
  resource: "leases",
  state: "held",
  renewedAgeMs: 900,
  verdict: "ok",
  reason: "",
};
const client = {
  cluster: "",
  ...unknownClient,
  lastSeenAgeMs: 210,
  requests: 412,
  active: 3,
  watches: 12,
  relists: 0,
  errors: 0,
  bytes: 812_345,
  anomalies: [],
};

const lists: Readonly<Record<string, readonly object[]>> = {
  incidents: [incident()],
  backends: [
    backend(),
    backend({
      name: "cp-2",
      state: "dead",
      sinceAgeMs: 41_000,
      reason: "the last connection was lost: PING unanswered for 2013 ms",
      history: [changeAt(43_000, "ready", "suspect"), changeAt(41_000, "suspect", "dead")],
    }),
  ],
  watches: [
    { ...watch, auditId: "a-1", agent: "kube-scheduler" },
    { ...watch, auditId: "a-2", agent: "argocd", lastEventAgeMs: 900_000, lastBookmarkAgeMs: 240_000 },
    { ...watch, auditId: "a-3", agent: "prometheus", state: "hung", lastEventAgeMs: 400_000 },
  ],
  clients: [
    { ...client, subject: "system:node:n1", subjectSource: "vouched", agent: "kubelet" },
    { ...client, agent: "<img src=x onerror=alert(1)>", client: "10.9.3.7", anomalies: ["new", "anonymous"] },
  ],
  leases: [
    {
      ...lease,
      namespace: "kube-system",
      name: "kube-scheduler",
      holder: "cp-1_9f",
      renewedBy: unknownClient,
    },
    {
      ...lease,
      namespace: "ingress",
      name: "nginx-leader",
      holder: "nginx-x2k4l",
      verdict: "ghost",
      reason: "Pod ingress/nginx-x2k4l was deleted 812 s ago, but still renews from 10.9.3.7",
      renewedBy: { ...unknownClient, client: "10.9.3.7", agent: "nginx-controller" },
    },
  ],
  certificates: [
    {
      purpose: "serving",
      name: "kube",
      notAfter: "2027-06-22T00:00:00.000Z",
      leftMs: 18e9,
      level: "ok",
      refused: "",
    },
    {
      purpose: "backend-loopback",
      name: "cp-2",
      notAfter: "2026-11-24T00:00:00.000Z",
      leftMs: 2e8,
      level: "soon",
      refused: "",
    },
  ],
};
const replica = {
  address: "10.0.0.1:7480",
  id: "8c2f4a36-7c0e-4f0a-9a64-3f4f6cf3a1de",
  isSelf: false,
  state: "live",
  since: "2026-11-22T11:00:00.000Z",
  sinceAgeMs: 3_600_000,
  answeredAgeMs: 1200,
  version: "0.1.0",
  startedAt: "2026-11-22T11:00:00.000Z",
  clusters: ["prod"],
  activeIncidents: 0,
  lastError: "",
};

/** The default lists, as seen from one replica of three. */
export const replicated: typeof lists = {
  ...lists,
  replicas: [
    { ...replica, name: "wk-1", isSelf: true, activeIncidents: 1 },
    { ...replica, name: "wk-2", address: "10.0.0.2:7480", activeIncidents: 2 },
    { ...replica, name: "wk-3", address: "10.0.0.3:7480" },
  ],
};

function withLost(shown: typeof lists, lost: ReadonlySet<string>): typeof lists {
  const silent = { state: "silent", answeredAgeMs: 20_000, lastError: "connect ECONNREFUSED" };
  const replicas = (shown["replicas"] ?? []).map((row) =>
    "name" in row && lost.has(String(row.name)) ? { ...row, ...silent } : row,
  );
  return { ...shown, replicas };
}

/** A total that is too large to render. The page must not request all of these rows. */
const totals: Readonly<Record<string, number>> = { watches: 50_000 };

/** Starts the server. `shown` replaces the default lists. */
export async function serveCanned(shown = lists): Promise<Canned> {
  const page = pageRoutes();
  const heard: { readonly path: string; readonly query: URLSearchParams }[] = [];
  const posted: string[] = [];
  let isSilent = false;
  const lost = new Set<string>();
  const begunAt = Date.now();
  const api = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal: new Journal(wallClock),
    routes: (path) => {
      if (!path.startsWith("/api/v1/")) return page(path);
      return (query) => {
        heard.push({ path, query: new URLSearchParams(query) });
        if (isSilent) return json(503, { kind: "Failure", message: "503 for a while" });
        const [, at = "", name = ""] = /^\/api\/v1\/(?:replicas\/([^/]+)\/)?(.*)$/.exec(path) ?? [];
        if (lost.has(decodeURIComponent(at)))
          return json(502, { kind: "Failure", message: `Replica ${at} is silent` });
        if (name === "replicas") return json(200, listOf(withLost(shown, lost), name, query));
        if (name === "backends") return json(200, listOf(shown, name, query, posted));
        if (name === "history")
          return json(200, historyAnswer(Number(new URLSearchParams(query).get("after") ?? -1)));
        if (name.startsWith("incidents/"))
          return found(shown, "incidents", (row) => String(row["id"]) === name.slice(10));
        if (name.startsWith("watches/"))
          return found(shown, "watches", (row) => row["auditId"] === name.slice(8));
        if (name === "stats") return json(200, figuresAt(now + Date.now() - begunAt));
        return json(200, listOf(shown, name, query));
      };
    },
    posts: (path) =>
      path.endsWith("drain")
        ? ({ by }) => {
            posted.push(`${path.slice("/api/v1/".length)} by ${by}`);
            if (path.includes("cp-2"))
              return json(409, { kind: "Failure", message: "no other backend is ready" });
            return json(200, { kind: "Operation", outcome: "cp-1 is let go" });
          }
        : undefined,
  });
  if (api instanceof Failure) throw new Error(api.message);
  return {
    url: `http://${api.address}/`,
    posted,
    lost,
    get isSilent() {
      return isSilent;
    },
    set isSilent(silent) {
      isSilent = silent;
    },
    async asked(path, query) {
      const wanted = Object.entries(query);
      const from = heard.length;
      for (let tries = 0; tries < 400; tries++) {
        const fits = heard
          .slice(Math.max(0, from - 3))
          .some(
            (one) =>
              one.path === path && wanted.every(([key, value]) => (one.query.get(key) ?? "") === value),
          );
        if (fits) return;
        await sleep(25);
      }
      throw new Error(`The API was not asked for ${path} with ${JSON.stringify(query)}`);
    },
    stop: () => api.stop(),
  };
}

function found(
  shown: typeof lists,
  list: string,
  isIt: (row: Readonly<Record<string, unknown>>) => boolean,
): Reply {
  const row = (shown[list] ?? []).map((one) => ({ ...one })).find(isIt);
  return row === undefined ? json(404, { kind: "Failure", message: "There is none" }) : json(200, row);
}

/** Returns a list. A backend that the page has just drained is reported as draining. */
function listOf(shown: typeof lists, name: string, query: string, posted: readonly string[] = []): object {
  const asked = new URLSearchParams(query);
  const state = asked.get("state");
  const all = (shown[name] ?? []).filter((row) => state === null || ("state" in row && row.state === state));
  const items = all.map((row) => {
    const isDrained =
      "name" in row && posted.at(-1)?.startsWith(`backends/${String(row.name)}/drain`) === true;
    return isDrained ? { ...row, isDrained, state: "draining" } : row;
  });
  const total = (shown === lists ? totals[name] : undefined) ?? all.length;
  const matching = state === null ? total : all.length;
  const offset = Number(asked.get("offset") ?? 0);
  const groups = groupsOf(all, asked.get("group"));
  return {
    at: new Date(now).toISOString(),
    kind: "List",
    total,
    matching,
    offset,
    limit: 100,
    items,
    groups,
  };
}

function groupsOf(rows: readonly object[], column: string | null): readonly object[] {
  const values = rows.map((row) => String(new Map(Object.entries(row)).get(column ?? "") ?? ""));
  const counted = [...new Set(values)].map((value) => ({
    value,
    rows: values.filter((one) => one === value).length,
  }));
  return column === null ? [] : counted.toSorted((a, b) => b.rows - a.rows);
}

function json(status: number, body: object): Reply {
  return { status, type: "application/json; charset=utf-8", text: JSON.stringify(body) };
}
