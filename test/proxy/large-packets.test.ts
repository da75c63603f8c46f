/** A backend's large packets are lost and its small ones pass (path MTU): heads and PINGs come, bodies do not. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/field.ts";
import { type Ear, PlayedPath } from "../support/path.ts";

const test = suite("proxy/large-packets");

const json = new Field("content-type", "application/json");
const body = JSON.stringify({ kind: "Pod", text: "x".repeat(2000) });
const stepMs = 25;

/** Answers as Go does: a head in a packet of its own, and the body behind it. */
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
    for (const asked of heads) if (asked.resetCode === undefined) asked.say(body, true);
    path.settle();
  };
  return (ms) => {
    for (let at = 0; at < ms; at += stepMs) step();
  };
}

type Question = { readonly ear: Ear; readonly at: number; endedAt: number };

/** 20 GETs a second for so long from the hole's beginning on, and what came of them. */
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

test("handshakes come through: no GET is cut, and none takes 2.5 s", () => {
  const { gets } = play((path) => path.backend("a").loseLarge(600));
  assert.equal(gets.filter(({ ear }) => ear.resetCode !== undefined || ear.body !== body).length, 0);
  assert.ok(slowest(gets) <= 2500, `the slowest took ${slowest(gets)} ms`);
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
  assert.match(told[0]?.reason ?? "", /large packets from or to it are lost: path MTU\?/);
  assert.ok((path.changes.find(({ to }) => to === "suspect")?.at ?? Infinity) - holeAt <= 3500);
});

test("a head without a body is shown when a later PING has come back, and kept from nobody for long", () => {
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

test("a backend that breaks its answer off behind the head is heard with both", () => {
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
