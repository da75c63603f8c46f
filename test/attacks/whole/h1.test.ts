/**
 * HTTP/1.1 against the whole proxy. A request that two parsers could read in two ways must not reach a backend, nor may
 * anything after it.
 */
import { createServer } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf } from "../../support/attack.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";

const test = suite("attacks/whole/h1");

const scene = sceneOf(test);

const connect = (): Promise<RawPeer> => connectRaw(scene.proxy.place.plainPort);
const lines = (...all: readonly string[]): string => [...all, "", ""].join("\r\n");
const get = (...fields: readonly string[]): string => lines("GET /evil HTTP/1.1", "Host: api", ...fields);
const post = (...fields: readonly string[]): string => lines("POST /evil HTTP/1.1", "Host: api", ...fields);
const exec = (...fields: readonly string[]): string =>
  lines("POST /api/v1/namespaces/a/pods/b/exec HTTP/1.1", "Host: api", ...fields);
const smuggled = lines("GET /smuggled HTTP/1.1", "Host: api");
const chunked = "Transfer-Encoding: chunked";

/** Invalid requests. Each is followed by a complete request, which no part of the proxy may process. */
const refused: Record<string, string> = {
  "A27: NUL in a value": get("X-A: a\0b"),
  "A27: a blank before the colon": get("X-A : b"),
  "A29: two lengths": post("Content-Length: 0", "Content-Length: 5"),
  "A29: +5": post("Content-Length: +5"),
  "A30: a fragment": lines("GET /evil#x HTTP/1.1", "Host: api"),
  "A31: two hosts": get("Host: other"),
  "A32: a method that is none": lines("GE T /evil HTTP/1.1", "Host: api"),
  "A33: CL.TE": post("Content-Length: 5", chunked),
  "A33: TE.CL": post(chunked, "Content-Length: 5"),
  "A33: TE.TE, identity behind chunked": post("Transfer-Encoding: chunked, identity"),
  "A33: TE.TE, xchunked": post("Transfer-Encoding: xchunked"),
  "A33: TE behind a tab": post("Transfer-Encoding:\tchunked\tx"),
  "A33: TE twice": post(chunked, "Transfer-Encoding: identity"),
  "A33: TE folded": post("Transfer-Encoding:", " chunked"),
  "A33: obs-fold": get("X-A: b", " c"),
  "A33: a bare line feed ends a line": "GET /evil HTTP/1.1\nHost: api\n\n",
  "A33: a bare CR in a line": get("X-A: b\rX-B: c"),
  "A33: HTTP/1.0 with chunks": lines("POST /evil HTTP/1.0", "Host: api", chunked),
  "A33: HTTP/2.0 in words": lines("GET /evil HTTP/2.0", "Host: api"),
  "A33: HTTP/0.9": "GET /evil\r\n\r\n",
  "A33: a chunk of 17 digits": `${post(chunked)}fffffffffffffffff\r\n`,
  "A33: a chunk of -1": `${post(chunked)}-1\r\n`,
  "A33: a chunk of 0x5": `${post(chunked)}0x5\r\nhello\r\n0\r\n\r\n`,
  "A33: a chunk without CRLF behind it": `${post(chunked)}5\r\nhelloX0\r\n\r\n`,
  "A33: a chunk's line feed alone": `${post(chunked)}5\nhello\r\n0\r\n\r\n`,
  "A38: an identity in trailers": `${post(chunked)}0\r\nX-Remote-User: admin\r\n\r\n`,
  "A38: a length in trailers": `${post(chunked)}0\r\nContent-Length: 5\r\n\r\n`,
  "A40: Connection takes an identity away": get("X-Remote-User: me", "Connection: close, X-Remote-User"),
  "A40: Connection takes a credential away": get("Authorization: Bearer x", "Connection: authorization"),
  "A34: an Upgrade with a body": exec("Connection: Upgrade", "Upgrade: SPDY/3.1", "Content-Length: 35"),
  "A34: an Upgrade with chunks": exec("Connection: Upgrade", "Upgrade: SPDY/3.1", chunked),
};

for (const [what, octets] of Object.entries(refused)) {
  test(`${what} over HTTP/1.1 is refused, and what follows is not taken for a request`, async () => {
    const before = scene.target.seen("/smuggled");
    const client = await connect();
    client.send(octets + smuggled);
    const answers = await client.ended();
    assert.match(answers, /^HTTP\/1.1 400 /);
    assert.is(answers.match(/HTTP\/1.1 /g)?.length, 1, answers);
    await pause(20);
    assert.is(scene.target.seen("/smuggled"), before);
    client.socket.destroy();
  });
}

test("A33: h2c by Upgrade over HTTP/1.1 is ignored, and its settings reach no backend", async () => {
  const client = await connect();
  client.send(
    lines(
      "GET /fields HTTP/1.1",
      "Host: api",
      "Connection: Upgrade, HTTP2-Settings",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQAAP__",
    ),
  );
  const answer = await client.expect("]");
  assert.match(answer, /^HTTP\/1.1 200 /);
  assert.not.match(answer, /http2-settings|h2c/i);
  client.socket.destroy();
});

test("A36: a redirect over HTTP/1.1 goes on to the client, and the proxy does not follow it", async () => {
  let visits = 0;
  const other = createServer((socket) => {
    visits += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => {
    other.listen(0, "127.0.0.1", resolve);
  });
  const address = other.address();
  scene.target.movedTo = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/secret`;
  const client = await connect();
  client.send(lines("GET /moved HTTP/1.1", "Host: api"));
  const answer = await client.expect("/moved");
  assert.match(answer, /^HTTP\/1.1 302 /);
  assert.match(answer, scene.target.movedTo);
  await pause(200);
  assert.is(visits, 0);
  client.socket.destroy();
  other.close();
});

test("A22: heads that dribble over HTTP/1.1 end after ten seconds, and so does silence", async () => {
  const half = await connect();
  half.send("GET /evil HTTP/1.1\r\nHost: api\r\nX-A: ");
  const silent = await connect();
  const beganAt = performance.now();
  const stays = (): number => [half, silent].filter((peer) => !peer.isEnded && !peer.isClosed).length;
  while (stays() > 0 && performance.now() - beganAt < 14_000) {
    if (!half.isClosed) half.send("b");
    await pause(500);
  }
  assert.is(stays(), 0);
  assert.ok(performance.now() - beganAt > 8000);
  half.socket.destroy();
  silent.socket.destroy();
});

test("A33, A23, A30, A27, the honest twin: an upload in slow chunks with extensions, trailers and odd paths over HTTP/1.1 passes", async () => {
  const client = await connect();
  client.send(
    lines(
      "POST /a//../%2e%2e/b?x=%2f HTTP/1.1",
      "Host: api",
      chunked,
      "Trailer: X-Sum",
      "X_a: b",
      "TE: trailers",
    ),
  );
  for (const piece of ["5;name=value\r\nhello", "\r\n1", "\r\n!\r\n", "0\r\nX-Sum: 6\r\n\r\n"]) {
    await pause(150);
    client.send(piece);
  }
  const answer = await client.expect("/a//../%2e%2e/b?x=%2f");
  assert.match(answer, /^HTTP\/1.1 200 /);
  client.send(lines("GET /next HTTP/1.1", "Host: api"));
  await client.expect("/next");
  client.socket.destroy();
});

test.run();
