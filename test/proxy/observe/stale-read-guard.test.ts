import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { type GuardMode, SeenVersion, staleReadLimits } from "../../../src/proxy/observe/stale-read-guard.ts";
import { jwt } from "../../support/jwt.ts";
import { type Asked, bearer, type PlayedBackend, type PlayedClient, PlayedPath } from "../../support/path.ts";
import { json, linesOf, PlayedWatch } from "../../support/watch-path.ts";

/**
 * A client has seen version 9 at one backend, and then sends a read to another backend, whose cache is behind
 * (kubernetes/kubernetes issue 59848).
 */
const test = suite("proxy/observe/time-travel");

const fields = [bearer("t"), new Field("user-agent", "kubelet/v1.36")];
const any = "/api/v1/configmaps?resourceVersion=0";

type Scene = {
  path: PlayedPath;
  seen: PlayedWatch;
  /** Closes the client's connection, connects it again, and sends a request, which goes to the other backend. */
  ask(target?: string): Asked;
  list(asked: Asked, version: string): void;
};

function scene(staleReadGuard: GuardMode = "Observe"): Scene {
  const path = new PlayedPath(["a", "b"], { staleReadGuard });
  const seen = new PlayedWatch({ path, fields });
  seen.serve(seen.from, "+8a ~9a");
  let last = seen.client;
  return {
    path,
    seen,
    ask(target = any) {
      const other: PlayedBackend = seen.to;
      last.hangUp();
      path.settle();
      const client = path.client();
      last = client;
      client.downstream.client.bind(other === path.backend("a") ? "a" : "b");
      client.ask("GET", target, fields);
      path.settle();
      return other.last;
    },
    list(asked, version) {
      const body = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"${version}"},"items":[]}`;
      asked.answer(200, body, [json]);
      path.settle();
    },
  };
}

test("a list from before what its client has seen is counted and named", () => {
  const { path, seen, ask, list } = scene();
  const asked = ask();
  assert.is(asked.request.path, any);
  list(asked, "7");
  assert.is(path.staleReadGuard.counts.outdated, 1);
  assert.equal(seen.entries("response.stale"), [
    {
      kind: "response.stale",
      client: "10.0.0.9",
      userAgent: "kubelet/v1.36",
      resource: "/configmaps",
      backend: "b",
      version: "7",
      seen: "9",
    },
  ]);
});

test("each one is counted, and named once a minute", () => {
  const { path, seen, ask, list } = scene();
  for (let times = 0; times < 3; times += 1) list(ask(), "7");
  assert.equal([path.staleReadGuard.counts.outdated, seen.entries("response.stale").length], [3, 1]);
  path.clock.advance(staleReadLimits.reportMs);
  list(ask(), "7");
  assert.is(seen.entries("response.stale").length, 2);
});

test("one as new as that, of another resource, of another client or of another server is none", () => {
  const { path, ask, list } = scene();
  list(ask(), "9");
  list(ask("/api/v1/pods?resourceVersion=0"), "7");
  list(ask("/apis/metrics.k8s.io/v1beta1/pods"), "7");
  const stranger = path.client();
  stranger.downstream.client.bind("b");
  stranger.ask("GET", any, [bearer("t"), new Field("user-agent", "other")]);
  path.settle();
  list(path.backend("b").last, "7");
  assert.is(path.staleReadGuard.counts.outdated, 0);
});

test("what comes on the watch while a list is under way is no measure for that list", () => {
  const { path, seen, list } = scene();
  seen.client.ask("GET", any, fields);
  path.settle();
  const asked = seen.from.last;
  seen.from.asked[0]?.say(linesOf("~12a"));
  path.settle();
  list(asked, "10");
  assert.is(path.staleReadGuard.counts.outdated, 0);
});

test("an answer from the past that was asked for is none: a later page, an exact version", () => {
  const { path, ask, list } = scene();
  for (const own of [
    "limit=500&continue=abc",
    "continue=abc",
    "resourceVersion=7&resourceVersionMatch=Exact",
    "resourceVersion=7&limit=500",
  ]) {
    list(ask(`/api/v1/configmaps?${own}`), "7");
    assert.is(path.staleReadGuard.counts.outdated, 0, own);
  }
  for (const own of ["resourceVersion=0&limit=500", "limit=500", "resourceVersion=7", "continue=&limit=0"]) {
    const { outdated } = path.staleReadGuard.counts;
    list(ask(`/api/v1/configmaps?${own}`), "7");
    assert.is(path.staleReadGuard.counts.outdated, outdated + 1, own);
  }
});

test("clients behind one address are told apart: one that is there at the same time is another", () => {
  const { path, seen, list } = scene();
  const listed = (client: PlayedClient, version: string): number => {
    client.downstream.client.bind("b");
    client.ask("GET", any, fields);
    path.settle();
    list(path.backend("b").last, version);
    return path.staleReadGuard.counts.outdated;
  };
  const [second, third] = [path.client(), path.client()];
  assert.is(listed(second, "7"), 0, "it has seen nothing yet");
  assert.is(listed(third, "6"), 0);
  assert.is(listed(second, "6"), 1, "and now it has");
  second.hangUp();
  seen.client.hangUp();
  path.settle();
  assert.is(listed(path.client(), "3"), 1, "it is not known which of them comes again");
});

test("and so are clients that present another identity", () => {
  const { path, seen, list } = scene();
  seen.client.hangUp();
  path.settle();
  const client = path.client();
  client.downstream.client.bind("b");
  const token = jwt({ sub: "system:serviceaccount:kube-system:other" });
  client.ask("GET", any, [bearer(token), new Field("user-agent", "kubelet/v1.36")]);
  path.settle();
  list(path.backend("b").last, "7");
  assert.is(path.staleReadGuard.counts.outdated, 0);
});

test("an initial state from before that is told by its marker", () => {
  const { path, seen } = scene();
  seen.client.hangUp();
  path.settle();
  const client = path.client();
  client.downstream.client.bind("b");
  const query =
    "resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const watch = new PlayedWatch({ path, client, fields, query });
  watch.serve(watch.from, "+3a =7$");
  assert.is(seen.entries("response.stale")[0]?.version, "7");
  watch.has("+3a =7$");
});

test("enforced, any state means none older than what its client has seen, and nothing else is changed", () => {
  const { ask, path } = scene("Enforce");
  const demanded = "resourceVersion=9&resourceVersionMatch=NotOlderThan";
  assert.is(ask().request.path, `/api/v1/configmaps?${demanded}`);
  assert.is(
    ask(`${any}&labelSelector=a%3Db`).request.path,
    `/api/v1/configmaps?labelSelector=a%3Db&${demanded}`,
  );
  const state = "watch=true&sendInitialEvents=true";
  assert.is(
    ask(`/api/v1/configmaps?${state}&resourceVersion=0&resourceVersionMatch=NotOlderThan`).request.path,
    `/api/v1/configmaps?${state}&${demanded}`,
  );
  assert.is(path.staleReadGuard.counts.demanded, 3);
  // The guard drops the limit: for version 0 the watch cache ignores it and returns the whole list (computeListLimit in
  // the apiserver's storage/cacher), but for a real version it would return one page.
  assert.is(ask(`${any}&limit=500`).request.path, `/api/v1/configmaps?${demanded}`);
  for (const own of [
    "/api/v1/configmaps",
    "/api/v1/configmaps?resourceVersion=0&limit=500&continue=abc",
    "/api/v1/configmaps?resourceVersion=00",
    "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersion=0",
    "/api/v1/configmaps?resourceVersion=5",
    "/api/v1/configmaps?resourceVersion=0&resourceVersionMatch=Exact",
    "/api/v1/configmaps?watch=true&resourceVersion=0",
    "/api/v1/namespaces/n/configmaps/x?resourceVersion=0",
    "/api/v1/pods?resourceVersion=0",
  ])
    assert.is(ask(own).request.path, own);
});

test("of events, which no cache has, nothing is demanded: etcd has them, a page at a time", () => {
  const path = new PlayedPath(["a", "b"], { staleReadGuard: "Enforce" });
  const resource = "/api/v1/namespaces/n/events";
  const seen = new PlayedWatch({ path, fields, resource });
  seen.serve(seen.from, "+8a");
  const target = "/api/v1/namespaces/n/events?resourceVersion=0&limit=500";
  seen.client.ask("GET", target, fields);
  path.settle();
  assert.is(seen.from.last.request.path, target);
});

test("a backend that cannot answer from there is not asked again, and after three refusals any state will do", () => {
  const { path, seen, ask } = scene("Enforce");
  for (let times = 0; times < staleReadLimits.refusals; times += 1) {
    ask().answer(504, "{}", [json, new Field("retry-after", "1")]);
    path.settle();
  }
  assert.equal(
    [path.staleReadGuard.counts.refused, seen.entries("stale_read_guard.bypassed").length],
    [3, 1],
  );
  assert.is(ask().request.path, any);
});

test("a client that was refused is given another backend for its next try", () => {
  const { path, seen } = scene("Enforce");
  const client = path.client();
  client.downstream.client.bind("b");
  client.ask("GET", any, fields);
  path.settle();
  seen.to.last.answer(504, "{}", [json]);
  path.settle();
  assert.is(client.downstream.client.backend, "a");
});

test("a watch that is refused from there ends with that word, which counts as a refusal", () => {
  const { path } = scene("Enforce");
  const client = path.client();
  client.downstream.client.bind("b");
  const query = "resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  const watch = new PlayedWatch({ path, client, fields, query });
  watch.serve(watch.from, "!504");
  assert.is(path.staleReadGuard.counts.refused, 1);
});

test("switched off, nothing is read and nothing is changed", () => {
  const { path, ask, list } = scene("Disabled");
  const asked = ask();
  list(asked, "7");
  assert.equal([asked.request.path, path.staleReadGuard.counts.outdated], [any, 0]);
});

const one = { isOpen: true };

test("a floor rises and never sinks", () => {
  const seenVersion = new SeenVersion("a", "/pods");
  for (const version of ["9", "10", "7", ""]) seenVersion.raise(version, one);
  assert.is(seenVersion.version, "10");
});

test("connections that follow one another are one client; those that are open together are told apart", () => {
  const seenVersion = new SeenVersion("a", "/pods");
  const [first, second, third, fourth] = [true, true, true, true].map((isOpen) => ({ isOpen }));
  if (!first || !second || !third || !fourth) throw new Error("There are four");
  seenVersion.meet(first);
  seenVersion.raise("9", first);
  first.isOpen = false;
  seenVersion.meet(second);
  assert.is(seenVersion.seenBy(second), "9");
  seenVersion.raise("10", second);
  seenVersion.meet(third);
  seenVersion.raise("12", third);
  seenVersion.raise("11", second);
  assert.equal(
    [second, third].map((each) => seenVersion.seenBy(each)),
    ["11", "12"],
  );
  second.isOpen = false;
  third.isOpen = false;
  seenVersion.meet(fourth);
  assert.equal([seenVersion.seenBy(fourth), seenVersion.version], ["", "12"]);
});

test("after three refusals in a row it is given up", () => {
  const seenVersion = new SeenVersion("a", "/pods");
  seenVersion.raise("10", one);
  const refused = Array.from({ length: staleReadLimits.refusals }, () => seenVersion.refused());
  assert.equal(refused, [false, false, true]);
  assert.is(seenVersion.version, "");
});

test("a client that comes again finds what it had seen, of this resource and under this identity only", () => {
  const { staleReadGuard } = new PlayedPath([]);
  staleReadGuard.seenBy("a", "me", "/pods").raise("7", one);
  const seen = (["me", "you"] as const).map((who) => staleReadGuard.seenBy("a", who, "/pods").version);
  assert.equal([...seen, staleReadGuard.seenBy("a", "me", "/nodes").version], ["7", "", ""]);
});

test("what the client that asked least lately has seen is forgotten first", () => {
  const { staleReadGuard } = new PlayedPath([]);
  const seenBy = (client: string): SeenVersion => staleReadGuard.seenBy(client, "", "/pods");
  const [first, second] = [seenBy("a"), seenBy("b")];
  for (let index = 2; index < staleReadLimits.seenVersions; index += 1) seenBy(String(index));
  assert.ok(seenBy("a") === first);
  seenBy("c");
  assert.ok(seenBy("a") === first);
  assert.ok(seenBy("b") !== second);
});

test("a list is read as it passes, after an interim head and in pieces", () => {
  const { path, ask } = scene();
  const asked = ask();
  asked.side?.sendHeaders([new Field(":status", "103")], false);
  asked.side?.sendHeaders([new Field(":status", "200"), json], false);
  const text = '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}';
  asked.say(text.slice(0, 40));
  path.settle();
  assert.is(path.staleReadGuard.counts.outdated, 0);
  asked.say(text.slice(40), true);
  path.settle();
  assert.is(path.staleReadGuard.counts.outdated, 1);
});

test.run();
