import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiPages } from "../../../../src/ops/admin/api/api.ts";
import { BackendHistory } from "../../../../src/ops/admin/events/backend-history.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { Incidents } from "../../../../src/ops/incidents/incidents.ts";
import { apiScene } from "../../../support/api-scene.ts";
import { PlayedPath } from "../../../support/path.ts";

const test = suite("ops/admin/api/api-pages");

test("no list shows a token (A55)", async () => {
  const { items } = apiScene();
  for (const list of ["incidents", "backends", "watches", "clients", "leases", "certificates"])
    assert.not.match(JSON.stringify(await items(list)), /planted-secret|eyJ/, list);
});

test("a list sorted by an unknown column says which columns there are", async () => {
  const path = new PlayedPath(["a"]);
  const none = {
    clock: path.clock,
    incidents: new Incidents(path.clock, path.journal).store,
    ledgers: () => [{ cluster: "", ledgerTap: path.ledgerTap }],
  };
  const sources = {
    ...none,
    live: () => [],
    limits: () => [],
    replicas: () => [],
    history: new BackendHistory(path.journal),
    backends: () => [],
    addressOf: () => "",
    certificates: () => [],
    stalledWith: () => [],
  };
  for (const [list, answer] of apiPages(sources, timesOf(path.clock))) {
    const complaint = `Cannot sort by "?": columns are ${answer.columns.join(", ")}`;
    assert.is(await answer.read("sort=?"), complaint, list);
  }
});

test.run();
