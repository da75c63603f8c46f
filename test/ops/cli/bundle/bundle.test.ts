import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bundle } from "../../../../src/ops/cli/bundle/bundle.ts";
import { KeptScreen, type SceneServer, serveScene } from "../../../support/api-server.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/cli/bundle/bundle");
let scene: SceneServer;
let folder: string;

test.before(async () => {
  scene = await serveScene();
});

test.after(() => scene.stop());

test.before.each(() => {
  folder = mkdtempSync(join(tmpdir(), "watchkeeper-bundle-"));
});

test.after.each(() => rmSync(folder, { recursive: true, force: true }));

async function made(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: scene.address });
  const code = await bundle(["--metrics", "127.0.0.1:1", ...args], screen, manualClock());
  return Object.assign(screen, { code });
}

test("a folder has every list, and no client's name in it", async () => {
  const to = join(folder, "b");
  const { code, out, complaints } = await made("--to", to);
  assert.is(code, 0);
  assert.match(complaints, "has no metrics: --metrics must name the metrics port");
  assert.match(out, /b: 12 files, \d+ KiB\n$/);
  const files = readdirSync(to).toSorted();
  assert.equal(files, [
    "README.txt",
    "backends.json",
    "certificates.json",
    "clients.json",
    "incidents.json",
    "leases.json",
    "limits.json",
    "metrics.txt",
    "replicas.json",
    "stats.json",
    "versions.json",
    "watches.json",
  ]);
  const all = files.map((file) => readFileSync(join(to, file), "utf8")).join("\n");
  for (const name of [
    "web-0",
    "10.0.0.9",
    "system:serviceaccount",
    "planted-secret",
    "eyJ",
    "leader",
    "jane",
    "alice",
  ])
    assert.not.match(all, name);
  assert.match(all, '"resource": "/configmaps"');
  assert.match(all, "# Cannot reach the proxy at ");
  assert.is(statSync(to).mode & 0o077, 0, "for its owner alone");
});

test("with --names they are there, and still no secret", async () => {
  const to = join(folder, "n");
  await made("--to", to, "--names");
  const clients = readFileSync(join(to, "clients.json"), "utf8");
  assert.match(clients, "n/web-0");
  assert.not.match(readFileSync(join(to, "watches.json"), "utf8"), "planted-secret");
});

test("an archive is one file, and nothing is written over", async () => {
  const to = join(folder, "b.tar");
  assert.is((await made("--to", to)).code, 0);
  assert.match(readFileSync(to, "latin1"), "watchkeeper/README.txt");
  const again = await made("--to", to);
  assert.equal([again.code, again.out], [1, ""]);
  assert.match(again.complaints, /Cannot write .*EEXIST/);
});

test("no server there is exit code 3, and nothing is written", async () => {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: "127.0.0.1:1" });
  assert.is(await bundle(["--to", join(folder, "x")], screen), 3);
  assert.equal(readdirSync(folder), []);
});

test.run();
