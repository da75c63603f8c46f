/**
 * The path to a backend loses large packets but not small ones (path MTU): response heads and PINGs arrive, bodies do
 * not.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { upstreamLimits } from "../../src/upstream/pool/limits.ts";
import { type Asked, bearer, type Ear, type PlayedBackend, PlayedPath } from "../support/path.ts";

const test = suite("flows/large-packets");

const json = new Field("content-type", "application/json");
const body = JSON.stringify({ kind: "Pod", text: "x".repeat(2000) });
const stepMs = 25;

const isWatch = ({ request }: Asked): boolean => request.path.includes("watch=");

/** Answers requests as Go does: the response head in one packet and the body in later ones. */
function answering(path: PlayedPath): (ms: number) => void {
  const seen = new Map<string, number>();
  const step = (): void => {
    path.clock.advance(stepMs);
    const heads = [...path.played].flatMap(([name, backend]) => {
      const from = seen.get(name) ?? 0;
      seen.set(name, backend.asked.length);
      return backend.asked.slice(from).filter(({ resetCode }) => resetCode === undefined);
    });
    for (const asked of heads) asked.side?.sendHeaders([new Field(":status", "200"), json], false);
    path.settle();
    for (const asked of heads) if (asked.resetCode === undefined && !isWatch(asked)) asked.say(body, true);
    path.settle();
  };
  return (ms) => {
    for (let at = 0; at < ms; at += stepMs) step();
  };
}

type Question = { readonly ear: Ear; readonly at: number; endedAt: number };

/** Sends 20 GETs a second for 10 s from the moment of `hurt`, and returns their results. */
function play(hurt: (path: PlayedPath) => void): {
  readonly path: PlayedPath;
  readonly gets: Question[];
  readonly holeAt: number;
} {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  const run = answering(path);
  run(2000);
  const clients = Array.from({ length: 6 }, () => path.client());
  for (const client of clients) client.ask("GET", "/api/v1/namespaces/d/pods/p");
  run(1000);
  hurt(path);
  const holeAt = path.clock.now();
  const gets: Question[] = [];
  for (let count = 0; count < 260; count += 1) {
    const client = clients[count % clients.length];
    const at = path.clock.now();
    if (client !== undefined && count < 200)
      gets.push({ ear: client.ask("GET", "/api/v1/namespaces/d/pods/p"), at, endedAt: Number.NaN });
    run(50);
    for (const get of gets) if (get.ear.isEnded && Number.isNaN(get.endedAt)) get.endedAt = path.clock.now();
  }
  return { path, gets, holeAt };
}

const slowest = (gets: readonly Question[]): number =>
  Math.max(
    ...gets.map(({ at, endedAt }) => (Number.isNaN(endedAt) ? Number.POSITIVE_INFINITY : endedAt - at)),
  );

test("handshakes come through: suspect within 1.5 s, no GET is cut, and those after it take no time", () => {
  const { path, gets, holeAt } = play((played) => played.backend("a").loseLarge(600));
  assert.equal(gets.filter(({ ear }) => ear.resetCode !== undefined || ear.body !== body).length, 0);
  assert.ok(slowest(gets) <= 2500, `the slowest took ${slowest(gets)} ms`);
  const [told] = path.entries.flatMap((entry) =>
    entry.kind === "backend.changed" && entry.to === "suspect" ? [entry] : [],
  );
  assert.equal([told?.backend, told?.detector], ["a", "packets"]);
  assert.match(told?.reason ?? "", /large packets to or from the backend are lost \(path MTU\?\)/);
  const at = (path.changes.find(({ to }) => to === "suspect")?.at ?? Number.POSITIVE_INFINITY) - holeAt;
  assert.ok(at <= 1500, `suspect after ${at} ms`);
  const later = gets.filter((get) => get.at > holeAt + at);
  assert.ok(later.length > 100 && slowest(later) <= 100, `later ones took ${slowest(later)} ms`);
  const isBack = path.changes.some((change) => change.to === "ready" && change.at > holeAt);
  assert.not(isBack, "its large packets are still lost");
  path.backend("a").passLarge();
  path.clock.advance(5000);
  assert.is(path.backends.views.find(({ name }) => name === "a")?.state, "ready");
});

