import { suite } from "uvu";
import * as assert from "uvu/assert";
import { createApi } from "../../../../src/ops/admin/api/api.ts";
import type { JsonObject, Page } from "../../../../src/ops/admin/http/listing.ts";
import type { Reply } from "../../../../src/ops/admin/http/reply.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { PlayedJournal } from "../../../support/incidents.ts";

const test = suite("ops/admin/api/api");
const stats = () => ({ kind: "Stats", watchEvents: 7 });

const pageWith = (outcome: JsonObject | string): Page => ({
  kind: "",
  sort: "",
  columns: [],
  read: () => Promise.resolve(outcome),
  readFirst: () => Promise.resolve(""),
});

async function ask(target: string, played = new PlayedJournal()): Promise<Reply | undefined> {
  const [path = "", query = ""] = target.split("?");
  const { store } = played.incidents;
  const pages = new Map<string, Page>([
    ["incidents", pageWith({ kind: "IncidentList" })],
    ["odd", pageWith('"limit" must be a number')],
  ]);
  const history = { text: (after?: number) => Promise.resolve(`{"after":${after}}`) };
  const { clock } = played;
  const parts = { pages, incidents: store, live: () => [], stats, history, times: timesOf(clock), clock };
  return createApi(parts)(path)?.(query);
}

test("the index names every list", async () => {
  assert.equal(JSON.parse(String((await ask("/api/v1/"))?.text)), {
    kind: "Index",
    paths: ["/api/v1/incidents", "/api/v1/odd", "/api/v1/stats", "/api/v1/history"],
  });
});

test("without its slash it leads to the index", async () => {
  const { status, location } = (await ask("/api/v1")) ?? {};
  assert.equal([status, location], [308, "/api/v1/"]);
});

test("a list says when it was made; a bad query says why there is none", async () => {
  const { status, type, text } = (await ask("/api/v1/incidents")) ?? {};
  assert.equal([status, type], [200, "application/json; charset=utf-8"]);
  assert.equal(Object.keys(JSON.parse(String(text))), ["at", "kind"]);
  const bad = await ask("/api/v1/odd?limit=x");
  assert.equal([bad?.status, JSON.parse(String(bad?.text)).message], [400, '"limit" must be a number']);
});

test("the stats are one object, not a list", async () => {
  assert.equal(JSON.parse(String((await ask("/api/v1/stats"))?.text)), stats());
  assert.is(await ask("/api/v1/stats/1"), undefined);
});

test("the history is asked for from the step after the reader's last one", async () => {
  assert.is((await ask("/api/v1/history"))?.text, '{"after":-1}');
  assert.is((await ask("/api/v1/history?after=719"))?.text, '{"after":719}');
  for (const after of ["x", "-2", "1e9", "9999999999"])
    assert.is((await ask(`/api/v1/history?after=${after}`))?.status, 400, after);
});

test("one incident is found by its number", async () => {
  const played = new PlayedJournal();
  played.write({ kind: "internal.error", scope: "timer", message: "x" });
  const found = await ask("/api/v1/incidents/1", played);
  assert.is(JSON.parse(String(found?.text)).kind, "internal-error");
  for (const id of ["2", "x", "-1", "1e3", ""])
    assert.is((await ask(`/api/v1/incidents/${id}`, played))?.status, 404);
});

test("nothing else is a path", async () => {
  for (const path of [
    "/",
    "/api/v1x",
    "/api/v1/x",
    "/api/v1/odd/1",
    "/api/v1/constructor",
    "/api/v1/incidents/1/2",
    "/api/v1/../incidents",
    "/metrics",
  ])
    assert.is(await ask(path), undefined, path);
});

test.run();
