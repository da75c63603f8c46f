import { suite } from "uvu";
import * as assert from "uvu/assert";
import { explain } from "../../../src/cli/client/explain.ts";
import { KeptScreen, type SceneServer, serveScene } from "../../support/api-server.ts";
import { changed, met } from "../../support/incidents.ts";

const test = suite("cli/client/explain");
let scene: SceneServer;

test.before(async () => {
  scene = await serveScene();
  const { journal } = scene.path;
  journal.write(changed("b", "ready", "suspect"));
  journal.write(met("b", "silence", ""));
  journal.write(changed("b", "suspect", "dead", { reason: "PING unanswered for 2013 ms", valueMs: 2013 }));
});

test.after(() => scene.stop());

async function asked(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: scene.address });
  return Object.assign(screen, { code: await explain(args, screen) });
}

test("it tells what is wrong, what it means, and each piece of evidence with its bound", async () => {
  const incidents = await scene.items("incidents");
  const incident = incidents.find(({ backend, state }) => backend === "b" && state === "active");
  const { out, code } = await asked(String(incident?.["id"]));
  assert.is(code, 0);
  assert.match(
    out,
    new RegExp(`^#${String(incident?.["id"])} {2}${String(incident?.["kind"])} {2}b\n✗ critical, active for`),
  );
  assert.match(out, "The backend sends no bytes");
  assert.match(out, /^AT +DETECTOR +MEASURED +THRESHOLD +FINDING$/m);
  assert.match(out, /ping +600ms +500ms/);
  assert.match(out, "watchkeeper get backends b -o wide");
  assert.match(out, "runbook: https://watchkeeper.dev/docs/runbooks/WatchkeeperBackendDown.md");
});

test("without a number it is the newest that lasts", async () => {
  const { out } = await asked();
  assert.match(out, /^#\d+ {2}all-backends-down\n/);
});

test("the time until a certificate expires is printed in days or hours", async () => {
  const day = 86_400_000;
  for (const [name, leftMs] of [
    ["c", 20.5 * day],
    ["d", -3 * day],
    ["e", day / 2],
  ] as const)
    scene.path.journal.write({
      kind: "certificate.expiring",
      purpose: "backend-loopback",
      name,
      notAfter: "2026-12-13T23:24:30.000Z",
      leftMs,
      limitMs: 30 * day,
    });
  const incidents = await scene.items("incidents");
  const measured: string[] = [];
  for (const name of ["c", "d", "e"]) {
    const incident = incidents.find((one) => one["backend"] === name);
    const { out } = await asked(String(incident?.["id"]));
    measured.push(/notAfter +(\S+ +\S+)/.exec(out)?.[1]?.replaceAll(/ +/g, " ") ?? out);
  }
  assert.equal(measured, ["20d 30d", "-3d 30d", "12h 30d"]);
});

test("a dead backend with another history is not said to refuse connections only", async () => {
  const { journal } = scene.path;
  const reason = "its etcd has a different history: pods is at version 7, clients have seen 9";
  journal.write(changed("a", "ready", "dead", { detector: "history", reason, valueMs: 0, limitMs: 0 }));
  const incidents = await scene.items("incidents");
  const incident = incidents.find(({ kind, backend }) => kind === "backend-dead" && backend === "a");
  const { out } = await asked(String(incident?.["id"]));
  assert.match(out, "different history");
  assert.match(out, "or its etcd has another history than clients have seen");
});

test("as JSON it is what the API says", async () => {
  const [incident] = await scene.items("incidents");
  const { out } = await asked(`#${String(incident?.["id"])}`, "-o", "json");
  assert.is(JSON.parse(out).kind, incident?.["kind"]);
});

test("one that there is not is 1, a word that is no number 2", async () => {
  const none = await asked("999");
  assert.equal([none.code, none.out], [1, ""]);
  assert.match(none.complaints, "There is no such incident, or it is no longer kept");
  assert.is((await asked("forty-two")).code, 2);
  assert.is((await asked("1", "2")).code, 2);
});

test.run();
