/**
 * The JSON API of a proxy whose whole data path runs on a manual clock (PlayedPath), so that the API's responses come
 * from real state.
 */

import type { ReplicaRow } from "../../src/fleet/replicas/replicas.ts";
import { Field } from "../../src/h2/core/field.ts";
import { apiPages, createApi } from "../../src/ops/admin/api/api.ts";
import { type Stats, statsOf } from "../../src/ops/admin/api/stats.ts";
import { BackendHistory } from "../../src/ops/admin/events/backend-history.ts";
import { History } from "../../src/ops/admin/history/history.ts";
import type { Recorded, RecordedCluster } from "../../src/ops/admin/history/recorded.ts";
import type { Routes } from "../../src/ops/admin/http/reply.ts";
import { timesOf } from "../../src/ops/admin/http/times.ts";
import { backendStatusesOf } from "../../src/ops/admin/metrics/cluster-view.ts";
import { limitOf } from "../../src/ops/config/limit.ts";
import { Incidents } from "../../src/ops/incidents/incidents.ts";
import { Limit } from "../../src/proxy/limits/limit.ts";
import { changed } from "./incidents.ts";
import { jwt } from "./jwt.ts";
import { bearer, PlayedPath } from "./path.ts";
import { PlayedWatch } from "./watch-path.ts";

export type Row = Record<string, unknown>;

type ApiScene = {
  readonly items: (path: string) => Promise<readonly Row[]>;
  readonly path: PlayedPath;
  /** The routes of the API over this proxy. */
  readonly routes: Routes;
  /** The names of the settings that the API reports as waiting for a restart. A test may add some. */
  readonly restartRequired: string[];
};

const aloneRow: ReplicaRow = {
  name: "prod-0",
  address: "127.0.0.1:7480",
  isSelf: true,
  state: "live",
  since: 0,
  answeredAt: 0,
  facts: {
    id: "8c2f4a36-7c0e-4f0a-9a64-3f4f6cf3a1de",
    name: "prod-0",
    version: "0.1.0",
    startedAt: "2026-11-22T12:00:00.000Z",
    clusters: ["default"],
    activeIncidents: 1,
  },
  lastError: "",
};

/** The listeners of the scene's process. */
const listeners = [
  { name: "kube", address: "127.0.0.1:8443" },
  { name: "public", address: "[::]:6443" },
];
const ownFigures = { name: "prod", listeners, cpuMs: 100, eventLoopDelayMs: 0.2, rssBytes: 80e6 };

/**
 * Builds the API over two backends, one of which was killed, and one client with a watch and a lease. `items` returns
 * the items on the first page of a list.
 */
export function apiScene(): ApiScene {
  // One version, because a watch with a query parameter that is no parameter of watches moves only there.
  const path = new PlayedPath(["a", "b"], { versions: { a: "v1.36.1", b: "v1.36.1" } });
  const history = new BackendHistory(path.journal);
  const incidents = new Incidents(path.clock, path.journal);
  const recorded = historyOf(path);
  recorded.start();
  for (const name of ["a", "b"]) path.journal.write(changed(name, "unknown", "ready"));
  const certificates = [{ purpose: "backend-loopback", name: "a", notAfterMs: path.clock.wall() + 1 }];
  const times = timesOf(path.clock);
  const origin = {
    by: "alice at 127.0.0.1",
    reason: "flood",
    startedMs: path.clock.wall(),
    endsMs: path.clock.wall() + 60_000,
  };
  const limit = new Limit(limitOf({ name: "1", users: ["jane"], rate: "1/s" }), path.clock, { origin });
  const pages = apiPages(
    {
      clock: path.clock,
      incidents: incidents.store,
      limits: () => [{ cluster: "", limit }],
      replicas: () => [aloneRow],
      ledgers: () => [{ cluster: "", ledgerTap: path.ledgerTap }],
      live: () => path.exchanges.live,
      history,
      backends: () => backendStatusesOf({ path }),
      addressOf: (name) => `${name}:6443`,
      certificates: () => certificates,
      stalledWith: (name) => path.caches.stalledAt(name, path.clock.now()),
    },
    times,
  );
  const token = jwt({
    sub: "system:serviceaccount:n:web",
    "kubernetes.io": { namespace: "n", pod: { name: "web-0" } },
  });
  const fields = [bearer(token), new Field("user-agent", "manager/v1")];
  const watch = new PlayedWatch({ path, fields, query: "resourceVersion=7&token=planted-secret" });
  watch.serve(watch.from, "+8a =9");
  const spec = '{"spec":{"holderIdentity":"web-0_1","leaseDurationSeconds":15,"renewTime":"x"}}';
  watch.client
    .ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/leader", fields, false)
    .say(spec, true);
  path.settle();
  watch.from.last.answer(200, "{}");
  path.settle();
  watch.kill(watch.from);
  watch.serve(watch.to);
  path.clock.advance(6000);
  const items = async (list: string): Promise<readonly Row[]> => {
    const page = await pages.get(list)?.read("");
    if (page === undefined || typeof page === "string") throw new Error(page);
    return JSON.parse(JSON.stringify(page["items"]));
  };
  const restartRequired: string[] = [];
  recorded.stop();
  const stats = (): Stats =>
    statsOf(
      { read: (name) => (name === "requests_total" ? [[["GET", "200", "a"], 12]] : [[[], 7]]) },
      { ...ownFigures, restartRequired, version: "0.1.0", at: path.clock.now(), uptimeMs: path.clock.now() },
      times,
    );
  const routes = createApi({
    pages,
    incidents: incidents.store,
    live: () => path.exchanges.live,
    stats,
    history: recorded,
    times,
    clock: path.clock,
  });
  return { items, path, routes, restartRequired };
}

export function historyOf(path: PlayedPath): History {
  return historyIn(path, { exchanges: path.exchanges, backends: () => backendStatusesOf({ path }) });
}

/** Returns a history whose process figures (CPU time, memory) are constants. `workers`: what the workers have recorded. */
export function historyIn(
  { clock, journal }: Pick<PlayedPath, "clock" | "journal">,
  cluster: RecordedCluster,
  workers?: () => Promise<readonly Recorded[]>,
): History {
  const process = (): typeof idle => idle;
  return new History({ clock, journal, times: timesOf(clock), clusters: () => [cluster], process, workers });
}

const idle = { cpuMs: 0, eventLoopDelayMs: 0, rssMiB: 80, clientConnections: 1 };
