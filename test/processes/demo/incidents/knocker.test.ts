import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Knocker } from "../../../../demo/incidents/bad-secret.ts";
import { Scene } from "../../../../demo/incidents/scene.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { within } from "../../../support/within.ts";

const test = suite("demo/incidents/knocker");

test("a knocker counts new connections that were answered, and those that were not", async () => {
  const scene = await within(
    40_000,
    "a scene",
    Scene.start({}, () => {}),
  );
  if (scene instanceof Failure) throw new Error(scene.message);
  const good = new Knocker(scene, { port: scene.portOf("naive proxy"), serverName: "localhost" });
  const bad = new Knocker(scene, { port: scene.portOf("naive proxy"), serverName: "elsewhere.example.test" });
  await scene.pause(700);
  assert.equal([good.isServed, bad.isServed], [true, false]);
  assert.match(String(bad), /^0 of [1-9]/);
  good.reset();
  assert.is(String(good), "0 of 0");
  await scene.stop();
});

test.run();