test("handshakes do not, and nothing is under way: the same reason within 1.5 s, whatever the phase", () => {
  for (let phase = 0; phase < 1000; phase += 40) {
    const path = new PlayedPath(["a", "b"], { isProbed: true });
    path.clock.advance(3000 + phase);
    path.backend("a").loseLarge(600);
    path.backend("a").losesHandshakes = true;
    const holeAt = path.clock.now();
    path.clock.advance(4000);
    const [told] = path.entries.flatMap((entry) =>
      entry.kind === "backend.changed" && entry.to === "suspect" ? [entry] : [],
    );
    assert.equal([told?.backend, told?.detector], ["a", "packets"]);
    const at = (path.changes.find(({ to }) => to === "suspect")?.at ?? Number.POSITIVE_INFINITY) - holeAt;
    assert.ok(at <= 1500, `after ${at} ms at phase ${phase}`);
  }
});

test("a process that stands still, whose kernel takes connections, has lost no packets", () => {
  for (let phase = 0; phase < 1000; phase += 40) {
    const path = new PlayedPath(["a", "b"], { isProbed: true });
    path.clock.advance(3000 + phase);
    path.backend("a").blackHole();
    path.backend("a").isFrozen = true;
    path.clock.advance(1500);
    const [told] = path.entries.flatMap((entry) =>
      entry.kind === "backend.changed" && entry.to === "suspect" ? [entry] : [],
    );
    assert.equal([told?.backend, told?.detector], ["a", "ping"], `phase ${phase}`);
  }
});

test("every connection waits for a lost large packet: the backend is suspect, and dead only if the process hangs", () => {
  const statesAfter = (isFrozen: boolean): string[] => {
    const path = new PlayedPath(["a", "b"], { isProbed: true });
    path.clock.advance(3000);
    const a = path.backend("a");
    a.isFrozen = true;
    a.losesHandshakes = true;
    a.isMute = isFrozen;
    for (const { cable } of a.sessions) cable.blackHole();
    path.clock.advance(20_000);
    return path.changes.filter(({ name }) => name === "a").map(({ to }) => to);
  };
  assert.equal(statesAfter(true).slice(-2), ["suspect", "dead"]);
  assert.equal(statesAfter(false), ["ready", "suspect"]);
});

/** Holds back what the connections with a stream to the backend carry, or all its connections. Returns their release. */
function hold({ sessions }: PlayedBackend, all: boolean): () => void {
  const stuck = sessions.filter(({ session }) => !session.isOver && (all || session.openCount > 0));
  assert.ok(all || stuck.length < sessions.length);
  const releases = stuck.map(({ cable }) => cable.hold());
  return () => {
    for (const release of releases) release();
  };
}

for (const [which, all] of [
  ["the connections in use", false],
  ["all connections", true],
] as const)
  test(`a hole of 25 s for large packets on ${which} of one backend fails no write and cuts no log, and reads leave it`, () => {
    const path = new PlayedPath(["a", "b"], { isProbed: true });
    path.clock.advance(3000);
    const client = path.client();
    const first = client.ask("GET", "/api/v1/first", [bearer("t")]);
    path.settle();
    const [name, backend] = [...path.played].find(([, { asked }]) => asked.length > 0) ?? [];
    const other = path.backend(name === "a" ? "b" : "a");
    if (backend === undefined) throw new Error("No backend was asked");
    backend.last.answer(200, "{}");
    path.settle();
    assert.is(first.status, "200");
    const post = client.ask("POST", "/api/v1/namespaces/d/configmaps", [bearer("t")]);
    const log = client.ask("GET", "/api/v1/namespaces/d/pods/p/log?follow=true", [bearer("t")]);
    const list = client.ask("GET", "/api/v1/pods", [bearer("t")]);
    const get = client.ask("GET", "/api/v1/namespaces/d/pods/p", [bearer("t")]);
    path.settle();
    const asked = (part: string): Asked =>
      backend.asked.find(({ request }) => request.path.includes(part)) ?? backend.last;
    for (const part of ["/log", "/v1/pods"]) {
      asked(part).side?.sendHeaders(
        [new Field(":status", "200"), new Field("content-type", "text/plain")],
        false,
      );
      asked(part).say(part === "/log" ? "begin " : "x".repeat(600_000));
    }
    path.clock.advance(1000);
    path.settle();
    assert.is(log.body, "begin ");
    assert.ok(list.body.length > 0);
    const release = hold(backend, all);
    if (all) {
      backend.isFrozen = true;
      backend.losesHandshakes = true;
    }
    asked("/configmaps").answer(201, body, [json]);
    for (let ms = 0; ms < 25_000; ms += 250) {
      path.clock.advance(250);
      path.settle();
      const again = other.asked.find(
        (one) => one.request.path.endsWith("/pods/p") && one.resetCode === undefined,
      );
      if (again !== undefined && !get.isEnded) again.answer(200, body, [json]);
      path.settle();
    }
    assert.is(get.body, body);
    release();
    path.clock.advance(1000);
    path.settle();
    for (const part of ["/log", "/v1/pods"]) asked(part).say("end");
    path.settle();
    assert.equal([post.status, post.body, post.resetCode], ["201", body, undefined]);
    assert.equal([log.body, log.resetCode, list.resetCode], ["begin end", undefined, undefined]);
    assert.match(list.body, /xend$/);
  });

