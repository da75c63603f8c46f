import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../src/failure.ts";
import { Journal } from "../../src/journal.ts";
import { connectLane, connectUpgrade, meet } from "../../src/proxy/connect.ts";
import { manualClock } from "../support/clock.ts";
import { testPki } from "../support/pki.ts";
import { within } from "../support/within.ts";

const test = suite("proxy/connect");

const keepalive = { idleMs: 5000, intervalMs: 1000, count: 3 };

/** A TLS server for one test; it says which ALPN it took and then waits. */
async function backend(alpn: string[]): Promise<{ port: number; ca: string; readonly close: () => void }> {
  const { authority, serving } = await testPki();
  const server = tls.createServer(
    { cert: serving.certificate, key: serving.key, ALPNProtocols: alpn },
    (socket) => {
      socket.on("error", () => {});
      socket.write(String(socket.alpnProtocol));
    },
  );
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    ca: authority.certificate,
    close: () => server.close(),
  };
}

/** What a lane's owner hears first: octets, or why it closed. */
function firstWord(options: {
  port: number;
  ca: string;
  serverName?: string;
  host?: string;
}): Promise<string> {
  const { port, ca, serverName = "localhost" } = options;
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca, serverName } };
  return new Promise((resolve) => {
    const wire = connectLane(
      address,
      {
        receive(chunk) {
          resolve(chunk.toString());
          wire.destroy();
        },
        drained() {},
        closed: (failure) => resolve(failure?.message ?? "closed"),
      },
      { journal: new Journal(manualClock()), keepalive },
    );
  });
}

test("a lane speaks h2 to a backend whose certificate its CA vouches for", async () => {
  const { close, ...at } = await backend(["h2", "http/1.1"]);
  assert.is(await within(3000, "a word", firstWord(at)), "h2");
  assert.is(await within(3000, "a word", firstWord({ ...at, serverName: "127.0.0.1" })), "h2");
  close();
});

test("a wrong name, a wrong CA and a backend without h2 are refused by name", async () => {
  const { close, ...at } = await backend(["h2"]);
  assert.match(await firstWord({ ...at, serverName: "other.test" }), "other.test");
  assert.match(await firstWord({ ...at, ca: "" }), /certificate|issuer/i);
  close();
  const old = await backend(["http/1.1"]);
  assert.match(await within(3000, "why", firstWord(old)), /does not speak HTTP\/2|no application protocol/i);
  old.close();
});

test("a dial that nobody answers says so", async () => {
  const { close, ...at } = await backend(["h2"]);
  close();
  assert.match(await within(3000, "why", firstWord(at)), "ECONNREFUSED");
});

test("an upgrade gets an http/1.1 socket, or a failure that says nothing was sent", async () => {
  const { port, ca, close } = await backend(["h2", "http/1.1"]);
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca, serverName: "localhost" } };
  const socket = await within(3000, "a socket", connectUpgrade(address, keepalive, 2000));
  assert.ok(
    !(socket instanceof Failure) && socket instanceof tls.TLSSocket && socket.alpnProtocol === "http/1.1",
  );
  if (!(socket instanceof Failure)) socket.destroy();
  close();
  const failure = await connectUpgrade(address, keepalive, 2000);
  assert.is(failure instanceof Failure && failure.code, "backend-refused");
});

test("a fresh socket meets an answer, a refusal, or silence", async () => {
  const { port, ca, close } = await backend(["http/1.1"]);
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca, serverName: "localhost" } };
  assert.is(await meet(address, keepalive, 2000), "answer");
  assert.is(await meet({ ...address, tls: { ca, serverName: "other.test" } }, keepalive, 2000), "refusal");
  close();
  assert.is(await meet(address, keepalive, 2000), "refusal");
  // Takes sockets and never says a word: a stopped process.
  const mute = net.createServer((socket) => socket.on("error", () => {}));
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const bound = mute.address();
  const mutePort = typeof bound === "object" && bound !== null ? bound.port : 0;
  assert.is(await meet({ ...address, port: mutePort }, keepalive, 50), "silence");
  mute.close();
});

test.run();
