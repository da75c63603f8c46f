import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { Scene } from "../../../../src/demo/incidents/scene.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/incidents/told");

/** Time for Node's own look at the loop. */
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
  while (Date.now() < until); // The one thread stands still.
  await turns();
  const lateMs = await scene.latenessMs();
  assert.ok(lateMs >= 250, `${lateMs} ms`);
  await scene.stop();
  assert.is(await scene.latenessMs(), 0);
  assert.is(await scene.latest("certificate-refused"), undefined);
});

test.run();
