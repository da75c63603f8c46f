/**
 * Checks that deploy/deployment is what the generator prints. `node test/cli/deploy/deployment.test.ts --write`
 * rewrites it.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { deploymentConfig, deploymentParts, deploymentText } from "../../../src/cli/deploy/deployment.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { isProblems } from "../../../src/config/problem.ts";

const test = suite("cli/deploy/deployment");
const folder = "deploy/deployment";
const wishes = { image: "SET-THE-IMAGE", namespace: "watchkeeper", replicas: 2 };
const parts = deploymentParts(wishes);
if (process.argv.includes("--write"))
  for (const [name, text] of Object.entries(parts)) writeFileSync(`${folder}/${name}.yaml`, text);

for (const [name, text] of Object.entries(parts)) {
  test(`${folder}/${name}.yaml is current: --write makes it so`, () => {
    assert.is(readFileSync(`${folder}/${name}.yaml`, "utf8"), text);
  });
}

test("kustomization.yaml has every file, and there is no other", () => {
  const listed = [...readFileSync(`${folder}/kustomization.yaml`, "utf8").matchAll(/^ {2}- (\w+\.yaml)$/gm)];
  const there = readdirSync(folder).filter((file) => file !== "kustomization.yaml" && file.endsWith(".yaml"));
  const made = Object.keys(parts).map((name) => `${name}.yaml`);
  assert.equal(new Set(there), new Set(made));
  assert.equal(new Set(listed.map(([, file = ""]) => file)), new Set(made));
});

test("its configuration is a good one, and waits no longer than its pods live on", () => {
  const config = parseConfig(deploymentConfig(), "watchkeeper.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(deploymentText(wishes)) ?? [];
  assert.ok(config.drain.shutdownDelayMs + config.drain.timeoutMs < Number(seconds) * 1_000);
});

test("another namespace, image and number are everywhere", () => {
  const text = deploymentText({ image: "w:1", namespace: "edge", replicas: 5 });
  assert.not.match(text, "namespace: watchkeeper");
  assert.match(text, /kind: Namespace\nmetadata:\n {2}name: edge/);
  assert.match(text, "image: w:1");
  assert.match(text, "replicas: 5");
});

test.run();
