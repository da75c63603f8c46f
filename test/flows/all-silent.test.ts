/**
 * For a while no backend answers, because the proxy's own network is down. Clients must lose no more than on a direct
 * connection (D14).
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { dialUpgrade } from "../../src/proxy/tunnel/dial-upgrade.ts";
import { type Asked, type Ear, type PlayedClient, PlayedPath } from "../support/path.ts";

const test = suite("flows/all-silent");

const json = new Field("content-type", "application/json");
const stepMs = 25;
const log = "/api/v1/namespaces/d/pods/p/log?follow=true";
const watch = "/api/v1/namespaces/d/pods?watch=true&resourceVersion=100&allowWatchBookmarks=true";
const object = "/api/v1/namespaces/d/pods/p";
const laterPods = "/api/v1/namespaces/later/pods";

type Question = { readonly ear: Ear; readonly at: number; answeredAt: number };

/** Logs, watches, tunnels and requests of several clients. `hole(ms)` makes all backends silent for that time. */
class Scene {
  readonly path: PlayedPath;
  readonly logs: Ear[];
  readonly watches: Ear[];
  posts: readonly Ear[] = [];
  readonly #clients: readonly PlayedClient[];
  readonly gets: Question[] = [];
  /** Backends whose tunnels were closed. */
  readonly lost: string[] = [];
  /** Responses that a backend has begun, and then the number of POSTs that arrived. */
  readonly streaming: Asked[] = [];
  postCount = 0;
  laterPostCount = 0;
  readonly #seen = new Map<string, number>();

  constructor(names: readonly string[]) {
    this.path = new PlayedPath(names, { isProbed: true });
    this.run(2000);
    const clients = names.flatMap(() => [this.path.client(), this.path.client()]);
    for (const client of clients) client.ask("GET", object);
    this.run(200);
    this.logs = clients.map((client) => client.ask("GET", log));
    this.watches = clients.map((client) => client.ask("GET", watch));
    this.run(1000);
    for (const name of names) this.path.backends.onLost(name, () => this.lost.push(name));
    this.#clients = clients;
  }

  ask(method: "GET" | "POST" = "GET"): void {
    const ear = this.path.client().ask(method, method === "GET" ? object : laterPods);
    this.gets.push({ ear, at: this.path.clock.now(), answeredAt: Number.NaN });
  }

  run(ms: number): void {
    for (let at = 0; at < ms; at += stepMs) {
      this.path.clock.advance(stepMs);
      this.#answer();
      this.path.settle();
      for (const get of this.gets)
        if (get.ear.status.startsWith("20") && Number.isNaN(get.answeredAt))
          get.answeredAt = this.path.clock.now();
    }
  }

  #answer(): void {
    for (const [name, backend] of this.path.played) {
      const from = this.#seen.get(name) ?? 0;
      this.#seen.set(name, backend.asked.length);
      for (const asked of backend.asked.slice(from)) if (asked.resetCode === undefined) this.#give(asked);
    }
  }

  #give(asked: Asked): void {
    const { path, method } = asked.request;
    const isFollowed = path.includes("follow");
    if (method === "POST" && path === laterPods) this.laterPostCount += 1;
    else if (method === "POST") this.postCount += 1;
    if (!isFollowed && !path.includes("watch"))
      return asked.answer(method === "POST" ? 201 : 200, "{}", [json]);
    asked.side?.sendHeaders([new Field(":status", "200"), json], false);
    if (isFollowed) this.streaming.push(asked);
  }

  /**
   * Makes all backends silent for `ms`. After an outage of n seconds, the last retransmission comes at most n seconds
   * later. New connections to the last backend work `lastMs` later than those to the others.
   */
  hole(ms: number, whileOpen: () => void = () => {}, lastMs = 0): void {
    const { path } = this;
    const backends = [...path.played.values()];
    const holds = backends.flatMap(({ sessions }) => sessions.map(({ cable }) => cable.hold()));
    for (const backend of backends) backend.isMute = true;
    this.posts = this.#clients.map((client) => client.ask("POST", "/api/v1/namespaces/d/pods"));
    for (let at = 0; at < ms; at += 100) {
      this.ask();
      this.run(100);
      whileOpen();
    }
    for (const backend of backends.slice(0, -1)) backend.isMute = false;
    if (lastMs > 0) this.run(lastMs);
    for (const backend of backends) backend.isMute = false;
    this.run(1000);
    assert.is(this.posts.filter(({ status }) => status === "201").length, 0, "what was sent waits");
    this.run(0.9 * ms - 1000);
    for (const release of holds) release();
    this.run(1000);
  }
}

const broken = (ears: readonly Ear[]): number =>
  ears.filter(({ isEnded, resetCode }) => isEnded || resetCode !== undefined).length;

