import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { BackendVersions } from "../../../src/health/backend-versions.ts";
import { healthLimits } from "../../../src/health/limits.ts";
import { createReadyProbe } from "../../../src/health/probes/ready.ts";
import type { KeptSocket } from "../../../src/health/small-packets.ts";
import { type BackendAddress, openSocket } from "../../../src/upstream/net/connect.ts";
import { manualClock } from "../../support/clock.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("health/probes/ready");

type Server = { readonly port: number; readonly sockets: Set<net.Socket>; close(): void };
const servers: Server[] = [];

test.after.each(() => {
  for (const server of servers.splice(0)) server.close();
});

async function serve(server: net.Server): Promise<Server> {
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  const served: Server = {
    port: typeof bound === "object" && bound !== null ? bound.port : 0,
    sockets,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
  servers.push(served);
  return served;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const plain = (answer: Answer): Promise<Server> => serve(createServer(answer));
const statusOf =
  (status: number, body = ""): Answer =>
  (_request, response) =>
    response.writeHead(status).end(body);

/** Returns the first `count` results that a probe of this address reports. */
async function told(address: Partial<BackendAddress>, count: number): Promise<string[]> {
  const heard: string[] = [];
  const seen: string[] = [];
  const whole = { name: "a", host: "127.0.0.1", port: 1, tls: undefined, ...address };
  const probe = createReadyProbe({
    path: () => "/readyz",
    open: () => openSocket(whole, "http/1.1"),
    seen: (_backend, notAfter) => seen.push(notAfter),
  });
  let stop = (): void => {};
  await within(
    5000,
    "the probe",
    new Promise<void>((resolve) => {
      const hear = (text: string): void => {
        heard.push(text);
        if (heard.length === count) resolve();
      };
      stop = probe("a", {
        connected() {},
        gaveUp: () => hear("gave up"),
        dialed: (met) => hear(met),
        answered(readiness, reason, socket) {
          socket?.close();
          hear(`${readiness} ${reason}`);
        },
      });
    }),
  );
  stop();
  return seen.length > 0 ? [...heard, "certificate seen"] : heard;
}

test("a ready apiserver says so, and the socket is not kept", async () => {
  const server = await plain(statusOf(200, "ok"));
  assert.equal(await told(server, 2), ["answer", "ready status 200"]);
  await within(20_000, "the end of its socket", gone(server));
});

test("its socket answers small requests until it is closed", async () => {
  const paths: string[] = [];
  const server = await plain((request, response) => {
    paths.push(request.url ?? "");
    response.writeHead(200).end("ok");
  });
  const probe = createReadyProbe({
    prefix: () => "/k8s/c-1",
    path: () => "/readyz",
    open: () => openSocket({ name: "a", host: "127.0.0.1", port: server.port, tls: undefined }, "http/1.1"),
    seen() {},
  });
  const answered = Promise.withResolvers<KeptSocket | undefined>();
  const stop = probe("a", {
    connected() {},
    gaveUp() {},
    dialed() {},
    answered: (_readiness, _reason, socket) => answered.resolve(socket),
  });
  const socket = await within(5000, "the probe", answered.promise);
  stop();
  for (let count = 0; count < 2; count += 1)
    await within(5000, "a response", new Promise<void>((resolve) => socket?.ask(resolve)));
  assert.equal(paths, ["/k8s/c-1/readyz?verbose", "/k8s/c-1/livez", "/k8s/c-1/livez"]);
  assert.is(server.sockets.size, 1);
  socket?.close();
  await within(20_000, "the end of its socket", gone(server));
});

function gone({ sockets }: Server): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => (sockets.size === 0 ? resolve() : void setImmediate(look));
    look();
  });
}

test("request and answer each take a large packet, so that a path MTU shows", async () => {
  const asked: { readonly url: string; readonly length: number }[] = [];
  const server = await plain((request, response) => {
    asked.push({ url: request.url ?? "", length: request.rawHeaders.join(": ").length });
    response.writeHead(200).end("ok");
  });
  assert.equal(await told(server, 2), ["answer", "ready status 200"]);
  assert.is(asked[0]?.url, "/readyz?verbose", "the list of all checks has several KiB");
  assert.ok((asked[0]?.length ?? 0) > 1460, `${asked[0]?.length} bytes`);
});

