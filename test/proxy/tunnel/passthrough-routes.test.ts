import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Route, routeFor } from "../../../src/proxy/tunnel/passthrough-routes.ts";

const test = suite("proxy/tunnel/passthrough-routes");

const routes: readonly Route[] = [
  { serverNames: ["*.b.example"], cluster: "", backends: ["wild"] },
  { serverNames: ["a.example", "x.b.example"], cluster: "", backends: ["exact"] },
];
const rest: Route = { serverNames: [], cluster: "", backends: ["rest"] };

const backendsFor = (name: string | undefined, all = routes): readonly string[] | undefined =>
  routeFor(all, name)?.backends;

test("a name's own route comes before a wildcard's, whatever their order", () => {
  assert.equal(backendsFor("x.b.example"), ["exact"]);
  assert.equal(backendsFor("y.b.example"), ["wild"]);
});

test("a wildcard is one label, and never none", () => {
  for (const name of ["b.example", "a.y.b.example", ".b.example", "other"])
    assert.is(backendsFor(name), undefined, name);
});

test("who fits nowhere, or names nobody, has the route without names, if there is one", () => {
  for (const name of ["other", undefined]) {
    assert.is(backendsFor(name), undefined);
    assert.equal(backendsFor(name, [rest, ...routes]), ["rest"]);
  }
  assert.equal(backendsFor("a.example", [rest, ...routes]), ["exact"]);
});

test.run();
