/** A client with much load, from the first request until its reads are divided among the backends, and back. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { balanceLimits } from "../../src/proxy/balance/limits.ts";
import { spreadReadLimits } from "../../src/proxy/observe/spread-reads.ts";
import { requestLimits } from "../../src/proxy/request/limits.ts";
import { upstreamLimits } from "../../src/proxy/upstream/limits.ts";
import { bearer, type PlayedClient, PlayedPath } from "../support/path.ts";

const test = suite("flows/spread-reads");

const json = [new Field("content-type", "application/json")];
const configmaps = "/api/v1/namespaces/x/configmaps";
const cached = `${configmaps}?resourceVersion=0`;
const names = ["a", "b", "c"] as const;
/** Each read counts as much work as 1 MiB, so that few reads cause much load. */
Object.assign(requestLimits, { requestWorkBytes: 2 ** 20 });
const perSecond = 10;

class Scene {
  readonly path: PlayedPath;
  readonly client: PlayedClient;
  /** The version in the lists of each backend. */
  readonly versions: Record<string, number> = { a: 100, b: 100, c: 100 };
  /** The backend that answers 504 to requests that demand a version; "every": all of them. */
  behind = "";
  readonly #served: Record<string, number> = { a: 0, b: 0, c: 0 };
  readonly failures: string[] = [];

  constructor(staleReadGuard: "Observe" | "Enforce" | "Disabled" = "Observe") {
    this.path = new PlayedPath(names, { staleReadGuard });
    this.client = this.path.client();
    this.path.clock.advance(upstreamLimits.slowStartMs + 1000);
  }

