import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { DemoFiles, embeddedAt } from "../../../demo/story/files.ts";
import { wallClock } from "../../../src/base/clock.ts";
import { loadConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";

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

test("the directory of a demo that was killed is removed at the next start, and no other", async () => {
  const [before, own] = [process.env["TMPDIR"], mkdtempSync(join(tmpdir(), "files-test-"))];
  process.env["TMPDIR"] = own;
  const { pid: dead } = spawnSync(process.execPath, ["--version"]);
  const names = [
    `watchkeeper-demo-${dead}-a`,
    `watchkeeper-demo-${process.pid}-b`,
    "watchkeeper-demo-x",
    "y",
  ];
  for (const name of names) mkdirSync(join(own, name));
  const next = await DemoFiles.make(wallClock);
  assert.equal(
    names.map((name) => existsSync(join(own, name))),
    [false, true, true, true],
  );
  assert.ok(next.directory.startsWith(join(own, `watchkeeper-demo-${process.pid}-`)));
  rmSync(own, { recursive: true });
  if (before === undefined) Reflect.deleteProperty(process.env, "TMPDIR");
  else process.env["TMPDIR"] = before;
});

test.run();
