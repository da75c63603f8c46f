/**
 * All backends fail and recover under many clients. The proxy must not flood them with connections or watches (A26,
 * F14).
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { watchLimits } from "../../src/watch/limits.ts";
import { bearer, type Ear, PlayedPath } from "../support/path.ts";

const test = suite("flows/recovery");

const count = 600;
const json = new Field("content-type", "application/json");
const stepMs = 10;

/** Returns a function that answers all new requests and returns how many of them are watches. */
function answering(path: PlayedPath): () => number {
  const seen = new Map<string, number>();
  let version = 100;
  return () => {
    let watches = 0;
    for (const [name, backend] of path.played) {
      const from = seen.get(name) ?? 0;
      seen.set(name, backend.asked.length);
      for (const asked of backend.asked.slice(from)) {
        if (asked.resetCode !== undefined) continue;
        if (asked.request.path.includes("watch")) {
          watches += 1;
          version += 1;
          const event = `{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"p","uid":"u","resourceVersion":"${version}"}}}\n`;
          asked.side?.sendHeaders([new Field(":status", "200"), json], false);
          asked.say(event);
        } else asked.answer(200, "{}", [json]);
      }
    }
    path.settle();
    return watches;
  };
}

const poolOf = (path: PlayedPath): number =>
  [...path.played.values()].reduce((sum, { sessions }) => sum + sessions.length, 0);

test("600 clients with a watch and a request each, after a second without any backend, are served over a few upstream connections, step by step", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  const answer = answering(path);
  const step = (): number => {
    path.clock.advance(stepMs);
    path.settle();
    return answer();
  };
  for (let at = 0; at < 200; at += 1) step();
  const clients = Array.from({ length: count }, () => path.client());
  const token = (at: number): Field => bearer(`user-${at % 20}`);
  // Each client sends one request, which proves its token, so that clients share upstream connections.
  for (const [at, client] of clients.entries()) {
    client.ask("GET", "/api", [token(at)]);
    if (at % 20 === 0) step();
  }
  for (let at = 0; at < 100; at += 1) step();
  const watch = "/api/v1/namespaces/default/pods?watch=true&resourceVersion=100&allowWatchBookmarks=true";
  const watches: Ear[] = [];
  for (const [at, client] of clients.entries()) {
    watches.push(client.ask("GET", watch, [token(at)]));
    if (at % 20 === 0) step();
  }
  for (let at = 0; at < 300; at += 1) step();
  assert.is(watches.filter(({ status }) => status === "200").length, count);
  for (const backend of path.played.values()) backend.kill();
  for (let at = 0; at < 50; at += 1) step();
  const asked = clients.map((client, at) => client.ask("GET", "/api/v1/nodes", [token(at)]));
  for (let at = 0; at < 50; at += 1) step();
  const before = poolOf(path);
  for (const backend of path.played.values()) backend.isDown = false;
  const resumed: number[] = [];
  for (let at = 0; at < 500; at += 1) resumed.push(step());
  assert.is(asked.filter(({ status }) => status === "200").length, count, "every request was answered");
  assert.equal(
    watches.filter(({ isEnded, resetCode }) => isEnded || resetCode !== undefined).length,
    0,
    "no watch has ended",
  );
  const connections = poolOf(path) - before;
  const needed = 2 * Math.ceil(count / 80);
  process.stdout.write(
    `\nfigure: ${count} watches and as many requests came back over ${connections} connections\n`,
  );
  assert.ok(connections <= 3 * needed, `${connections} connections were dialled, ${needed} would do`);
  const most = Math.max(...resumed.map((_, at) => resumed.slice(at, at + 10).reduce((a, b) => a + b, 0)));
  const allowed = watchLimits.moveWindow.most;
  assert.ok(most <= allowed, `${most} watches were asked for within 100 ms, ${allowed} are allowed`);
  assert.ok(resumed.reduce((a, b) => a + b, 0) >= count, "all watches were asked for again");
});

test("a backend that stays down is told of once, and not with every dial; each upstream connection that was open is", () => {
  const path = new PlayedPath(["a"]);
  const closed = (): string[] =>
    path.entries.flatMap((entry) => (entry.kind === "upstream_connection.closed" ? [entry.reason] : []));
  const fall = (): void => {
    path.backend("a").kill();
    path.clock.advance(60_000);
  };
  fall();
  const told = closed().length;
  assert.is(told, 3, closed().join());
  path.backend("a").isDown = false;
  path.clock.advance(2000);
  fall();
  assert.is(closed().length, 2 * told, closed().join());
});

test.run();
