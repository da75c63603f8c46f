import { suite } from "uvu";
import * as assert from "uvu/assert";
import { shapeConfig } from "../../../../src/ops/cli/deploy/shape-config.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/deploy/shape-config");
const least = {
  about: ["What it is."],
  name: "a",
  address: "[::]:8443",
  backends: [{ name: "cp-1", url: "https://10.0.0.1:6443" }],
  caFile: "ca.crt",
  metricsAddress: "127.0.0.1:7481",
};

test("all that can be wished for makes a good configuration, and so does the least", () => {
  const serving = { certFile: "tls.crt", keyFile: "tls.key", clientCAFile: "clients.crt" };
  const frontProxy = { certFile: "fp.crt", keyFile: "fp.key" };
  const all = { ...least, serving, frontProxy, cluster: ["discovery: {type: DNS, hostname: cp.example}"] };
  for (const wishes of [least, { ...least, serving: { certFile: "a", keyFile: "b" } }, all]) {
    const text = shapeConfig(wishes);
    assert.match(text, /^# What it is\.\n/);
    const config = parseConfig(text, "a.yaml");
    if (isProblems(config)) throw new Error(`${JSON.stringify(config)}\n${text}`);
    assert.is(config.clusters[0].backends.length, 1);
  }
});

test.run();
