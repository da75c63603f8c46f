import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { RouteConfig } from "../../../src/ops/config/config.ts";
import { routeFor } from "../../../src/proxy/tunnel/passthrough-router.ts";
import { until } from "../../support/h1.ts";
import { hello } from "../../support/hello.ts";
import { type ScriptedPassthrough, startPassthrough } from "../../support/passthrough.ts";

const test = suite("proxy/tunnel/passthrough-router");

let scene: ScriptedPassthrough;
test.after.each(() => scene.close());

test("each connection goes to the cluster that its server's name stands for, and to none of another's backends", async () => {
  const routes = [
    { serverNames: ["eu.test"], cluster: "eu", backends: [] },
    { serverNames: ["us.test"], cluster: "us", backends: ["a"] },
  ];
  scene = await startPassthrough(["a", "b"], routes);
  for (const serverName of ["eu.test", "us.test", "eu.test"])
    (await scene.connect()).send(hello({ serverName }));
  await until("three of them", () => scene.led.length === 3);
  assert.equal(scene.led.toSorted(), ["eu", "eu", "us"]);
});

test("a name that stands for none is refused before it reaches any cluster", async () => {
  scene = await startPassthrough(["a"], [{ serverNames: ["eu.test"], cluster: "eu", backends: [] }]);
  const client = await scene.connect();
  client.send(hello({ serverName: "other.test" }));
  await client.expect("\x15\x03\x03\0\x02\x02\x70");
  assert.equal(scene.led, []);
});

const routes: readonly RouteConfig[] = [
  { serverNames: ["*.b.example"], cluster: "", backends: ["wild"] },
  { serverNames: ["a.example", "x.b.example"], cluster: "", backends: ["exact"] },
];
const rest: RouteConfig = { serverNames: [], cluster: "", backends: ["rest"] };

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

test("an unknown name, or none, selects the route without names, if there is one", () => {
  for (const name of ["other", undefined]) {
    assert.is(backendsFor(name), undefined);
    assert.equal(backendsFor(name, [rest, ...routes]), ["rest"]);
  }
  assert.equal(backendsFor("a.example", [rest, ...routes]), ["exact"]);
});

test.run();
