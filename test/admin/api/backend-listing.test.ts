import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiScene } from "../../support/api-scene.ts";

const test = suite("admin/api/backend-listing");

test("a backend is listed with its state, why, since when, and what is open on it", () => {
  const { items } = apiScene();
  const dead = items("backends").find(({ state }) => state === "dead");
  assert.match(String(dead?.["reason"]), "lost");
  assert.equal(dead?.["requests"], { watches: 0, plain: 0, longRunning: 0 });
  const ready = items("backends").find(({ state }) => state === "ready");
  assert.equal(ready?.["requests"], { watches: 1, plain: 0, longRunning: 0 });
  assert.ok(Array.isArray(dead?.["history"]) && dead["history"].length > 0);
});

test.run();
