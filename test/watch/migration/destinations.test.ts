import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Watching } from "../../../src/watch/session/watching.ts";
import { PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/destinations");

/** A live watch, served by `watch.from`. */
function played(names = ["a", "b", "c"]) {
  const path = new PlayedPath(names);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  const [exchange] = path.exchanges.live;
  const watching = exchange?.watching as Watching;
  const from = watching.leg?.backend ?? "";
  return { path, watch, watching, from, others: names.filter((name) => name !== from), to: path.moves.where };
}

test("whoever has it already, or had it in vain, is chosen last", () => {
  const { to, watching, from, others } = played();
  assert.is(to.choose(watching, []), from, "its client is bound there");
  assert.ok(others.includes(to.choose(watching, [from]) ?? ""));
  assert.ok(others.includes(to.elsewhereFor(watching, [from]) ?? ""));
  assert.is(to.elsewhereFor(watching, ["a", "b", "c"]), undefined);
});

test("one who is silent is no better than the one it has", () => {
  const { path, watch, to, watching, from, others } = played();
  assert.ok(others.includes(to.better(watching, from) ?? ""));
  assert.ok(to.mayEnd(watching));
  for (const name of others) blackHole(path.backend(name));
  watch.advance(3_000);
  for (const name of others) assert.ok(to.isDoubtful(name), name);
  assert.is(to.better(watching, from), undefined);
  assert.not(to.mayEnd(watching));
});

test("who has said GOAWAY is being left; so is who is none of ours any more", () => {
  const { watch, to, watching } = played();
  const { leg } = watching;
  if (leg === undefined) throw new Error("A live watch has a leg");
  assert.not(to.isLeaving(leg));
  goAway(watch.from);
  watch.advance(10);
  assert.ok(to.isLeaving(leg));
  assert.is(to.stateOf("nobody"), undefined);
});

test("it is alone where nobody else can be asked", () => {
  const { path, watch, to, watching, others } = played();
  const { leg } = watching;
  if (leg === undefined) throw new Error("A live watch has a leg");
  assert.not(to.isAlone(watching, leg));
  for (const name of others) path.backend(name).kill();
  watch.advance(3_000);
  assert.ok(to.isAlone(watching, leg));
});

test("a version before which all caches begin is forgotten; so is one that only a lost process knew", () => {
  for (const isLost of [false, true]) {
    const { path, to, watching, watch, from, others } = played(["a", "b"]);
    const refuse = (name: string): void =>
      path.moves.caches.of(name, watching.legs.resource).refuse("8", "100");
    assert.not(to.isForgotten(watching));
    refuse(from);
    assert.not(to.isForgotten(watching), "another may know it");
    for (const name of others) {
      if (isLost) path.backend(name).kill();
      else refuse(name);
    }
    watch.advance(3_000);
    assert.ok(to.isForgotten(watching));
    assert.is(to.choose(watching, []), undefined);
  }
});

test("a resource is served nowhere when every backend has said so, whatever state it is in", () => {
  const { path, to, watch, others } = played(["a", "b"]);
  assert.ok(to.isServedNowhere(["a", "b"]));
  for (const name of others) path.backend(name).kill();
  watch.advance(3_000);
  assert.equal(
    [[], ["a"], ["b"], ["b", "a"]].map((said) => to.isServedNowhere(said)),
    [false, false, false, true],
  );
});

test.run();
