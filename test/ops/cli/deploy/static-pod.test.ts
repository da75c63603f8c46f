/**
 * Checks that deploy/static-pod and deploy/node-local are what the generator prints. `node
 * test/ops/cli/deploy/static-pod.test.ts --write` rewrites them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { staticPod, staticPodConfig } from "../../../../src/ops/cli/deploy/static-pod.ts";
import { parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/deploy/static-pod");
const wishes = {
  image: "SET-THE-IMAGE",
  port: 8443,
  metricsPort: 7481,
  isPassthrough: false,
  isSecond: false,
  hasSecureMetrics: false,
  backends: [11, 12, 13].map((last, index) => ({
    name: `cp-${index + 1}`,
    url: `https://10.0.0.${last}:6443`,
  })),
};
const files = {
  "deploy/static-pod/watchkeeper.yaml": staticPod(wishes),
  "deploy/static-pod/watchkeeper-b.yaml": staticPod({ ...wishes, isSecond: true }),
  "deploy/static-pod/config.yaml": staticPodConfig(wishes),
  "deploy/static-pod/config-passthrough.yaml": staticPodConfig({ ...wishes, isPassthrough: true }),
};
if (process.argv.includes("--write"))
  for (const [file, text] of Object.entries(files)) writeFileSync(file, text);

for (const [file, text] of Object.entries(files)) {
  test(`${file} is current: --write makes it so`, () => {
    assert.is(readFileSync(file, "utf8"), text);
  });
}

test("its configurations are good ones: with the files of kubeadm, and without any key", () => {
  const whole = parseConfig(staticPodConfig(wishes), "config.yaml");
  if (isProblems(whole)) throw new Error(JSON.stringify(whole));
  assert.ok(whole.clusters[0].tls?.frontProxy !== undefined);
  const through = parseConfig(staticPodConfig({ ...wishes, isPassthrough: true }), "config.yaml");
  if (isProblems(through)) throw new Error(JSON.stringify(through));
  assert.equal([through.listeners[0]?.mode, through.listeners[0]?.tls], ["Passthrough", undefined]);
  assert.equal(through.clusters[0].backends.length, 3);
});

test("the pod mounts exactly the files that its configuration names, never the directory with the CA's key", () => {
  for (const isPassthrough of [false, true])
    for (const hasSecureMetrics of [false, true]) {
      const all = { ...wishes, isPassthrough, hasSecureMetrics };
      const mounted = [...staticPod(all).matchAll(/mountPath: (\/etc\/kubernetes\/[^,]*)/g)];
      const named = [...staticPodConfig(all).matchAll(/File: "?(\/etc\/kubernetes\/[^"\s]+)/g)];
      const paths = (found: RegExpMatchArray[]): Set<unknown> => new Set(found.map(([, path]) => path));
      assert.is(paths(mounted).symmetricDifference(paths(named)).size, 0);
      assert.ok(mounted.length >= 1);
    }
  assert.match(staticPod({ ...wishes, isPassthrough: true }), "runAsUser: 65532");
});

test("the second pod differs from the first in its name and in the port of its probes, which it is told", () => {
  const differing = (text: string): string => text.replaceAll(/watchkeeper-b\b/g, "watchkeeper");
  const second = staticPod({ ...wishes, isSecond: true });
  assert.match(second, "name: watchkeeper-b\n");
  const expected = staticPod(wishes)
    .replace("10m]", '10m, --metrics-address, "127.0.0.1:7482"]')
    .replaceAll(/(p|containerP)ort: 7481/g, "$1ort: 7482");
  assert.is(differing(second), expected);
  assert.match(staticPodConfig(wishes), "reusePort: true");
});

test("the second node-local pod differs from the first in its name and in the port of its probes", () => {
  const body = (file: string): string => {
    const text = readFileSync(file, "utf8");
    return text.slice(text.indexOf("apiVersion"));
  };
  const expected = body("deploy/node-local/watchkeeper.yaml")
    .replace("name: watchkeeper-local\n", "name: watchkeeper-local-b\n")
    .replace("10m]", '10m, --metrics-address, "127.0.0.1:7482"]')
    .replaceAll(/(p|containerP)ort: 7481/g, "$1ort: 7482");
  assert.is(body("deploy/node-local/watchkeeper-b.yaml"), expected);
});

test("both pods of a node mount the directory in which they pass sockets to each other", () => {
  const config = parseConfig(staticPodConfig(wishes), "config.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const { handoverDirectory } = config.drain;
  assert.type(handoverDirectory, "string");
  for (const file of ["static-pod", "node-local"])
    for (const pod of ["watchkeeper", "watchkeeper-b"]) {
      const text = readFileSync(`deploy/${file}/${pod}.yaml`, "utf8");
      assert.ok(text.includes(`mountPath: ${handoverDirectory}}`));
      assert.ok(text.includes(`path: ${handoverDirectory}, type: DirectoryOrCreate`));
    }
});

test("with --passthrough, metrics use files of their own: the pod holds no key of the cluster and does not run as root", () => {
  const secure = { ...wishes, isPassthrough: true, hasSecureMetrics: true };
  const config = parseConfig(staticPodConfig(secure), "config.yaml");
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  const { tls, authorization } = config.admin.metrics;
  for (const file of [tls?.certFile, tls?.keyFile, authorization?.kubeconfigFile])
    assert.match(file ?? "", /^\/etc\/watchkeeper\//);
  assert.match(staticPod(secure), "runAsUser: 65532");
});

test("its ports are where it is told", () => {
  const pod = staticPod({ ...wishes, metricsPort: 9_000 });
  assert.match(pod, "path: /livez, port: 9000");
  assert.match(staticPodConfig({ ...wishes, port: 443, metricsPort: 9_000 }), /":443"[^]*127\.0\.0\.1:9000/);
});

test.run();
