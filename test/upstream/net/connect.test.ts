import net, { type Socket } from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import {
  connectConnection,
  connectThrough,
  connectUpgrade,
  openSocket,
  openUntrusting,
} from "../../../src/upstream/net/connect.ts";
import { setKeepalive } from "../../../src/upstream/net/socket.ts";
import { manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("upstream/net/connect");

const keepalive = { idleMs: 5000, intervalMs: 1000, count: 3 };

/** Starts a TLS server that sends the name of the negotiated ALPN protocol to its client and then waits. */
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

/**
 * Returns the first thing that the upstream connection's owner gets: the received bytes, or the reason why the
 * connection closed.
 */
function firstWord(options: {
  port: number;
  ca: string;
  serverName?: string;
  host?: string;
}): Promise<string> {
  const { port, ca, serverName = "localhost" } = options;
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca, serverName } };
  return new Promise((resolve) => {
    const wire = connectConnection(
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

test("an upstream connection uses h2 with a backend that has a certificate of its CA", async () => {
  const { close, ...at } = await backend(["h2", "http/1.1"]);
  assert.is(await within(20_000, "a word", firstWord(at)), "h2");
  assert.is(await within(20_000, "a word", firstWord({ ...at, serverName: "127.0.0.1" })), "h2");
  close();
});

test("a wrong name, a wrong CA and a backend without h2 are refused by name", async () => {
  const { close, ...at } = await backend(["h2"]);
  assert.match(await firstWord({ ...at, serverName: "other.test" }), "other.test");
  assert.match(await firstWord({ ...at, ca: "" }), /certificate|issuer/i);
  close();
  const old = await backend(["http/1.1"]);
  assert.match(await within(20_000, "why", firstWord(old)), /serves no HTTP\/2 .* mode Passthrough/);
  old.close();
});

/**
 * Waits for the socket's first bytes, which arrive after the TLS session tickets. Returns true if the socket resumed a
 * session.
 */
async function wasResumed(socket: Socket): Promise<boolean> {
  const heard = new Promise((resolve) => {
    socket.once("data", resolve);
  });
  await within(20_000, "a word", heard);
  const isReused = socket instanceof tls.TLSSocket && socket.isSessionReused();
  socket.destroy();
  return isReused;
}

test("no socket resumes the session of one before it: Node looks at names in whole handshakes only", async () => {
  const { port, ca, close } = await backend(["h2", "http/1.1"]);
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca, serverName: "localhost" } };
  const dial = (): Socket => openSocket(address, "http/1.1");
  let ticket: Buffer | undefined;
  const first = dial().on("session", (session: Buffer) => {
    ticket = session;
  });
  assert.equal(
    [await wasResumed(first), await wasResumed(dial()), await wasResumed(dial())],
    [false, false, false],
  );
  const taken = tls.connect({ port, host: "127.0.0.1", ca, servername: "localhost", session: ticket });
  assert.is(await wasResumed(taken), true, "this server would have resumed it");
  const renamed = openSocket({ ...address, tls: { ca, serverName: "other.test" } }, "http/1.1");
  const reason = new Promise<Error>((resolve) => {
    renamed.once("error", resolve);
  });
  assert.match((await within(20_000, "why", reason)).message, "other.test");
  close();
});

test("an unanswered dial fails with that reason", async () => {
  const { close, ...at } = await backend(["h2"]);
  close();
  assert.match(await within(20_000, "why", firstWord(at)), "ECONNREFUSED");
});

test("an upgrade gets an http/1.1 socket, or a failure that says nothing was sent", async () => {
  const { port, ca, close } = await backend(["h2", "http/1.1"]);
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca, serverName: "localhost" } };
  const socket = await within(20_000, "a socket", connectUpgrade(address, { keepalive }, 2000));
  assert.ok(
    !(socket instanceof Failure) && socket instanceof tls.TLSSocket && socket.alpnProtocol === "http/1.1",
  );
  if (!(socket instanceof Failure)) socket.destroy();
  close();
  const failure = await connectUpgrade(address, { keepalive }, 2000);
  assert.is(failure instanceof Failure && failure.code, "backend-refused");
});

test("a certificate can be read by any name, and one without TLS has none", async () => {
  const { port, close } = await backend(["http/1.1"]);
  const address = { name: "a", host: "127.0.0.1", port, tls: { ca: undefined, serverName: "other.test" } };
  const socket = openUntrusting(address, "apiserver-loopback-client");
  await within(
    2000,
    "the handshake",
    new Promise<void>((resolve) => {
      socket?.once("secureConnect", resolve);
    }),
  );
  assert.ok(socket?.getPeerX509Certificate()?.checkHost("localhost"));
  socket?.destroy();
  close();
  assert.is(openUntrusting({ ...address, tls: undefined }, "x"), undefined);
});

