/**
 * A backend is ready but cannot reach a server that the other backend reaches: that of an aggregated API, or a webhook.
 * The proxy reports the backend by name, and sends the requests that it cannot answer to the other backend.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Entry, EntryOf } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import { classify } from "../../src/kube/request-info.ts";
import { outcomeLimits } from "../../src/proxy/observe/peer-outcomes.ts";
import { apiFailureLimits } from "../../src/proxy/request/avoided-apis.ts";
import { Answering } from "../support/answering.ts";
import { type Asked, bearer, type Ear, PlayedPath } from "../support/path.ts";

const test = suite("flows/grey-backend");

const json = new Field("content-type", "application/json");
const metrics = "/apis/metrics.k8s.io/v1beta1/nodes";
const pods = "/api/v1/namespaces/default/pods/p";
const configmaps = "/api/v1/namespaces/default/configmaps";

const unreachable = "error trying to reach service: dial tcp 10.96.0.9:443: connect: connection refused\n";
const notWebhook = (text: string): string =>
  JSON.stringify({
    kind: "Status",
    status: "Failure",
    message: `Internal error occurred: failed calling webhook "vpol.example.com": failed to call webhook: Post "https://x": ${text}`,
    reason: "InternalError",
    code: 500,
  });

type Way = "answers" | "refuses" | "hangs";

/** Two backends, and a client that an earlier request has bound to `grey`. */
class Grey {
  readonly path = new PlayedPath(["a", "b"], { isProbed: true });
  readonly grey: string;
  readonly other: string;
  readonly #answering = new Answering(this.path, (name, asked) => this.#answer(name, asked));
  readonly #client = this.path.client();
  /** How each backend treats requests of the aggregated API, and writes. */
  way: (backend: string) => Way = (backend) => (backend === this.grey ? "refuses" : "answers");

  constructor() {
    this.grey = "";
    this.other = "";
    this.run(2000);
    this.get(pods);
    this.grey = this.#backendsAsked(pods)[0] ?? "";
    this.other = this.grey === "a" ? "b" : "a";
    // The watches make the proxy bind later clients to the other backend, which has fewer streams.
    for (let count = 0; count < 5; count += 1)
      this.#client.ask("GET", `/api/v1/pods?watch=1&x=${count}`, [bearer("x")]);
    this.run(100);
  }

  #backendsAsked(url: string): string[] {
    return [...this.path.played].flatMap(([name, { asked }]) =>
      asked.filter(({ request }) => request.path === url).map(() => name),
    );
  }

  /** Number of requests for this path that each backend received. */
  asked(url: string): { readonly grey: number; readonly other: number } {
    const all = this.#backendsAsked(url);
    const grey = all.filter((name) => name === this.grey).length;
    return { grey, other: all.length - grey };
  }

  get(url: string, ms = 100): Ear {
    const ear = this.#client.ask("GET", url, [bearer("x")]);
    this.run(ms);
    return ear;
  }

  /** A read by a client that is bound to the other backend. */
  getElsewhere(url: string): Ear {
    const ear = this.#elsewhere.ask("GET", url, [bearer("x")]);
    this.run(100);
    return ear;
  }

  /** A write by the client or, with `isElsewhere`, by one that is bound to the other backend. */
  write(isElsewhere = false, url = configmaps): Ear {
    const client = isElsewhere ? this.#elsewhere : this.#client;
    const ear = client.ask("POST", url, [bearer("x")], false);
    ear.say("{}", true);
    this.run(100);
    return ear;
  }

  get #elsewhere(): ReturnType<PlayedPath["client"]> {
    this.#neighbour ??= this.path.client();
    return this.#neighbour;
  }
  #neighbour: ReturnType<PlayedPath["client"]> | undefined;

  entries<K extends Entry["kind"]>(kind: K): EntryOf<K>[] {
    return this.path.entries.filter((entry): entry is EntryOf<K> => entry.kind === kind);
  }

  #answer(name: string, asked: Asked): void {
    const { path, method } = asked.request;
    const isHere = path.startsWith("/apis/metrics.k8s.io") || method === "POST";
    const way = isHere ? this.way(name) : "answers";
    if (way === "hangs" || path.includes("watch=") || asked.resetCode !== undefined) return;
    if (way === "answers") return asked.answer(200, `{"from":"${name}"}`, [json]);
    const body = method === "POST" ? notWebhook("context deadline exceeded") : unreachable;
    const type = method === "POST" ? json : new Field("content-type", "text/plain; charset=utf-8");
    asked.answer(method === "POST" ? 500 : 503, body, [
      type,
      new Field("content-length", String(body.length)),
    ]);
  }

  run(ms: number): void {
    this.#answering.run(ms);
  }
}

