/** Response heads that are too long to be kept, on a connection with other streams. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { HpackDecoder } from "../../../src/h2/hpack/hpack-decoder.ts";
import {
  continued,
  data,
  type Frame,
  headers,
  prioritized,
  raw,
  windowUpdate,
} from "../../support/h2-frames.ts";
import { clientRig, Ear, fieldsOf, lastLine, type SessionRig } from "../../support/h2-session.ts";
import { decode, hex, integer, literal } from "../../support/hpack.ts";
import { huffmanEncode } from "../../support/huffman.ts";
import { type Random, seeded } from "../../support/random.ts";

const test = suite("h2/session/long-heads");

/** Opens two streams, 1 and 3, and returns their owners. */
function asked(rig: SessionRig): [Ear, Ear] {
  const ears: [Ear, Ear] = [new Ear(), new Ear()];
  for (const ear of ears) rig.session.open(fieldsOf([[":method", "GET"]]), true, ear);
  rig.clock.turn();
  rig.peer.heard();
  return ears;
}

/** Splits a header block into frames of 16 KiB, as Go's server does. */
function framed(id: number, block: Buffer, size = 16_384): Frame[] {
  const sizes = Array.from({ length: Math.ceil(block.length / size) - 1 }, () => size);
  return continued(raw(1, 0x5, id, block), ...sizes);
}

const status = hex("88");
const fieldOf = (pattern: number, name: string, bytes: number): Buffer =>
  literal(pattern, name, "v".repeat(bytes));

const heads: Record<string, Buffer> = {
  "240 kB in 40 fields": Buffer.concat([
    status,
    ...Array.from({ length: 40 }, (_, at) => fieldOf(0x40, `x-${at}`, 6000)),
  ]),
  "one value of 200 KiB": Buffer.concat([status, fieldOf(0, "x-a", 200 * 1024)]),
  "one value of 200 KiB for the table": Buffer.concat([status, fieldOf(0x40, "x-a", 200 * 1024)]),
  "one name of 200 KiB": Buffer.concat([status, literal(0x40, "n".repeat(200 * 1024), "v".repeat(300))]),
  "10 MiB in fields of 1 KiB": Buffer.concat([
    status,
    ...Array.from({ length: 10_240 }, (_, at) => fieldOf(0x40, `x-${at}`, 1024 - 12)),
  ]),
};

for (const [what, block] of Object.entries(heads))
  test(`a response head of ${what} resets its stream, and another stream of the connection is answered`, () => {
    const rig = clientRig();
    const [long, other] = asked(rig);
    rig.peer.sends(...framed(1, block));
    assert.is(lastLine(rig), "RST_STREAM 1 ENHANCE_YOUR_CALM");
    assert.equal(long.lines, [`reset ${errorCode.ENHANCE_YOUR_CALM}`]);
    rig.peer.sends(headers(3).status(200), data(3, "ok", "end"));
    assert.equal(other.lines, ["headers :status=200", "end"]);
    assert.equal(rig.lines, []);
  });

test("trailers that are too long reset their stream alone", () => {
  const rig = clientRig();
  const [long, other] = asked(rig);
  rig.peer.sends(headers(1).status(200), data(1, "x"), ...framed(1, heads["240 kB in 40 fields"] ?? status));
  assert.equal(long.lines, ["headers :status=200", `reset ${errorCode.ENHANCE_YOUR_CALM}`]);
  rig.peer.sends(headers(3).statusOnly(200));
  assert.equal(other.lines, ["headers :status=200 end"]);
});

test("a long head names its size, its fields and the limits", () => {
  const rig = clientRig();
  const stream = rig.session.open(fieldsOf([[":method", "GET"]]), true, new Ear());
  rig.clock.turn();
  rig.peer.sends(...framed(1, heads["240 kB in 40 fields"] ?? status));
  const bytes = 42 + 40 * (6000 + 32) + 10 * 3 + 30 * 4;
  assert.is(
    stream.fault,
    `header list of ${bytes} bytes and 41 fields: at most ${limits.headerListBytes} bytes in fields of up to ${limits.fieldBytes} bytes are forwarded`,
  );
});

test("a head above 16 MiB ends the connection, also if it consists of many short frames", () => {
  for (const size of [16_384, 1]) {
    const rig = clientRig();
    asked(rig);
    rig.peer.sends(raw(1, 0, 1, status));
    const frame = raw(9, 0, 1, Buffer.concat([fieldOf(0, "x", size)]).subarray(0, size));
    const most = h2Limits.longBlockBytes / Math.max(size, h2Limits.shortFrameBytes);
    if (size > 1) rig.peer.sends(raw(9, 0, 1, Buffer.concat([hex("0001 78"), integer(0, 0x7f, 2 ** 27)])));
    for (let sent = size > 1 ? 1 : 0; sent < most - 1; sent += 1)
      rig.peer.sends(size > 1 ? frame : raw(9, 0, 1, status));
    assert.equal(rig.lines, [], `${size}`);
    rig.peer.sends(frame, frame);
    assert.equal(rig.lines, [`ended ${errorCode.ENHANCE_YOUR_CALM}`], `${size}`);
  }
});

test("a long head that ends inside a field ends the connection", () => {
  for (const rest of [
    hex("40"),
    hex("4001"),
    hex("0001787f"),
    Buffer.concat([hex("000178"), integer(0, 0x7f, 30_000)]),
  ]) {
    const rig = clientRig();
    asked(rig);
    rig.peer.sends(...framed(1, Buffer.concat([heads["240 kB in 40 fields"] ?? status, rest])));
    assert.equal(rig.lines, [`ended ${errorCode.COMPRESSION_ERROR}`], rest.toString("hex").slice(0, 20));
  }
});

