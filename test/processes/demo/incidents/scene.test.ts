import { existsSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { Scene } from "../../../../src/demo/incidents/scene.ts";
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
  scene.told("early", "is heard before it begins");
  scene.begin();
  scene.told("the scene", "is heard");
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /^ +0\.0\d s {2}the scene +is heard$/);
  const { directory } = scene.files;
  let isResumed = false;
  void scene.pause(10).then(() => (isResumed = true));
  await within(20_000, "its end", scene.stop());
  await new Promise((passed) => setTimeout(passed, 50));
  assert.equal([isResumed, existsSync(directory)], [false, false]);
});

test.run();
