/**
 * Serves the admin page over a generated API of a large cluster, with 50,000 watches and many backends, all of which
 * change all the time.
 */

import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { pageRoutes } from "../../src/ops/admin/http/page-files.ts";
import type { Reply } from "../../src/ops/admin/http/reply.ts";
import { startApi } from "../../src/ops/admin/server/server.ts";
import type { Columns, HistoryAnswer } from "../../src/ops/page/data/rows.d.ts";
import { backend, changeAt, figuresAt, historyAnswer, incident, noIdentity } from "./page.ts";

const watches = 50_000;
const shownWatches = 50;
const groups = 200;
const incidents = 20;
const steps = 720;
const stepMs = 5_000;
/** Number of state changes that the API keeps for each backend. */
const changes = 64;

const textOf = (ms: number): string => new Date(ms).toISOString();

/**
 * Starts the server for this number of backends. Returns the address of the page, and a function that stops the server.
 */
export async function serveCrowd(backends: number): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const page = pageRoutes();
  const begunMs = Date.now();
  const lists: Readonly<Record<string, (ageMs: number) => readonly object[]>> = {
    backends: (ageMs) =>
      Array.from({ length: backends }, (_, at) =>
        backendAt(at, ageMs, { begunMs, share: watches / backends }),
      ),
    incidents: (ageMs) => Array.from({ length: incidents }, (_, at) => incidentAt(at, ageMs, begunMs)),
    watches: (ageMs) => Array.from({ length: shownWatches }, (_, at) => watchAt(at, ageMs)),
  };
  const api = await startApi({
    host: "127.0.0.1",
    port: 0,
    journal: new Journal(wallClock),
    posts: () => undefined,
    routes: (path) => {
      if (!path.startsWith("/api/v1/")) return page(path);
      return (query) => {
        const asked = new URLSearchParams(query);
        const name = path.slice("/api/v1/".length);
        const ageMs = Date.now() - begunMs;
        if (name === "stats") return json(figuresAt(Date.now()));
        if (name === "history") return json(historyAt(Number(asked.get("after") ?? -1), begunMs, backends));
        const items = asked.get("state") === "hung" ? [] : (lists[name]?.(ageMs) ?? []);
        const total = name === "watches" ? watches : items.length;
        return json({
          at: textOf(Date.now()),
          total,
          matching: total,
          offset: 0,
          items,
          groups: asked.has("group") ? groupsAt(ageMs) : [],
        });
      };
    },
  });
  if (api instanceof Failure) throw new Error(api.message);
  return { url: `http://${api.address}/`, stop: () => api.stop() };
}

function json(body: object): Reply {
  return { status: 200, type: "application/json; charset=utf-8", text: JSON.stringify(body) };
}

function backendAt(
  at: number,
  ageMs: number,
  { begunMs, share }: { readonly begunMs: number; readonly share: number },
): object {
  return backend({
    name: `cp-${at + 1}`,
    sinceAgeMs: 60_000 + ageMs,
    requests: { watches: share + (ageMs % 7), plain: ageMs % 9, longRunning: 3 },
    history: Array.from({ length: changes }, (_, change) => {
      const [from, to] = change % 2 === 0 ? (["ready", "suspect"] as const) : (["suspect", "ready"] as const);
      const agoMs = (changes - change) * 50_000;
      return { ...changeAt(0, from, to), at: textOf(begunMs - agoMs) };
    }),
  });
}

function incidentAt(at: number, ageMs: number, begunMs: number): object {
  const isActive = at < 5;
  const startedMs = begunMs - 100_000 - at * 170_000;
  return incident({
    id: at + 1,
    state: isActive ? "active" : "ended",
    startedAt: textOf(startedMs),
    detectedAt: textOf(startedMs + 1_000),
    endedAt: isActive ? null : textOf(startedMs + 90_000),
    durationMs: ageMs + 100_000,
    evidence: Array.from({ length: 20 }, () => incident().evidence).flat(),
  });
}

const subjectOf = (at: number): string => `system:serviceaccount:team-${at % 40}-production:controller-${at}`;

function watchAt(at: number, ageMs: number): object {
  return {
    ...noIdentity,
    auditId: `a-${at}`,
    subject: subjectOf(at),
    agent: `controller-${at % 30}`,
    client: `10.0.${at}.7`,
    resource: at % 3 === 0 ? "discovery.k8s.io/endpointslices" : "/pods",
    path: `/api/v1/namespaces/n${at}/pods?watch=true`,
    backend: `cp-${1 + (at % 3)}`,
    state: "live",
    session: "streaming",
    ageMs: 32_000 + ageMs + at * 91,
    resourceVersion: String(1_182_000 + Math.floor(ageMs / 100) + at),
    lastEventAgeMs: (at * 377 + ageMs) % 60_000,
    lastBookmarkAgeMs: (at * 177 + ageMs) % 60_000,
    events: 400 + Math.floor(ageMs / 50) + at,
    moves: at % 3,
  };
}

function groupsAt(ageMs: number): readonly object[] {
  return Array.from({ length: groups }, (_, at) => {
    return { value: subjectOf(at), rows: 500 - at + (Math.floor(ageMs / 1_000) % 3) };
  });
}

const { process, backends: pair } = historyAnswer(-1);

/** Returns the steps after `after` of a history of one hour. A new step begins every five seconds. */
function historyAt(after: number, begunMs: number, backends: number): HistoryAnswer {
  const startedMs = begunMs - steps * stepMs;
  const next = Math.floor((Date.now() - startedMs) / stepMs);
  const first = Math.min(next, Math.max(0, next - steps, after + 1));
  const cut = (columns: Columns): Columns =>
    Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [
        name,
        Array.from({ length: next - first }, (_, at) => values[(first + at) % steps] ?? null),
      ]),
    );
  return {
    startedAt: textOf(startedMs),
    stepMs,
    first,
    next,
    process: cut(process),
    backends: Array.from({ length: backends }, (_, at) => {
      return { name: `cp-${at + 1}`, series: cut(pair[at % pair.length]?.series ?? {}) };
    }),
  };
}
