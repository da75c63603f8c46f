import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";
import { status } from "../../../../src/ops/cli/client/status.ts";
import { KeptScreen, type SceneServer, serveScene } from "../../../support/api-server.ts";
import { changed } from "../../../support/incidents.ts";

const test = suite("ops/cli/client/status");
let scene: SceneServer;

test.before.each(async () => {
  scene = await serveScene();
});

test.after.each(() => scene.stop());

async function asked(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen();
  const code = await status(["--admin", scene.address, ...args], screen);
  return Object.assign(screen, { code });
}

test("one screen says how every backend is and what is wrong, and ends with 1", async () => {
  const { out, code } = await asked();
  assert.match(out, /^watchkeeper 0\.1\.0 {2}prod {2}up [^]*12 requests \(0 5xx\) {2}7 watch events/);
  assert.match(out, "\nlistens on 127.0.0.1:8443 (kube), [::]:6443 (public)\n");
  assert.match(out, /^BACKEND +STATE/m);
  assert.match(out, "1 watch (0 hung)   1 client   1 lease (0 suspect)   1 certificate (1 expiring)");
  const active = (await scene.items("incidents")).filter(({ state }) => state === "active");
  for (const { id, kind } of active)
    assert.match(out, new RegExp(`${String(kind)}[^]*watchkeeper explain ${String(id)}`));
  assert.is(code, active.length > 0 ? 1 : 0);
});

test("when nothing is wrong it says so and ends with 0", async () => {
  for (const { backend } of await scene.items("incidents"))
    scene.path.journal.write(changed(String(backend), "dead", "ready"));
  const wrong = (await scene.items("incidents")).filter(({ state }) => state === "active");
  assert.equal(wrong, []);
  const { out, code } = await asked();
  assert.match(out, "✓ no active incidents");
  assert.is(code, 0);
});

test("a changed setting that needs a restart is named, and the exit code is 1", async () => {
  for (const { backend } of await scene.items("incidents"))
    scene.path.journal.write(changed(String(backend), "dead", "ready"));
  scene.restartRequired.push("clusters.eu.connectionPool.perClient");
  const { out, code } = await asked();
  assert.match(out, "! clusters.eu.connectionPool.perClient takes effect only after a restart");
  assert.is(code, 1);
});

test("a lapsed lease is not ok, and not suspect either", async () => {
  scene.path.clock.advance(15_001);
  assert.match((await asked()).out, "1 lease (0 suspect, 1 lapsed)");
});

test("as JSON it is one object, with its verdict", async () => {
  const { out } = await asked("-o", "json");
  const said = JSON.parse(out);
  assert.is(said.kind, "Status");
  assert.equal(said.stats.listeners[0], { name: "kube", address: "127.0.0.1:8443" });
  assert.is(said.backends.items.length, 2);
  assert.type(said.isWell, "boolean");
});

test("as YAML it is the same object", async () => {
  const { kind, stats, isWell } = parse((await asked("-o", "yaml")).out);
  assert.equal([kind, stats.name, isWell], ["Status", "prod", false]);
  assert.is(parse((await asked("-o", "yaml", "--all-replicas")).out).kind, "StatusList");
});

test("no server there is 3", async () => {
  assert.is(await status(["--admin", "127.0.0.1:1"], new KeptScreen()), 3);
});

test.run();
