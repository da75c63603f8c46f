import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sceneOf } from "../../support/attack.ts";
import { continued, type Fields, type Frame, headers, raw } from "../../support/h2-frames.ts";
import { blockOf } from "../../support/raw-backend.ts";

const test = suite("attacks/whole/headers");
const MiB = 1 << 20;

const scene = sceneOf(test);

/** An HPACK literal with incremental indexing. */
function indexed(name: string, value: string): Buffer {
  const length = (count: number): Buffer =>
    count < 127 ? Buffer.from([count]) : Buffer.from([127, ((count - 127) % 128) | 128, (count - 127) >> 7]);
  return Buffer.concat([
    Buffer.from([0x40]),
    length(name.length),
    Buffer.from(name),
    length(value.length),
    Buffer.from(value),
  ]);
}
/** The HPACK block of :method GET, :scheme https, :path / and :authority a. */
const get = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 1]), Buffer.from("a")]);

const deadly: Record<string, readonly (Frame | Frame[])[]> = {
  "A5: ten thousand empty CONTINUATION frames": [
    raw(1, 1, 1, get),
    ...Array.from({ length: 10_000 }, () => raw(9, 0, 1, "")),
  ],
  "A5: CONTINUATION frames of 16 KiB": [
    raw(1, 1, 1, get),
    ...Array.from({ length: 20 }, () => raw(9, 0, 1, Buffer.alloc(16_384))),
  ],
  "A9: an index of no entry": [blockOf(1, Buffer.from([0xff, 0x7f]))],
  "A9: index 0": [blockOf(1, Buffer.from([0x80]))],
  "A9: an integer without end": [
    blockOf(1, Buffer.from([0xff, ...Array.from({ length: 10 }, () => 0xff), 1])),
  ],
  "A9: a Huffman string of EOS": [blockOf(1, Buffer.from([0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00]))],
  "A9: a table beyond what we offer": [blockOf(1, Buffer.from([0x3f, 0xff, 0x7f]))],
  "A9: a thousand size updates": [blockOf(1, Buffer.alloc(1000, 0x20))],
  "A17: a frame inside a header block": [raw(1, 1, 1, get), raw(10, 0, 1, "x")],
};

for (const [what, frames] of Object.entries(deadly)) {
  test(`${what} ends the session`, async () => {
    const asked = (await scene.proxy.state()).refusals.length;
    const client = await scene.attacker();
    client.send(...frames);
    await client.expect(/GOAWAY 0 (COMPRESSION_ERROR|ENHANCE_YOUR_CALM|PROTOCOL_ERROR)/);
    await client.closed();
    assert.is((await scene.proxy.state()).refusals.length, asked + 1);
  });
}

test("A5: a socket that goes in the middle of a block leaves nothing behind", async () => {
  const before = await scene.proxy.state();
  for (let round = 0; round < 50; round += 1) {
    const client = await scene.attacker();
    client.send(raw(1, 1, 1, get), raw(9, 0, 1, Buffer.alloc(16_000)), raw(9, 0, 1, Buffer.alloc(16_000)));
    await client.flushed();
    client.destroy();
  }
  const after = await scene.settled();
  assert.ok(after.heapBytes - before.heapBytes < 8 * MiB, String(after.heapBytes - before.heapBytes));
});

test("A7: a bomb of references is answered once, ends the session then, and costs no memory", async () => {
  const before = await scene.proxy.state();
  const asked = scene.target.asked;
  const client = await scene.attacker();
  const bomb = Buffer.concat([get, indexed("cookie", "c".repeat(4000)), Buffer.alloc(12_000, 0xbe)]);
  client.send(blockOf(1, bomb).flags === 4 ? raw(1, 5, 1, bomb) : []);
  await client.expect(/HEADERS 1 :status=431/);
  client.send(raw(1, 5, 3, bomb));
  await client.expect(/GOAWAY \d+ ENHANCE_YOUR_CALM/);
  await client.closed();
  const after = await scene.settled();
  assert.ok(scene.target.asked - asked < 500);
  assert.ok(after.rssBytes - before.rssBytes < 32 * MiB, String(after.rssBytes - before.rssBytes));
});

test("A7: ten thousand fields are one 431, not ten thousand fields upstream", async () => {
  const client = await scene.attacker();
  client.send(raw(1, 5, 1, Buffer.concat([get, Buffer.alloc(10_000, 0x90)])));
  await client.expect(/HEADERS 1 :status=431/);
  client.send(headers(3).get("/api"));
  await client.expect(/HEADERS 3 :status=200/);
});

