/**
 * Ends a request in every possible way, in every phase of its life. 100 ms of virtual time later no backend may still
 * run any part of it, and nothing of it may be sent again (D17). HTTP/1.1 clients have real sockets; all else is
 * simulated.
 */

import { createServer, type Server } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../src/h2/core/limits.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import type { StreamWriter } from "../../src/h2/core/stream-writer.ts";
import { createH1, type H1Client } from "../../src/proxy/downstream/h1-connection.ts";
import { anyone } from "../support/h1.ts";
import { data, type Frame, raw, windowUpdate, wire } from "../support/h2-frames.ts";
import { type Asked, bearer, type PlayedBackend, type PlayedClient, PlayedPath } from "../support/path.ts";
import { connectRaw, type RawPeer } from "../support/raw.ts";
import { blackHole, linesOf, ok } from "../support/watch-path.ts";

const test = suite("flows/cancellation");

const object = "/api/v1/namespaces/n/configmaps/c";
const log = "/api/v1/namespaces/n/pods/p/log?follow=true";
const watch = "/api/v1/configmaps?watch=true&resourceVersion=7";

/** A client with one request. */
type Party = {
  ask(method: string, target: string, body?: string): Promise<void>;
};

class H2Party implements Party {
  readonly path: PlayedPath;
  readonly client: PlayedClient;
  ear: ReturnType<PlayedClient["ask"]> | undefined;

  constructor(path: PlayedPath) {
    this.path = path;
    this.client = path.client();
  }

  ask(method: string, target: string, body?: string): Promise<void> {
    this.ear = this.client.ask(method, target, [bearer("t")], body === undefined);
    if (body !== undefined) this.ear.say(body);
    this.path.settle();
    return Promise.resolve();
  }

  get id(): number {
    return this.ear?.stream.id ?? 0;
  }

  sends(...frames: Frame[]): void {
    this.client.downstream.receive(wire(...frames));
  }
}

class H1Party implements Party {
  readonly path: PlayedPath;
  #server: Server | undefined;
  turns: H1Client | undefined;
  peer: RawPeer | undefined;

  constructor(path: PlayedPath) {
    this.path = path;
  }

  async ask(method: string, target: string, body?: string): Promise<void> {
    const { path } = this;
    const accept = createH1({
      clock: path.clock,
      journal: path.journal,
      handle: path.handle,
      upgrade: () => {},
    });
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.turns = accept(socket, anyone());
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    this.peer = await connectRaw(typeof address === "object" && address !== null ? address.port : 0);
    const framing = body === undefined ? "" : "Transfer-Encoding: chunked\r\n";
    const chunk = body === undefined ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
    this.peer.send(
      `${method} ${target} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer t\r\n${framing}\r\n${chunk}`,
    );
    await until(() => path.exchanges.size > 0 && (body === undefined || heldOrSent(path) >= body.length));
    path.settle();
  }

  close(): void {
    this.peer?.socket.destroy();
    this.#server?.close();
  }
}

/** Number of bytes of the request body that wait in the proxy or have reached a backend. */
function heldOrSent(path: PlayedPath): number {
  path.settle();
  const held = path.exchanges.live.reduce((sum, { queuedBytes }) => sum + queuedBytes, 0);
  return Array.from(path.played.values(), ({ asked }) =>
    asked.reduce((sum, { body }) => sum + body.length, 0),
  ).reduce((sum, count) => sum + count, held);
}

