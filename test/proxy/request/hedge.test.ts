import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { figure } from "../../support/figure.ts";
import { type Asked, bearer, type Ear, type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { type Random, seeded } from "../../support/random.ts";

const test = suite("proxy/request/hedge");

const json = new Field("content-type", "application/json");

type Asking = { path: PlayedPath; ear: ReturnType<typeof ask>; silent: PlayedBackend; other: PlayedBackend };

function ask(path: PlayedPath, method: string, target: string, end = true) {
  return path.client().ask(method, target, [bearer("t")], end);
}

/** From now on nothing arrives from the backend, on open connections and on new ones. */
function blackHole(backend: PlayedBackend): void {
  for (const { cable } of backend.sessions) cable.blackHole();
  backend.isMute = true;
}

/** Holds back all bytes to and from the backend. The returned function lets them arrive. */
function hold(backend: PlayedBackend): () => void {
  const letGo = backend.sessions.map(({ cable }) => cable.hold());
  return () => {
    for (const go of letGo) go();
  };
}

/**
 * Sends a request to a proxy with two backends. `silent` is the backend that receives it and that will stop responding.
 */
function asking(method: string, target: string): Asking {
  const path = new PlayedPath(["a", "b"]);
  const ear = ask(path, method, target);
  path.settle();
  const [silent, other] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  if (silent === undefined || other === undefined) throw new Error("Two backends are played");
  return { path, ear, silent, other };
}

test("a GET whose backend falls silent is answered by another within a second, and once (D6)", () => {
  const { path, ear, silent, other } = asking("GET", "/api/v1/pods");
  blackHole(silent);
  path.clock.advance(750);
  assert.is(other.asked.length, 1);
  assert.is(other.last.request.path, "/api/v1/pods");
  other.last.answer(200, "found");
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "found", true]);
  path.clock.advance(5000);
  assert.equal([silent.asked.length, other.asked.length, ear.heads.length], [1, 1, 1]);
  assert.equal(path.hedges.wins, { first: 0, hedge: 1 });
});

test("two upstream connections of one backend swallow the same LIST: then the other backend is asked, though it answers PING", () => {
  const path = new PlayedPath(["a", "b"], { warm: 3 });
  const client = path.client();
  const list = (): Ear => client.ask("GET", "/api/v1/namespaces/n/pods", [bearer("t")]);
  // Replaces the upstream connections by ones that permit only 20 streams each.
  for (const backend of path.played.values()) {
    backend.maxStreams = 20;
    for (const { cable } of backend.sessions) cable.cut("read ECONNRESET");
  }
  path.clock.advance(2000);
  // After a backend has accepted its token, the client uses the shared upstream connections.
  list();
  path.settle();
  const [silent, other] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  if (silent === undefined || other === undefined) throw new Error("Two backends are played");
  silent.last.answer(200, "{}");
  path.settle();
  // 40 requests at a time fill two upstream connections. So the pool opens a third and keeps it warm.
  for (let count = 0; count < 40; count += 1) {
    list();
    path.settle();
  }
  for (const asked of silent.asked.slice(1)) asked.answer(200, "{}");
  path.clock.advance(1000);
  const before = silent.asked.length;
  const swallow = (): void => {
    const { last } = silent;
    const session = silent.sessions.find((one) => one.session.streams.some(({ owner }) => owner === last));
    session?.cable.blackHole();
  };
  const ear = list();
  path.settle();
  const asked = (): number[] => [silent.asked.length - before, other.asked.length];
  assert.equal(asked(), [1, 0]);
  swallow();
  path.clock.advance(750);
  assert.equal(asked(), [2, 0], "another connection of the same backend first");
  swallow();
  path.clock.advance(750);
  assert.equal(asked(), [2, 1]);
  assert.not(path.changes.some(({ to }) => to === "suspect"));
  other.last.answer(200, "found");
  path.settle();
  assert.equal([ear.status, ear.body], ["200", "found"]);
});

test("a false alarm costs nothing visible: the first response is relayed, the other attempt is cancelled", () => {
  const { path, ear, silent, other } = asking("GET", "/api/v1/pods");
  const letGo = hold(silent);
  path.clock.advance(750);
  assert.is(other.asked.length, 1);
  silent.last.answer(200, "the first");
  letGo();
  path.settle();
  assert.equal([ear.status, ear.body, ear.isEnded], ["200", "the first", true]);
  assert.is(other.last.resetCode, errorCode.CANCEL);
  assert.is(path.exchanges.size, 0);
  assert.equal(path.hedges.wins, { first: 1, hedge: 0 });
});

