import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Scene } from "../../../../src/demo/incidents/scene.ts";
import { Failure } from "../../../../src/failure.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/incidents/told");

test("a latest incident that there is not is undefined, also when nobody can be asked", async () => {
  const scene = await within(
    40_000,
    "a scene",
    Scene.start({}, () => {}),
  );
  if (scene instanceof Failure) throw new Error(scene.message);
  assert.is(await scene.latest("certificate-refused"), undefined);
  await scene.stop();
  assert.is(await scene.latest("certificate-refused"), undefined);
});

test.run();