async function until(isTrue: () => boolean): Promise<void> {
  for (const end = Date.now() + 3000; !isTrue(); ) {
    if (Date.now() > end) throw new Error("Waited 3 s in vain");
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

// --- phases of a request ---

type Phase = {
  readonly backends: readonly string[];
  /** Brings a request into this phase. */
  readonly reach: (party: Party, path: PlayedPath) => Promise<void>;
  /** Number of backends that run the request in this phase. */
  readonly running: number;
  /** Called after the end of the request. Causes what could make the proxy send it again. */
  readonly after?: (path: PlayedPath) => void;
};

const all = (path: PlayedPath): PlayedBackend[] => [...path.played.values()];

/** Returns the backend that received the request, and the other one. */
function both(path: PlayedPath): [asked: PlayedBackend, other: PlayedBackend] {
  const [a, b] = [path.backend("a"), path.backend("b")];
  return a.asked.length > 0 ? [a, b] : [b, a];
}

function answers(backend: PlayedBackend, text: string): void {
  backend.last.side?.sendHeaders(ok, false);
  backend.last.say(text);
}

/**
 * Earlier reads took a millisecond, so this one soon counts as slow, and a hedge goes to the other backend. Both
 * backends answer PINGs.
 */
async function hedged(party: Party, path: PlayedPath): Promise<void> {
  await party.ask("GET", object);
  path.clock.advance(1500);
}

async function watched(party: Party, path: PlayedPath): Promise<void> {
  await party.ask("GET", watch);
  const [from] = all(path).filter(({ asked }) => asked.length > 0);
  if (from !== undefined) answers(from, linesOf("+8a"));
  path.settle();
}

/** Functions that let delayed connections open. */
const opens: (() => void)[] = [];

const phases: Readonly<Record<string, Phase>> = {
  "waiting for a backend": {
    backends: ["a"],
    reach(party, path) {
      path.reconcile([]);
      return party.ask("POST", object, "half");
    },
    running: 0,
    after: (path) => path.reconcile(["a"]),
  },
  "waiting for an upstream connection": {
    backends: ["a"],
    reach(party, path) {
      const backend = path.backend("a");
      const { connect, sessions } = backend;
      // Delays the connections that are dialled from now on.
      backend.connect = (owner) => {
        const near = connect.call(backend, owner);
        opens.push(sessions.at(-1)?.cable.hold() ?? (() => {}));
        return near;
      };
      for (const { session } of sessions) session.goAway();
      path.settle();
      return party.ask("POST", object, "half");
    },
    running: 0,
    after(path) {
      for (const open of opens.splice(0)) open();
      path.settle();
    },
  },
  "body being sent": {
    backends: ["a"],
    reach: (party) => party.ask("POST", object, "half"),
    running: 1,
  },
  "body waiting for the backend's window": {
    backends: ["a"],
    async reach(party, path) {
      const { opened } = readNothing(path.backend("a"));
      await party.ask("POST", object, "x".repeat(280_000));
      opened();
    },
    running: 1,
  },
  "sent, unanswered": { backends: ["a", "b"], reach: (party) => party.ask("GET", object), running: 1 },
  "asked of two": { backends: ["a", "b"], reach: hedged, running: 2 },
  "sent again": {
    backends: ["a", "b"],
    async reach(party, path) {
      await party.ask("GET", object);
      const [from] = both(path);
      from.kill();
      path.settle();
      from.asked.length = 0;
    },
    running: 1,
  },
  "being answered": {
    backends: ["a"],
    async reach(party, path) {
      await party.ask("GET", log);
      answers(path.backend("a"), "line\n");
      path.settle();
    },
    running: 1,
  },
  "answered, body still being sent": {
    backends: ["a"],
    async reach(party, path) {
      await party.ask("POST", object, "half");
      answers(path.backend("a"), "begun");
      path.settle();
    },
    running: 1,
  },
  "a watch with one attempt": { backends: ["a", "b"], reach: watched, running: 1 },
  "a watch whose half event waits": {
    backends: ["a"],
    async reach(party, path) {
      await watched(party, path);
      path.backend("a").last.say('{"type":"ADD');
      path.settle();
    },
    running: 1,
  },
  "a watch with a second attempt": {
    backends: ["a", "b"],
    async reach(party, path) {
      await watched(party, path);
      const [from, to] = both(path);
      for (const { session } of from.sessions) session.goAway();
      path.clock.advance(1000);
      assert.is(to.asked.length, 1);
      to.last.side?.sendHeaders(ok, false);
      path.settle();
    },
    running: 2,
  },
  "a watch with a hedge": {
    backends: ["a", "b"],
    async reach(party, path) {
      await watched(party, path);
      const [from, to] = both(path);
      blackHole(from);
      path.clock.advance(900);
      assert.is(to.asked.length, 1);
      from.asked.length = 0;
    },
    running: 1,
  },
  "a watch that is being resumed": {
    backends: ["a", "b"],
    async reach(party, path) {
      await watched(party, path);
      const [from, to] = both(path);
      from.kill();
      path.settle();
      assert.is(to.asked.length, 1);
      from.asked.length = 0;
    },
    running: 1,
  },
  "a watch that waits to be resumed": {
    backends: ["a"],
    async reach(party, path) {
      await watched(party, path);
      path.backend("a").kill();
      path.backend("a").asked.length = 0;
      path.clock.advance(300);
    },
    running: 0,
    after(path) {
      path.backend("a").isDown = false;
    },
  },
};

/** Makes this backend not read the bodies of new requests, until `opened` is called. */
function readNothing(backend: PlayedBackend): { opened: () => void } {
  const { push } = Array.prototype;
  backend.asked.push = function (...asked: Asked[]): number {
    for (const ear of asked) ear.isReading = false;
    return push.apply(this, asked);
  };
  return { opened: () => Reflect.deleteProperty(backend.asked, "push") };
}

// --- ends of a request ---

const control = (count: number): Frame[] => Array.from({ length: count }, () => raw(6, 0, 0, "12345678"));

const ours: Readonly<Record<string, (party: Party, path: PlayedPath) => void>> = {
  "drain, and overload": (_party, path) => {
    for (const exchange of path.exchanges.live) exchange.cut();
  },
  "too much waiting": (_party, path) => {
    for (const exchange of path.exchanges.live)
      Object.defineProperty(exchange, "queuedBytes", { get: () => 1, configurable: true });
    path.buffered.add(1 << 30);
    path.settle();
    path.buffered.add(-(1 << 30));
  },
  "a cluster that goes": (_party, path) => path.close(),
  "a fault of the proxy": (_party, path) => {
    for (const exchange of path.exchanges.live) exchange.attemptFaulted(new Error("bug"));
  },
};

const h2Ways: Readonly<Record<string, (party: H2Party, path: PlayedPath) => void>> = {
  RST_STREAM: ({ ear }) => ear?.stream.reset(errorCode.CANCEL),
  "GOAWAY and the end": ({ client }) => {
    client.session.goAway();
    client.session.flush();
    client.cable.cut("closed");
  },
  "a connection that is reset, or times out": ({ client }) => client.cable.cut("read ECONNRESET"),
  FIN: ({ client }) => client.downstream.closed(undefined),
  "a stream's window that overflows": (party) => party.sends(windowUpdate(party.id, 0x7fff_ffff)),
  "DATA after the end, or beyond any rule": (party) =>
    party.sends(data(party.id, "x", "end"), data(party.id, "x")),
  "a session that breaks the protocol": (party) => party.sends(windowUpdate(0, 0)),
  "a flood of PINGs": (party) => party.sends(...control(2000)),
  "a session that is cut": ({ client }) => client.downstream.cut(),
  ...ours,
};

const h1Ways: Readonly<Record<string, (party: H1Party, path: PlayedPath) => void>> = {
  "a reset connection": ({ peer }) => peer?.socket.resetAndDestroy(),
  "a closed connection": ({ peer }) => peer?.socket.destroy(),
  FIN: ({ peer }) => peer?.socket.end(),
  "what is no HTTP": ({ peer }) => peer?.send("\0\0\0\r\n\r\n"),
  "a listener that is cut": ({ turns, peer }) => {
    if (turns?.cut() !== true) peer?.socket.destroy();
  },
  ...ours,
};

// --- all combinations ---

/** Requests that still run at backends that can be reached. */
function running(path: PlayedPath): Asked[] {
  return all(path)
    .flatMap(({ asked }) => asked)
    .filter((asked) => asked.resetCode === undefined && !isOver(asked.side));
}

function isOver(side: StreamWriter | undefined): boolean {
  return side === undefined || ("isClosed" in side && side.isClosed === true);
}

async function play(phase: Phase, party: Party, path: PlayedPath, end: () => Promise<void>): Promise<void> {
  await phase.reach(party, path);
  path.settle();
  assert.is(running(path).length, phase.running, "before it");
  const asked = all(path).flatMap((one) => one.asked);
  await end();
  path.clock.advance(100);
  assert.is(running(path).length, 0, "100 ms later");
  assert.is(path.exchanges.size, 0);
  phase.after?.(path);
  path.clock.advance(6000);
  assert.is(all(path).flatMap((one) => one.asked).length, asked.length, "nothing is sent again");
  assert.is(path.buffered.bytes, 0);
}

for (const [name, phase] of Object.entries(phases)) {
  for (const [way, end] of Object.entries(h2Ways)) {
    test(`${name}: ${way}`, async () => {
      const path = new PlayedPath(phase.backends);
      const party = new H2Party(path);
      await play(phase, party, path, () => {
        end(party, path);
        return Promise.resolve();
      });
    });
  }
  for (const [way, end] of Object.entries(h1Ways)) {
    test(`${name}, over HTTP/1.1: ${way}`, async () => {
      const path = new PlayedPath(phase.backends);
      const party = new H1Party(path);
      try {
        await play(phase, party, path, async () => {
          end(party, path);
          await until(() => {
            path.settle();
            // A client that has closed its half only may still be answered, for 100 ms.
            path.clock.advance(1);
            return path.exchanges.size === 0;
          });
        });
      } finally {
        party.close();
      }
    });
  }
}

test("DATA after END_STREAM on 130 requests, and whatever else one client breaks: none runs on, no other client is touched (A2)", () => {
  const path = new PlayedPath(["a"]);
  const backend = path.backend("a");
  path.client().ask("GET", object, [bearer("t")]);
  path.settle();
  // Proves the token, because the proxy sends only a few requests with an unproven token at once.
  backend.last.answer(200);
  const other = path.client().ask("POST", object, [bearer("t")]);
  path.settle();
  const bystander = backend.last;
  for (let round = 0; round < 4; round += 1) {
    const party = new H2Party(path);
    const ears = Array.from({ length: 65 }, () => party.client.ask("GET", log, [bearer("t")]));
    path.settle();
    assert.is(running(path).length, 66);
    party.sends(...ears.map(({ stream }) => data(stream.id, "x")));
    party.sends(windowUpdate(0, 0));
    path.clock.advance(100);
    assert.equal(running(path), [bystander]);
  }
  assert.ok(4 * 65 > h2Limits.resetBurst);
  bystander.answer(201);
  path.settle();
  assert.is(other.status, "201");
});

test.run();
