/** Runs the real kubectl against the embedded apiserver. The commands that a new user tries first must work. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../demo/apiserver/apiserver.ts";
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import { Host } from "../../../demo/apiserver/host.ts";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { hasKubectl, kubectl, spawnKubectl } from "../../support/kubectl.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("demo/kubectl");

const apiserver = new Apiserver({ store: newCluster(wallClock), clock: wallClock, name: "one" });
const { authority, serving } = await testPki();
const host = new Host({ apiserver, ...serving });
const port = await host.start();
if (port instanceof Failure) throw new Error(port.message);
const server = `https://127.0.0.1:${port}`;
const directory = mkdtempSync(join(tmpdir(), "demo-kubectl-"));
writeFileSync(join(directory, "ca.crt"), authority.certificate);
test.after(() => {
  host.stop();
  rmSync(directory, { recursive: true });
});
const reach = ["--server", server, "--certificate-authority", join(directory, "ca.crt"), "--token", "demo"];

const run = (line: string, input?: string): Promise<string> =>
  within(20_000, line, kubectl([...reach, ...line.split(" ")], input));

const manifest = (value: string): string =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b" }, data: { k: value } });

async function watchesAndWrites(): Promise<void> {
  const watch = spawnKubectl([...reach, "get", "configmaps", "--watch"]);
  let seen = "";
  watch.stdout?.on("data", (chunk: Buffer) => (seen += chunk.toString()));
  while (apiserver.watchCount === 0) await new Promise((resolve) => setTimeout(resolve, 20));

  assert.is(await run("create configmap a --from-literal=k=v"), "configmap/a created\n");
  assert.is(await run("apply -f -", manifest("v")), "configmap/b created\n");
  assert.is(await run("apply -f -", manifest("w")), "configmap/b configured\n");
  assert.is(await run("apply --server-side -f -", manifest("x")), "configmap/b serverside-applied\n");
  assert.is(await run('patch configmap b -p {"data":{"l":"m"}}'), "configmap/b patched\n");
  assert.is(await run("get configmap b -o jsonpath={.data}"), '{"k":"x","l":"m"}');
  assert.match(await run("create -f -", manifest("y")), '(AlreadyExists): error when creating "STDIN"');
  assert.is(await run("delete configmap a"), 'configmap "a" deleted\n');
  assert.match(await run("get configmap a"), 'Error from server (NotFound): configmaps "a" not found');

  watch.kill();
  await once(watch, "close");
  const names = [...seen.matchAll(/^(NAME|a|b) /gm)].map(([, name]) => name);
  assert.equal(names, ["NAME", "a", "b", "b", "b", "b", "a"], seen);
}

async function namespaces(): Promise<void> {
  assert.is(await run("create namespace team"), "namespace/team created\n");
  assert.match(await run("get namespaces"), /^team +Active +\d+s$/m);
  assert.is(await run("delete namespace team"), 'namespace "team" deleted\n');
}

if (hasKubectl) {
  test("configmaps are created, applied, patched, deleted, and a watch shows each of it", watchesAndWrites);
  test("namespaces come and go", namespaces);
} else {
  console.log("skip: no kubectl on this machine");
  test("without kubectl there is nothing to try", () => {});
}

test.run();
