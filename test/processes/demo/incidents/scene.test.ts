import { existsSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Scene } from "../../../../demo/incidents/scene.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/incidents/scene");

test("both proxies answer, what happens is told with its time, and at its end nothing goes on or is left", async () => {
  const lines: string[] = [];
  const scene = await within(
    40_000,
    "a scene",
    Scene.start({}, (line) => lines.push(line)),
  );
  if (scene instanceof Failure) throw new Error(scene.message);
  for (const side of ["watchkeeper", "naive proxy"] as const)
    assert.is(await scene.client(side).ask("GET /readyz"), 200);
  scene.report("early", "is heard before it begins");
  scene.begin();
  scene.report("the scene", "is heard");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /^ +0\.0\d s {2}the scene +is heard$/);
  const { directory } = scene.files;
  let isResumed = false;
  void scene.pause(10).then(() => (isResumed = true));
  await within(20_000, "its end", scene.stop());
  await new Promise((passed) => setTimeout(passed, 50));
  assert.equal([isResumed, existsSync(directory)], [false, false]);
});

/** Leaves time for Node's event loop monitor to take a sample. */
const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100));

test("a latest incident that does not exist is undefined, also when no server can be asked; the machine's lateness is known", async () => {
  const scene = await within(
    40_000,
    "a scene",
    Scene.start({}, () => {}),
  );
  if (scene instanceof Failure) throw new Error(scene.message);
  assert.is(await scene.latest("certificate-refused"), undefined);
  await scene.latenessMs();
  await turns();
  const until = Date.now() + 300;
  while (Date.now() < until); // Blocks the event loop.
  await turns();
  const lateMs = await scene.latenessMs();
  assert.ok(lateMs >= 250, `${lateMs} ms`);
  await scene.stop();
  assert.is(await scene.latenessMs(), 0);
  assert.is(await scene.latest("certificate-refused"), undefined);
});

test.run();
