import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { balanceLimits } from "../../src/proxy/balance/limits.ts";
import { upstreamLimits } from "../../src/upstream/pool/limits.ts";
import { bearer, type PlayedClient, PlayedPath } from "../support/path.ts";

const test = suite("flows/balance-by-load");
const list = "x".repeat(500 * 1024);

/** Two backends that are past slow start and answer lists with half a megabyte. */
function warm() {
  const path = new PlayedPath(["a", "b"]);
  path.clock.advance(upstreamLimits.slowStartMs + 1000);
  const taken = new Map(["a", "b"].map((name) => [name, 0]));
  const ask = (client: PlayedClient): string => {
    client.ask("GET", "/api/v1/pods", [bearer("t")]);
    path.settle();
    const backend = client.downstream.client.backend ?? "";
    path.backend(backend).last.answer(200, list);
    path.settle();
    taken.set(backend, (taken.get(backend) ?? 0) + 1);
    return backend;
  };
  return { path, ask, taken };
}

test("of two clients that list in a loop at one backend, one goes to the other backend, once", () => {
  const { path, ask, taken } = warm();
  const clients = [path.client(), path.client()];
  for (const client of clients) client.downstream.client.bind("a");
  for (let second = 0; second < 110; second += 1) {
    for (const client of clients) for (let count = 0; count < 2; count += 1) ask(client);
    path.clock.advance(1000);
  }
  const [one = "", other = ""] = clients.map(({ downstream }) => downstream.client.backend);
  assert.equal(
    [one, other].toSorted((x, y) => (x < y ? -1 : 1)),
    ["a", "b"],
  );
  const [onA = 0, onB = 0] = [taken.get("a"), taken.get("b")];
  assert.ok(onB > 80 && onA + onB === 440, `${onA} and ${onB}`);
  assert.ok(Math.abs(path.loads.facts("a").activity / path.loads.facts("b").activity - 1) < 0.1);
});

test("a client that lists in a loop keeps new clients away from its backend", () => {
  const { path, ask } = warm();
  const loop = path.client();
  for (let second = 0; second < 15; second += 1) {
    for (let count = 0; count < 2; count += 1) ask(loop);
    path.clock.advance(1000);
  }
  const busy = loop.downstream.client.backend;
  const news = Array.from({ length: 20 }, () => ask(path.client()));
  assert.equal(
    news.filter((backend) => backend === busy),
    [],
  );
});

test("nothing moves to a backend that has asked for a pause, nor do new clients go there", () => {
  const { path, ask } = warm();
  const clients = [path.client(), path.client()];
  for (const client of clients) client.downstream.client.bind("a");
  const refused = path.client();
  refused.downstream.client.bind("b");
  for (let second = 0; second < 70; second += 1) {
    for (const client of clients) for (let count = 0; count < 2; count += 1) ask(client);
    refused.ask("GET", "/api/v1/nodes", [bearer("t")]);
    path.settle();
    path.backend("b").last.answer(429, "busy", [new Field("retry-after", "2")]);
    path.clock.advance(1000);
  }
  assert.equal(
    clients.map(({ downstream }) => downstream.client.backend),
    ["a", "a"],
  );
  assert.is(ask(path.client()), "a");
  path.clock.advance(balanceLimits.balanceMs);
  assert.is(refused.downstream.client.backend, "b");
});

/** For each backend, how many of `count` clients with one watch each are bound to it. */
function spread(traitsOf: (backend: string) => { weight: number; isNear: boolean }, count: number): number[] {
  const path = new PlayedPath(["a", "b", "c"], { traitsOf });
  path.clock.advance(upstreamLimits.slowStartMs + 1000);
  const clients = Array.from({ length: count }, (_, at) => {
    const client = path.client();
    client.ask("GET", "/api/v1/pods?watch=1", [bearer(`t-${at}`)]);
    path.settle();
    return client.downstream.client.backend;
  });
  return ["a", "b", "c"].map((name) => clients.filter((backend) => backend === name).length);
}

test("a backend of weight 3 gets three times the clients of one of weight 1", () => {
  const [onA = 0, onB = 0] = spread((name) => ({ weight: name === "a" ? 3 : 1, isNear: name !== "c" }), 80);
  assert.equal([onA, onB], [60, 20]);
});

test("clients stay in the own zone until its backend has twice the load of the others, and a hundred streams", () => {
  const traitsOf = (name: string) => ({ weight: 1, isNear: name === "a" });
  assert.equal(spread(traitsOf, 90), [90, 0, 0]);
  const [onA = 0, onB = 0, onC = 0] = spread(traitsOf, 180);
  assert.ok(onA >= 130 && onA <= 150 && onB + onC === 180 - onA, `${onA}, ${onB}, ${onC}`);
});

test.run();
