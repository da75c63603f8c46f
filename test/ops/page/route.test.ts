import { suite } from "uvu";
import * as assert from "uvu/assert";
import { hashOf, routeOf } from "../../../src/ops/page/route.js";

const test = suite("ops/page/route");

test("a link opens what the page showed when it was copied", () => {
  const routes = [
    { tab: "overview", id: "", params: { range: "5m", t: "2026-11-22T12:00:00.000Z" } },
    { tab: "incidents", id: "42", params: {} },
    { tab: "watches", id: "", params: { group: "agent", q: "a b&c", resource: "apps/deployments" } },
  ];
  for (const route of routes) assert.equal(routeOf(hashOf(route)), route);
});

test("what is usual is not in the address", () => {
  assert.is(hashOf({ tab: "overview", params: { q: "" } }), "#/");
  assert.is(hashOf({ tab: "watches" }), "#/watches");
});

test("an address that is no route opens the overview", () => {
  for (const hash of ["", "#", "#/nowhere/7", "#/incidents/%E0%A4%A"]) assert.is(routeOf(hash).id, "", hash);
  assert.is(routeOf("#/nowhere").tab, "overview");
});

test.run();