/** Returns a random field in one of the representations of RFC 7541 §6. */
function randomField(random: Random): Buffer {
  const pattern = random.pick([0x40, 0x40, 0x00, 0x10]);
  const bytes = random.pick([0, 20, 300, 3000, 5000, 17_000, 70_000]);
  const kind = random.below(5);
  if (kind === 0) return Buffer.from([random.pick([0x82, 0x87, 0x88])]);
  if (kind === 1) return literal(pattern, "n".repeat(random.pick([1, 4000, 16_000])), "v");
  if (kind === 2) return Buffer.concat([integer(pattern, pattern === 0x40 ? 0x3f : 0x0f, 31), hex("0161")]);
  if (kind === 3) {
    const value = huffmanEncode(Buffer.alloc(Math.min(bytes, 5000), random.pick([0x30, 0x0a])));
    return Buffer.concat([Buffer.from([pattern]), hex("0178"), integer(0x80, 0x7f, value.length), value]);
  }
  return fieldOf(pattern, `x-${random.below(50)}`, bytes);
}

test("a block decoded in parts leaves the same table as one decoded whole, wherever it is cut", () => {
  for (let seed = 1; seed <= 150; seed += 1) {
    const random = seeded(seed);
    const block = Buffer.concat([status, ...Array.from({ length: 30 }, () => randomField(random))]);
    if (block.length > h2Limits.headerBlockBytes) continue;
    const whole = new HpackDecoder();
    decode(whole, block);
    const parts = new HpackDecoder();
    let rest = Buffer.alloc(0);
    let unneeded = 0;
    for (let at = 0; at < block.length; ) {
      const to = Math.min(block.length, at + 1 + random.below(random.pick([3, 200, 20_000])));
      const from = Math.min(to, at + unneeded);
      unneeded -= from - at;
      const part = Buffer.concat([rest, block.subarray(from, to)]);
      const next = parts.skip(part);
      rest = Buffer.from(part.subarray(next));
      unneeded += Math.max(0, next - part.length);
      assert.ok(rest.length <= 31 * 1024, `${seed}: ${rest.length} bytes are kept`);
      at = to;
    }
    assert.equal(parts.decode(Buffer.alloc(0), 0, 0), []);
    for (let index = 62; index < 200; index += 1) {
      const one = integer(0x80, 0x7f, index);
      const read = [whole, parts].map((decoder) => {
        try {
          return decode(decoder, one).map(({ name, value }) => `${name}: ${value}`);
        } catch {
          return "none";
        }
      });
      assert.equal(read[1], read[0], `seed ${seed}, index ${index}`);
    }
  }
});

/** What RFC 9113 makes a stream error, with the line that the proxy answers. */
const faults: Record<string, readonly [play: Frame[], answer: string]> = {
  "an upper-case field name": [[headers(1).status(200, ["X-A", "b"])], "PROTOCOL_ERROR"],
  "no :status": [[headers(1).of([["a", "b"]])], "PROTOCOL_ERROR"],
  "status 101": [[headers(1).status(101)], "PROTOCOL_ERROR"],
  "a connection-specific field": [[headers(1).status(200, ["connection", "close"])], "PROTOCOL_ERROR"],
  "seventeen interim heads": [Array.from({ length: 17 }, () => headers(1).status(103)), "PROTOCOL_ERROR"],
  "a body longer than its content-length": [
    [headers(1).status(200, ["content-length", "1"]), data(1, "ab", "end")],
    "PROTOCOL_ERROR",
  ],
  "a body shorter than its content-length": [
    [headers(1).status(200, ["content-length", "3"]), data(1, "ab", "end")],
    "PROTOCOL_ERROR",
  ],
  "a body before its head": [[data(1, "ab")], "PROTOCOL_ERROR"],
  "a pseudo-field in trailers": [
    [headers(1).status(200), data(1, "a"), headers(1).trailers([":status", "200"])],
    "PROTOCOL_ERROR",
  ],
  "trailers without END_STREAM": [[headers(1).status(200), headers(1).of([["a", "b"]])], "PROTOCOL_ERROR"],
  "3,990 fields": [
    [headers(1).status(200, ...Array.from({ length: 3990 }, () => ["x", ""] as const))],
    "ENHANCE_YOUR_CALM",
  ],
  "a WINDOW_UPDATE of 0": [[windowUpdate(1, 0)], "PROTOCOL_ERROR"],
  "a window beyond 2^31 - 1": [[windowUpdate(1, 0x7fff_ffff)], "FLOW_CONTROL_ERROR"],
  "DATA after END_STREAM": [[headers(1).statusOnly(200), data(1, "more")], "STREAM_CLOSED"],
  "DATA beyond the stream's window": [
    [headers(1).status(200), ...Array.from({ length: 18 }, () => data(1, Buffer.alloc(16_384)))],
    "FLOW_CONTROL_ERROR",
  ],
};

for (const [what, [play, answer]] of Object.entries(faults))
  test(`${what} in a response resets its stream, and another stream of the connection is answered`, () => {
    const rig = clientRig();
    const [, other] = asked(rig);
    rig.peer.sends(...play);
    rig.clock.turn();
    assert.ok(rig.peer.heard().includes(`RST_STREAM 1 ${answer}`));
    rig.peer.sends(headers(3).statusOnly(200));
    assert.equal(other.lines, ["headers :status=200 end"]);
    assert.equal(rig.lines, []);
  });

test("a response head whose priority names its own stream is read, because priorities are ignored", () => {
  const rig = clientRig();
  const [ear] = asked(rig);
  rig.peer.sends(prioritized(headers(1).statusOnly(200), 1));
  assert.equal(ear.lines, ["headers :status=200 end"]);
});

test.run();
