import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { type DialledSocket, dialThrough } from "../../../src/proxy/tunnel/dial-through.ts";
import type { Retries } from "../../../src/upstream/pool/retry-policy.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { until } from "../../support/h1.ts";
import { RawPeer } from "../../support/raw.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tunnel/dial-through");

const doubtMs = 500;

type Dialled = {
  readonly clock: ManualClock;
  /** The connections that each backend has accepted, in the order of dials. */
  readonly peers: Record<string, RawPeer[]>;
  readonly backoff: string[];
  readonly outcome: Promise<DialledSocket | Failure>;
};

let servers: Server[] = [];
let sockets: Socket[] = [];
test.after.each(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
  servers = [];
  sockets = [];
});

/** Dials these backends in this order, and fails after the last. No server listens at the backend named "refusing". */
async function dial(
  names: readonly string[],
  options: { isRepeatable?: boolean; mayHedge?: boolean } = {},
): Promise<Dialled> {
  const clock = manualClock();
  const peers: Record<string, RawPeer[]> = {};
  const ports: Record<string, number> = {};
  for (const name of new Set(names)) {
    const own: RawPeer[] = [];
    peers[name] = own;
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      own.push(new RawPeer(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ports[name] = (server.address() as AddressInfo).port;
    if (name === "refusing") await new Promise((resolve) => server.close(resolve));
    else servers.push(server);
  }
  const backoff: string[] = [];
  const parts = {
    clock,
    next: ({ tried }: Retries) => names[tried.length] ?? new Failure("no-backend", "proxy", "none is left"),
    connect(backend: string) {
      backoff.push(backend);
      const socket = connect({ port: ports[backend] ?? 0, host: "127.0.0.1", allowHalfOpen: true });
      socket.on("error", () => {});
      sockets.push(socket);
      return socket;
    },
    doubtMs: () => doubtMs,
    mayHedge: () => options.mayHedge ?? true,
  };
  const opening = { bytes: Buffer.from("hello"), isRepeatable: options.isRepeatable ?? true };
  const outcome = dialThrough(opening, parts);
  return { clock, peers, backoff, outcome };
}

async function peerOf({ peers }: Dialled, name: string, at = 0): Promise<RawPeer> {
  await until(`a socket at ${name}`, () => (peers[name]?.length ?? 0) > at);
  return peers[name]?.[at] as RawPeer;
}

async function reached({ outcome }: Dialled): Promise<DialledSocket> {
  const result = await within(20_000, "an outcome", outcome);
  if (result instanceof Failure) throw new Error(result.message);
  return result;
}

test("the backend gets the hello, and its first bytes are not lost", async () => {
  const dialled = await dial(["a", "b"]);
  const backend = await peerOf(dialled, "a");
  await backend.expect("hello");
  backend.send("server hello");
  const { socket, backend: name } = await reached(dialled);
  assert.is(name, "a");
  const peer = new RawPeer(socket);
  socket.resume();
  await peer.expect("server hello");
  dialled.clock.advance(limits.handshakeMs);
  peer.send("on");
  await backend.expect("on");
  assert.equal(dialled.backoff, ["a"]);
});

test("one that refuses, or ends without a word, is followed by the next at once", async () => {
  const refused = await dial(["refusing", "b"]);
  (await peerOf(refused, "b")).send("x");
  assert.is((await reached(refused)).backend, "b");
  for (const end of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    const dialled = await dial(["a", "b"]);
    const first = await peerOf(dialled, "a");
    await first.expect("hello");
    end(first.socket);
    const second = await peerOf(dialled, "b");
    await second.expect("hello");
    second.send("x");
    assert.is((await reached(dialled)).backend, "b");
  }
});

test("one that accepts and is silent is doubted, the next one asked as well, and the first word wins", async () => {
  for (const winner of ["a", "b"]) {
    const dialled = await dial(["a", "b"]);
    const first = await peerOf(dialled, "a");
    await first.expect("hello");
    dialled.clock.advance(doubtMs - 1);
    assert.equal(dialled.backoff, ["a"]);
    dialled.clock.advance(1);
    const second = await peerOf(dialled, "b");
    await second.expect("hello");
    (winner === "a" ? first : second).send("server hello");
    assert.is((await reached(dialled)).backend, winner);
    await (winner === "a" ? second : first).ended();
  }
});

test("without leave to ask twice it waits for the first", async () => {
  const dialled = await dial(["a", "b"], { mayHedge: false });
  const first = await peerOf(dialled, "a");
  dialled.clock.advance(3 * doubtMs);
  first.send("late");
  assert.is((await reached(dialled)).backend, "a");
  assert.equal(dialled.backoff, ["a"]);
});

test("what may be a request is sent to one backend only: the first that accepts", async () => {
  const dialled = await dial(["refusing", "b", "c"], { isRepeatable: false });
  assert.is((await reached(dialled)).backend, "b");
  dialled.clock.advance(10 * doubtMs);
  await (await peerOf(dialled, "b")).expect("hello");
  assert.equal(dialled.backoff, ["refusing", "b"]);
});

test("when all refuse, the last one's reason is returned", async () => {
  const dialled = await dial(["refusing", "refusing", "refusing", "refusing"]);
  const outcome = await within(20_000, "an outcome", dialled.outcome);
  assert.ok(outcome instanceof Failure && outcome.code === "backend-refused");
  assert.match(
    outcome instanceof Failure ? outcome.message : "",
    /^Cannot reach backend refusing: .*ECONNREFUSED/,
  );
  assert.is(dialled.backoff.length, limits.attempts);
});

test("without any backend it returns a Failure", async () => {
  const outcome = await (await dial([])).outcome;
  assert.is(outcome instanceof Failure && outcome.code, "no-backend");
});

test("silence everywhere ends, and leaves no socket behind", async () => {
  const dialled = await dial(["a", "b"]);
  const first = await peerOf(dialled, "a");
  dialled.clock.advance(doubtMs);
  const second = await peerOf(dialled, "b");
  dialled.clock.advance(limits.handshakeMs);
  const outcome = await within(20_000, "an outcome", dialled.outcome);
  assert.is(outcome instanceof Failure && outcome.message, `No answer in ${limits.handshakeMs} ms from a, b`);
  await Promise.all([first.ended(), second.ended()]);
});

test.run();