test("what a connection cannot deliver for 30 s ends then, although the backend answers on others", () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  path.clock.advance(3000);
  const client = path.client();
  const post = client.ask("POST", "/api/v1/namespaces/d/configmaps", [bearer("t")]);
  const get = client.ask("GET", "/api/v1/namespaces/d/pods/p", [bearer("t")]);
  path.settle();
  hold(path.backend("a"), false);
  path.clock.advance(upstreamLimits.connectionPatienceMs + 1000);
  path.settle();
  assert.is(path.backend("a").asked.length, 3, "the GET is asked again on another connection");
  const open = path.pools.poolOf("a")?.shards.flatMap(({ connections }) => connections) ?? [];
  assert.equal(
    open.filter(({ isSuspect }) => isSuspect).map(({ openCount }) => openCount),
    [1],
    "only the POST stays",
  );
  path.backend("a").last.answer(200, body, [json]);
  path.clock.advance(upstreamLimits.boundPatienceMs - upstreamLimits.connectionPatienceMs - 1500);
  path.settle();
  assert.equal([get.status, post.status, post.resetCode], ["200", "", undefined]);
  path.clock.advance(2000);
  path.settle();
  assert.is(post.status, "504");
});

test("a path that loses small packets as well is no path MTU, though probes and one connection get no answer", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true, warm: 3 });
  const run = answering(path);
  run(2000);
  const client = path.client();
  client.ask("GET", "/api/v1/namespaces/d/pods/p");
  run(1000);
  const a = path.backend("a");
  const late = (): void => {
    // Each of these PINGs or its answer is lost once. The kernel sends it again 200 ms after the next tick.
    const releases = a.sessions.filter((one) => one !== used).map(({ cable }) => cable.hold());
    path.clock.after(250 - (path.clock.now() % 250) + 200, () => {
      for (const release of releases) release();
    });
  };
  client.ask("GET", "/api/v1/namespaces/d/pods/p/log?follow=true");
  path.settle();
  a.readyzDelayMs = 900;
  const [used] = a.sessions.filter(({ session }) => session.openCount > 0);
  assert.ok(used !== undefined);
  used.cable.blackHole();
  run(100);
  for (let at = 0; at < 3000; at += 500) {
    late();
    run(500);
  }
  const detectors = path.entries.flatMap((entry) =>
    entry.kind === "backend.changed" ? [entry.detector] : [],
  );
  assert.not(detectors.includes("packets"), detectors.join());
});

