import { connect, type Socket } from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../support/h1.ts";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { RawPeer } from "../support/raw.ts";

/** HTTP/1.1 clients through the whole proxy, with TLS on both sides. The test checks the bytes at both ends. */
const test = suite("flows/h1-through");

let proxy: TestProxy;
let upgraded: { readonly head: readonly string[]; readonly peer: RawPeer }[] = [];

test.before.each(async () => {
  upgraded = [];
  proxy = await startProxy({ backends: 2 });
  for (const { server } of proxy.backends) {
    server.on("stream", (stream, headers) => {
      if (headers.expect === "100-continue") stream.additionalHeaders({ ":status": 100 });
    });
    server.on("upgrade", (request, socket) => {
      upgraded.push({ head: request.rawHeaders, peer: new RawPeer(socket as Socket) });
      (socket as Socket).allowHalfOpen = true;
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    });
  }
  await until("a ready backend", () =>
    proxy.entries.some((entry) => entry.kind === "upstream_connection.opened"),
  );
});
test.after.each(async () => {
  for (const { peer } of upgraded) peer.socket.destroy();
  await proxy.stop();
});

async function dial(by: "tls" | "plain"): Promise<RawPeer> {
  const { port, plainPort, ca } = proxy;
  const socket: Socket =
    by === "plain"
      ? connect({ port: plainPort, host: "127.0.0.1" })
      : tls.connect({ port, host: "127.0.0.1", servername: "localhost", ca });
  socket.allowHalfOpen = true;
  await new Promise((resolve, reject) => {
    socket.once(by === "plain" ? "connect" : "secureConnect", resolve);
    socket.once("error", reject);
  });
  return new RawPeer(socket);
}

const host = "Host: localhost\r\n";

for (const by of ["tls", "plain"] as const) {
  test(`requests follow each other on one socket (${by})`, async () => {
    const client = await dial(by);
    client.send(`GET /api?x=%2f HTTP/1.1\r\n${host}\r\n`);
    await client.expect(/\r\n[0-9a-f]+\r\n[ab] GET \/api\?x=%2f 0\r\n0\r\n\r\n/);
    client.send(`HEAD /api HTTP/1.1\r\n${host}\r\n`);
    assert.match(await client.expect("\r\n\r\n"), /^HTTP\/1.1 200 OK\r\n/);
    client.send(
      `POST /api HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
    );
    await client.expect("POST /api 5\r\n0\r\n\r\n");
    client.send(`POST /api HTTP/1.1\r\n${host}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
    await client.expect("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abcde");
    await client.expect("POST /api 5\r\n0\r\n\r\n");
    client.send(`GET /status/204 HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
    assert.match(await client.ended(), /^HTTP\/1.1 204 No Content\r\n.*Connection: close\r\n\r\n$/s);
    client.socket.destroy();
  });

  test(`a large upload arrives whole (${by})`, async () => {
    const client = await dial(by);
    const total = 20 << 20;
    client.send(`PUT /api HTTP/1.1\r\n${host}Content-Length: ${total}\r\n\r\n`);
    client.send(Buffer.alloc(total));
    await client.expect(`PUT /api ${total}\r\n`);
    client.socket.destroy();
  });

  test(`an Upgrade becomes a tunnel, either half of which may end first (${by})`, async () => {
    for (const first of ["client", "backend"] as const) {
      const client = await dial(by);
      client.send(
        `POST /api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\nImpersonate-Group: a\r\nImpersonate-Group: b,c\r\n\r\nearly`,
      );
      await client.expect("Upgrade: SPDY/3.1\r\n\r\n");
      await until("the upgrade", () => upgraded.length > 0);
      const { head, peer } = upgraded.pop() as (typeof upgraded)[number];
      assert.match(
        head.join("|"),
        "impersonate-group|a|impersonate-group|b,c|x-forwarded-for|127.0.0.1|audit-id|",
      );
      await peer.expect("early");
      const [one, other] = first === "client" ? [client, peer] : [peer, client];
      one.socket.end("last words");
      assert.is(await other.ended(), "last words");
      other.send("heard");
      await one.expect("heard");
      other.socket.end();
      await one.ended();
      for (const each of [one, other]) each.socket.destroy();
    }
    await until("both ended", () => proxy.entries.filter(({ kind }) => kind === "tunnel.ended").length === 2);
  });
}

test("a refused Upgrade is answered, and its socket ends", async () => {
  const client = await dial("tls");
  client.send(
    `POST /api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 3\r\n\r\nabc`,
  );
  assert.match(
    await client.ended(),
    /^HTTP\/1.1 400 Bad Request\r\n.*"message":"watchkeeper: Upgrade with a body"/s,
  );
  client.socket.destroy();
});

for (const method of ["POST", "PUT", "PATCH", "DELETE"])
  test(`Upgrade fields on ${method} with a body are ignored, and the body is the request's own`, async () => {
    const client = await dial("tls");
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n";
    client.send(`${method} /api HTTP/1.1\r\n${host}${upgrade}\r\nabc`);
    await client.expect(` ${method} /api 3\r\n0\r\n\r\n`);
    client.send(`GET /next HTTP/1.1\r\n${host}\r\n`);
    await client.expect(" GET /next 0\r\n");
    client.socket.destroy();
  });

test.run();
