import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiScene } from "../../../support/api-scene.ts";
import { changed } from "../../../support/incidents.ts";

const test = suite("ops/admin/api/backend-listing");

test("a backend is listed with its state, why, since when, and what is open on it", async () => {
  const { items } = apiScene();
  const dead = (await items("backends")).find(({ state }) => state === "dead");
  assert.match(String(dead?.["reason"]), "lost");
  assert.equal(dead?.["requests"], { watches: 0, plain: 0, longRunning: 0 });
  const ready = (await items("backends")).find(({ state }) => state === "ready");
  assert.equal(ready?.["requests"], { watches: 1, plain: 0, longRunning: 0 });
  assert.ok(Array.isArray(dead?.["history"]) && dead["history"].length > 0);
});

test("an entry of the history has the documented fields only, in a proxy of several clusters as well", async () => {
  const { items, path } = apiScene();
  path.journal.of("eu").write(changed("b", "dead", "ready"));
  const all = await items("backends");
  const { history } = all.find(({ name }) => name === "b") ?? {};
  const fields = ["at", "from", "to", "detector", "valueMs", "limitMs", "reason"];
  assert.equal(Array.isArray(history) && history.map((one) => Object.keys(one)).at(-1), fields);
});

test.run();
