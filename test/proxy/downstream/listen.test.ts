import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { within } from "../../support/within.ts";

const test = suite<{ proxy: TestProxy }>("proxy/listen");

test.before(async (context) => {
  context.proxy = await startProxy({ backends: 2 });
});
test.after(async ({ proxy }) => {
  await proxy.stop();
});

async function get(url: string, ca: string, path: string): Promise<string> {
  const session = http2.connect(url, { ca });
  const stream = session.request({ ":path": path });
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  session.close();
  return Buffer.concat(chunks).toString();
}

test("h2 over TLS reaches a backend", async ({ proxy }) => {
  assert.match(await within(20_000, "an answer", get(proxy.url, proxy.ca, "/api")), /^[ab] GET \/api 0$/);
});

test("h2c on the plain loopback listener reaches it too", async ({ proxy }) => {
  assert.match(
    await within(20_000, "an answer", get(`http://127.0.0.1:${proxy.plainPort}`, "", "/api")),
    /^[ab] GET \/api 0$/,
  );
});

test("plain HTTP on the TLS port gets a 400 that a person can read", async ({ proxy }) => {
  const socket = net.connect(proxy.port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const answer = Buffer.concat(chunks).toString();
  assert.match(answer, " 400 Bad Request");
  assert.match(answer, "an HTTP request to an HTTPS port");
});

test("TLS on the plain port and garbage on either are closed, and the listener serves on", async ({
  proxy,
}) => {
  for (const port of [proxy.plainPort, proxy.port]) {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(Buffer.from([0x16, 9, 9, 0, 5, 1, 2, 3, 4, 5]));
    await within(20_000, "the close", new Promise((resolve) => socket.once("close", resolve)));
  }
  assert.match(await get(proxy.url, proxy.ca, "/still"), "GET /still");
  const metrics = await fetch(`http://${proxy.running.adminAddress}/metrics`).then((answer) => answer.text());
  assert.match(metrics, /watchkeeper_downstream_tls_handshake_errors_total [1-9]/);
});

test("old TLS is refused (A45)", async ({ proxy }) => {
  const socket = tls.connect({
    port: proxy.port,
    host: "127.0.0.1",
    ca: proxy.ca,
    servername: "localhost",
    maxVersion: "TLSv1.1",
    minVersion: "TLSv1",
  });
  const failed = new Promise<boolean>((resolve) => {
    socket.once("error", () => resolve(true));
    socket.once("secureConnect", () => resolve(false));
  });
  assert.ok(await within(20_000, "the refusal", failed));
  socket.destroy();
});

test("a client that vanishes in the middle of anything leaves nothing behind", async ({ proxy }) => {
  for (let index = 0; index < 20; index += 1) {
    const socket = tls.connect({
      port: proxy.port,
      host: "127.0.0.1",
      ca: proxy.ca,
      servername: "localhost",
      ALPNProtocols: ["h2"],
    });
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".slice(0, index + 4));
    socket.destroy();
  }
  assert.match(await get(proxy.url, proxy.ca, "/after"), "GET /after");
  assert.is(proxy.running.exchanges.size, 0);
});

/** Resolves to true after the TLS handshake, and to false if the connection ends before. */
function isShaken(socket: tls.TLSSocket): Promise<boolean> {
  return within(
    3000,
    "a handshake, or its end",
    new Promise((resolve) => {
      socket.once("secureConnect", () => resolve(true));
      socket.once("close", () => resolve(false));
    }),
  );
}

const balanced = `  - name: balanced
    address: "127.0.0.1:0"
    tls: {certFile: tls.crt, keyFile: tls.key}
    proxyProtocol: {mode: Required, trustedCIDRs: [127.0.0.0/8]}
    maxConnectionsPerSource: 2
  - name: wrong
    address: "127.0.0.1:0"
    proxyProtocol: {mode: Required, trustedCIDRs: [10.0.0.0/8]}`;

test("a balancer's client is known by its own address, and an address has its number of connections", async () => {
  const proxy = await startProxy({ listeners: balanced });
  const portOf = (name: string): number => Number(proxy.running.addresses.get(name)?.split(":").at(-1));
  const forwarded = new Promise<string>((resolve) => {
    proxy.backends[0]?.server.once("stream", (_, headers) => resolve(String(headers["x-forwarded-for"])));
  });
  const open = async (client: string): Promise<tls.TLSSocket> => {
    const raw = net.connect(portOf("balanced"), "127.0.0.1");
    raw.write(`PROXY TCP4 ${client} 192.0.2.1 1234 443\r\n`);
    const socket = tls.connect({ socket: raw, ca: proxy.ca, servername: "localhost", ALPNProtocols: ["h2"] });
    socket.on("error", () => {});
    return socket;
  };
  const first = await open("203.0.113.7");
  const session = http2.connect("https://localhost", { createConnection: () => first });
  session.request({ ":path": "/api" }).resume();
  assert.is(await within(20_000, "a request at the backend", forwarded), "203.0.113.7");
  const second = await open("203.0.113.7");
  assert.is(await isShaken(second), true);
  assert.is(await isShaken(await open("203.0.113.7")), false);
  const other = await open("203.0.113.8");
  assert.is(await isShaken(other), true);
  second.destroy();
  await within(20_000, "the end of it", new Promise((resolve) => second.once("close", resolve)));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const third = await open("203.0.113.7");
  assert.is(await isShaken(third), true);
  const stranger = net.connect(portOf("wrong"), "127.0.0.1");
  stranger.on("error", () => {});
  await within(20_000, "a stranger's end", new Promise((resolve) => stranger.once("close", resolve)));
  const refused = proxy.entries.filter((entry) => entry.kind === "downstream_connection.refused");
  assert.equal(
    refused.map(({ client, reason }) => [client, reason]),
    [
      ["203.0.113.7", "too many connections from one source"],
      ["127.0.0.1", "PROXY header from an untrusted source"],
    ],
  );
  for (const socket of [session, third, other]) socket.destroy();
  await proxy.stop();
});

const fromOne = "PROXY TCP4 127.0.0.9 127.0.0.1 1234 443\r\n";

/**
 * Opens three connections to a listener that permits one for each source address. Returns how many it accepted and
 * refused.
 */
async function openThree(mode: string, trusted: string, header = ""): Promise<readonly [number, number]> {
  const proxy = await startProxy({
    listeners: `  - name: few
    address: "127.0.0.1:0"
    tls: {certFile: tls.crt, keyFile: tls.key}
    proxyProtocol: {mode: ${mode}, trustedCIDRs: [${trusted}]}
    maxConnectionsPerSource: 1`,
  });
  const port = Number(proxy.running.addresses.get("few")?.split(":").at(-1));
  const sockets = [1, 2, 3].map(() => {
    const raw = net.connect(port, "127.0.0.1");
    if (header !== "") raw.write(header);
    const socket = tls.connect({ socket: raw, ca: proxy.ca, servername: "localhost", ALPNProtocols: ["h2"] });
    return socket.on("error", () => {});
  });
  const shaken = await Promise.all(sockets.map(isShaken));
  const refused = proxy.entries.filter(({ kind }) => kind === "downstream_connection.refused");
  for (const socket of sockets) socket.destroy();
  await proxy.stop();
  return [shaken.filter(Boolean).length, refused.length];
}

test("the limit of connections per source does not apply to a trusted load balancer that hides its clients", async () => {
  assert.equal(await openThree("Disabled", "127.0.0.0/8"), [3, 0]);
  assert.equal(await openThree("Optional", "127.0.0.0/8"), [3, 0]);
  assert.equal(await openThree("Required", "127.0.0.0/8", "PROXY UNKNOWN\r\n"), [3, 0]);
});

test("the limit of connections per source applies to others, and to clients that a PROXY header names", async () => {
  assert.equal(await openThree("Disabled", "10.0.0.0/8"), [1, 2]);
  assert.equal(await openThree("Optional", "10.0.0.0/8"), [1, 2]);
  assert.equal(await openThree("Optional", "127.0.0.0/8", fromOne), [1, 2]);
  assert.equal(await openThree("Required", "127.0.0.0/8", fromOne), [1, 2]);
});

test("a port in use is named", async ({ proxy }) => {
  const reason = await startProxy({ port: proxy.port }).then(
    () => "started",
    (error: Error) => error.message,
  );
  assert.match(reason, `cannot listen on 127.0.0.1:${proxy.port}: already in use`);
});

test.run();
