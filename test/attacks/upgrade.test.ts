import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/base/limits.ts";
import { type ScriptedSplice, startSplice } from "../support/splice.ts";

/** Rows A34 to A37 and A55 of the attack table: what a client or a backend may do wrong around one Upgrade. */
const test = suite("attacks/upgrade");

let splice: ScriptedSplice;
test.before.each(async () => {
  splice = await startSplice();
});
test.after.each(() => splice.close());

const upgrade = (first: string, ...fields: string[]): string =>
  [first, "Host: api", "Connection: Upgrade", "Upgrade: SPDY/3.1", ...fields, "", ""].join("\r\n");
const exec = upgrade("POST /exec HTTP/1.1");
const pod = "/api/v1/namespaces/a/pods/b";
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: api\r\n\r\n";
const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

test("A34: an Upgrade with a body is refused before it reaches any backend; Content-Length: 0 is not one", async () => {
  for (const request of [
    upgrade(`POST ${pod}/exec HTTP/1.1`, "Content-Length: 35") + smuggled,
    `${upgrade(`POST ${pod}/attach HTTP/1.1`, "Transfer-Encoding: chunked")}0\r\n\r\n${smuggled}`,
    upgrade(`POST ${pod}/exec HTTP/1.1`, "Content-Length: 0", "Content-Length: 0"),
    upgrade(`POST ${pod}/portforward HTTP/1.0`),
    upgrade(`PUT ${pod}/exec HTTP/1.1`),
    upgrade("GET /a#b HTTP/1.1"),
    upgrade("GET /a HTTP/1.1", "Host: b"),
    upgrade("GET /a HTTP/1.1", "X-Remote-User: nobody", "Connection: X-Remote-User"),
  ]) {
    const client = await splice.connect();
    client.send(request);
    assert.match(await client.ended(), /^HTTP\/1.1 400 /);
    assert.is(splice.backendCount(), 0);
  }
  const honest = await splice.connect();
  honest.send(upgrade("POST /exec HTTP/1.1", "Content-Length: 0"));
  const backend = await splice.backend();
  assert.match(await backend.expect("\r\n\r\n"), "content-length: 0\r\n");
});

for (const answer of [
  "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "HTTP/1.1 204 No Content\r\n\r\n",
  "HTTP/1.1 302 Found\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n",
]) {
  test(`A35, A36: after ${answer.slice(9, 15)} not one more byte of the client reaches the backend`, async () => {
    const client = await splice.connect();
    client.send(exec + smuggled);
    const backend = await splice.backend();
    const head = await backend.expect("\r\n\r\n");
    client.send(smuggled);
    backend.send(answer);
    client.send(smuggled);
    const got = await client.ended();
    assert.match(got, answer.slice(0, 12));
    assert.match(got, "connection: close\r\n");
    if (answer.includes("Location")) assert.match(got, "location: http://other/\r\n");
    client.send(smuggled);
    await backend.ended();
    assert.match(head, /^POST \/exec /);
    assert.is(backend.text, "");
    assert.is(splice.backendCount(), 1);
  });
}

for (const [what, answer] of [
  ["a bare LF", "HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: SPDY/3.1\n\n\r\n\r\n"],
  ["CR in a value", "HTTP/1.1 403 No\r\nX-A: b\rX-B: c\r\nContent-Length: 0\r\n\r\n"],
  ["LF in a value", "HTTP/1.1 403 No\r\nX-A: b\nSet-Cookie: c\r\nContent-Length: 0\r\n\r\n"],
  ["NUL in a value", "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-A: b\0\r\n\r\n"],
  ["a blank before a colon", "HTTP/1.1 403 No\r\nContent-Length : 0\r\n\r\n"],
  ["a folded line", "HTTP/1.1 403 No\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n"],
  ["two lengths", "HTTP/1.1 403 No\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nHTTP/"],
  [
    "a length and chunks",
    "HTTP/1.1 403 No\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  ["an odd coding", "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"],
  ["no status", "HTTP/1.1 OK\r\n\r\n"],
  ["another version", "HTTP/1.0 200 OK\r\n\r\n"],
  ["no HTTP at all", "SSH-2.0-x\r\n\r\n"],
  ["a 101 to something else", "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"],
  ["a 101 to nothing", "HTTP/1.1 101 S\r\n\r\n"],
  ["a head without end", `HTTP/1.1 403 No\r\nX-A: ${"a".repeat(140_000)}`],
  ["more fields than anyone needs", `HTTP/1.1 403 No\r\n${"a: b\r\n".repeat(16_385)}\r\n`],
  ["a storm of interim heads", "HTTP/1.1 103 Hints\r\n\r\n".repeat(limits.interimHeads + 1)],
] as const) {
  test(`A37: ${what} in the backend's answer is a 502, and no tunnel`, async () => {
    const client = await splice.connect();
    client.send(exec);
    const backend = await splice.backend();
    await backend.expect("\r\n\r\n");
    backend.send(answer);
    const got = await client.ended();
    assert.match(got.replaceAll("HTTP/1.1 103 Hints\r\n\r\n", ""), /^HTTP\/1.1 502 /);
    assert.not.match(got, /Set-Cookie|X-B/i);
    await backend.ended();
    assert.not(splice.entries.some((entry) => entry.kind === "tunnel.opened"));
  });
}

test("A37: sixteen interim heads before the 101 are honest", async () => {
  const client = await splice.connect();
  client.send(exec);
  const backend = await splice.backend();
  backend.send("HTTP/1.1 103 Hints\r\n\r\n".repeat(limits.interimHeads) + switched);
  await client.expect(switched);
});

test("A37: an answer before the request has ended it all is still an answer", async () => {
  const client = await splice.connect();
  client.send(exec);
  const backend = await splice.backend();
  backend.send("HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno");
  assert.match(await client.ended(), /^HTTP\/1.1 503 Busy\r\nretry-after: 1\r\n.*no$/s);
});

for (const [what, body] of [
  ["a size that is none", "xyz\r\n"],
  ["a size beyond all sizes", "FFFFFFFFFFFFFFFF\r\n"],
  ["a chunk longer than said", "1\r\nab\r\n0\r\n\r\n"],
  ["a line without end", `1;${"a".repeat(9000)}`],
  ["a bare LF", "1\na\r\n0\r\n\r\n"],
  ["trailers without end", `0\r\n${"a: b\r\n".repeat(40_000)}\r\n`],
] as const) {
  test(`A37: ${what} in a chunked refusal destroys the socket, for half an answer is none`, async () => {
    const client = await splice.connect();
    client.send(exec);
    const backend = await splice.backend();
    backend.send(`HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    const got = await client.closed();
    assert.not(client.isEnded);
    assert.not.match(got, /\r\n0\r\n\r\n$/);
    await backend.ended();
  });
}

test("A55: a token in Sec-WebSocket-Protocol reaches the backend and no journal entry", async () => {
  const secret = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
  const client = await splice.connect();
  client.send(upgrade("GET /exec HTTP/1.1", `Sec-WebSocket-Protocol: ${secret}, v5.channel.k8s.io`));
  const backend = await splice.backend();
  assert.match(await backend.expect("\r\n\r\n"), secret);
  backend.send("HTTP/1.1 101 S\nbad\r\n\r\n");
  assert.not.match(await client.ended(), secret);
  assert.ok(splice.entries.length > 0);
  assert.not.match(JSON.stringify(splice.entries), "c2VjcmV0");
});

test.run();
