/** Flow control of sent DATA: the peer's windows, a socket that is full, and fairness between streams. */
import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { data, headers, settings, windowUpdate } from "../../support/h2-frames.ts";
import { fieldsOf, serverRig } from "../../support/h2-session.ts";

const test = suite("h2/session/flow-out");

const ok = fieldsOf([[":status", "200"]]);

function at<T>(list: readonly T[], index: number): T {
  const one = list.at(index);
  if (one === undefined) throw new Error(`Nothing at ${index}`);
  return one;
}

test("SETTINGS move the windows of streams that are open, below zero too (§6.9.2)", () => {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 100 }));
  rig.peer.sends(headers(1).get("/"));
  const { stream } = rig.last;
  stream.sendHeaders(ok, false);
  stream.sendData(Buffer.alloc(150, "a"), 0, 150, true);
  rig.clock.turn();
  rig.peer.expects("HEADERS 1 :status=200", "DATA 1 100 bytes");
  rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: 10 }));
  rig.peer.sends(windowUpdate(1, 90));
  rig.peer.expects("SETTINGS ack");
  rig.peer.sends(windowUpdate(1, 1));
  rig.peer.expects(data(1, "a"));
  rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: 59 }));
  rig.peer.expects("SETTINGS ack", data(1, "a".repeat(49), "end"));
});

test("a window that opens bit by bit is shared by all that wait", () => {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 1_000_000 }));
  for (const id of [1, 3, 5]) {
    rig.peer.sends(headers(id).get("/list"));
    rig.last.stream.sendHeaders(ok, false);
    for (let sent = 0; sent < 600_000; sent += 10_000)
      rig.last.stream.sendData(Buffer.alloc(10_000), 0, 10_000, false);
  }
  rig.clock.turn();
  const before = [1, 3, 5].map((id) => rig.peer.body(id).length);
  for (let update = 0; update < 30; update++) rig.peer.sends(windowUpdate(0, 10_000));
  const moved = [1, 3, 5].map((id, index) => rig.peer.body(id).length - at(before, index));
  assert.equal(moved, [100_000, 100_000, 100_000]);
});

test("a congested socket holds DATA back, not heads, and lets all of it go when drained", () => {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 1_000_000 }));
  rig.peer.sends(windowUpdate(0, 1_000_000), headers(1).get("/a"), headers(3).get("/b"));
  const [first, second] = [at(rig.opened, 0).stream, at(rig.opened, 1).stream];
  rig.takes = false;
  first.sendHeaders(ok, false);
  rig.clock.turn();
  rig.peer.heard();
  first.sendData(Buffer.from("held"), 0, 4, true);
  second.sendHeaders(ok, false);
  rig.clock.turn();
  rig.peer.expects("HEADERS 3 :status=200");
  assert.is(rig.session.queuedBytes, 4);
  rig.takes = true;
  rig.session.drained();
  rig.clock.turn();
  rig.peer.expects(data(1, "held", "end"));
  assert.is(rig.session.queuedBytes, 0);
});

test("what waits goes to the socket no faster than it takes it: half a megabyte a turn (A19)", () => {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 10_000_000 }));
  rig.peer.sends(windowUpdate(0, 10_000_000));
  rig.takes = false;
  for (let index = 0; index < 10; index++) {
    rig.peer.sends(headers(2 * index + 1).get("/list"));
    rig.last.stream.sendHeaders(ok, false);
  }
  rig.clock.turn();
  const total = (): number => rig.opened.reduce((sum, { ear }) => sum + ear.sentBytes, 0);
  for (const { stream } of rig.opened)
    for (let sent = 0; sent < 400_000; sent += 10_000)
      stream.sendData(Buffer.alloc(10_000), 0, 10_000, false);
  assert.is(total(), 0);
  rig.session.drained();
  rig.clock.turn();
  assert.ok(total() >= limits.socketBacklogBytes && total() < limits.socketBacklogBytes + 16_384);
  rig.takes = true;
  rig.session.drained();
  rig.clock.turn();
  assert.is(total(), 4_000_000);
  assert.is(rig.session.queuedBytes, 0);
});