test("one that does not permit the probe is alive, and whether it is ready is not known; a 403 is told apart", async () => {
  assert.equal(await told(await plain(statusOf(403)), 2), ["answer", "forbidden status 403"]);
  for (const status of [401, 404, 429])
    assert.equal(await told(await plain(statusOf(status)), 2), ["answer", `unknown status ${status}`]);
});

test("a failing check is named, and a shutdown told apart from trouble", async () => {
  const body = (check: string): string =>
    `[+]ping ok\n[-]${check} failed: reason withheld\nreadyz check failed\n`;
  const failing = await plain(statusOf(500, body("etcd-readiness")));
  assert.equal(await told(failing, 2), ["answer", "failing status 500, failing: etcd-readiness"]);
  const leaving = await plain(statusOf(500, body("shutdown")));
  assert.equal(await told(leaving, 2), ["answer", "shutdown status 500, failing: shutdown"]);
});

test("when /readyz names nothing, /livez is asked what is wrong", async () => {
  const asked: string[] = [];
  const server = await plain((request, response) => {
    asked.push(request.url ?? "");
    const body =
      request.url === "/readyz?verbose" ? "" : "[-]loopback-serving-certificate failed: reason withheld\n";
    response.writeHead(500).end(body);
  });
  assert.equal(await told(server, 2), ["answer", "failing status 500; /livez: loopback-serving-certificate"]);
  assert.equal(asked, ["/readyz?verbose", "/livez?verbose"]);
});

test("of many failing checks a few are named, and a head without end is a failing server's", async () => {
  const checks = Array.from(
    { length: healthLimits.probeChecks + 3 },
    (_, at) => `[-]check-${at} failed: withheld\n`,
  );
  const many = await plain(statusOf(500, checks.join("")));
  assert.equal(await told(many, 2), [
    "answer",
    "failing status 500, failing: check-0, check-1, check-2, check-3, check-4",
  ]);
  const endless = `HTTP/1.1 200 OK\r\na: ${"x".repeat(healthLimits.probeHeadBytes)}`;
  const [, said = ""] = await told(await serve(net.createServer((socket) => socket.write(endless))), 2);
  assert.is(said, "failing Parse Error: Header overflow");
});

test("a server that answers a probe with an upgrade is alive and not ready", async () => {
  const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
  const server = await serve(net.createServer((socket) => socket.write(head)));
  assert.equal(await told(server, 2), ["answer", "failing no response"]);
});

test("a refused socket, and a certificate of another name or authority, are told as what they are", async () => {
  const server = await plain(statusOf(200));
  server.close();
  assert.equal(await told(server, 1), ["refusal"]);
  const { authority, serving } = await testPki();
  const pair = { cert: serving.certificate, key: serving.key };
  const { port } = await serve(createTlsServer(pair, statusOf(200)));
  const ca = authority.certificate;
  assert.equal(await told({ port, tls: { ca, serverName: "other.test" } }, 1), ["untrusted"]);
  assert.equal(await told({ port, tls: { ca: undefined, serverName: "localhost" } }, 1), ["untrusted"]);
  const good = await told({ port, tls: { ca, serverName: "localhost" } }, 2);
  assert.equal(good, ["answer", "ready status 200", "certificate seen"]);
});

test("an answer that breaks off, or is no HTTP, is a failing server's", async () => {
  const cut = await plain((request) => request.socket.destroy());
  const odd = await serve(net.createServer((socket) => socket.end("SSH-2.0-x\r\n\r\n")));
  for (const server of [cut, odd]) {
    const [met, said = ""] = await told(server, 2);
    assert.is(met, "answer");
    assert.match(said, /^failing ./);
  }
});

