import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  type Shape,
  sidecarConfig,
  stateFiles,
  usual,
} from "../../../../src/ops/cli/deploy/sidecar-shape.ts";
import { type Config, parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/deploy/sidecar-shape");

function configFor(shape: Partial<Shape> = {}): Config {
  const service = { host: "10.96.0.1", port: "443" };
  const config = parseConfig(sidecarConfig({ ...usual, service, ...shape }), "sidecar");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config;
}

test("it is a configuration like any other: TLS on loopback, the service until apiservers are found", () => {
  const {
    listeners,
    clusters: [cluster],
  } = configFor();
  assert.equal(listeners[0]?.address, { host: "127.0.0.1", port: 7443 });
  assert.is(listeners[0]?.tls?.certFile, stateFiles(usual.state).cert);
  assert.equal([cluster.backends.length, cluster.discovery?.type], [0, "EndpointSlice"]);
  assert.is(cluster.discovery?.fallback?.url, "https://10.96.0.1:443");
  assert.is(cluster.tls?.caFile, "/var/run/secrets/watchkeeper/ca.crt");
});

test("an IPv6 service is put into brackets", () => {
  const { fallback } = configFor({ service: { host: "fd00::1", port: "443" } }).clusters[0].discovery ?? {};
  assert.equal([fallback?.host, fallback?.port], ["fd00::1", 443]);
});

test("a path with odd characters stays one value", () => {
  const {
    clusters: [cluster],
  } = configFor({ direct: '/a "b": {c' });
  assert.is(cluster.tls?.caFile, '/a "b": {c/ca.crt');
});

test.run();
