import { suite } from "uvu";
import * as assert from "uvu/assert";
import { until } from "../../support/h1.ts";
import type { RawPeer } from "../../support/raw.ts";
import { type ScriptedSplice, spdy, startSplice, switched } from "../../support/splice.ts";

const test = suite("proxy/tunnel/upgrade-tunnel");

let upgrade: ScriptedSplice;
test.before.each(async () => {
  upgrade = await startSplice();
});
test.after.each(() => upgrade.close());

test("bytes that come early wait for the 101, on both sides", async () => {
  const client = await upgrade.connect();
  client.send(`${spdy}early up`);
  const backend = await upgrade.backend();
  await backend.expect("upgrade: SPDY/3.1\r\n\r\n");
  client.send(", more");
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.is(backend.text, "");
  backend.send(`${switched}early down`);
  await client.expect(`${switched}early down`);
  await backend.expect("early up, more");
});

const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

for (const [target, expected] of [
  ["/api/v1/pods?watch=true", 3],
  ["/api/v1/namespaces/n/pods/p/exec?watch=true", undefined],
] as const) {
  test(`a websocket on ${target} passes untouched, ${expected ?? "none"} of its messages counted`, async () => {
    const client = await upgrade.connect();
    client.send(`GET ${target} HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    const backend = await upgrade.backend();
    await backend.expect("\r\n\r\n");
    backend.send(`${upgraded}\x81\x02{}\x81`);
    await client.expect(`${upgraded}\x81\x02{}\x81`);
    backend.send("\x02{}\x89\0\x81\x02{}\x81\x05{");
    await client.expect("\x02{}\x89\0\x81\x02{}\x81\x05{");
    upgrade.die();
    await client.ended();
    const ended = upgrade.entries.find((entry) => entry.kind === "tunnel.ended");
    assert.is(ended?.kind === "tunnel.ended" ? ended.events : "not ended", expected);
  });
}

test("an answer that comes byte by byte is the same answer", async () => {
  const client = await upgrade.connect();
  client.send(spdy);
  const backend = await upgrade.backend();
  for (const octet of `HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${switched}x`) {
    backend.send(octet);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await client.expect(`HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${switched}x`);
});

async function opened(): Promise<{ readonly client: RawPeer; readonly backend: RawPeer }> {
  const client = await upgrade.connect();
  client.send(spdy);
  const backend = await upgrade.backend();
  await backend.expect("\r\n\r\n");
  backend.send(switched);
  await client.expect(switched);
  return { client, backend };
}

test("either half may be closed while the other goes on", async () => {
  const first = await opened();
  first.client.socket.end("last");
  assert.is(await first.backend.ended(), "last");
  first.backend.send("still here");
  await first.client.expect("still here");
  first.backend.socket.end();
  await first.client.closed();

  const second = await opened();
  second.backend.socket.end("last");
  assert.is(await second.client.ended(), "last");
  second.client.send("still here");
  await second.backend.expect("still here");
  second.client.socket.end();
  await second.backend.closed();
  await until("both gone", () => upgrade.splices.openCount === 0);
});

test("a tunnel that is silent for a day stays open (row 21)", async () => {
  const { client, backend } = await opened();
  upgrade.clock.advance(86_400_000);
  backend.send("awake");
  await client.expect("awake");
});

test("a client that stops reading stops the backend, and nothing is lost", async () => {
  const { client, backend } = await opened();
  client.socket.pause();
  const total = 24 << 20;
  backend.send(Buffer.alloc(total, "x"));
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(backend.socket.writableLength > 0, "the backend feels it");
  client.socket.resume();
  await until("all of it", () => client.text.length === total);
});

test("a reset on one side is a reset on the other", async () => {
  const first = await opened();
  first.backend.socket.resetAndDestroy();
  await first.client.closed();
  const second = await opened();
  second.client.socket.resetAndDestroy();
  await second.backend.closed();
  await until("both gone", () => upgrade.splices.openCount === 0);
});

test("a refusal is relayed with its framing and its fields, and then both sockets end", async () => {
  for (const [framing, body, relayed] of [
    ["Content-Length: 4", "nope", "content-length: 4\r\nconnection: close\r\n\r\nnope"],
    [
      "Transfer-Encoding: chunked",
      "2\r\nno\r\n2\r\npe\r\n0\r\nX-T: 1\r\n\r\n",
      "transfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nno\r\n2\r\npe\r\n0\r\nX-T: 1\r\n\r\n",
    ],
  ] as const) {
    const client = await upgrade.connect();
    client.send(spdy);
    const backend = await upgrade.backend();
    backend.send(
      `HTTP/1.1 403 Forbidden\r\nAudit-Id: a\r\nAudit-Id: b\r\nKeep-Alive: 5\r\n${framing}\r\n\r\n`,
    );
    for (const octet of `${body}behind`) backend.send(octet);
    const answer = await client.ended();
    assert.is(answer, `HTTP/1.1 403 Forbidden\r\naudit-id: a\r\naudit-id: b\r\n${relayed}`);
    await backend.ended();
  }
});

test("a refusal that ends with its connection is relayed until that end", async () => {
  const client = await upgrade.connect();
  client.send(spdy);
  const backend = await upgrade.backend();
  backend.send("HTTP/1.1 500 Oh\r\nConnection: close\r\n\r\nall of it");
  backend.socket.end();
  assert.match(await client.ended(), /^HTTP\/1.1 500 Oh\r\nconnection: close\r\n\r\nall of it$/);
});

test("a refusal cut short does not look whole", async () => {
  const client = await upgrade.connect();
  client.send(spdy);
  const backend = await upgrade.backend();
  backend.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\nhalf");
  await client.expect("half");
  backend.socket.end();
  await client.closed();
  assert.not(client.isEnded, "a reset, not an orderly end");
});

test("a fault of the proxy costs its tunnel, not the process", async () => {
  const client = await upgrade.connect();
  client.send(spdy);
  const backend = await upgrade.backend();
  await backend.expect("\r\n\r\n");
  upgrade.journalFault = "bug";
  backend.send(switched);
  await client.closed();
  await backend.closed();
  assert.is(upgrade.splices.openCount, 0);
});

test.run();