test("reads of an API that the backend cannot reach are answered by the other from the first on, and it is named within seconds", () => {
  const grey = new Grey();
  const startedAt = grey.path.clock.now();
  for (let count = 0; count < outcomeLimits.failures; count += 1) {
    assert.is(grey.entries("backend.api_unreachable").length, 0);
    const { status, body } = grey.get(metrics, 1000);
    assert.equal([status, body], ["200", `{"from":"${grey.other}"}`]);
  }
  assert.ok(grey.path.clock.now() - startedAt <= 10_000);
  const [named] = grey.entries("backend.api_unreachable");
  assert.equal(
    { ...named },
    {
      kind: "backend.api_unreachable",
      api: "metrics.k8s.io",
      failure: "refused",
      backend: grey.grey,
      failed: 4,
      total: 4,
      peer: grey.other,
      peerFailed: 0,
      peerTotal: 3,
    },
  );
  assert.equal(grey.path.measurementsOf(grey.grey).unreachableApis, ["metrics.k8s.io"]);
  const before = grey.asked(metrics);
  for (let count = 0; count < 10; count += 1) assert.is(grey.get(metrics).status, "200");
  assert.equal(grey.asked(metrics), { grey: before.grey, other: before.other + 10 });
  assert.is(grey.get(pods).body, `{"from":"${grey.grey}"}`, "it is ready for the rest");
  assert.is(grey.path.backends.stateOf(grey.grey), "ready");
});

test("reads that the backend leaves unanswered are sent to the other as well, and it is named", () => {
  const grey = new Grey();
  grey.way = (backend) => (backend === grey.grey ? "hangs" : "answers");
  const startedAt = grey.path.clock.now();
  const ears = [0, 1, 2, 3].map(() => grey.get(metrics, 1000));
  grey.run(3000);
  assert.equal(
    ears.map(({ status }) => status),
    ["200", "200", "200", "200"],
  );
  assert.ok(grey.path.clock.now() - startedAt <= 10_000);
  const [named] = grey.entries("backend.api_unreachable");
  assert.equal([named?.backend, named?.failure, named?.failed], [grey.grey, "unanswered", 4]);
});

test("after a while one read finds out whether the backend can reach it now; a failure costs its client nothing", () => {
  const grey = new Grey();
  for (let count = 0; count < 6; count += 1) grey.get(metrics);
  const before = grey.asked(metrics).grey;
  grey.run(apiFailureLimits.avoidMs);
  const ears = [0, 1, 2].map(() => grey.get(metrics, 0));
  grey.run(100);
  assert.equal(
    ears.map(({ status }) => status),
    ["200", "200", "200"],
  );
  assert.is(grey.asked(metrics).grey, before + 1);
  grey.way = () => "answers";
  grey.run(apiFailureLimits.avoidMs);
  for (let count = 0; count < apiFailureLimits.trials; count += 1) {
    assert.is(grey.entries("backend.api_reachable").length, 0);
    assert.is(grey.get(metrics).body, `{"from":"${grey.grey}"}`);
  }
  assert.equal(
    grey.entries("backend.api_reachable").map(({ backend }) => backend),
    [grey.grey],
  );
  assert.equal(grey.path.measurementsOf(grey.grey).unreachableApis, []);
});

