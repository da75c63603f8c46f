import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import type { WatchSession } from "../../../src/watch/session/watch-session.ts";
import { PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("target-picker");

/** A live watch that `watch.from` serves. */
function played(names = ["a", "b", "c"]) {
  const path = new PlayedPath(names);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  const [exchange] = path.exchanges.live;
  const session = exchange?.watch as WatchSession;
  const from = session.attempt?.backend ?? "";
  return {
    path,
    watch,
    session,
    from,
    others: names.filter((name) => name !== from),
    to: path.migrations.targets,
  };
}

test("a backend that serves it already, or failed to, is chosen last", () => {
  const { to, session, from, others } = played();
  assert.is(to.choose(session, []), from, "its client is bound there");
  assert.ok(others.includes(to.choose(session, [from]) ?? ""));
  assert.ok(others.includes(to.elsewhereFor(session, [from]) ?? ""));
  assert.is(to.elsewhereFor(session, ["a", "b", "c"]), undefined);
});

test("a silent backend is no better than the one it has", () => {
  const { path, watch, to, session, from, others } = played();
  assert.ok(others.includes(to.better(session, from) ?? ""));
  assert.ok(to.mayEnd(session));
  for (const name of others) blackHole(path.backend(name));
  watch.advance(3_000);
  for (const name of others) assert.ok(to.isDoubtful(name), name);
  assert.is(to.better(session, from), undefined);
  assert.not(to.mayEnd(session));
});

test("a backend that sent GOAWAY is being left; so is one that was removed", () => {
  const { watch, to, session } = played();
  const { attempt } = session;
  if (attempt === undefined) throw new Error("A live watch has a stream");
  assert.not(to.isLeaving(attempt));
  goAway(watch.from);
  watch.advance(10);
  assert.ok(to.isLeaving(attempt));
  assert.is(to.stateOf("unknown"), undefined);
});

test("it is alone where no other backend can be asked", () => {
  const { path, watch, to, session, others } = played();
  const { attempt } = session;
  if (attempt === undefined) throw new Error("A live watch has a stream");
  assert.not(to.isAlone(session, attempt));
  for (const name of others) path.backend(name).kill();
  watch.advance(3_000);
  assert.ok(to.isAlone(session, attempt));
});

test("a version before which all caches begin is forgotten; so is one that only a lost process knew", () => {
  for (const isLost of [false, true]) {
    const { path, to, session, watch, from, others } = played(["a", "b"]);
    const refuse = (name: string): void =>
      path.migrations.caches.of(name, session.resource).refuse("8", "100");
    assert.not(to.isForgotten(session));
    refuse(from);
    assert.not(to.isForgotten(session), "another may know it");
    for (const name of others) {
      if (isLost) path.backend(name).kill();
      else refuse(name);
    }
    watch.advance(3_000);
    assert.ok(to.isForgotten(session));
    assert.is(to.choose(session, []), undefined);
  }
});

test("a backend that fell silent before a stall of the proxy may still know what the others have forgotten (F11)", () => {
  const { path, to, session, watch, from, others } = played(["a", "b"]);
  path.migrations.caches.of(from, session.resource).refuse("8", "100");
  for (const name of others) blackHole(path.backend(name));
  watch.advance(6_000);
  assert.equal(path.backends.views.map(({ state }) => state).includes("dead"), true);
  assert.not(to.isForgotten(session));
  path.clock.stall(2 * watchLimits.resumeMs);
  assert.not(to.isForgotten(session));
  watch.advance(2 * watchLimits.resumeMs);
  assert.ok(to.isForgotten(session));
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
