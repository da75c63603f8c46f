import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("flows/request-observers");
const active = (path: PlayedPath, ...names: string[]): (number | undefined)[] =>
  names.map((name) => path.loads.of(name)?.requestsActive);

test("a request counts at one backend from its placing to its end, whichever way it ends", () => {
  const path = new PlayedPath(["a", "b"]);
  const one = path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  const [exchange] = path.exchanges.live;
  const first = exchange?.backend ?? "";
  const other = first === "a" ? "b" : "a";
  assert.equal(active(path, first, other), [1, 0]);
  path.backend(first).kill();
  path.settle();
  path.clock.advance(1000);
  assert.equal(active(path, first, other), [0, 1]);
  path.backend(other).last.answer(200, "{}");
  path.settle();
  assert.equal([one.status, ...active(path, first, other)], ["200", 0, 0]);
});

test("a request that its client gives up counts no longer", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  assert.equal(active(path, "a"), [1]);
  ear.stream.reset(8);
  path.settle();
  assert.equal(active(path, "a"), [0]);
});

test("a 429 with Retry-After is noticed, whatever the client gets", () => {
  const path = new PlayedPath(["a"]);
  path.client().ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  path.backend("a").last.answer(429, "busy", [new Field("retry-after", "1")]);
  path.settle();
  assert.is(path.loads.isPaused("a"), true);
});

test.run();