test("a watch that has no answer yet is asked again as it was; a LIST too (watch.md §5.1)", () => {
  for (const target of ["/api/v1/pods?watch=1&resourceVersion=7", "/api/v1/pods?limit=500"]) {
    const { path, ear, silent, other } = asking("GET", target);
    blackHole(silent);
    path.clock.advance(750);
    assert.is(other.last.request.path, target);
    other.last.side?.sendHeaders([new Field(":status", "200"), json], false);
    // The client gets the head of a LIST's response only together with the complete body.
    other.last.say("{}", !target.includes("watch"));
    path.settle();
    assert.is(ear.status, "200");
  }
});

test("a log is not hedged, and is asked for again when its backend is lost", () => {
  const path = new PlayedPath(["a", "b"]);
  const ear = ask(path, "GET", "/api/v1/namespaces/n/pods/p/log?follow=true", true);
  path.settle();
  const [silent, other] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  if (silent !== undefined) blackHole(silent);
  path.clock.advance(1500);
  assert.is(other?.asked.length, 0);
  path.clock.advance(1500);
  assert.is(other?.asked.length, 1);
  other?.last.answer(200, "line");
  path.settle();
  assert.equal([ear.status, ear.body], ["200", "line"]);
});

test("what may act is never asked twice: writes, proxy, nor a GET with a body", () => {
  const asked: readonly [string, string, boolean][] = [
    ["POST", "/api/v1/namespaces/n/pods", true],
    ["DELETE", "/api/v1/namespaces/n/pods/p", true],
    ["GET", "/api/v1/namespaces/n/pods/p/proxy/x", true],
    ["GET", "/api/v1/namespaces/n/pods/p/exec", true],
    ["GET", "/api/v1/namespaces/n/pods/p/portforward", true],
    ["GET", "/api", false],
  ];
  for (const [method, target, end] of asked) {
    const path = new PlayedPath(["a", "b"]);
    const ear = ask(path, method, target, end);
    path.settle();
    const [silent, other] = [path.backend("a"), path.backend("b")].toSorted(
      (x, y) => y.asked.length - x.asked.length,
    );
    if (silent !== undefined) blackHole(silent);
    path.clock.advance(3000);
    assert.is(other?.asked.length, 0, target);
    assert.equal([ear.status, ear.heads[0]?.some(({ name }) => name === "retry-after")], ["504", false]);
  }
});

test("an answer that has begun is not asked for again: it is cut off when its upstream connection dies (F9)", () => {
  const { path, ear, silent, other } = asking("GET", "/api/v1/pods");
  silent.last.side?.sendHeaders([new Field(":status", "200"), new Field("content-length", "1000000")], false);
  silent.last.say("half a li");
  path.settle();
  blackHole(silent);
  path.clock.advance(3000);
  assert.is(other.asked.length, 0);
  assert.equal([ear.body, ear.isEnded, ear.resetCode], ["half a li", false, errorCode.INTERNAL_ERROR]);
});

test("where only one upstream connection is silent, another upstream connection of the same backend is asked (k/k 59848)", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  client.ask("GET", "/first", [bearer("t")]);
  path.settle();
  const backend = path.backend("a");
  backend.last.answer(200);
  path.settle();
  // As soon as the last free stream of an upstream connection is in use, the pool dials the next connection.
  const ears = Array.from({ length: 80 }, () => client.ask("GET", "/more", [bearer("t")]));
  path.settle();
  backend.sessions.find(({ session }) => session.openCount > 0)?.cable.blackHole();
  path.clock.advance(750);
  assert.equal([backend.asked.length, path.backend("b").asked.length], [161, 0]);
  for (const asked of backend.asked.slice(81)) asked.answer(200, "by another connection");
  path.settle();
  assert.ok(ears.every(({ body }) => body === "by another connection"));
});

test("where one of two attempts dies the other goes on, whichever it is", () => {
  for (const dying of ["silent", "other"] as const) {
    const asked = asking("GET", "/api");
    const { path, ear, silent, other } = asked;
    const letGo = hold(silent);
    path.clock.advance(750);
    asked[dying].kill();
    letGo();
    path.settle();
    (dying === "silent" ? other : silent).last.answer(200, "alive");
    path.settle();
    assert.equal([ear.status, ear.body], ["200", "alive"]);
    assert.equal([silent.asked.length, other.asked.length], [1, 1]);
  }
});

