/** What the JSON API lists, on what the whole path does: that is where its shapes come from. */
import { apiPages, createApi } from "../../src/admin/api/api.ts";
import { type Stats, statsOf } from "../../src/admin/api/stats.ts";
import { BackendHistory } from "../../src/admin/events/backend-history.ts";
import type { Routes } from "../../src/admin/http/reply.ts";
import { timesOf } from "../../src/admin/http/times.ts";
import { backendStatusesOf } from "../../src/admin/metrics/cluster-view.ts";
import { Field } from "../../src/h2/core/field.ts";
import { Incidents } from "../../src/incidents/incidents.ts";
import { changed } from "./incidents.ts";
import { jwt } from "./jwt.ts";
import { bearer, PlayedPath } from "./path.ts";
import { PlayedWatch } from "./watch-path.ts";

export type Row = Record<string, unknown>;

type ApiScene = {
  readonly items: (path: string) => Promise<readonly Row[]>;
  readonly path: PlayedPath;
  /** The API's paths, on what is played. */
  readonly routes: Routes;
  /** The settings that need a restart. */
  readonly restartRequired: string[];
};

const ownFigures = { name: "prod", cpuMs: 100, eventLoopDelayMs: 0.2, rssBytes: 80e6 };

/** Two backends of which one was killed; one client with a watch and a lease. `items` are those of a list's first page. */
export function apiScene(): ApiScene {
  const path = new PlayedPath(["a", "b"]);
  const history = new BackendHistory(path.journal);
  const incidents = new Incidents(path.clock, path.journal);
  for (const name of ["a", "b"]) path.journal.write(changed(name, "unknown", "ready"));
  const certificates = [{ purpose: "backend-loopback", name: "a", notAfterMs: path.clock.wall() + 1 }];
  const times = timesOf(path.clock);
  const pages = apiPages(
    {
      clock: path.clock,
      incidents: incidents.store,
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
  path.clock.advance(3000);
  const items = async (list: string): Promise<readonly Row[]> => {
    const page = await pages.get(list)?.read("");
    if (page === undefined || typeof page === "string") throw new Error(page);
    return JSON.parse(JSON.stringify(page["items"]));
  };
  const restartRequired: string[] = [];
  const stats = (): Stats =>
    statsOf(
      { read: (name) => (name === "requests_total" ? [[["GET", "200", "a"], 12]] : [[[], 7]]) },
      { ...ownFigures, restartRequired, version: "0.1.0", at: path.clock.now(), uptimeMs: path.clock.now() },
      times,
    );
  const routes = createApi({ pages, incidents: incidents.store, stats, times });
  return { items, path, routes, restartRequired };
}