test("of an endless answer only so much is read", async () => {
  let sent = 0;
  const server = await plain((_request, response) => {
    response.writeHead(200);
    const more = (): void => {
      while (
        !response.destroyed &&
        sent < 64 * healthLimits.probeBodyBytes &&
        response.write("x".repeat(4096))
      )
        sent += 4096;
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  });
  assert.equal(await told(server, 2), ["answer", "ready status 200"]);
  await within(20_000, "the end of its socket", gone(server));
});

test("one that is stopped leaves no socket", async () => {
  const server = await plain(() => {});
  const probe = createReadyProbe({
    path: () => "/readyz",
    open: () => openSocket({ name: "a", host: "127.0.0.1", port: server.port, tls: undefined }, "http/1.1"),
    seen() {},
  });
  await within(
    2000,
    "the socket",
    new Promise<void>((resolve) => {
      const stop = probe("a", {
        answered() {},
        connected() {},
        gaveUp() {},
        dialed() {
          setImmediate(() => {
            stop();
            resolve();
          });
        },
      });
    }),
  );
  await within(20_000, "the end of its socket", gone(server));
});

/**
 * Probes a backend that gives these answers to /version. Returns the known version after each one, and the journal
 * entries.
 */
async function versionsOf(answers: readonly Answer[]): Promise<{ known: string[]; changes: Entry[] }> {
  const clock = manualClock();
  const journal = new Journal(clock);
  const changes: Entry[] = [];
  journal.subscribe((entry) => changes.push(entry));
  const versions = new BackendVersions(clock, journal);
  const known: string[] = [];
  for (const answer of answers) {
    let isOver = (): void => {};
    const server = await plain((request, response) => {
      if (request.url === "/k8s/c-1/version") {
        response.on("close", () => isOver());
        answer(request, response);
      } else response.end("ok");
    });
    const probe = createReadyProbe({
      prefix: () => "/k8s/c-1",
      path: () => "/readyz",
      open: () => openSocket({ name: "a", host: "127.0.0.1", port: server.port, tls: undefined }, "http/1.1"),
      seen() {},
      versions,
    });
    await within(
      5000,
      "the version's response",
      new Promise<void>((resolve) => {
        isOver = resolve;
        probe("a", { answered() {}, connected() {}, gaveUp() {}, dialed() {} });
      }),
    );
    // The server has sent the complete response a moment before the proxy has read it.
    await new Promise((resolve) => setTimeout(resolve, 100));
    known.push(versions.of("a"));
    clock.advance(healthLimits.versionLookMs);
  }
  return { known, changes };
}

test("the version is read beside a probe, journaled when it changes, and kept when a response has none", async () => {
  const says = (gitVersion: string): Answer => statusOf(200, JSON.stringify({ major: "1", gitVersion }));
  const bad = [statusOf(403), statusOf(200, "{"), says("<script>"), says("")];
  const { known, changes } = await versionsOf([
    bad[0] ?? says(""),
    says("v1.35.2"),
    ...bad,
    says("v1.36.1+k3s1"),
  ]);
  assert.equal(known, ["", "v1.35.2", "v1.35.2", "v1.35.2", "v1.35.2", "v1.35.2", "v1.36.1+k3s1"]);
  assert.equal(changes, [
    { kind: "backend.version_changed", backend: "a", from: "", to: "v1.35.2" },
    { kind: "backend.version_changed", backend: "a", from: "v1.35.2", to: "v1.36.1+k3s1" },
  ]);
});

test("the version is requested once in ten seconds and after a failed dial, and a removed backend is forgotten", () => {
  const clock = manualClock();
  const versions = new BackendVersions(clock, new Journal(clock));
  assert.equal([versions.takeDue("a"), versions.takeDue("a")], [true, false]);
  clock.advance(healthLimits.versionLookMs);
  assert.ok(versions.takeDue("a"));
  // A socket was refused: the next process may be another version's.
  versions.expire("a");
  assert.equal([versions.takeDue("a"), versions.takeDue("a")], [true, false]);
  versions.reconcile([]);
  versions.reported("a", "v1.36.1");
  assert.is(versions.of("a"), "");
});

test.run();
