import type { Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { TcpRelay } from "../../../src/proxy/tunnel/tcp-relay.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { until } from "../../support/h1.ts";
import { RawPeer } from "../../support/raw.ts";
import { openPair, type SocketPair } from "../../support/sockets.ts";

const test = suite("proxy/tunnel/tcp-relay");

type Joined = {
  readonly client: RawPeer;
  readonly backend: RawPeer;
  readonly relay: TcpRelay;
  readonly clock: ManualClock;
  readonly ends: string[];
  /** The proxy's sockets: `down` to the client, `up` to the backend. */
  readonly down: Socket;
  readonly up: Socket;
};

let pairs: SocketPair[] = [];
test.after.each(() => {
  for (const pair of pairs) pair.close();
  pairs = [];
});

async function join(): Promise<Joined> {
  const [outer, inner] = [await openPair(), await openPair()];
  pairs.push(outer, inner);
  for (const socket of [outer.near, outer.far, inner.near, inner.far]) socket.allowHalfOpen = true;
  const clock = manualClock();
  const ends: string[] = [];
  const [down, up] = [outer.far, inner.near];
  const relay = new TcpRelay({ down, up, clock }, (reason) => ends.push(reason));
  return { client: new RawPeer(outer.near), backend: new RawPeer(inner.far), relay, clock, ends, down, up };
}

test("bytes pass both ways, untouched and counted", async () => {
  const { client, backend, relay } = await join();
  client.send("question");
  await backend.expect("question");
  backend.send("a longer answer");
  await client.expect("a longer answer");
  assert.equal(relay.bytes, { sent: 15, received: 8 });
});

test("either half is closed while the other goes on, and the end of both is an end in order", async () => {
  for (const side of ["client", "backend"] as const) {
    const joined = await join();
    const first = joined[side];
    const second = joined[side === "client" ? "backend" : "client"];
    first.socket.end("last words");
    await second.ended();
    assert.is(second.text, "last words");
    second.send("much later");
    await first.expect("much later");
    assert.equal(joined.ends, []);
    second.socket.end();
    await first.closed();
    await until("the end", () => joined.ends.length > 0);
    assert.equal(joined.ends, ["ended"]);
  }
});

test("a reset is passed on as a reset", async () => {
  for (const [side, reason] of [
    ["client", "client_left"],
    ["backend", "backend_lost"],
  ] as const) {
    const joined = await join();
    const other = joined[side === "client" ? "backend" : "client"];
    const errors: string[] = [];
    other.socket.on("error", (error: Error & { code?: string }) => errors.push(error.code ?? ""));
    joined[side].socket.resetAndDestroy();
    await other.closed();
    assert.equal(joined.ends, [reason]);
    assert.equal(errors, ["ECONNRESET"]);
  }
});

test("cut, both attempts are reset at once, once", async () => {
  const { client, backend, relay, ends } = await join();
  client.send("question");
  await backend.expect("question");
  const errors: string[] = [];
  for (const { socket } of [client, backend])
    socket.on("error", (error: Error & { code?: string }) => errors.push(error.code ?? ""));
  relay.cut("backend_dead");
  relay.cut("draining");
  await Promise.all([client.closed(), backend.closed()]);
  assert.equal(ends, ["backend_dead"]);
  assert.equal(errors, ["ECONNRESET", "ECONNRESET"]);
});

test("a peer that reads slowly slows down the other side, both ways", async () => {
  for (const side of ["client", "backend"] as const) {
    const joined = await join();
    const slow = joined[side].socket;
    const fast = joined[side === "client" ? "backend" : "client"].socket;
    slow.pause();
    let sent = 0;
    const chunk = Buffer.alloc(256 * 1024, 1);
    while (fast.writableLength < chunk.length * 4 && sent < 64 * 1024 * 1024) {
      fast.write(chunk);
      sent += chunk.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(sent < 64 * 1024 * 1024, "all of it was taken");
    const held = joined.down.writableLength + joined.down.readableLength + joined.up.writableLength;
    assert.ok(held + joined.up.readableLength < 1024 * 1024, `${held} bytes wait here`);
    slow.resume();
    await until("the rest", () => joined[side].text.length === sent);
  }
});

test("a client that reads slowly gets all that a backend sent before it was lost", async () => {
  const { client, backend, clock, ends } = await join();
  client.socket.pause();
  const answer = Buffer.alloc(100 * 1024, 1);
  backend.socket.end(answer);
  await until("the backend to be done", () => backend.socket.writableFinished);
  backend.socket.resetAndDestroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  client.socket.resume();
  await client.ended();
  assert.is(client.text.length, answer.length);
  client.socket.end();
  await until("the end", () => {
    clock.advance(1000);
    return ends.length > 0;
  });
  assert.equal(ends, ["ended"]);
});

test.run();
