import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { LateCaches } from "../../../src/watch/detectors/late.ts";
import { Standings } from "../../../src/watch/progress/stale.ts";
import type { Standing } from "../../../src/watch/progress/standing.ts";

const test = suite("watch/late");
const afterMs = 500;

/** Two backends, each with a watch of all configmaps from the beginning. */
class Scene {
  readonly standings = new Standings();
  readonly caches = new LateCaches();
  readonly a = this.#joined("a");
  readonly b = this.#joined("b");

  #joined(backend: string): Standing {
    const standing = this.standings.of(backend, "configmaps");
    standing.join(true, 0);
    return standing;
  }

  /** Looks as often as it is looked until `until`; returns who is late then. */
  late(from: number, until: number): string[] {
    for (let now = from; now <= until; now += limits.lateLookMs) this.caches.look(this.standings, now);
    return this.caches.late(until, () => afterMs).map(({ standing }) => standing.backend);
  }
}

test("whoever has not shown for so long what another has is late, and no sooner", () => {
  const { standings, caches, a } = new Scene();
  a.show("5", 1000);
  caches.look(standings, 1000);
  caches.look(standings, 1000 + afterMs - 1);
  assert.equal(
    caches.late(1000 + afterMs - 1, () => afterMs),
    [],
  );
  const [doubt] = caches.late(1000 + afterMs, () => afterMs);
  assert.is(doubt?.standing.backend, "b");
  assert.equal([doubt?.version, doubt?.behindMs], ["5", afterMs]);
});

test("whoever has shown it by then is not, whatever has come since", () => {
  const scene = new Scene();
  for (let at = 1; at <= 40; at += 1) {
    scene.a.show(String(at), at * 100);
    scene.b.show(String(at - 1), at * 100);
    assert.equal(scene.late(at * 100, at * 100), []);
  }
});

test("versions of other resources are no measure", () => {
  const scene = new Scene();
  const other = scene.standings.of("a", "secrets");
  other.join(true, 0);
  other.show("900", 0);
  assert.equal(scene.late(0, 5000), []);
});

test("time in which our own loop stood still is not counted", () => {
  const { standings, caches, a } = new Scene();
  a.show("5", 0);
  caches.look(standings, 0);
  caches.forgive(2000);
  assert.equal(
    caches.late(2000 + afterMs - 1, () => afterMs),
    [],
  );
  assert.is(caches.late(2000 + afterMs, () => afterMs).length, 1);
});

test("a backend that is gone, or whose watches have left, is forgotten", () => {
  for (const go of [({ standings }: Scene) => standings.forget("b"), ({ b }: Scene) => b.leave(true)]) {
    const scene = new Scene();
    scene.a.show("5", 0);
    assert.equal(scene.late(0, 1000), ["b"]);
    go(scene);
    assert.equal(scene.late(1000, 1000), []);
  }
});

test("of what is missed only so much is kept, and the oldest of it tells for how long", () => {
  const scene = new Scene();
  for (let at = 1; at <= 10 * limits.lateMarks; at += 1) {
    scene.a.show(String(at), at * limits.lateMarkMs);
    scene.caches.look(scene.standings, at * limits.lateMarkMs);
  }
  const [doubt] = scene.caches.late(1_000_000, () => afterMs);
  assert.is(doubt?.missing.length, limits.lateMarks);
  assert.is(doubt?.version, "1");
});

test.run();
