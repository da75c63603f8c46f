import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiPages } from "../../../src/admin/api/api.ts";
import { BackendHistory } from "../../../src/admin/events/backend-history.ts";
import { timesOf } from "../../../src/admin/http/times.ts";
import { Incidents } from "../../../src/incidents/incidents.ts";
import { apiScene } from "../../support/api-scene.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("admin/api/api-pages");

test("no list shows a token (A55)", async () => {
  const { items } = apiScene();
  for (const list of ["incidents", "backends", "watches", "clients", "leases", "certificates"])
    assert.not.match(JSON.stringify(await items(list)), /planted-secret|eyJ/, list);
});

test("docs/admin-api.md shows every field of every list, and no other", async () => {
  const { items } = apiScene();
  const page = readFileSync("docs/admin-api.md", "utf8");
  for (const list of ["incidents", "backends", "watches", "clients", "leases", "certificates"]) {
    const section = page.split(`\n### ${list}\n`)[1]?.split("\n### ")[0] ?? "";
    const example = JSON.parse(/```json\n([^`]*)```/.exec(section)?.[1] ?? "{}");
    const [item] = await items(list);
    assert.equal(Object.keys(example).toSorted(), Object.keys(item ?? {}).toSorted(), list);
  }
});

test("and every column", async () => {
  const page = readFileSync("docs/admin-api.md", "utf8");
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
    const columns = answer.columns.join(" ");
    const complaint = `Cannot sort by "?": columns are ${answer.columns.join(", ")}`;
    assert.is(await answer.read("sort=?"), complaint);
    assert.ok(page.includes(`Columns: \`${columns}\``), `${list}: ${columns}`);
  }
});

test.run();