  /** Answers what the backends were asked. Returns the backend and the path of each request. */
  answer(): { readonly by: string; readonly path: string }[] {
    this.path.settle();
    return names.flatMap((by) => {
      const { asked } = this.path.backend(by);
      const open = asked.slice(this.#served[by]);
      this.#served[by] = asked.length;
      return open.map((one) => {
        const { path } = one.request;
        const demanded = Number(/resourceVersion=(\d+)/.exec(path)?.[1] ?? 0);
        const version = Math.max(this.versions[by] ?? 0, demanded);
        if ((by === this.behind || this.behind === "every") && path.includes("NotOlderThan"))
          one.answer(504, '{"kind":"Status"}', [
            ...json,
            new Field("content-length", "17"),
            new Field("retry-after", "1"),
          ]);
        else
          one.answer(
            200,
            `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"${version}"},"items":[]}`,
            json,
          );
        return { by, path };
      });
    });
  }

  /** Sends a request, and returns the backends that served it, in turn, with the paths. */
  ask(path: string, method = "GET"): { readonly by: string; readonly path: string }[] {
    const ear = this.client.ask(method, path, [bearer("t")]);
    const served: { readonly by: string; readonly path: string }[] = [];
    for (let round = 0; round < 4 && !ear.isEnded; round += 1) {
      served.push(...this.answer());
      this.path.settle();
    }
    if (ear.status !== "200") this.failures.push(`${path}: ${ear.status}`);
    return served;
  }

  /** Sends the request `perSecond` times a second. Returns each backend's share of these requests. */
  load(path: string, seconds: number): Record<string, number> {
    const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
    const requests = seconds * perSecond;
    for (let number = 0; number < requests; number += 1) {
      for (const { by } of this.ask(path)) counts[by] = (counts[by] ?? 0) + 1 / requests;
      this.path.clock.advance(1000 / perSecond);
    }
    return counts;
  }

  get own(): string {
    return this.client.downstream.client.backend ?? "";
  }

  get others(): string[] {
    return names.filter((name) => name !== this.own);
  }
}

function isAbout(counts: Readonly<Record<string, number>>, name: string, share: number): void {
  assert.ok(Math.abs((counts[name] ?? 0) - share) < 0.02, JSON.stringify(counts));
}

function areEven(counts: Readonly<Record<string, number>>): void {
  for (const name of names) assert.ok((counts[name] ?? 0) > 0.25, JSON.stringify(counts));
}

test("a client that reads in a loop is divided among all backends, and stays bound to its own", () => {
  const scene = new Scene();
  isAbout(scene.load(configmaps, 4), scene.own, 1);
  const { own } = scene;
  scene.load(configmaps, 120);
  areEven(scene.load(configmaps, 10));
  for (let round = 0; round < 6; round += 1) {
    scene.ask(configmaps);
    assert.is(scene.own, own);
  }
  assert.equal(scene.failures, []);
});

test("other requests of the client go to its own backend", () => {
  const scene = new Scene();
  scene.load(configmaps, 60);
  const { own } = scene;
  for (const [method, path] of [
    ["POST", configmaps],
    ["GET", `${configmaps}?limit=500`],
    ["GET", `${configmaps}/y?resourceVersion=0`],
    ["GET", `${configmaps}?resourceVersion=50`],
    ["GET", "/apis/stable.example.com/v1/things"],
    ["GET", "/api/v1/componentstatuses"],
    ["GET", "/apis/coordination.k8s.io/v1/leases"],
    ["GET", "/version"],
  ] as const)
    for (let round = 0; round < 6; round += 1)
      assert.equal(
        scene.ask(path, method).map(({ by }) => by),
        [own],
        path,
      );
});

test("a list from a cache demands the version that the client has received", () => {
  const scene = new Scene();
  scene.load(cached, 150);
  areEven(scene.load(cached, 10));
  scene.versions["b"] = 140;
  for (let round = 0; round < 9; round += 1) scene.ask(cached);
  for (const { path } of scene.ask(cached))
    assert.match(path, "resourceVersion=140&resourceVersionMatch=NotOlderThan");
  assert.is(scene.path.staleReadGuard.counts.outdated, 0);
});

for (const [what, method, path] of [
  ["a write", "POST", configmaps],
  ["a read from etcd", "GET", `${configmaps}/y`],
  ["a read of one object from a cache", "GET", `${configmaps}/y?resourceVersion=0`],
] as const)
  test(`after ${what}, lists from a cache go to the client's own backend; they are divided again later`, () => {
    const scene = new Scene();
    scene.load(cached, 150);
    scene.ask(path, method);
    const { own, others } = scene;
    isAbout(scene.load(cached, spreadReadLimits.unmixedMs / 1000 - 1), own, 1);
    scene.load(cached, 2);
    // The client's own backend has a high average load from the lists, so the other ones get most of the next lists.
    const later = scene.load(cached, 10);
    for (const other of others) assert.ok((later[other] ?? 0) > 0.1, JSON.stringify(later));
  });

for (const mode of ["Enforce", "Disabled"] as const)
  test(`if the stale-read guard is ${mode}, lists from caches go to the client's own backend`, () => {
    const scene = new Scene(mode);
    scene.load(cached, 150);
    const counts = scene.load(cached, 10);
    isAbout(counts, scene.own, 1);
  });

test("renewals of a Lease, and watches from the version of a list, leave lists from caches divided", () => {
  const scene = new Scene();
  scene.load(cached, 150);
  scene.ask("/apis/coordination.k8s.io/v1/namespaces/x/leases/y", "PUT");
  scene.ask(`${configmaps}?resourceVersion=100&limit=5`);
  areEven(scene.load(cached, 10));
});

test("if a backend's cache is behind, the client notices nothing, and its reads gather", () => {
  const scene = new Scene();
  scene.load(cached, 150);
  const { own, others } = scene;
  scene.behind = others[0] ?? "";
  isAbout(scene.load(cached, 10), own, 0.99);
  assert.equal(scene.failures, []);
  // The spread has ended, so the lists demand no version. No new spread begins for a while.
  scene.load(cached, balanceLimits.gatherMs / 1000 + 10);
  assert.equal(scene.ask(cached), [{ by: own, path: cached }]);
});

test("a list that every cache refuses is sent as the client has sent it", () => {
  const scene = new Scene();
  scene.load(cached, 150);
  scene.behind = "every";
  scene.load(cached, 1);
  assert.equal(scene.failures, []);
});

test("a failed backend gets no reads, and the client notices nothing", () => {
  const scene = new Scene();
  scene.load(configmaps, 120);
  const [gone = ""] = scene.others;
  const { own } = scene;
  scene.path.backend(gone).kill();
  scene.load(configmaps, 30);
  const counts = scene.load(configmaps, 10);
  isAbout(counts, gone, 0);
  assert.ok((counts[own] ?? 0) > 0.4, JSON.stringify(counts));
  assert.is(scene.own, own);
  assert.equal(scene.failures, []);
});

test("once the client causes little load, its reads gather at its own backend", () => {
  const scene = new Scene();
  scene.load(configmaps, 120);
  for (let second = 0; second < 200; second += 1) {
    if (second > 190)
      assert.equal(
        scene.ask(configmaps).map(({ by }) => by),
        [scene.own],
      );
    scene.path.clock.advance(1000);
  }
  assert.is(scene.client.downstream.client.spread, undefined);
});

test.run();