test("there are never more than two: a hedge that falls silent too makes room for a third backend", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const ear = ask(path, "GET", "/api");
  path.settle();
  const all = [...path.played.values()];
  const [first] = all.filter(({ asked }) => asked.length > 0);
  if (first !== undefined) blackHole(first);
  path.clock.advance(750);
  const [second] = all.filter(({ asked }) => asked.length > 0 && asked !== first?.asked);
  if (second !== undefined) blackHole(second);
  path.clock.advance(1000);
  const [third] = all.filter((backend) => backend !== first && backend !== second);
  third?.last.answer(200, "third");
  path.settle();
  assert.is(ear.body, "third");
  assert.is(
    all.reduce((sum, { asked }) => sum + asked.length, 0),
    3,
  );
});

test("a client that hangs up ends both", () => {
  const { path, ear, silent, other } = asking("GET", "/api");
  const letGo = hold(silent);
  path.clock.advance(750);
  ear.stream.reset(errorCode.CANCEL);
  letGo();
  path.settle();
  assert.equal([silent.last.resetCode, other.last.resetCode], [errorCode.CANCEL, errorCode.CANCEL]);
  assert.equal([path.exchanges.size, path.buffered.bytes], [0, 0]);
});

test("interim heads come from one attempt only", () => {
  const { path, ear, silent, other } = asking("GET", "/api");
  const letGo = hold(silent);
  path.clock.advance(750);
  for (const { last } of [silent, other]) last.side?.sendHeaders([new Field(":status", "103")], false);
  letGo();
  path.settle();
  assert.is(ear.heads.length, 1);
});

test("a refusal of one attempt waits for the other, whose answer is taken", () => {
  for (const status of [429, 500, 503]) {
    const { path, ear, silent, other } = asking("GET", "/api");
    const letGo = hold(silent);
    path.clock.advance(750);
    other.last.answer(status, "later");
    path.settle();
    assert.is(ear.status, "");
    silent.last.answer(200, "found");
    letGo();
    path.settle();
    assert.equal([ear.status, ear.body, ear.isEnded], ["200", "found", true]);
    assert.is(path.buffered.bytes, 0);
  }
});

test("a refusal is relayed whole when nothing better comes: in time, or at all", () => {
  for (const fate of ["silence", "death", "refusal"] as const) {
    const { path, ear, silent, other } = asking("GET", "/api");
    const letGo = hold(silent);
    path.clock.advance(750);
    other.last.side?.sendHeaders([new Field(":status", "503"), new Field("retry-after", "1")], false);
    other.last.say("not ");
    path.settle();
    if (fate === "death") silent.kill();
    if (fate === "refusal") silent.last.answer(500, "not now");
    if (fate === "refusal") letGo();
    path.clock.advance(fate === "silence" ? requestLimits.refusalHeldMs : 0);
    other.last.say("now", true);
    path.settle();
    assert.equal([ear.status, ear.body, ear.isEnded], [fate === "refusal" ? "500" : "503", "not now", true]);
    assert.equal([path.buffered.bytes, path.exchanges.size], [0, 0]);
  }
});

/** The state of each upstream request: "answered" after its final head, "over" after its end or reset. */
const said = new WeakMap<Asked, "answered" | "over">();

/**
 * Lets the backend take one random next step in its response: an interim or final head, bytes with the attempt's tag,
 * an end, a reset, or nothing.
 */
