import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { type Asked, type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { linesOf, ok, PlayedWatch } from "../../support/watch-path.ts";

/** A backend whose etcd was restored from a copy, or is a different etcd (D13). */
const test = suite("watch/detectors/forked-histories");

const json = new Field("content-type", "application/json");
const bookmarks = "resourceVersion=7&allowWatchBookmarks=true";

function isList({ request }: Asked): boolean {
  return request.path.includes("limit=1");
}

/** Answers all pending lists and returns their number. `status` is 403 for a client that may not list. */
function listed(backend: PlayedBackend, version: number, status = 200): number {
  const waiting = backend.asked.filter((one) => isList(one) && one.resetCode === undefined && !told.has(one));
  for (const one of waiting) {
    told.add(one);
    const body = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"${version}"},"items":[]}`;
    one.answer(status, status === 200 ? body : "{}", [json]);
  }
  return waiting.length;
}
const told = new Set<Asked>();

function isNewWatch(one: Asked): boolean {
  return one.request.path.includes("watch=true") && one.resetCode === undefined && !told.has(one);
}

/**
 * Lets `ms` pass. Each backend accepts every watch and answers lists with its own version, but the backend `silent`
 * answers no list.
 */
function pass(
  path: PlayedPath,
  ms: number,
  versions: Readonly<Record<string, number>>,
  silent?: string,
): void {
  for (let left = ms; left > 0; left -= 250) {
    path.clock.advance(250);
    for (const [name, backend] of path.played) {
      if (name !== silent) listed(backend, versions[name] ?? 0);
      for (const one of backend.asked.filter(isNewWatch)) {
        told.add(one);
        one.side?.sendHeaders(ok, false);
      }
    }
    path.settle();
  }
}

function stateOf(path: PlayedPath, name: string): string | undefined {
  return path.backends.views.find((view) => view.name === name)?.state;
}

function listsOf(path: PlayedPath, name: string): number {
  return path.backend(name).asked.filter(isList).length;
}

function twoBackends(down: readonly string[] = []): PlayedPath {
  return new PlayedPath(["a", "b"], { compares: "all", down });
}

/** A watch that received version 900 from `a` while `b` was down. Then `b` comes back. */
function restored(): { path: PlayedPath; watch: PlayedWatch } {
  const path = twoBackends(["b"]);
  const watch = new PlayedWatch({ path, query: bookmarks });
  watch.serve(watch.from, "+900a");
  told.add(watch.from.last);
  pass(path, 3000, { a: 900 });
  path.backend("b").isDown = false;
  return { path, watch };
}

/** Sends requests until the proxy has connected to `b`. */
function comesBack(path: PlayedPath, versions: Readonly<Record<string, number>>): void {
  for (let ms = 0; ms < 30_000; ms += 250) {
    if (ms % 2000 === 0) path.client().ask("GET", "/api/v1/pods");
    pass(path, 250, versions);
    if (path.backend("b").asked.length > 0) return;
  }
}

/** `b` came back with an older history five seconds ago. */
function forked(): PlayedPath {
  const { path } = restored();
  comesBack(path, { a: 900, b: 400 });
  pass(path, 5000, { a: 900, b: 400 });
  return path;
}

test("a backend that comes back with an older history is dead before it has served a second, though it answers", () => {
  const { path, watch } = restored();
  comesBack(path, { a: 900, b: 400 });
  pass(path, 1000, { a: 900, b: 400 });
  assert.is(stateOf(path, "b"), "dead");
  const changed = watch.entries("backend.changed").findLast(({ backend }) => backend === "b");
  assert.is(changed?.detector, "history");
  assert.is(
    changed?.reason,
    "its etcd has a different history: /configmaps is at version 400, clients have seen 900",
  );
  pass(path, 60_000, { a: 1000, b: 500 });
  assert.is(stateOf(path, "b"), "dead");
  watch.has("+900a");
});

test("while it is the only one that answers no request is sent there; when the other returns watches go on", () => {
  const { path, watch } = restored();
  comesBack(path, { a: 900, b: 400 });
  pass(path, 1000, { a: 900, b: 400 });
  const count = path.backend("b").asked.filter((one) => !isList(one)).length;
  path.backend("a").kill();
  path.settle();
  const ear = path.client().ask("GET", "/api/v1/configmaps");
  pass(path, 6000, { a: 900, b: 400 });
  assert.is(ear.status, "503");
  assert.is(path.backend("b").asked.filter((one) => !isList(one)).length, count);
  watch.has("+900a");
  path.backend("a").isDown = false;
  pass(path, 6000, { a: 1000, b: 400 });
  watch.say(path.backend("a"), "");
  const again = path.backend("a").asked.findLast((one) => one.request.path.includes("watch=true"));
  again?.say(linesOf("~1001a"));
  path.settle();
  watch.has("+900a ~1001a");
});

test("what it has shown to clients is taken back by a reset; a watch to which it showed nothing goes on elsewhere", () => {
  const path = twoBackends();
  const old = new PlayedWatch({ path, query: bookmarks });
  old.serve(old.from, "+900a");
  told.add(old.from.last);
  const [right, other] = [old.from, old.to];
  const moved = new PlayedWatch({
    path,
    query: "resourceVersion=890&labelSelector=a",
    client: path.client(),
  });
  assert.ok(moved.from === other);
  moved.serve(moved.from);
  const misled = new PlayedWatch({ path, query: "resourceVersion=395", client: moved.client });
  misled.serve(misled.from, "+401b");
  const listing = new PlayedWatch({ path, query: "sendInitialEvents=true", client: moved.client });
  listing.serve(listing.from, "+300a +301b");
  for (const backend of [right, other]) for (const one of backend.asked) told.add(one);
  const names = { [nameOf(path, right)]: 900, [nameOf(path, other)]: 402 };
  pass(path, watchLimits.historyMs + 2000, names);
  assert.is(stateOf(path, nameOf(path, other)), "dead");
  assert.is.not(misled.ear.resetCode, undefined);
  assert.is.not(listing.ear.resetCode, undefined);
  const again = right.asked.findLast(({ request }) => request.path.includes("labelSelector=a"));
  assert.match(again?.request.path ?? "", /resourceVersion=890/);
  again?.say(linesOf("~901a"));
  path.settle();
  moved.has("~901a");
  old.has("+900a");
});

function nameOf(path: PlayedPath, backend: PlayedBackend): string {
  return Array.from(path.played).find(([, one]) => one === backend)?.[0] ?? "";
}

test("it is a backend like any other as soon as it has the versions of another backend", () => {
  const path = forked();
  assert.is(stateOf(path, "b"), "dead");
  pass(path, 6000, { a: 905, b: 905 });
  assert.is(stateOf(path, "b"), "ready");
});

test("a history that writes have carried past the right one is still the wrong one", () => {
  const path = forked();
  pass(path, 20_000, { a: 905, b: 910 });
  assert.is(stateOf(path, "b"), "dead");
  pass(path, 20_000, { a: 960, b: 910 });
  assert.is(stateOf(path, "b"), "dead");
});

test("a history that writes have carried past what clients have seen stays the wrong one while the right one is away", () => {
  const { path, watch } = restored();
  comesBack(path, { a: 900, b: 400 });
  pass(path, 1000, { a: 900, b: 400 });
  path.backend("a").kill();
  pass(path, 5000, { b: 950 });
  assert.is(stateOf(path, "b"), "dead");
  path.backend("a").isDown = false;
  pass(path, 10_000, { a: 1000, b: 1010 });
  assert.is(stateOf(path, "b"), "dead");
  assert.is(watch.ear.resetCode, undefined);
  watch.say(path.backend("a"), "");
  const again = path.backend("a").asked.findLast((one) => one.request.path.includes("watch=true"));
  again?.say(linesOf("~1001a"));
  path.settle();
  watch.has("+900a ~1001a");
});

test("only one confirmation runs at a time, so that one crossing of versions does not count as several", () => {
  const path = forked();
  const before = listsOf(path, "a");
  pass(path, 4000, { b: 910 }, "a");
  // One list is of the confirmation. The other is the regular list of a ready backend.
  assert.ok(listsOf(path, "a") - before <= 2, `${listsOf(path, "a") - before} lists`);
  pass(path, 250, { a: 905, b: 910 });
  pass(path, 1000, { a: 960, b: 910 });
  assert.is(stateOf(path, "b"), "dead");
});

test("a confirmation whose three lists take long does not count", () => {
  const path = forked();
  for (let turn = 0; turn < 12; turn += 1) {
    pass(path, 1250, { b: 905 }, "a");
    pass(path, 250, { a: 905, b: 905 });
  }
  assert.is(stateOf(path, "b"), "dead");
  pass(path, 6000, { a: 905, b: 905 });
  assert.is(stateOf(path, "b"), "ready");
});

test("a process without a proof of its own confirms that a backend has the right history again", () => {
  const { path } = restored();
  comesBack(path, { a: 900, b: 900 });
  pass(path, 5000, { a: 900, b: 900 });
  path.backends.learn("b", { kind: "history", isForked: true, resource: "", version: "", seen: "" });
  pass(path, 10_000, { a: 900, b: 900 });
  assert.is(stateOf(path, "b"), "ready");
});

test("a ready backend that answers no list does not keep another backend dead", () => {
  const path = new PlayedPath(["a", "b", "c"], { compares: "all", down: ["b"] });
  const watch = new PlayedWatch({ path, query: bookmarks });
  watch.serve(watch.from, "+900a");
  told.add(watch.from.last);
  pass(path, 3000, { a: 900, c: 900 });
  path.backend("b").isDown = false;
  comesBack(path, { a: 900, b: 400, c: 900 });
  pass(path, 5000, { a: 900, b: 400, c: 900 });
  assert.is(stateOf(path, "b"), "dead");
  for (const silent of ["a", "c"]) {
    pass(path, 20_000, { a: 905, b: 905, c: 905 }, silent);
    assert.is(stateOf(path, silent), "ready");
    assert.is(stateOf(path, "b"), "ready", `${silent} answers no list`);
    pass(path, 6000, { a: 905, b: 400, c: 905 });
    assert.is(stateOf(path, "b"), "dead");
  }
});

test("a cache that is late is no other history: lists are read from etcd", () => {
  const { path, watch } = restored();
  comesBack(path, { a: 900, b: 900 });
  pass(path, 60_000, { a: 900, b: 900 });
  assert.is(stateOf(path, "b"), "ready");
  assert.equal(
    watch.entries("backend.changed").filter(({ detector }) => detector === "history"),
    [],
  );
});

test("with all backends restored the new history is the right one within seconds, and clients list anew", () => {
  const { path, watch } = restored();
  comesBack(path, { a: 400, b: 400 });
  pass(path, 2 * watchLimits.historyMs, { a: 400, b: 400 });
  assert.is(stateOf(path, "a"), "ready");
  assert.is(stateOf(path, "b"), "ready");
  assert.is.not(watch.ear.resetCode, undefined);
  pass(path, 60_000, { a: 410, b: 410 });
  assert.is(stateOf(path, "a"), "ready");
});

test("with the right one away for half a minute the other is better than none", () => {
  const { path } = restored();
  comesBack(path, { a: 900, b: 400 });
  pass(path, 1000, { a: 900, b: 400 });
  path.backend("a").kill();
  pass(path, watchLimits.historyAloneMs - 2000, { b: 400 });
  assert.is(stateOf(path, "b"), "dead");
  pass(path, 5000, { b: 400 });
  assert.is(stateOf(path, "b"), "ready");
});

test("a client that may not list is no witness: nothing is known, and nothing follows", () => {
  const { path } = restored();
  for (let turn = 0; turn < 40; turn += 1) {
    if (turn % 8 === 0) path.client().ask("GET", "/api/v1/pods");
    path.clock.advance(250);
    for (const backend of path.played.values()) listed(backend, 0, 403);
    path.settle();
  }
  path.clock.advance(30_000);
  assert.is(stateOf(path, "b"), "ready");
});

test("two streams of a sentinel that differ prove it, however far the other history has come", () => {
  const path = twoBackends();
  const watch = new PlayedWatch({ path, query: bookmarks });
  const first = watch.serve(watch.from, "=900");
  told.add(first);
  const other = nameOf(path, watch.to);
  pass(path, 3000, { a: 900, b: 900, [other]: 5000 });
  const second = watch.to.asked.findLast((one) => one.request.path.includes("watch=true"));
  second?.say(linesOf("+950b"));
  path.settle();
  watch.has("=900");
  first.say(linesOf("+960a"));
  path.settle();
  watch.has("=900 +960a");
  path.settle();
  assert.is(stateOf(path, other), "dead");
});

test("a quiet resource that is the same in both histories does not make it a backend like any other", () => {
  const path = twoBackends(["b"]);
  const quiet = new PlayedWatch({ path, query: "resourceVersion=20", resource: "/api/v1/pods" });
  quiet.serve(quiet.from, "+21a");
  const busy = new PlayedWatch({ path, query: bookmarks });
  busy.serve(busy.from, "+900a");
  for (const one of busy.from.asked) told.add(one);
  pass(path, 3000, { a: 900 });
  path.backend("b").isDown = false;
  comesBack(path, { a: 900, b: 400 });
  pass(path, 60_000, { a: 900, b: 400 });
  assert.is(stateOf(path, "b"), "dead");
  const asked = path
    .backend("b")
    .asked.filter(isList)
    .map(({ request }) => request.path);
  assert.ok(
    asked.every((list) => list.includes("configmaps")),
    "it is asked for what it differed in",
  );
  pass(path, 5000, { a: 900, b: 900 });
  assert.is(stateOf(path, "b"), "ready");
});

test.run();
