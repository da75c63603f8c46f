import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

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
  assert.match(await within(3000, "an answer", get(proxy.url, proxy.ca, "/api")), /^[ab] GET \/api 0$/);
});

test("h2c on the plain loopback listener reaches it too", async ({ proxy }) => {
  assert.match(
    await within(3000, "an answer", get(`http://127.0.0.1:${proxy.plainPort}`, "", "/api")),
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
    await within(3000, "the close", new Promise((resolve) => socket.once("close", resolve)));
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
  assert.ok(await within(3000, "the refusal", failed));
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

test("a port in use is named", async ({ proxy }) => {
  const reason = await startProxy({ port: proxy.port }).then(
    () => "started",
    (error: Error) => error.message,
  );
  assert.match(reason, `Cannot listen on 127.0.0.1:${proxy.port}`);
  assert.match(reason, "EADDRINUSE");
});

test.run();