for (const names of [["a"], ["a", "b"]])
  for (const ms of [1500, 2000, 5000, 9000])
    test(`${names.length} backend(s), all silent for ${ms} ms: nothing is ended, and GETs are answered within a second after`, () => {
      const scene = new Scene(names);
      const healedAt = scene.path.clock.now() + ms;
      scene.hole(ms);
      assert.equal([broken(scene.logs), broken(scene.watches), scene.lost], [0, 0, []]);
      const late = scene.gets.filter(({ answeredAt, at }) => !(answeredAt <= Math.max(at, healedAt) + 1000));
      assert.equal(
        late.map(
          ({ ear, at, answeredAt }) =>
            `${ear.status} ${ear.body.slice(0, 300)} of ${at} at ${answeredAt}, healed ${healedAt}`,
        ),
        [],
      );
      assert.equal(
        scene.posts.map(({ status }) => status),
        scene.posts.map(() => "201"),
      );
      assert.is(scene.postCount, scene.posts.length, "each write ran once");
      for (const asked of scene.streaming) asked.say("line\n");
      scene.run(100);
      assert.equal(
        scene.logs.map(({ body }) => body),
        scene.logs.map(() => "line\n"),
      );
    });

test("writes that begin while all are silent wait unsent for the first backend that answers, and run once", () => {
  const scene = new Scene(["a", "b"]);
  const healedAt = scene.path.clock.now() + 5000;
  const writes: Question[] = [];
  let mostPending = 0;
  const ask = (): void => {
    mostPending = Math.max(mostPending, scene.path.pending.size);
    if (!scene.path.backends.areAllSilent || writes.length === 20) return;
    scene.ask("POST");
    writes.push(...scene.gets.slice(-1));
  };
  scene.hole(5000, ask, 3000);
  assert.is(writes.length, 20);
  assert.ok(mostPending >= 20, `${mostPending} wait for any backend, not for a connection to one`);
  const late = writes.filter(({ answeredAt }) => !(answeredAt <= healedAt + 1000));
  assert.equal(
    late.map(
      ({ ear, at, answeredAt }) =>
        `${ear.status} ${ear.body.slice(0, 300)} of ${at} at ${answeredAt}, healed ${healedAt}`,
    ),
    [],
  );
  assert.is(scene.laterPostCount, writes.length, "each write ran once");
});

test("one backend answers first after a silence of all: what lives on the others is given the time to follow", () => {
  const scene = new Scene(["a", "b"]);
  scene.hole(5000, () => {}, 1500);
  assert.equal([broken(scene.logs), broken(scene.watches), scene.lost], [0, 0, []]);
  assert.equal(
    scene.posts.map(({ status }) => status),
    scene.posts.map(() => "201"),
  );
});

for (const isAddedAgain of [false, true])
  test(`a backend that is removed${isAddedAgain ? " and added again" : ""} as a silence of all begins: what lives on it is kept as everywhere`, () => {
    const scene = new Scene(["a", "b"]);
    scene.path.reconcile(["b"]);
    scene.hole(9000, () => {
      if (isAddedAgain) scene.path.reconcile(["a", "b"]);
    });
    assert.equal([broken(scene.logs), broken(scene.watches), scene.lost], [0, 0, []]);
    for (const asked of scene.streaming) asked.say("line\n");
    scene.run(100);
    assert.equal(
      scene.logs.map(({ body }) => body),
      scene.logs.map(() => "line\n"),
    );
  });

test("a silence of all that does not end is the backends': after ten seconds what lives on them ends, and requests are refused", () => {
  const scene = new Scene(["a", "b"]);
  let refused = 0;
  scene.hole(9000, () => {
    refused = scene.gets.filter(({ ear }) => ear.status === "503").length;
  });
  assert.is(refused, 0);
  for (const backend of scene.path.played.values()) backend.blackHole();
  scene.ask();
  scene.run(9000);
  assert.equal([broken(scene.logs), scene.lost], [0, []]);
  scene.run(6000);
  assert.is(broken(scene.logs), scene.logs.length);
  assert.equal(scene.lost.toSorted(), ["a", "b"]);
  scene.run(3000);
  assert.is(scene.gets.at(-1)?.ear.status, "503");
});

test("one silent backend beside one that answers is given no more time than before", () => {
  const scene = new Scene(["a", "b"]);
  scene.path.backend("a").blackHole();
  scene.run(3500);
  assert.equal(scene.lost, ["a"]);
  assert.is(broken(scene.logs), scene.logs.length / 2);
  assert.equal(broken(scene.watches), 0);
});

test("a backend that refuses is no silence: its requests wait no longer than for any other reason", () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  path.clock.advance(2000);
  path.backend("a").kill();
  path.clock.advance(1000);
  assert.not(path.backends.areAllSilent);
  const ear = path.client().ask("GET", object);
  path.clock.advance(5000);
  path.settle();
  assert.is(ear.status, "503");
});

test("an Upgrade waits while all are silent, and is dialled when one answers", async () => {
  const scene = new Scene(["a"]);
  const { path } = scene;
  path.backend("a").blackHole();
  scene.run(3000);
  let backoff = 0;
  const connect = (): never => {
    backoff += 1;
    throw new Error("dialled");
  };
  const client = { backend: undefined } as never;
  const { backends, pools: upstreams, pending: hold } = path;
  const outcome = dialUpgrade(client, {
    backends,
    pools: upstreams,
    pending: hold,
    tunnels: () => 0,
    connect,
  }).then(
    () => "",
    ({ message }: Error) => message,
  );
  scene.run(3000);
  assert.is(backoff, 0);
  path.backend("a").isMute = false;
  scene.run(500);
  assert.is(await outcome, "dialled");
});

test.run();
