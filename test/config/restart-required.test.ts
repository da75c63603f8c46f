import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, changedParts, heldOf, parseConfig } from "../../src/config/config.ts";
import { isProblems } from "../../src/config/problem.ts";

const test = suite("config-changes");

const pool = "connectionPool: {minIdleConnections: 2}";
const sample = readFileSync("config/static.yaml", "utf8");

function read(text: string): Config {
  const config = parseConfig(text, "a.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config;
}

test("a configuration that is the same waits for nothing", () => {
  assert.equal(changedParts(read(sample), read(sample)), []);
});

test("listeners, backends, drain and logging are taken up at once", () => {
  const other = sample.replace(":8443", ":8444").replace("10.0.0.12", "10.0.0.13");
  const more = "drain: {timeout: 1s}\nlogging: {format: Text, accessLog: All}\n";
  assert.equal(changedParts(read(sample), read(`${other}\n${more}`)), []);
  assert.is(heldOf(read(sample), read(`${other}\n${more}`)).logging.accessLog, "All");
});

test("what is fixed at the start is named as the file has it", () => {
  const other = `${sample}\nadmin: {metricsAddress: ":7482"}\nhealth: {probe: {path: /livez}}\n`;
  assert.equal(changedParts(read(sample), read(other)), ["health", "admin"]);
  const pooled = sample.replace("    backends:\n", `    ${pool}\n    backends:\n`);
  assert.equal(changedParts(read(sample), read(pooled)), ["clusters.prod-eu1.connectionPool"]);
});

test("what waits goes on waiting until the process starts anew, or the file says again what holds", () => {
  const start = read(sample);
  const other = sample.replace("    backends:\n", `    ${pool}\n    backends:\n`);
  const changed = read(`${other}\nhealth: {probe: {path: /livez}}\ndrain: {timeout: 1s}\n`);
  const held = heldOf(start, changed);
  assert.is(held.drain.timeoutMs, 1000);
  assert.equal(changedParts(held, changed), ["clusters.prod-eu1.connectionPool", "health"]);
  assert.equal(changedParts(heldOf(held, changed), start), []);
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