test("A7: a field beyond 64 KiB is one 431, for it would end the upstream connection of a backend that is built on nghttp2", async () => {
  const { connectionsClosed } = await scene.proxy.state();
  const client = await scene.attacker();
  const long: Fields = [["x-long", "y".repeat(65_537)]];
  client.send(continued(headers(1).get("/evil", ...long), 16_000, 16_000, 16_000, 16_000));
  await client.expect(/HEADERS 1 :status=431/);
  client.send(headers(3).get("/api"));
  await client.expect(/HEADERS 3 :status=200/);
  assert.is((await scene.proxy.state()).connectionsClosed.length, connectionsClosed.length);
});

test("the honest twin of A7: a field of 64 KiB passes", async () => {
  const client = await scene.attacker();
  const long: Fields = [["x-long", "y".repeat(65_536)]];
  client.send(continued(headers(1).get("/api", ...long), 16_000, 16_000, 16_000, 16_000));
  await client.expect(/HEADERS 1 :status=200/);
});

test("A8: four hundred groups, a long token and thirty cookies arrive as they were sent", async () => {
  const groups: Fields = Array.from({ length: 400 }, (_, at) => ["impersonate-group", `group ${at},x`]);
  const cookies: Fields = Array.from({ length: 30 }, (_, at) => ["cookie", `c${at}=1`]);
  const sent: Fields = [...groups, ["authorization", `Bearer ${"t".repeat(12_288)}`], ...cookies];
  const client = await scene.attacker();
  client.send(continued(headers(1).get("/fields", ...sent), 16_000, 16_000));
  await client.expect(/HEADERS 1 :status=200/);
  await client.expect(/DATA 1 .*END$/);
  const got = JSON.parse(client.texts.get(1) ?? "[]") as string[];
  const pairs = Array.from({ length: got.length / 2 }, (_, at) => [got[2 * at], got[2 * at + 1]]);
  const ours = pairs.filter(([name = ""]) => /^(impersonate|authorization|cookie)/.test(name));
  assert.equal(
    ours.filter(([name]) => name !== "cookie"),
    sent.filter(([name]) => name !== "cookie"),
  );
});

const refused: Record<string, Fields> = {
  "A10: an empty name": [["", "x"]],
  "A11: an unknown pseudo-field": [[":nonsense", "x"]],
  "A11: :status": [[":status", "200"]],
  "A11: :protocol, for which we never asked": [[":protocol", "websocket"]],
  "A11: a second :path": [[":path", "/other"]],
  "A27: a line feed in a value": [["x-a", "b\r\nx-b: c"]],
  "A27: NUL in a value": [["x-a", "b\0"]],
  "A27: DEL in a value": [["x-a", "b\x7f"]],
  "A27: a colon in a name": [["x:a", "b"]],
  "A27: a blank in a name": [["x a", "b"]],
  "A27: an upper-case name": [["X-A", "b"]],
  "A28: connection": [["connection", "close"]],
  "A28: keep-alive": [["keep-alive", "1"]],
  "A28: proxy-connection": [["proxy-connection", "x"]],
  "A28: transfer-encoding": [["transfer-encoding", "chunked"]],
  "A28: upgrade": [["upgrade", "websocket"]],
  "A28: te that is not trailers": [["te", "gzip"]],
  "A29: a body that is promised and does not come": [["content-length", "5"]],
  "A29: two lengths": [
    ["content-length", "0"],
    ["content-length", "0"],
  ],
  "A29: +0": [["content-length", "+0"]],
  "A29: 0x0": [["content-length", "0x0"]],
  "A29: 2^64": [["content-length", "18446744073709551616"]],
  "A31: a host that is not :authority": [["host", "b"]],
};

for (const [what, fields] of Object.entries(refused)) {
  test(`${what} refuses the request, and the next is served`, async () => {
    const client = await scene.attacker();
    client.send(headers(1).get("/evil", ...fields), headers(3).get("/fields", ["te", "trailers"]));
    await client.expect(/RST_STREAM 1 PROTOCOL_ERROR/);
    await client.expect(/HEADERS 3 :status=200/);
    assert.is(scene.target.seen("/evil"), 0);
  });
}

test("A27: blanks around a value are removed, so a client with an empty token gets the 401 of its apiserver", async () => {
  const client = await scene.attacker();
  client.send(headers(1).get("/fields", ["authorization", "Bearer "], ["x-a", "\t b c \t "], ["x-b", " "]));
  await client.expect(/DATA 1 .*END$/);
  assert.match(client.texts.get(1) ?? "", '"authorization","Bearer","x-a","b c","x-b",""');
});

test("A10: names of object members are names like any other", async () => {
  const client = await scene.attacker();
  client.send(headers(1).get("/fields", ["__proto__", "x"], ["constructor", "y"]));
  await client.expect(/DATA 1 .*END$/);
  assert.match(client.texts.get(1) ?? "", '"__proto__","x","constructor","y"');
});

test.run();
