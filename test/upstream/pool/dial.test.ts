import { suite } from "uvu";
import * as assert from "uvu/assert";
import { PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/dial");

test("a request waits, unsent, until an upstream connection opens", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  path.settle();
  const ear = client.ask("POST", "/api", [], false);
  ear.say("early ");
  ear.say("body", true);
  path.settle();
  assert.is(path.backend("a").last.body, "early body");
});

test("a backend that was removed while a client was bound to it is not asked", () => {
  const path = new PlayedPath(["a", "b"]);
  path.pools.reconcile(["b"]);
  const ear = path.client().ask("GET", "/api");
  path.settle();
  path.backend("b").last.answer(200);
  path.settle();
  assert.is(ear.status, "200");
});

test.run();
