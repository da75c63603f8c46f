/**
 * Tests a backend's shield, which limits LISTs to a backend that has just started, alone and on the whole data path.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { shieldLimits } from "../../../src/proxy/limits/limits.ts";
import type { ShieldPlace } from "../../../src/proxy/limits/shield.ts";
import { Shields } from "../../../src/proxy/limits/shields.ts";
import { manualClock } from "../../support/clock.ts";
import { jwt } from "../../support/jwt.ts";
import { type Asked, bearer, type Ear, type PlayedClient, PlayedPath } from "../../support/path.ts";
import { playShields, shieldsAt } from "./shield-property.ts";

const test = suite("proxy/limits/shield");
const shield = { isEnabled: true, queueMs: 15_000, exemptGroups: ["system:masters"] };
const { firstCap, leastCap, warmMs } = shieldLimits;

/** Returns a data path whose backends have just started. */
function startedPath(names: readonly string[] = ["a"], options = { shield }): PlayedPath {
  const path = new PlayedPath(names, options);
  for (const name of names) {
    path.shields.judged({ name, state: "dead" });
    path.shields.returned(name);
  }
  return path;
}

function list(client: PlayedClient, user: string, path = "/api/v1/pods"): ReturnType<PlayedClient["ask"]> {
  return client.ask("GET", path, [bearer(jwt({ sub: user }))]);
}

const listsAt = (path: PlayedPath, name = "a"): readonly Asked[] =>
  path.backend(name).asked.filter(({ request }) => request.path.includes("/pods"));

/** Answers the LISTs that the backend has received but not yet answered. Returns their number. */
function answerLists(path: PlayedPath, name = "a"): number {
  const open = listsAt(path, name).filter(
    ({ heads, resetCode }) => !done.has(heads) && resetCode === undefined,
  );
  for (const asked of open) {
    done.add(asked.heads);
    asked.answer(200, "{}");
  }
  path.settle();
  return open.length;
}
const done = new WeakSet<object>();

/** Starts LISTs of `count` users, each from its own client and address. */
function herd(path: PlayedPath, count: number): readonly ReturnType<PlayedClient["ask"]>[] {
  const ears = Array.from({ length: count }, (_, at) =>
    list(path.client({ address: `10.0.${at >> 8}.${at & 255}` }), `user-${at}`),
  );
  path.settle();
  return ears;
}

test("a backend that has just become ready gets a few lists at once, and more with every answer", () => {
  const path = startedPath();
  const ears = herd(path, 100);
  const rounds: number[] = [];
  while (rounds.length < 20 && ears.some(({ status }) => status === "")) {
    path.clock.advance(10);
    rounds.push(answerLists(path));
  }
  assert.equal(rounds.slice(0, 4), [firstCap, 2 * firstCap, 4 * firstCap, 100 - 7 * firstCap]);
  assert.ok(ears.every(({ status }) => status === "200"));
  assert.equal([path.shields.of("a")?.waiting, path.shields.of("a")?.users], [0, 0]);
});