function act(asked: Asked, tag: string, random: Random): void {
  const choices: readonly (() => void)[] = [
    () => asked.side?.sendHeaders([new Field(":status", "103")], false),
    () => asked.side?.sendHeaders([new Field(":status", random.pick(["200", "200", "429", "503"]))], false),
    () => asked.say(tag.repeat(1 + random.below(2000))),
    () => asked.say(tag, true),
    () => asked.side?.reset(random.pick([errorCode.REFUSED_STREAM, errorCode.INTERNAL_ERROR])),
  ];
  // A backend keeps to HTTP: a body follows only a final head, and nothing follows the end.
  const isAnswered = said.get(asked) === "answered";
  const choice = random.below(choices.length);
  if (said.get(asked) === "over" || (isAnswered ? choice < 2 : choice === 2 || choice === 3)) return;
  choices[choice]?.();
  if (choice === 1) said.set(asked, "answered");
  if (choice > 2) said.set(asked, "over");
}
test("whatever two attempts say in whatever order, the client is given one answer of one of them, and nothing is left", () => {
  const random = seeded(7);
  const ends = { whole: 0, cut: 0, refused: 0 };
  for (let run = 0; run < 400; run += 1) {
    const { path, ear, silent, other } = asking("GET", "/api");
    const letGo = hold(silent);
    path.clock.advance(750);
    const attempts: [[Asked, string], [Asked, string]] = [
      [silent.last, "s"],
      [other.last, "o"],
    ];
    for (let step = 0; step < 12; step += 1) {
      const [asked, tag] = random.pick(attempts);
      act(asked, tag, random);
      if (step === 3) letGo();
      path.clock.advance(random.below(300));
    }
    for (const backend of path.played.values()) backend.kill();
    path.clock.advance(requestLimits.pendingMs + 1000);
    assert.match(ear.body, /^(s*|o*|\{[^]*)$/, `run ${run}`);
    const finals = ear.heads.filter((head) => head[0]?.value !== "103");
    assert.ok(finals.length <= 1, `run ${run}: ${finals.length} heads`);
    assert.ok(ear.isEnded || ear.resetCode !== undefined, `run ${run} has no end`);
    assert.equal([path.exchanges.size, path.buffered.bytes, path.pending.size], [0, 0, 0]);
    if (ear.body.startsWith("{")) ends.refused += 1;
    else ends[ear.isEnded ? "whole" : "cut"] += 1;
  }
  figure(`two attempts at random: ${JSON.stringify(ends)}`);
  assert.ok(Math.min(ends.whole, ends.cut, ends.refused) > 10);
});

test("hedges share a budget: what is beyond it is asked a little later (limits.ts)", () => {
  const path = new PlayedPath(["a", "b"]);
  path.clock.advance(60_000);
  const client = path.client();
  client.ask("GET", "/first", [bearer("t")]);
  path.settle();
  const [silent, other] = [path.backend("a"), path.backend("b")].toSorted(
    (x, y) => y.asked.length - x.asked.length,
  );
  silent?.last.answer(200);
  path.settle();
  const atOnce = 2 * limits.hedgeBurst;
  const most = atOnce + 20;
  // More requests than the 100 streams of one client, so five clients send them. All clients are bound to the same
  // backend, because new clients would be spread over both.
  const clients = Array.from({ length: 5 }, () => path.client());
  const bound = client.downstream.client.backend ?? "";
  for (const one of clients) one.downstream.client.bind(bound);
  for (let index = 0; index < most; index += 1) clients[index % 5]?.ask("GET", "/api", [bearer("t")]);
  path.settle();
  if (silent !== undefined) blackHole(silent);
  path.clock.advance(750);
  assert.is(other?.asked.length, atOnce);
  path.clock.advance(250);
  assert.is(other?.asked.length, most);
  const counted = (backend: string): unknown => [{ backend, key: "hedge", count: most }];
  assert.equal(path.hedges.counts.all, counted(bound));
  path.reconcile(["a", "b"].filter((name) => name !== bound));
  assert.equal(path.hedges.counts.all, counted("other"), "a removed backend has no count of its own");
});

test("a request that waits for an upstream connection of a backend that falls silent goes elsewhere at once, a write too", () => {
  const path = new PlayedPath(["a", "b"]);
  blackHole(path.backend("a"));
  path.clock.advance(700);
  const ear = ask(path, "POST", "/api", false);
  ear.say("early body", true);
  path.settle();
  assert.equal([path.backends.views[0]?.state, path.backend("b").asked.length], ["ready", 0]);
  path.clock.advance(60);
  assert.is(path.backends.views[0]?.state, "suspect");
  assert.is(path.backend("b").last.body, "early body");
});

test("a request that waits long for a dial goes elsewhere, and does not come back", () => {
  const path = new PlayedPath(["a", "b"]);
  const backoff = (name: string): number => path.backend(name).sessions.length;
  for (const name of ["a", "b"]) path.backend(name).isMute = true;
  const warm = backoff("b");
  ask(path, "GET", "/api");
  path.clock.advance(500);
  assert.is(backoff("b"), warm);
  path.clock.advance(250);
  assert.is(backoff("b"), warm + 1);
  assert.equal(
    path.backends.views.map(({ state }) => state),
    ["ready", "ready"],
  );
  path.backend("a").isMute = false;
  path.clock.advance(1000);
  assert.is(path.backend("a").asked.length, 0);
});

test.run();
