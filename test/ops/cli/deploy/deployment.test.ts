import { readdirSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { deploymentText } from "../../../../src/ops/cli/deploy/deployment.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/deploy/deployment");
const folder = "deploy/deployment";
const text = deploymentText({ image: "w:1", namespace: "edge", replicas: 5 });

test("the manifests and kustomization.yaml contain every file of the folder", () => {
  const files = readdirSync(folder).filter((file) => file.endsWith(".yaml") && file !== "kustomization.yaml");
  const listed = [...readFileSync(`${folder}/kustomization.yaml`, "utf8").matchAll(/^ {2}- (\w+\.yaml)$/gm)];
  assert.equal(new Set(listed.map(([, file = ""]) => file)), new Set(files));
  const usual = deploymentText({ image: "SET-THE-IMAGE", namespace: "watchkeeper", replicas: 2 });
  for (const file of files) assert.ok(usual.includes(readFileSync(`${folder}/${file}`, "utf8")), file);
  assert.is(usual.split("\n").length, text.split("\n").length);
});

test("the configuration is valid, and a drain is shorter than the pod's grace period", () => {
  const { data } = parse(readFileSync(`${folder}/config.yaml`, "utf8"));
  const config = parseConfig(data["watchkeeper.yaml"], "watchkeeper.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(text) ?? [];
  assert.ok(config.drain.shutdownDelayMs + config.drain.timeoutMs < Number(seconds) * 1_000);
});

test("another namespace, image and number of replicas are in every place", () => {
  assert.not.match(text, "namespace: watchkeeper");
  assert.not.match(text, "SET-THE-IMAGE");
  assert.match(text, /kind: Namespace\nmetadata:\n {2}name: edge/);
  assert.match(text, "image: w:1");
  assert.match(text, "replicas: 5");
});

test.run();
