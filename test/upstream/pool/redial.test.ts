/** Tests redials: when a backend answers a new socket, the pool restarts older dials that still wait for an answer. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Connection } from "../../../src/upstream/pool/connection.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/redial");

test("a dial into a hole that has healed is begun again when a newer socket is answered, a fresh one is let be", () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  path.backend("a").kill();
  path.backend("a").isDown = false;
  path.backend("a").isMute = true;
  path.clock.advance(3000);
  const connections = path.pools.poolOf("a");
  const opening = (): readonly Connection[] =>
    connections?.shards.flatMap((row) => row.connections.filter((connection) => connection.isOpening)) ?? [];
  const aged = opening().filter(
    (connection) => path.clock.now() - connection.dialledAt >= upstreamLimits.hurriedDialMs,
  );
  assert.ok(aged.length > 0);
  path.backend("a").isMute = false;
  connections?.redialStuck(1);
  assert.ok(aged.every((connection) => !connection.isOpening));
  const fresh = opening();
  connections?.redialStuck(1);
  assert.equal(opening(), fresh);
  path.clock.advance(100);
  assert.is(path.backends.views[0]?.state === "dead", false);
});

test("a dial that began just before a newer socket was answered has its time, and is begun again then", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").kill();
  path.backend("a").isDown = false;
  path.backend("a").isMute = true;
  const pool = path.pools.poolOf("a");
  const young = (): Connection | undefined =>
    pool?.shards
      .flatMap(({ connections }) => connections)
      .find(
        ({ isOpening, dialledAt }) =>
          isOpening && path.clock.now() - dialledAt < upstreamLimits.hurriedDialMs / 2,
      );
  for (let ms = 0; ms < 5000 && young() === undefined; ms += 10) path.clock.advance(10);
  const dialled = young();
  assert.ok(dialled !== undefined);
  path.backend("a").isMute = false;
  pool?.redialStuck(1);
  assert.ok(dialled.isOpening, "it has its time");
  path.clock.advance(upstreamLimits.hurriedDialMs + 250);
  const left = pool?.shards.flatMap(({ connections }) => connections) ?? [];
  assert.not(left.includes(dialled), "given up at the next tick");
});

test("a dial that the proxy gave up is no evidence against the backend", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").kill();
  path.backend("a").isDown = false;
  path.backend("a").isMute = true;
  path.clock.advance(3000);
  const told: string[] = [];
  path.journal.subscribe((entry) => {
    if (entry.kind === "backend.changed") told.push(`${entry.to}: ${entry.reason}`);
  });
  // Of several sockets that wait for an answer, the first one is answered. It was dialled before the upstream
  // connections, so they are not dialled again.
  path.backends.learn("a", { kind: "fresh", met: "answer", begunAt: 1, ms: 1, reason: "" });
  path.pools.poolOf("a")?.redialStuck(1);
  path.settle();
  assert.equal(
    told.filter((text) => text.includes("Dial restarted")),
    [],
  );
});

test("an upstream connection whose handshake is slow is not given up for a probe that is as slow", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").kill();
  path.backend("a").isDown = false;
  path.backend("a").isMute = true;
  path.clock.advance(3_000);
  const connections = path.pools.poolOf("a");
  const opening = (): readonly Connection[] =>
    connections?.shards.flatMap((row) => row.connections.filter((connection) => connection.isOpening)) ?? [];
  const before = opening();
  const oldest = Math.max(...before.map((connection) => path.clock.now() - connection.dialledAt));
  connections?.redialStuck(oldest / 3 + 1);
  assert.equal(opening(), before);
});

test("requests that wait for a dial that is begun again go on waiting", () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(1_000);
  path.backend("a").kill();
  path.backend("a").isDown = false;
  path.backend("a").isMute = true;
  path.settle();
  const ear = path.client().ask("GET", "/api", [bearer("t")]);
  path.clock.advance(upstreamLimits.hurriedDialMs + 200);
  path.backend("a").isMute = false;
  path.pools.poolOf("a")?.redialStuck(1);
  path.settle();
  path.backend("a").last.answer(200, "x");
  path.settle();
  assert.is(ear.status, "200");
});

test.run();