test("a write never tests an unreachable API: while only writes come, all go to the other backend", () => {
  const grey = new Grey();
  for (let count = 0; count < 6; count += 1) grey.get(metrics);
  const { way } = grey;
  for (const theirs of ["refuses", "hangs"] as const) {
    grey.way = (backend) => (backend === grey.grey ? theirs : way(backend));
    for (let minute = 0; minute < 10; minute += 1) {
      grey.run(60_000);
      assert.is(grey.write(false, metrics).status, "200", `${theirs}, minute ${minute}`);
    }
  }
  assert.equal(grey.path.avoidedApis.avoided(classify("POST", metrics)), [grey.grey]);
});

test("the request that finds out may be that of a client which is bound to another backend", () => {
  const grey = new Grey();
  for (let count = 0; count < 6; count += 1) grey.get(metrics);
  grey.way = () => "answers";
  grey.run(apiFailureLimits.avoidMs);
  for (let count = 0; count < apiFailureLimits.trials; count += 1)
    assert.is(grey.getElsewhere(metrics).body, `{"from":"${grey.grey}"}`);
  assert.is(grey.entries("backend.api_reachable").length, 1);
  assert.is(grey.getElsewhere(pods).body, `{"from":"${grey.other}"}`);
});

test("a server that no backend reaches names none, also while it comes back", () => {
  const grey = new Grey();
  grey.way = () => "refuses";
  for (let count = 0; count < 10; count += 1) assert.is(grey.get(metrics).status, "503");
  grey.way = () => "answers";
  for (let count = 0; count < 10; count += 1) assert.is(grey.get(metrics).status, "200");
  assert.is(grey.entries("backend.api_unreachable").length, 0);
});

test("a backend is named soon after an outage of the server for all", () => {
  const grey = new Grey();
  grey.way = () => "refuses";
  for (let count = 0; count < 20; count += 1) grey.get(metrics);
  grey.way = (backend) => (backend === grey.grey ? "refuses" : "answers");
  for (let second = 0; second < 25; second += 1) assert.is(grey.get(metrics, 1000).status, "200");
  assert.ok(grey.entries("backend.api_unreachable").length > 0);
});

test("a server that fails now and then names none", () => {
  const grey = new Grey();
  let count = 0;
  grey.way = (backend) => (backend === grey.grey && (count += 1) % 2 === 0 ? "refuses" : "answers");
  for (let request = 0; request < 40; request += 1) assert.is(grey.get(metrics).status, "200");
  assert.is(grey.entries("backend.api_unreachable").length, 0);
});

test("with avoidUnreachableAPIs off the client gets its backend's answer", () => {
  const grey = new Grey();
  grey.path.avoidedApis.mayAvoid = false;
  for (let count = 0; count < 6; count += 1) assert.is(grey.get(metrics).status, "503");
  assert.is(grey.asked(metrics).other, 0);
});

test("a webhook that one backend alone cannot call is named, and writes are sent once", () => {
  const grey = new Grey();
  for (let count = 0; count < 5; count += 1) {
    assert.is(grey.write().status, "500");
    assert.is(grey.write(true).status, "200");
  }
  const [named] = grey.entries("backend.webhook_failing");
  assert.equal(
    { ...named },
    {
      kind: "backend.webhook_failing",
      webhook: "vpol.example.com",
      resource: "/configmaps",
      failure: "unanswered",
      backend: grey.grey,
      failed: 4,
      total: 4,
      peer: grey.other,
      peerFailed: 0,
      peerTotal: 3,
    },
  );
  assert.equal(grey.asked(configmaps), { grey: 5, other: 5 });
});

test("a webhook that fails everywhere names no backend", () => {
  const grey = new Grey();
  grey.way = () => "refuses";
  for (let count = 0; count < 8; count += 1) {
    grey.write();
    grey.write(true);
  }
  assert.is(grey.entries("backend.webhook_failing").length, 0);
});

test.run();
