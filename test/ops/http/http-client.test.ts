import { createServer, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import {
  type Bounds,
  type HttpRequest,
  type HttpServer,
  sendRequest,
} from "../../../src/ops/http/http-client.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { bundleRows } from "../../support/ca-bundles.ts";
import { testPki } from "../../support/pki.ts";
import { switching } from "../../support/replicas.ts";
import { within } from "../../support/within.ts";

const test = suite("ops/http/http-client");

const ends: (() => void)[] = [];
const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);
process.on("unhandledRejection", note);
process.on("uncaughtException", note);
test.after.each(() => {
  for (const end of ends.splice(0)) end();
  assert.equal(unhandled, []);
});

/** Returns the origin of a server, without the scheme. */
async function listening(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  ends.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const served = async (listener: RequestListener): Promise<HttpServer> => ({
  origin: `http://${await listening(createServer(listener))}`,
});

/** Starts a server that takes connections and does with each what `use` does. */
const raw = async (use: (socket: Socket) => void): Promise<HttpServer> => ({
  origin: `http://${await listening(
    createTcpServer((socket) => {
      socket.on("error", () => {}).resume();
      use(socket);
    }),
  )}`,
});

const secret = "a-secret-token";
const usual: Bounds = { clock: wallClock, timeoutMs: 5000, mostBytes: 1000 };

/** Returns the status and body of the response, or the message of the error, which never has the token. */
async function told(
  server: HttpServer,
  bounds: Partial<Bounds> = {},
  request: Partial<HttpRequest> = {},
): Promise<string> {
  const headers = { authorization: `Bearer ${secret}` };
  const sent = sendRequest(server, { path: "/a", headers, ...request }, { ...usual, ...bounds });
  const outcome = await within(10_000, "an outcome", sent).then(
    ({ status, bytes }) => `${status} ${bytes.toString()}`,
    (reason: unknown) => (reason instanceof Error || reason instanceof Failure ? reason.message : "?"),
  );
  assert.not.match(outcome, secret);
  return outcome;
}

test("the request has its path, its fields and a connection of its own; its response is returned", async () => {
  const heard: string[] = [];
  const server = await served((request, response) => {
    request.setEncoding("utf8").on("data", (text: string) => heard.push(text));
    request.on("end", () => {
      const { method, url, headers } = request;
      heard.push(`${method} ${url} ${headers.connection} ${headers.authorization} ${headers.host}`);
      response.writeHead(403).end("no");
    });
  });
  const host = server.origin.slice("http://".length);
  assert.is(await told(server, {}, { path: "/a/../b?c=d%2F" }), "403 no");
  assert.is(await told(server, {}, { body: "{}" }), "403 no");
  assert.equal(heard, [
    `GET /a/../b?c=d%2F close Bearer ${secret} ${host}`,
    "{}",
    `POST /a close Bearer ${secret} ${host}`,
  ]);
});

for (const [name, use] of [
  ["never begins", () => {}],
  ["never ends its head", (socket: Socket) => socket.write("HTTP/1.1 200 OK\r\nx: ")],
  [
    "sends informational heads only",
    (socket: Socket) => socket.write("HTTP/1.1 103 Early\r\n\r\n".repeat(9)),
  ],
  ["never ends its answer", (socket: Socket) => socket.write("HTTP/1.1 200 OK\r\n\r\na")],
] as const)
  test(`a server that ${name} is given up after the time that it has, and its socket is closed`, async () => {
    const closed = Promise.withResolvers<void>();
    const server = await raw((socket) => {
      socket.once("close", () => closed.resolve());
      use(socket);
    });
    assert.is(await told(server, { timeoutMs: 150 }), "no answer in 150 ms");
    await within(5000, "the end of the connection", closed.promise);
  });

test("a server that answers no handshake is given up after its time, and its socket is closed", async () => {
  const closed = Promise.withResolvers<void>();
  const server = await raw((socket) => socket.once("close", () => closed.resolve()));
  const origin = server.origin.replace("http", "https");
  assert.is(await told({ origin, tls: { ca: "" } }, { timeoutMs: 150 }), "no answer in 150 ms");
  await within(5000, "the end of the connection", closed.promise);
});

test("a body over the limit is refused, with and without its length", async () => {
  for (const head of ["content-length: 5000", "x: y"]) {
    const server = await raw((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${"x".repeat(1001)}`),
    );
    assert.is(await told(server), "an answer of more than 1000 bytes");
  }
  const most = await served((_request, response) => response.end("x".repeat(1000)));
  assert.is((await told(most)).length, "200 ".length + 1000);
});

test("a total that is too large refuses the response that exceeds it", async () => {
  const server = await served((_request, response) => response.end("xx"));
  let left = 3;
  const count = (bytes: number): Failure | undefined => {
    left -= bytes;
    return left < 0 ? new Failure("overload", "proxy", "too many") : undefined;
  };
  assert.is(await told(server, { count }), "200 xx");
  assert.is(await told(server, { count }), "too many");
});

test("a redirect is not followed, and an answer that switches protocols is none", async () => {
  let requests = 0;
  const server = await served((_request, response) => {
    requests += 1;
    response.writeHead(307, { location: "/b" }).end();
  });
  assert.is(await told(server), "307 ");
  assert.is(requests, 1);
  assert.is(await told(await raw((socket) => socket.write(switching))), "bad upgrade");
});

test("a request is sent once: a connection that closes is an error, and no other is opened", async () => {
  for (const bytes of ["", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\na", "SSH-2.0-x\r\n"]) {
    let connections = 0;
    const server = await raw((socket) => {
      connections += 1;
      socket.end(bytes);
    });
    assert.not.match(await told(server), /^\d{3} /);
    assert.is(connections, 1, bytes);
  }
  assert.match(await told({ origin: "http://127.0.0.1:1" }), "ECONNREFUSED");
});

test("a request that is aborted ends at once, also before it begins", async () => {
  const stop = new AbortController();
  const server = await raw(() => {});
  setTimeout(() => stop.abort(new Error("stopped")), 50);
  assert.is(await told(server, {}, { signal: stop.signal }), "stopped");
  assert.is(await told(server, {}, { signal: stop.signal }), "stopped");
});

test("a field with a line break is refused without its value", async () => {
  const server = await served((_request, response) => response.end());
  const headers = { authorization: `Bearer ${secret}\r\nx: y` };
  assert.is(await told(server, {}, { headers }), "invalid authorization header");
});

test("a stream gets the chunks of any length, and is lost after a time without one", async () => {
  const server = await served((_request, response) => {
    let chunks = 0;
    const timer = setInterval(() => {
      chunks += 1;
      if (chunks <= 5) response.write("x".repeat(900));
    }, 60);
    response.on("close", () => clearInterval(timer));
  });
  let bytes = 0;
  const stream = (chunk: Buffer): void => void (bytes += chunk.length);
  assert.is(await told(server, { timeoutMs: 200, stream }), "no answer in 200 ms");
  assert.is(bytes, 4500);
  const other = await served((_request, response) => response.writeHead(503).end("busy"));
  assert.is(await told(other, { stream }), "503 busy");
});

/** Starts an HTTPS server, which answers "well". */
async function secured(
  pair: { cert: string; key: string },
  use?: (socket: TLSSocket) => void,
): Promise<string> {
  const options = { ...pair, ciphers: "DEFAULT@SECLEVEL=0", maxVersion: use && ("TLSv1.2" as const) };
  const server = createSecureServer(options, (_request, response) => response.end("well"));
  server.on("tlsClientError", () => {});
  server.on("secureConnection", (socket) => {
    socket.on("error", () => {});
    use?.(socket);
  });
  return listening(server);
}

test("a server is verified by its CA and its name, whatever the environment says", async () => {
  const { authority, serving } = await testPki();
  const foreign = (await createAuthority({ name: "foreign", clock: wallClock })).certificate;
  const address = await secured({ cert: serving.certificate, key: serving.key });
  const tls = { ca: authority.certificate };
  const origin = `https://${address}`;
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  try {
    assert.is(await told({ origin, tls }), "200 well");
    assert.is(await told({ origin: origin.replace("127.0.0.1", "localhost"), tls }), "200 well");
    assert.is(await told({ origin, serverName: "kubernetes.default.svc", tls }), "200 well");
    const unsure = { ...tls, rejectUnauthorized: undefined };
    assert.match(await told({ origin, serverName: "other.test", tls: unsure }), "altnames");
    assert.match(await told({ origin, tls: { ca: foreign } }), /verify|signature|issuer/);
    assert.is(await told({ origin, tls: { ca: foreign, rejectUnauthorized: false } }), "200 well");
  } finally {
    Reflect.deleteProperty(process.env, "NODE_TLS_REJECT_UNAUTHORIZED");
  }
});

test("a server that renegotiates is refused, and the process goes on", async () => {
  const { authority, serving } = await testPki();
  const renegotiated = Promise.withResolvers<string>();
  const server = { cert: serving.certificate, key: serving.key };
  const address = await secured(server, (socket) => {
    socket.renegotiate({}, (error) => renegotiated.resolve(error === null ? "done" : error.message));
    socket.once("error", ({ message }) => renegotiated.resolve(message));
  });
  await told({ origin: `https://${address}`, tls: { ca: authority.certificate } });
  assert.match(await within(5000, "the refusal", renegotiated.promise), /no.renegotiation/i);
});

for (const { title, bundle, chain, key, isTrusted, isTrustedByOpenSsl = false } of bundleRows)
  test(`a server is ${isTrusted ? "" : "not "}trusted if the CA file has ${title}`, async () => {
    const origin = `https://${await secured({ cert: chain, key })}`;
    const outcome = await told({ origin, serverName: "localhost", tls: { ca: bundle } });
    assert.is(outcome === "200 well", isTrusted || isTrustedByOpenSsl, outcome);
  });

test.run();
