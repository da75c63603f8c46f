import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { isProblems } from "../../../src/config/problem.ts";
import { DemoFiles, embeddedAt } from "../../../src/demo/story/files.ts";

const test = suite("demo/story/files");
const files = await DemoFiles.make(wallClock);
test.after(() => files.remove());

test("the configuration that it writes is a good one", () => {
  const config = loadConfig(files.writeConfig(embeddedAt([6443, 6444]), 8443));
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  assert.equal(
    config.clusters[0].backends.map(({ name, port }) => [name, port]),
    [
      ["apiserver-1", 6443],
      ["apiserver-2", 6444],
    ],
  );
});

test("the kubeconfig trusts the authority that signed every serving certificate", () => {
  const { clusters } = JSON.parse(readFileSync(files.writeKubeconfig("127.0.0.1:8443"), "utf8"));
  const { cluster } = clusters[0];
  assert.is(cluster.server, "https://127.0.0.1:8443");
  const ca = new X509Certificate(Buffer.from(cluster["certificate-authority-data"], "base64"));
  const leaf = new X509Certificate(files.issue("apiserver").certificate);
  assert.ok(leaf.verify(ca.publicKey));
  assert.equal(leaf.checkIP("127.0.0.1"), "127.0.0.1");
});

test.run();
