/**
 * Time misbehaves: the wall clock jumps, or the machine is paused. Neither may end a request or change a backend's
 * state.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { type Asked, bearer, type Ear, PlayedPath } from "../support/path.ts";

const test = suite("flows/standstill");

const json = new Field("content-type", "application/json");
const stepMs = 25;
const hourMs = 3_600_000;
const log = "/api/v1/namespaces/d/pods/p/log?follow=true";
const watch = "/api/v1/namespaces/d/pods?watch=true&resourceVersion=100&allowWatchBookmarks=true";
const object = "/api/v1/namespaces/d/pods/p";

/** A service account token that expires half an hour from now by the tests' wall clock. */
function tokenOf(path: PlayedPath): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256" })}.${part({ exp: (path.clock.wall() + hourMs / 2) / 1000 })}.c2ln`;
}

/** Watches, logs and tunnels of six clients, on two backends that answer at once. */
class Scene {
  readonly path = new PlayedPath(["a", "b"], { isProbed: true });
  readonly living: readonly Ear[];
  readonly lost: string[] = [];
  readonly #streaming: Asked[] = [];
  readonly #seen = new Map<string, number>();
  readonly #clients;
  readonly #token = bearer(tokenOf(this.path));

  constructor() {
    const { path } = this;
    this.run(2000);
    this.#clients = Array.from({ length: 6 }, () => path.client());
    for (const client of this.#clients) client.ask("GET", object, [this.#token]);
    this.run(200);
    this.living = this.#clients.flatMap((client) => [
      client.ask("GET", log, [this.#token]),
      client.ask("GET", watch, [this.#token]),
    ]);
    for (const name of path.played.keys()) path.backends.onLost(name, () => this.lost.push(name));
    this.run(5000);
  }

  run(ms: number): void {
    for (let at = 0; at < ms; at += stepMs) {
      this.path.clock.advance(stepMs);
      for (const [name, { asked }] of this.path.played) {
        const from = this.#seen.get(name) ?? 0;
        this.#seen.set(name, asked.length);
        for (const one of asked.slice(from)) this.#answer(one);
      }
      this.path.settle();
    }
  }

  #answer(asked: Asked): void {
    if (asked.resetCode !== undefined) return;
    const { path } = asked.request;
    const isStream = path.includes("follow=") || path.includes("watch=");
    if (!isStream) return asked.answer(200, "{}", [json]);
    asked.side?.sendHeaders([new Field(":status", "200"), json], false);
    this.#streaming.push(asked);
  }

  /** Counts of everything that could change. Only the probes may increase, by one each second for each backend. */
  counts(): Readonly<Record<"changes" | "asked" | "dials" | "probes" | "connectionsClosed", number>> {
    const { changes, entries, played } = this.path;
    const sum = (of: (name: string) => number): number =>
      [...played.keys()].reduce((total, name) => total + of(name), 0);
    return {
      changes: changes.length,
      asked: sum((name) => this.path.backend(name).asked.length),
      dials: sum((name) => this.path.backend(name).sessions.length),
      probes: sum((name) => this.path.backend(name).probeCount),
      connectionsClosed: entries.filter(
        (entry) => entry.kind === "upstream_connection.closed" && entry.reason !== "ended",
      ).length,
    };
  }

  /** Fails unless all streams and tunnels are open and still work. */
  isWhole(): void {
    const broken = this.living.filter(({ isEnded, resetCode }) => isEnded || resetCode !== undefined);
    assert.equal([broken.length, this.lost], [0, []]);
    assert.is(this.#clients.filter(({ isGone, session }) => isGone || session.isPeerGoing).length, 0);
    for (const asked of this.#streaming) if (asked.request.path.includes("follow=")) asked.say("line\n");
    const gets = this.#clients.map((client) => client.ask("GET", object, [this.#token]));
    this.run(100);
    assert.equal([...new Set(gets.map(({ status }) => status))], ["200"]);
    const logs = this.living.filter((_ear, at) => at % 2 === 0);
    assert.is(logs.filter(({ body }) => body.endsWith("line\n")).length, logs.length);
  }
}

for (const ms of [hourMs, -hourMs])
  test(`the wall clock jumps by ${ms / hourMs} h: nothing ends, no verdict falls, probes keep their pace`, () => {
    const scene = new Scene();
    const first = scene.counts();
    scene.run(10_000);
    const before = scene.counts();
    scene.path.clock.setWall(ms);
    scene.run(10_000);
    const after = scene.counts();
    assert.equal({ ...after, probes: 0 }, { ...before, probes: 0 });
    assert.ok(Math.abs(after.probes - before.probes - (before.probes - first.probes)) <= 2, "no storm");
    scene.isWhole();
    // Sets the clock back a minute later. The proxy must not have kept the wrong time for its checks of token expiry.
    scene.run(60_000);
    scene.path.clock.setWall(-ms);
    scene.run(10_000);
    scene.isWhole();
    assert.is(scene.counts().changes, before.changes);
  });

for (const stallMs of [5000, 30_000, 120_000])
  test(`paused for ${stallMs / 1000} s, as with its whole machine: nothing is judged by that time`, () => {
    const scene = new Scene();
    for (let phase = 0; phase < 4; phase += 1) {
      scene.run(70);
      const before = scene.counts();
      // PINGs are in flight. The backends' kernels send the answers again shortly after the pause.
      const { path } = scene;
      const holds = [...path.played.values()].flatMap(({ sessions }) =>
        sessions.map(({ cable }) => cable.hold()),
      );
      scene.run(280);
      path.clock.stall(stallMs);
      scene.run(150);
      for (const release of holds) release();
      scene.run(3000);
      const after = scene.counts();
      // `dials` may increase: idle upstream connections are replaced by age, pauses included, because the apiserver
      // closes them after 90 s.
      assert.equal({ ...after, probes: 0, dials: 0 }, { ...before, probes: 0, dials: 0 });
      assert.ok(after.probes - before.probes <= 2 * 4 + 2, `${after.probes - before.probes} probes in 3 s`);
      scene.isWhole();
    }
  });

test("requests under way at the pause are answered, and waits for a backend do not count it", () => {
  const scene = new Scene();
  const { path } = scene;
  const client = path.client();
  const ear = client.ask("GET", "/apis/slow.example/v1/things/t");
  path.settle();
  path.clock.stall(30_000);
  path.clock.advance(0);
  path.settle();
  assert.equal([ear.status, ear.resetCode], ["", undefined]);
  scene.run(500);
  assert.equal([ear.status, ear.resetCode], ["200", undefined]);
});

test.run();