test("a client that reads a list of 20 MiB in pieces of 4 KiB, and says so each time, lives on (A15)", () => {
  const rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 4_194_304 }));
  rig.peer.sends(windowUpdate(0, 1_000_000_000), headers(1).get("/list"));
  rig.last.stream.sendHeaders(ok, false);
  for (let part = 0; part < 5; part++) {
    for (let sent = 0; sent < 4_194_304; sent += 16_384)
      rig.last.stream.sendData(Buffer.alloc(16_384), 0, 16_384, false);
    rig.clock.turn();
    for (let read = 0; read < 4_194_304; read += 4096)
      rig.session.receive(rig.peer.bytesOf(windowUpdate(0, 4096), windowUpdate(1, 4096)));
  }
  assert.not(rig.session.isOver);
  assert.is(rig.last.ear.sentBytes, 20_971_520);
});

/**
 * A server that sends random amounts on its streams, to a peer with random windows and a socket that is full at random
 * times.
 */
class Downloader {
  readonly rig = serverRig(settings({ INITIAL_WINDOW_SIZE: 30_000 }));
  readonly bodies = [1, 3, 5, 7].map((id) => {
    this.rig.peer.sends(headers(id).get("/"));
    this.rig.last.stream.sendHeaders(ok, false);
    return { id, ...this.rig.last, chunks: [] as Buffer[] };
  });
  #octet = 0;

  send(pick: number, size: number): void {
    const { stream, chunks } = at(this.bodies, pick);
    const bytes = Buffer.alloc(size, (this.#octet += 1));
    chunks.push(Buffer.from(bytes));
    stream.sendData(bytes, 0, size, false);
  }

  widen(pick: number, size: number): void {
    this.rig.peer.sends(windowUpdate(at(this.bodies, pick).id, size + 1), windowUpdate(0, size + 1));
  }

  /** Opens all windows and the socket, and ends all bodies. */
  finish(): void {
    const { rig, bodies } = this;
    rig.takes = true;
    rig.session.drained();
    for (const { stream } of bodies) stream.sendData(Buffer.alloc(0), 0, 0, true);
    rig.peer.sends(windowUpdate(0, 20_000_000));
    for (const { id } of bodies) if (!rig.peer.hasEnded(id)) rig.peer.sends(windowUpdate(id, 20_000_000));
  }
}

const moves = {
  sends: (server: Downloader, pick: number, size: number) => server.send(pick, size),
  widens: (server: Downloader, pick: number, size: number) => server.widen(pick, size),
  "sets windows": (server: Downloader, _: number, size: number) =>
    server.rig.peer.sends(settings({ INITIAL_WINDOW_SIZE: size })),
  stalls: (server: Downloader) => void (server.rig.takes = false),
  drains: (server: Downloader) => {
    server.rig.takes = true;
    server.rig.session.drained();
  },
} as const;

test("over any run of windows, stalls and sends, every body arrives whole and no window is overdrawn", () => {
  const move = fc.record({
    name: fc.constantFrom(...(Object.keys(moves) as (keyof typeof moves)[]), "sends", "sends"),
    pick: fc.nat(3),
    size: fc.oneof(fc.nat(50), fc.nat(20_000), fc.nat(100_000)),
  });
  fc.assert(
    fc.property(fc.array(move, { maxLength: 100, size: "max" }), (list) => {
      const server = new Downloader();
      for (const { name, pick, size } of list) {
        moves[name](server, pick, size);
        server.rig.clock.advance(1000);
      }
      server.finish();
      const { peer, session } = server.rig;
      for (const { id, chunks, ear } of server.bodies) {
        const whole = Buffer.concat(chunks);
        assert.ok(peer.hasEnded(id), `stream ${id} ended`);
        assert.ok(peer.body(id).equals(whole), `stream ${id}: ${peer.body(id).length} of ${whole.length}`);
        assert.is(ear.sentBytes, whole.length);
      }
      assert.is(session.queuedBytes, 0);
    }),
    { numRuns: 200 },
  );
});

test.run();