const ends = {
  source: { address: "203.0.113.7", port: 1234 },
  destination: { address: "192.0.2.1", port: 443 },
};

test("for a passthrough there is TCP and nothing else, and a dial that fails says so by its end", async () => {
  const { port, ca, close } = await backend(["h2"]);
  const tlsOf = { ca, serverName: "localhost" };
  const socket = connectThrough({ name: "a", host: "127.0.0.1", port, tls: tlsOf }, ends, keepalive);
  const raw = tls.connect({ socket, ca, servername: "localhost", ALPNProtocols: ["h2"] });
  raw.on("error", () => {});
  const said = await within(20_000, "a word", new Promise((resolve) => raw.once("data", resolve)));
  assert.is(String(said), "h2");
  raw.destroy();
  close();
  const none = connectThrough({ name: "a", host: "127.0.0.1", port: 1, tls: tlsOf }, ends, keepalive);
  await within(20_000, "its end", new Promise((resolve) => none.once("close", resolve)));
});

/**
 * Starts a load balancer that requires a PROXY protocol header of version 1 and then acts as the backend. Returns also
 * the received headers, in order of arrival.
 */
async function balancer(
  alpn: string[],
): Promise<{ port: number; ca: string; headers: string[]; close(): void }> {
  const inner = await backend(alpn);
  const headers: string[] = [];
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (chunk: Buffer) => {
      const end = chunk.indexOf("\r\n") + 2;
      headers.push(chunk.toString("latin1", 0, end));
      const up = net.connect(inner.port, "127.0.0.1");
      up.on("error", () => socket.destroy());
      up.write(chunk.subarray(end));
      socket.pipe(up).pipe(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const close = (): void => {
    server.close();
    inner.close();
  };
  return { port, ca: inner.ca, headers, close };
}

test("where a backend asks for a PROXY header each connection begins with one, before TLS", async () => {
  const { port, ca, headers, close } = await balancer(["h2", "http/1.1"]);
  const address = {
    name: "a",
    host: "127.0.0.1",
    port,
    tls: { ca, serverName: "localhost" },
    proxyProtocol: "V1",
  } as const;
  const said = (socket: Socket): Promise<string> =>
    within(
      3000,
      "a word",
      new Promise((resolve) => socket.once("data", (word: Buffer) => resolve(String(word)))),
    );
  const connection = openSocket(address, "h2");
  setKeepalive(connection, keepalive);
  assert.is(await said(connection), "h2");
  assert.is(connection.remotePort, port);
  const client = connectThrough(address, ends, keepalive);
  const secure = tls.connect({ socket: client, ca, servername: "localhost", ALPNProtocols: ["h2"] });
  assert.is(await said(secure), "h2");
  const upgraded = await within(3000, "a socket", connectUpgrade(address, { keepalive, ends }, 2000));
  if (!(upgraded instanceof Failure)) upgraded.destroy();
  const named203 = "PROXY TCP4 203.0.113.7 192.0.2.1 1234 443\r\n";
  // The header of an upstream connection names no client, because it serves several. Those of a passthrough connection
  // and of an Upgrade name their client.
  assert.equal(headers, ["PROXY UNKNOWN\r\n", named203, named203]);
  // A host name that resolves to several addresses behaves like one address, also when the connection is lost.
  const named = openSocket({ ...address, host: "localhost" }, "h2");
  assert.is(await said(named), "h2");
  const lost = new Promise((resolve) => named.once("close", resolve));
  for (const socket of [connection, secure, named]) socket.destroy();
  await within(20_000, "its end", lost);
  close();
});

test("a backend that cannot be reached says so the same way with a PROXY header", async () => {
  const address = {
    name: "a",
    host: "127.0.0.1",
    port: 1,
    tls: { ca: undefined, serverName: "localhost" },
    proxyProtocol: "V2",
  } as const;
  for (const one of [address, { ...address, tls: undefined }]) {
    const socket = openSocket(one, "h2");
    const reason = new Promise<Error & { code?: string }>((resolve) => socket.once("error", resolve));
    assert.is((await within(20_000, "the reason", reason)).code, "ECONNREFUSED");
  }
});

test.run();