test("other requests, exact watches and Leases do not wait", () => {
  const path = startedPath();
  herd(path, 100);
  const client = path.client();
  const passing = [
    "/api/v1/namespaces/n/secrets/one",
    "/api/v1/secrets?watch=1&resourceVersion=7",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader",
    "/apis/coordination.k8s.io/v1/leases",
  ];
  // Each request except one has its own token: a token that no backend has accepted yet may have only two requests in
  // progress.
  for (const [at, one] of passing.entries()) list(client, `jane-${at}`, one);
  list(client, "john", "/api/v1/secrets");
  list(client, "john", "/api/v1/secrets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
  path.settle();
  const asked = path.backend("a").asked.map(({ request }) => request.path.split("&")[0] ?? "");
  assert.equal(
    new Set(asked.filter((one) => !one.includes("/pods"))),
    new Set(passing.map((one) => one.split("&")[0])),
  );
});

test("a list that waits for too long gets 429 with Retry-After, and one whose client is gone leaves", () => {
  const path = startedPath();
  const ears = herd(path, firstCap + 2);
  const [gone, late] = ears.slice(-2);
  gone?.stream.reset(errorCode.CANCEL);
  path.settle();
  assert.is(path.shields.of("a")?.waiting, 1);
  // The first LISTs hang, and give up their places only after `placeMs`.
  for (const ear of ears.slice(0, firstCap)) void ear;
  path.clock.advance(shieldLimits.placeMs - 100);
  assert.is(late?.status, "");
  path.clock.advance(1000);
  assert.is(listsAt(path).length, firstCap + 1, "a hung list loses its place after a while");
  const stuck = startedPath(["a"], { shield: { ...shield, queueMs: 500 } });
  const last = herd(stuck, firstCap + 1).at(-1);
  stuck.clock.advance(600);
  assert.is(last?.status, "429");
  assert.is(last?.heads.at(-1)?.find(({ name }) => name === "retry-after")?.value, "1");
  assert.match(last?.body ?? "", "backend a has just started or is overloaded");
  assert.equal([stuck.shields.of("a")?.refused, stuck.shields.of("a")?.waiting], [1, 0]);
  assert.equal(
    stuck.entries.filter(({ kind }) => kind === "request.failed"),
    [],
  );
});

test("a list that waits goes to another backend if its own takes no more requests", () => {
  const path = startedPath(["a", "b"]);
  const clients = Array.from({ length: 4 * firstCap }, (_, at) => path.client({ address: `10.1.0.${at}` }));
  const ears = clients.map((client, at) => list(client, `user-${at}`));
  path.settle();
  assert.equal([listsAt(path, "a").length, listsAt(path, "b").length], [firstCap, firstCap], "both are used");
  path.backend("a").kill();
  path.clock.advance(200);
  for (let round = 0; round < 20; round += 1) {
    answerLists(path, "b");
    path.clock.advance(100);
  }
  assert.ok(
    ears.every(({ status }) => status === "200"),
    ears.map(({ status }) => status).join(),
  );
});

test("backends that the proxy finds at its own start have no shield; added and restarted backends have one", () => {
  const path = new PlayedPath(["a"], { shield });
  path.clock.advance(100);
  assert.is(path.shields.isAnyUp, false);
  herd(path, 200);
  assert.is(listsAt(path).length, 200);
  const clock = manualClock();
  const loads = { of: () => undefined, slowness: () => 1 };
  const shields = new Shields({ clock, loads }, shield);
  const isUp = (name: string): boolean => shields.statusOf(name).cap > 0;
  shields.reconcile(["a"]);
  shields.returned("a");
  shields.reconcile(["a", "b"]);
  shields.returned("b");
  assert.equal([isUp("a"), isUp("b")], [false, true]);
  for (const state of ["dead", "draining"] as const) {
    clock.advance(warmMs);
    assert.equal([isUp("a"), isUp("b")], [false, false]);
    shields.judged({ name: "a", state });
    shields.judged({ name: "a", state: "ready" });
    shields.returned("a");
    assert.equal([isUp("a"), isUp("b")], [true, false], state);
  }
});

test("a backend that was not there when the proxy started has a shield when it comes", () => {
  const path = new PlayedPath(["a"], { shield, down: ["a"] });
  path.clock.advance(5000);
  path.backend("a").isDown = false;
  path.clock.advance(10_000);
  assert.equal(path.changes.at(-1)?.to, "ready");
  assert.is(path.shields.isAnyUp, true);
});

test("the kinds of lists with endless or long names are not remembered", () => {
  const path = startedPath();
  const kinds: string[] = [];
  const enter = path.shields.enter.bind(path.shields);
  path.shields.enter = (backend, request) => {
    kinds.push(request.kind);
    return enter(backend, request);
  };
  list(path.client(), "jane", `/apis/stable.example.com/v1/${"x".repeat(5000)}`);
  list(path.client({ address: "10.0.0.9" }), "john", "/apis/stable.example.com/v1/things");
  path.settle();
  assert.equal(kinds, ["", "stable.example.com/things false false"]);
});

test("after the start is over, nothing waits", () => {
  const path = startedPath();
  path.clock.advance(warmMs + 1100);
  assert.not.ok(path.shields.isAnyUp);
  herd(path, 200);
  assert.is(listsAt(path).length, 200);
});

test("a backend that answers 429 is shielded, and 429s to lists shrink the cap", () => {
  const path = startedPath();
  path.clock.advance(warmMs + 1100);
  herd(path, 1);
  listsAt(path)[0]?.answer(429, "");
  path.clock.advance(1100);
  assert.ok(path.shields.isAnyUp);
  herd(path, 50);
  assert.is(listsAt(path).length, 1 + firstCap);
  for (const asked of listsAt(path).slice(1)) asked.answer(429, "");
  path.settle();
  assert.is(path.shields.of("a")?.cap, firstCap / 2, "one halving for all of them");
  path.clock.advance(30_000);
  assert.not.ok(path.shields.isAnyUp, "it ends ten seconds after the last 429");
});

test("while its lists are slow, the cap shrinks to the least, and grows again when they are fast", () => {
  const clock = manualClock();
  const shields = shieldsAt(clock);
  const asked = (): ShieldPlace => {
    const place = shields.enter("a", {
      user: "u",
      kind: "pods",
      isListing: () => true,
      place() {},
      refuse() {},
    });
    if (place === undefined || place === "free") throw new Error("No place");
    return place;
  };
  const play = (ms: number): void => {
    const place = asked();
    clock.advance(ms);
    shields.answered(place, 200, ms);
    shields.leave(place);
  };
  play(50);
  for (let count = 0; count < 20; count += 1) play(400);
  assert.is(shields.of("a")?.cap, leastCap);
  for (let count = 0; count < 60; count += 1) play(50);
  assert.ok((shields.of("a")?.cap ?? 0) > 8, `${shields.of("a")?.cap}`);
});

test("a list whose head comes fast does not shrink the cap while its body is held", () => {
  const path = startedPath();
  const client = path.client();
  for (let count = 0; count < 4; count += 1) {
    const ear = list(client, "u");
    path.settle();
    const asked = listsAt(path).at(-1);
    asked?.side?.sendHeaders([new Field(":status", "200")], false);
    asked?.say("first half, ");
    path.settle();
    path.clock.advance(count === 0 ? 0 : 1000);
    asked?.say("second half", true);
    path.settle();
    assert.is(ear.body, "first half, second half");
  }
  assert.is(path.shields.of("a")?.cap, firstCap + 4);
});

test("reads that take four times as long as usual, or as at other backends, put the shield up", () => {
  for (const [ms, slowness, isUp] of [
    [50, 1, false],
    [399, 1, false],
    [400, 1, true],
    [150, 4, true],
    [99, 4, false],
  ] as const) {
    const clock = manualClock();
    const load = { refusals: 0, gets: { ms: 100, latestMs: 0, isKnown: true } };
    let slow = 1;
    const shields = new Shields({ clock, loads: { of: () => load, slowness: () => slow } });
    shields.configure(shield);
    shields.reconcile(["a"]);
    shields.start();
    clock.advance(10_000);
    load.gets = { ms, latestMs: 0, isKnown: true };
    slow = slowness;
    clock.advance(1000);
    assert.is(shields.isAnyUp, isUp, `${ms} ms, ${slowness} times`);
  }
});

test("while the shield is up, late reads of one object shrink the cap", () => {
  const clock = manualClock();
  const gets = { ms: 0, latestMs: 0, isKnown: false };
  const shields = new Shields(
    { clock, loads: { of: () => ({ refusals: 0, gets }), slowness: () => 1 } },
    shield,
  );
  shields.reconcile(["a"]);
  shields.start();
  shields.judged({ name: "a", state: "dead" });
  shields.returned("a");
  const caps = [shieldLimits.lateMs - 1, shieldLimits.lateMs, 1000, 1000, 1000, 1000].map((ms) => {
    gets.latestMs = ms;
    clock.advance(1000);
    return shields.of("a")?.cap;
  });
  assert.equal(caps, [firstCap, 5, 3, 2, leastCap, leastCap]);
});

test("one address with invented tokens, or one user, neither starves others nor grows the queue", () => {
  const path = startedPath();
  const attacker = path.client({ address: "192.0.2.1" });
  for (let at = 0; at < 1500; at += 1) list(attacker, `forged-${at}`);
  path.settle();
  const honest = herd(path, 20);
  for (let round = 0; round < 6; round += 1) {
    path.clock.advance(10);
    answerLists(path);
  }
  assert.ok(honest.every(({ status }) => status === "200"));
  assert.ok((path.shields.of("a")?.users ?? 0) <= 1, "invented tokens of one address are one user");
});

test("every request that enters gets a place, a refusal, or leaves; no user with one request starves", () => {
  playShields(150);
});

test("a watch leaves its place when its initial events are over", () => {
  const path = startedPath();
  const ears: Ear[] = Array.from({ length: firstCap + 1 }, (_, at) =>
    list(
      path.client({ address: `10.0.0.${at}` }),
      `user-${at}`,
      "/api/v1/pods?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
    ),
  );
  path.settle();
  assert.is(listsAt(path).length, firstCap);
  const [first] = listsAt(path);
  first?.side?.sendHeaders(
    [new Field(":status", "200"), new Field("content-type", "application/json")],
    false,
  );
  first?.say('{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p","resourceVersion":"5"}}}\n');
  path.clock.advance(1000);
  assert.is(listsAt(path).length, firstCap, "the initial events still come");
  const end = '"annotations":{"k8s.io/initial-events-end":"true"}';
  first?.say(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7",${end}}}}\n`);
  path.clock.advance(100);
  assert.is(listsAt(path).length, firstCap + 1);
  assert.is(ears.length, firstCap + 1);
});

test.run();