test("watches of a backend that loses large packets go on elsewhere", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  const run = answering(path);
  run(2000);
  const clients = Array.from({ length: 6 }, () => path.client());
  const pods = "/api/v1/namespaces/d/pods";
  for (const client of clients) client.ask("GET", `${pods}/p`);
  run(1000);
  const watches = clients.map((client) =>
    client.ask("GET", `${pods}?watch=true&resourceVersion=100&allowWatchBookmarks=true`),
  );
  run(100);
  const watchesOf = (name: string): number => path.backend(name).asked.filter(isWatch).length;
  const [onA, onB] = [watchesOf("a"), watchesOf("b")];
  assert.ok(onA > 0 && onA + onB === watches.length);
  path.backend("a").loseLarge(600);
  for (let count = 0; count < 40; count += 1) {
    clients[count % clients.length]?.ask("GET", `${pods}/p`);
    run(50);
  }
  assert.is(watchesOf("b"), watches.length, "each has a stream at the other backend");
  assert.equal(
    watches.map(({ resetCode }) => resetCode),
    watches.map(() => undefined),
  );
});

test("one connection in a hole of its own, a lossy path and one that comes and goes are no path MTU", () => {
  const hurts: readonly ((path: PlayedPath, at: number) => void)[] = [
    (path, at) => at === 0 && path.backend("a").sessions.at(-1)?.cable.blackHole(),
    (path, at) => {
      // Delays the packets of one connection after another by 600 ms, as when the kernel has to send them three times.
      const { sessions } = path.backend("a");
      const release = sessions[at % sessions.length]?.cable.hold();
      if (release !== undefined) path.clock.after(600, release);
    },
    (path, at) => {
      if (at % 40 !== 0) return;
      const backend = path.backend("a");
      const releases = backend.sessions.map(({ cable }) => cable.hold());
      backend.isMute = true;
      path.clock.after(1000, () => {
        backend.isMute = false;
        for (const release of releases) release();
      });
    },
  ];
  for (const hurt of hurts) {
    let at = 0;
    const path = new PlayedPath(["a", "b"], { isProbed: true });
    const run = answering(path);
    run(2000);
    const clients = Array.from({ length: 6 }, () => path.client());
    for (; at < 200; at += 1) {
      hurt(path, at);
      clients[at % clients.length]?.ask("GET", "/api/v1/namespaces/d/pods/p");
      run(50);
    }
    const detectors = path.entries.flatMap((entry) =>
      entry.kind === "backend.changed" ? [entry.detector] : [],
    );
    assert.not(detectors.includes("packets"), hurt.toString());
  }
});

test("handshakes do not: the same, and the backend is suspect for its large packets", () => {
  const { path, gets, holeAt } = play(({ played }) => {
    const a = played.get("a");
    a?.loseLarge(600);
    if (a !== undefined) a.losesHandshakes = true;
  });
  assert.equal(gets.filter(({ ear }) => ear.resetCode !== undefined || ear.body !== body).length, 0);
  assert.ok(slowest(gets) <= 2500, `the slowest took ${slowest(gets)} ms`);
  const told = path.entries.flatMap((entry) =>
    entry.kind === "backend.changed" && entry.to === "suspect" ? [entry] : [],
  );
  assert.is(told[0]?.detector, "packets");
  assert.match(told[0]?.reason ?? "", /large packets to or from the backend are lost \(path MTU\?\)/);
  assert.ok((path.changes.find(({ to }) => to === "suspect")?.at ?? Infinity) - holeAt <= 1500);
});

test("a head without a body is forwarded when a later PING has been answered, and is withheld from no client for long", () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  path.clock.advance(2000);
  const ear = path.client().ask("GET", "/apis/slow.example/v1/stream");
  path.settle();
  path.backend("a").last.side?.sendHeaders([new Field(":status", "200"), json], false);
  path.settle();
  assert.is(ear.status, "", "its way may be cut behind it");
  path.clock.advance(550);
  assert.is(ear.status, "200");
  path.backend("a").last.say("late", true);
  path.clock.advance(50);
  assert.equal([ear.body, ear.isEnded], ["late", true]);
});

test("a backend that breaks its answer off behind the head: the client gets both", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(2000);
  const ear = path.client().ask("GET", "/api/v1/namespaces/d/pods/p");
  path.settle();
  const [asked] = [...path.played.values()].flatMap((backend) => backend.asked);
  asked?.side?.sendHeaders([new Field(":status", "200"), json], false);
  path.settle();
  asked?.fail();
  path.settle();
  assert.is(ear.status, "200");
  assert.ok(ear.resetCode !== undefined);
});

test.run();
