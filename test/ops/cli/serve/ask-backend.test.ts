import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { askBackend, type BackendAnswer } from "../../../../src/ops/cli/serve/ask-backend.ts";
import { createAuthority } from "../../../../src/ops/pki/pki.ts";
import type { BackendAddress } from "../../../../src/upstream/net/connect.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/ask-backend");

const { authority, serving } = await testPki();
const identity = { cert: serving.certificate, key: serving.key };

const undo: (() => void)[] = [];
test.after.each(() => {
  for (const step of undo.splice(0)) step();
});

async function listening(server: net.Server, host = "127.0.0.1"): Promise<number> {
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  undo.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as net.AddressInfo).port;
}

function answering(status: number): http2.Http2SecureServer {
  const server = http2.createSecureServer(identity);
  server.on("sessionError", () => undefined);
  return server.on("stream", (stream) => {
    stream.respond({ ":status": status });
    stream.end("ok");
  });
}

function ask(
  port: number,
  tlsOptions: Partial<NonNullable<BackendAddress["tls"]>> = {},
  host = "127.0.0.1",
): Promise<BackendAnswer | Failure> {
  const trusted = { ca: authority.certificate, serverName: host, ...tlsOptions };
  return within(20_000, "an answer", askBackend({ name: "cp-1", host, port, tls: trusted }, wallClock, 300));
}

function problemOf(outcome: BackendAnswer | Failure): string {
  return outcome instanceof Failure ? outcome.message : `status ${outcome.status}`;
}

test("a ready backend answers over HTTP/2, with its certificate's date", async () => {
  const outcome = await ask(await listening(answering(200)));
  if (outcome instanceof Failure) throw new Error(outcome.message);
  assert.is(outcome.status, 200);
  assert.ok((outcome.notAfter ?? 0) > wallClock.wall());
});

test("a backend's version is reported where it has one, and its absence is no problem", async () => {
  const saying = (answer: (stream: http2.ServerHttp2Stream) => void): Promise<number> => {
    const server = http2.createSecureServer(identity);
    server.on("sessionError", () => undefined);
    server.on("stream", (stream, { ":path": path }) => {
      stream.on("error", () => undefined);
      if (path === "/version") return answer(stream);
      stream.respond({ ":status": 200 });
      stream.end("ok");
    });
    return listening(server);
  };
  const versionOf = async (port: number): Promise<string> => {
    const outcome = await ask(port);
    if (outcome instanceof Failure) throw new Error(outcome.message);
    return outcome.version;
  };
  const body =
    '{\n  "major": "1",\n  "minor": "29+",\n  "gitVersion": "v1.29.3-gke.1",\n  "goVersion": "go1"\n}';
  assert.is(await versionOf(await saying((stream) => stream.end(body))), "v1.29.3-gke.1");
  assert.is(await versionOf(await saying((stream) => stream.end("no"))), "");
  assert.is(await versionOf(await saying((stream) => stream.end("x".repeat(1024 * 1024)))), "");
  assert.is(await versionOf(await saying(() => undefined)), "", "a silent one");
  assert.is(await versionOf(await saying((stream) => stream.session?.destroy())), "", "one that hangs up");
});

test("a backend by IPv6 address, and one by the name that all of them carry", async () => {
  const port = await listening(answering(200), "::1");
  assert.is(problemOf(await ask(port, {}, "::1")), "status 200");
  assert.is(problemOf(await ask(port, { serverName: "kubernetes.default.svc" }, "::1")), "status 200");
});

test("a plain backend on loopback is asked without TLS", async () => {
  const server = http2.createServer().on("stream", (stream) => {
    stream.respond({ ":status": 500 });
    stream.end();
  });
  const port = await listening(server);
  const address = { name: "a", host: "127.0.0.1", port, tls: undefined };
  const outcome = await within(20_000, "an answer", askBackend(address, wallClock, 300));
  assert.equal([problemOf(outcome), (outcome as BackendAnswer).notAfter], ["status 500", undefined]);
});

test("a backend of another authority, or with another name, is a Failure", async () => {
  const port = await listening(answering(200));
  const other = await createAuthority({ name: "other", clock: wallClock });
  assert.match(
    problemOf(await ask(port, { ca: other.certificate })),
    /unable to get local issuer|self-signed/,
  );
  assert.is(
    problemOf(await ask(port, { ca: other.certificate, source: { caFile: "/etc/ca.crt", isNamed: false } })),
    "its certificate is not signed by tls.caFile /etc/ca.crt",
  );
  assert.match(
    problemOf(await ask(port, { serverName: "example.com" })),
    /^its certificate is not for "example.com" .*, but for DNS:/,
  );
});

test("no server there, no TLS, no HTTP/2, or a socket that closes: a Failure each", async () => {
  const closed = await listening(net.createServer());
  undo.pop()?.();
  assert.match(problemOf(await ask(closed)), /ECONNREFUSED/);
  const plain = await listening(net.createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")));
  assert.instance(await ask(plain), Failure);
  const old = tls.createServer({ ...identity, ALPNProtocols: ["http/1.1"] });
  old.on("tlsClientError", () => undefined);
  assert.instance(await ask(await listening(old)), Failure);
  const hasty = await listening(net.createServer((socket) => socket.destroy()));
  assert.instance(await ask(hasty), Failure);
});

test("a black hole is given up in time, before and after the handshake", async () => {
  const silent = await listening(net.createServer(() => undefined));
  assert.is(problemOf(await ask(silent)), "No answer within 0.3 s");
  const server = http2.createSecureServer(identity).on("stream", () => undefined);
  assert.is(problemOf(await ask(await listening(server))), "No answer within 0.3 s");
});

test.run();
