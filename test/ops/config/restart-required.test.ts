import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, changedParts, heldOf, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";

const test = suite("config-changes");

const pool = "connectionPool: {minIdleConnections: 2, perClient: true}";
const sample = readFileSync("config/static.yaml", "utf8");

function read(text: string): Config {
  const config = parseConfig(text, "a.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config;
}

test("a configuration that is the same waits for nothing", () => {
  assert.equal(changedParts(read(sample), read(sample)), []);
});

test("all sections apply at once", () => {
  const other = sample.replace(":8443", ":8444").replace("10.0.0.12", "10.0.0.13");
  const more = [
    "drain: {timeout: 1s}",
    "logging: {format: Text, accessLog: All}",
    'admin: {metricsAddress: ":7482", readOnly: true}',
    "health: {probe: {path: /livez}, ping: {interval: 100ms}, tcpKeepalive: {probes: 3}}",
    "watches: {staleReadGuard: Enforce}",
  ].join("\n");
  const changed = read(`${other}\n${more}\n`);
  assert.equal(changedParts(read(sample), changed), []);
  assert.equal(heldOf(read(sample), changed), changed);
});

test("only perClient needs a restart, and the rest of its section applies at once", () => {
  const start = read(sample);
  const changed = read(sample.replace("    backends:\n", `    ${pool}\n    backends:\n`));
  const held = heldOf(start, changed);
  const { perClient, minIdleConnections } = held.clusters[0].connectionPool;
  assert.equal([perClient, minIdleConnections], [false, 2]);
  for (const before of [start, held])
    assert.equal(changedParts(before, changed), ["clusters.prod-eu1.connectionPool.perClient"]);
  assert.equal(changedParts(heldOf(held, changed), start), []);
});

test("the number of workers needs a restart, and the running number stays in force until then", () => {
  const start = read(sample);
  const changed = read(`${sample}\nworkers: 2\n`);
  const held = heldOf(start, changed);
  assert.is(held.workers, start.workers);
  for (const before of [start, held]) assert.equal(changedParts(before, changed), ["workers"]);
  assert.equal(changedParts(held, start), []);
});

test("a cluster that comes later holds as it came", () => {
  const one = read(readFileSync("config/clusters.yaml", "utf8"));
  const text = readFileSync("config/clusters.yaml", "utf8").replace(
    "- name: us\n",
    "- name: us\n    connectionPool: {perClient: true}\n",
  );
  const alone = { ...one, clusters: [one.clusters[0]] as const };
  assert.equal(changedParts(heldOf(alone, read(text)), read(text)), []);
});

test.run();
