import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { HpackDecoder } from "../../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../../src/h2/hpack/hpack-encoder.ts";
import { decode, encode, fields, hex, integer, lines, literal } from "../../support/hpack.ts";
import { type Random, seeded } from "../../support/random.ts";

const test = suite("h2/hpack/hpack-encoder");

const head = fields(
  ":method: GET",
  ":scheme: https",
  ":authority: 10.0.0.1:6443",
  "user-agent: kubelet/v1.36.1",
  "accept: application/vnd.kubernetes.protobuf,application/json",
  "accept-encoding: gzip",
  "x-note: ",
);

test("what is in the static table is one byte from the first", () => {
  const list = fields(
    ":method: GET",
    ":scheme: https",
    ":status: 200",
    "accept-encoding: gzip, deflate",
    "etag: ",
  );
  assert.equal(encode(new HpackEncoder(), list), hex("82 87 88 90 a2"));
});

test("a new field goes into the table, and from then on is one byte", () => {
  const encoder = new HpackEncoder();
  const [, , authority = new Field("", "")] = head;
  assert.equal(encode(encoder, [authority]), Buffer.concat([hex("41 0d"), Buffer.from(authority.value)]));
  assert.equal(encode(encoder, [authority]), hex("be"));
  assert.equal(encode(encoder, fields("x-a: b")), literal(0x40, "x-a", "b"));
  assert.equal(encode(encoder, [authority]), hex("bf"));
  assert.is(encode(encoder, head).length > head.length, true);
  assert.is(encode(encoder, head).length, head.length);
});

test("an equal field of another decoder is found as well", () => {
  const encoder = new HpackEncoder();
  encode(encoder, fields("x-a: b"));
  assert.equal(encode(encoder, fields("x-a: b")), hex("be"));
});

test("a field that was evicted since it was last sent is sent as a literal again", () => {
  for (const remembered of [1, 2, 16]) {
    const encoder = new HpackEncoder(remembered);
    const decoder = new HpackDecoder();
    const all = Array.from({ length: 150 }, (_, at) => new Field(`x-${at}`, "y".repeat(20 + at)));
    const random = seeded(remembered);
    for (let block = 0; block < 400; block += 1) {
      if (block % 50 === 49) encoder.setPeerTableLimit(random.below(4096));
      const list = Array.from(
        { length: 6 },
        () => all[random.below(block % 2 === 0 ? 8 : all.length)] ?? all[0],
      );
      const sent = list.filter((field) => field !== undefined);
      assert.equal(lines(decode(decoder, encode(encoder, sent))), lines(sent));
    }
  }
});

test("credentials and identities are never indexed, for any hop (RFC 7541 §7.1.3)", () => {
  const encoder = new HpackEncoder();
  for (const name of [
    "authorization",
    "cookie",
    "set-cookie",
    "proxy-authorization",
    "impersonate-user",
    "impersonate-extra-scopes",
    "x-remote-user",
    "x-remote-extra-acme.com%2fproject",
  ]) {
    const list = [new Field(name, "secret")];
    assert.is((encode(encoder, list)[0] ?? 0) & 0xf0, 0x10, name);
    assert.equal(encode(encoder, list), encode(encoder, list), name);
    assert.ok(decode(new HpackDecoder(), encode(encoder, list))[0]?.isNeverIndexed, name);
  }
});

test("a field that came never-indexed leaves so, even one that the table knows", () => {
  const encoder = new HpackEncoder();
  encode(encoder, fields("x-a: b"));
  assert.equal(encode(encoder, [new Field("x-a", "b", true)]), literal(0x10, "x-a", "b"));
});

test("what will not come again is written without touching the table", () => {
  const encoder = new HpackEncoder();
  const once = [
    ...fields(
      ":path: /api/v1/pods",
      "content-length: 5",
      "audit-id: 1",
      "x-forwarded-for: 10.0.0.1",
      "traceparent: 00-1",
    ),
    new Field("x-large", "v".repeat(h2Limits.hpackIndexedBytes)),
  ];
  const first = encode(encoder, once);
  assert.is((first[0] ?? 0xff) & 0xf0, 0x00);
  assert.equal(encode(encoder, once), first);
  encode(encoder, fields("x-a: b"));
  encode(encoder, once);
  assert.equal(encode(encoder, fields("x-a: b")), hex("be"));
});

test("no table is announced while it is as the peer expects", () => {
  const encoder = new HpackEncoder();
  for (const bytes of [4096, 65_536, 4096]) encoder.setPeerTableLimit(bytes);
  assert.equal(encode(encoder, fields(":method: GET")), hex("82"));
});

test("a changed table is announced once, at the start of the next block", () => {
  const encoder = new HpackEncoder();
  encoder.setPeerTableLimit(100);
  assert.equal(encode(encoder, fields(":method: GET")), Buffer.concat([integer(0x20, 0x1f, 100), hex("82")]));
  assert.equal(encode(encoder, fields(":method: GET")), hex("82"));
});

test("the smallest size in between is announced, and a block later the last (RFC 7541 §4.2)", () => {
  const encoder = new HpackEncoder();
  const list = fields("x-a: b");
  encode(encoder, list);
  for (const bytes of [2000, 0, 300, 1000]) encoder.setPeerTableLimit(bytes);
  assert.equal(encode(encoder, list), Buffer.concat([hex("20"), literal(0x00, "x-a", "b")]));
  assert.equal(encode(encoder, list), Buffer.concat([integer(0x20, 0x1f, 1000), literal(0x40, "x-a", "b")]));
  assert.equal(encode(encoder, list), hex("be"));
});

test("a peer without a table gets literals only", () => {
  const encoder = new HpackEncoder();
  encoder.setPeerTableLimit(0);
  encode(encoder, head);
  const decoder = new HpackDecoder(0);
  assert.equal(lines(decode(decoder, encode(encoder, head))), lines(head));
});

/** Few names and few values, so that hits, misses and evictions all occur. */
function randomField(random: Random): Field {
  const name = random.pick([
    ":path",
    "accept",
    "x-a",
    "x-b",
    "cookie",
    "content-length",
    "te",
    "x-remote-group",
  ]);
  const length = random.chance(0.02) ? random.below(5000) : random.below(40);
  const value = random.pick(["v", "\xe9", "0"]).repeat(length);
  return new Field(random.chance(0.2) ? `x-${random.below(200)}` : name, value, random.chance(0.05));
}

test("through random fields and table sizes a decoder reads back every block", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = seeded(seed);
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder();
    for (let block = 0; block < 100; block++) {
      for (let change = random.below(30) - 26; change > 0; change--)
        encoder.setPeerTableLimit(random.pick([0, 32, 100, 4096, 65_536, random.below(4096)]));
      const list = Array.from({ length: random.below(30) }, () => randomField(random));
      const read = decode(decoder, encode(encoder, list));
      assert.equal(lines(read), lines(list), `seed ${seed}, block ${block}`);
      assert.equal(
        read.map((field) => field.isNeverIndexed),
        list.map((field) => field.isNeverIndexed),
        `seed ${seed}, block ${block}`,
      );
    }
  }
});

test.run();
