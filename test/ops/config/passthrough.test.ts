import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";

const test = suite("config-passthrough");

type Change = { readonly listener?: string; readonly url?: string; readonly cluster?: string };

/** Returns the configuration of one passthrough listener, or the messages of its problems without line and column. */
function read({ listener = "", url = "https://10.0.0.1:6443", cluster = "" }: Change): Config | string[] {
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: a, address: "[::]:7443", ${listener === "" ? "mode: Passthrough" : listener}}]
clusters: [{name: default, backends: [{name: cp-1, url: "${url}"}, {name: cp-2, url: "https://10.0.0.2"}], tls: {caFile: ca.crt}${cluster}}]`;
  const outcome = parseConfig(text, "a.yaml");
  return isProblems(outcome) ? outcome.map((one) => lineOf(one).replace(/^\S+ /, "")) : outcome;
}

const routed = (routes: string): Change => ({ listener: `mode: Passthrough, routes: [${routes}]` });

test("a passthrough needs no certificate, on any address", () => {
  const config = read({});
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.listeners[0]?.mode, "Passthrough");
  assert.equal(config.listeners[0]?.routes, []);
});

test("its routes are read, with and without names", () => {
  const config = read(
    routed('{serverNames: [a.example, "*.b"], backends: [cp-1]}, {backends: [cp-2, cp-1]}'),
  );
  if (Array.isArray(config)) return assert.equal(config, []);
  assert.equal(config.listeners[0]?.routes, [
    { serverNames: ["a.example", "*.b"], cluster: "default", backends: ["cp-1"] },
    { serverNames: [], cluster: "default", backends: ["cp-2", "cp-1"] },
  ]);
});

test("what is read behind TLS is not for it", () => {
  const message = 'is not for mode "Passthrough": nothing is read behind TLS';
  assert.equal(read({ listener: "mode: Passthrough, tls: {certFile: a, keyFile: b}" }), [
    `listeners[0].tls ${message}`,
  ]);
  assert.equal(read({ listener: "mode: Passthrough, trustedForwarderCIDRs: [10.0.0.0/8]" }), [
    `listeners[0].trustedForwarderCIDRs ${message}`,
  ]);
});

test("routes are for it alone", () => {
  const listener = "tls: {certFile: a, keyFile: b}, routes: [{backends: [cp-1]}]";
  assert.equal(read({ listener }), ['listeners[0].routes is for mode "Passthrough" only']);
});

test("its backends speak TLS, and each has an upstream connection that sees it die", () => {
  assert.equal(read({ url: "http://127.0.0.1:1" }), [
    'listeners[0].mode leaves TLS to the backends, but "cp-1" has none',
  ]);
  assert.equal(read({ cluster: ", connectionPool: {minIdleConnections: 0}" }), [
    'clusters[0].connectionPool.minIdleConnections is 0, but a listener of mode "Passthrough" needs a connection that detects a dead backend',
  ]);
});

test("a route names listed backends, and no name stands twice", () => {
  assert.equal(
    read(routed("{serverNames: [a, b], backends: [cp-3]}, {serverNames: [b], backends: [cp-1]}")),
    [
      'listeners[0].routes[0].backends[0] is "cp-3", which is not a listed backend',
      'listeners[0].routes[1].serverNames[0] is "b" again',
    ],
  );
  assert.equal(read(routed("{backends: [cp-1]}, {backends: [cp-2]}")), [
    'listeners[0].routes[1] is the second one without "serverNames"',
  ]);
});

test("a name is one that a client can send", () => {
  for (const name of ["A.example", "*", "a.*.b", "*a.b", "a b", ".a", "a."])
    assert.match(
      JSON.stringify(read(routed(`{serverNames: ["${name}"], backends: [cp-1]}`))),
      "a server name such as",
      name,
    );
});

test.run();
