import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type ErrorCode, errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { FrameReader } from "../../../src/h2/frame/reader.ts";
import {
  continued,
  data,
  type Frame,
  goAway,
  headers,
  padded,
  ping,
  pong,
  preface,
  prioritized,
  priority,
  raw,
  reset,
  settings,
  settingsAck,
  windowUpdate,
  wire,
} from "../../support/h2-frames.ts";
import { SinkRecord } from "../../support/h2-sink.ts";

const test = suite("h2/frame/reader");

/** Returns what a reader reports of these bytes if they arrive in chunks that are cut at `cuts`. */
function toldOf(bytes: Buffer, cuts: readonly number[] = [], expectsPreface = false): string[] {
  const sink = new SinkRecord();
  const reader = new FrameReader(sink, sink, expectsPreface);
  const edges = [0, ...cuts, bytes.length];
  for (let at = 1; at < edges.length; at++)
    reader.receive(Buffer.from(bytes.subarray(edges[at - 1], edges[at])));
  return sink.told;
}

function every(step: number, length: number): number[] {
  return Array.from({ length: Math.ceil(length / step) - 1 }, (_, index) => (index + 1) * step);
}

const oneOfEach: readonly Frame[] = [
  settings({ INITIAL_WINDOW_SIZE: 1, MAX_FRAME_SIZE: 16_384 }),
  settingsAck(),
  headers(1).post("/api", ["x-long", "v".repeat(300)]),
  data(1, "hello"),
  data(1, ""),
  padded(data(1, "padded"), 7),
  padded(data(1, ""), 0),
  data(3, Buffer.alloc(3000, "ab")),
  padded(data(3, Buffer.alloc(5000, "cd")), 255),
  ping(1),
  pong(2),
  windowUpdate(0, 0x7fff_ffff),
  windowUpdate(1, 0),
  priority(5, 3),
  priority(5, 5),
  reset(1, "CANCEL"),
  ...continued(headers(5).get("/x", ["a", "b".repeat(100)]), 10, 0, 30),
  padded(prioritized(headers(7).get("/y"), 3), 9),
  prioritized(headers(9).get("/self"), 9),
  raw(0xfa, 0xff, 11, "unknown"),
  goAway(9, "ENHANCE_YOUR_CALM", "debug"),
  data(3, "last", "end"),
];

test("every frame type is passed on once, without its padding and priority", () => {
  const told = toldOf(wire(...oneOfEach));
  assert.equal(
    told.map((line) => line.split(" ", 2).join(" ")),
    [
      "settings 000400000001000500004000",
      "settings ack",
      "headers 1",
      "data 1",
      "padding 1",
      "data 1",
      "padding 1",
      "data 1",
      "data 3",
      "padding 3",
      "data 3",
      "ping 0000000000000001",
      "pong 0000000000000002",
      "update 0",
      "update 1",
      "priority 5",
      "priority 5",
      "reset 1",
      "headers 5",
      "headers 7",
      "headers 9",
      "unknown 7",
      "goaway 9",
      "data 3",
    ],
  );
  assert.ok(told.some((line) => line.startsWith("headers 9") && line.endsWith("END self")));
  assert.ok(told.includes(`data 1 ${Buffer.from("padded").toString("base64")}`));
  assert.ok(told.includes("padding 1 8"));
});

test("the same bytes cut at any one position give the same frames", () => {
  const bytes = wire(...oneOfEach);
  const whole = toldOf(bytes);
  for (let cut = 1; cut < bytes.length; cut++) assert.equal(toldOf(bytes, [cut]), whole, `cut at ${cut}`);
});

test("the same bytes in small chunks of any size give the same frames", () => {
  const bytes = wire(...oneOfEach);
  const whole = toldOf(bytes);
  for (const size of [1, 2, 3, 8, 9, 10, 13, 100, 2048, 2057, 2058, 4096])
    assert.equal(toldOf(bytes, every(size, bytes.length)), whole, `chunks of ${size}`);
});

test("a large DATA frame goes on piece by piece, cut at any three places", () => {
  const bytes = wire(
    data(1, Buffer.from(Array.from({ length: 16_384 }, (_, at) => at % 251)), "end"),
    ping(1),
    data(3, Buffer.alloc(9000, "z")),
  );
  const whole = toldOf(bytes);
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 3 }), (cuts) => {
      assert.equal(
        toldOf(
          bytes,
          cuts.toSorted((a, b) => a - b),
        ),
        whole,
      );
    }),
    { numRuns: 300 },
  );
  const sink = new SinkRecord();
  const reader = new FrameReader(sink, sink, false);
  reader.receive(Buffer.from(bytes.subarray(0, 5000)));
  assert.is(sink.pieces, 1, "what has come is not held back");
  assert.ok(reader.isMidFrame);
});

test("the preface is read whole or in any pieces, and then no more", () => {
  const bytes = Buffer.concat([Buffer.from(preface), wire(settings(), ping(3))]);
  const whole = toldOf(bytes, [], true);
  assert.equal(whole, ["settings ", "ping 0000000000000003"]);
  for (let cut = 1; cut < bytes.length; cut++) assert.equal(toldOf(bytes, [cut], true), whole);
  assert.equal(toldOf(bytes, every(1, bytes.length), true), whole);
});

test("stop ends it within the chunk", () => {
  const sink = new SinkRecord();
  const reader = new FrameReader(sink, sink, false);
  sink.ping = () => reader.stop();
  reader.receive(wire(ping(1), ping(2), data(1, "x")));
  assert.equal(sink.told, []);
  assert.not(reader.isMidFrame);
});

test("progress grows with every frame and with DATA that comes on, and not inside a header block (A6, A18)", () => {
  const sink = new SinkRecord();
  const reader = new FrameReader(sink, sink, false);
  const grows = (bytes: Buffer): boolean => {
    const before = reader.progress;
    reader.receive(bytes);
    return reader.progress > before;
  };
  const chunk = wire(data(1, Buffer.alloc(16_000)));
  assert.equal(
    [
      chunk.subarray(0, 1000),
      chunk.subarray(1000, 1001),
      chunk.subarray(1001, 9000),
      chunk.subarray(9000),
    ].map(grows),
    [false, true, true, true],
  );
  assert.equal([wire(ping(1)).subarray(0, 13), wire(ping(1)).subarray(13, 14)].map(grows), [false, false]);
  assert.ok(grows(wire(ping(1)).subarray(14)));
  const block = continued(headers(1).get("/"), 5, 5).map((frame) => wire(frame));
  assert.equal(block.map(grows), [false, false, true]);
});

const errors: readonly (readonly [string, ErrorCode, Buffer])[] = [
  ["a frame of 16,385 bytes", errorCode.FRAME_SIZE_ERROR, wire(data(1, Buffer.alloc(16_385)))],
  [
    "an unknown frame of 16,385 bytes",
    errorCode.FRAME_SIZE_ERROR,
    wire(raw(0x20, 0, 0, Buffer.alloc(16_385))),
  ],
  ["DATA on stream 0", errorCode.PROTOCOL_ERROR, wire(data(0, "x"))],
  ["large DATA on stream 0", errorCode.PROTOCOL_ERROR, wire(data(0, Buffer.alloc(9000))).subarray(0, 5000)],
  ["DATA of padding longer than itself", errorCode.PROTOCOL_ERROR, wire(raw(0, 8, 1, "\x05abc"))],
  ["DATA padded to its last byte and one more", errorCode.PROTOCOL_ERROR, wire(raw(0, 8, 1, "\x04abc"))],
  ["padded DATA without a pad length", errorCode.FRAME_SIZE_ERROR, wire(raw(0, 8, 1))],
  ["HEADERS on stream 0", errorCode.PROTOCOL_ERROR, wire(headers(0).get("/"))],
  ["HEADERS of padding longer than itself", errorCode.PROTOCOL_ERROR, wire(raw(1, 12, 1, "\x05abc"))],
  ["HEADERS too short for its priority", errorCode.FRAME_SIZE_ERROR, wire(raw(1, 0x24, 1, "abcd"))],
  ["PRIORITY on stream 0", errorCode.PROTOCOL_ERROR, wire(priority(0, 1))],
  ["PRIORITY of four bytes", errorCode.FRAME_SIZE_ERROR, wire(raw(2, 0, 1, "abcd"))],
  ["RST_STREAM on stream 0", errorCode.PROTOCOL_ERROR, wire(reset(0, "CANCEL"))],
  ["RST_STREAM of three bytes", errorCode.FRAME_SIZE_ERROR, wire(raw(3, 0, 1, "abc"))],
  ["SETTINGS on a stream", errorCode.PROTOCOL_ERROR, wire(raw(4, 0, 1))],
  ["SETTINGS of seven bytes", errorCode.FRAME_SIZE_ERROR, wire(raw(4, 0, 0, "1234567"))],
  ["an acknowledgement with settings", errorCode.FRAME_SIZE_ERROR, wire(raw(4, 1, 0, "123456"))],
  ["PUSH_PROMISE", errorCode.PROTOCOL_ERROR, wire(raw(5, 4, 1, "\0\0\0\x02"))],
  ["PING on a stream", errorCode.PROTOCOL_ERROR, wire(raw(6, 0, 1, "12345678"))],
  ["PING of seven bytes", errorCode.FRAME_SIZE_ERROR, wire(raw(6, 0, 0, "1234567"))],
  ["GOAWAY on a stream", errorCode.PROTOCOL_ERROR, wire(raw(7, 0, 1, "12345678"))],
  ["GOAWAY of seven bytes", errorCode.FRAME_SIZE_ERROR, wire(raw(7, 0, 0, "1234567"))],
  ["WINDOW_UPDATE of three bytes", errorCode.FRAME_SIZE_ERROR, wire(raw(8, 0, 1, "abc"))],
  ["CONTINUATION without HEADERS", errorCode.PROTOCOL_ERROR, wire(raw(9, 4, 1, "a"))],
  ["CONTINUATION of another stream", errorCode.PROTOCOL_ERROR, wire(raw(1, 0, 1), raw(9, 4, 3))],
  ["DATA inside a header block", errorCode.PROTOCOL_ERROR, wire(raw(1, 0, 1), data(1, "x"))],
  [
    "large DATA inside a header block",
    errorCode.PROTOCOL_ERROR,
    wire(raw(1, 0, 1), data(1, Buffer.alloc(9000))).subarray(0, 5000),
  ],
  ["PING inside a header block", errorCode.PROTOCOL_ERROR, wire(raw(1, 0, 1), ping(1))],
  [
    "an unknown frame inside a header block (A17)",
    errorCode.PROTOCOL_ERROR,
    wire(raw(1, 0, 1), raw(0xff, 0, 1)),
  ],
  ["HEADERS inside a header block", errorCode.PROTOCOL_ERROR, wire(raw(1, 0, 1), headers(1).get("/"))],
  [
    "a ninth CONTINUATION (A5)",
    errorCode.ENHANCE_YOUR_CALM,
    wire(...continued(headers(1).get("/"), ...Array(9).fill(0))),
  ],
];
for (const [what, code, bytes] of errors) {
  test(`${what} ends the session, however it is cut`, () => {
    for (const cuts of [[], every(1, Math.min(bytes.length, 5000)), every(7, bytes.length)]) {
      assert.throws(
        () => toldOf(bytes, cuts),
        (error: unknown) =>
          error instanceof ProtocolError && error.code === code && error.scope === "session",
      );
    }
  });
}

test("a preface that is none ends the session at its first wrong byte", () => {
  for (const text of ["GET / HTTP/1.1\r\n", "P", "PRI * HTTP/2.0\r\n\r\nXX"]) {
    const run = (): unknown => toldOf(Buffer.from(text), [], true);
    if (preface.startsWith(text)) assert.equal(run(), []);
    else
      assert.throws(
        run,
        (error: unknown) => error instanceof ProtocolError && error.code === errorCode.PROTOCOL_ERROR,
      );
  }
});

test("for any bytes a reader either passes frames on or throws a ProtocolError (fuzz)", () => {
  const junk = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc
      .record({ type: fc.nat(12), flags: fc.nat(255), id: fc.nat(4), size: fc.nat(40) })
      .map(({ type, flags, id, size }) => Uint8Array.from(wire(raw(type, flags, id, Buffer.alloc(size, 7))))),
  );
  fc.assert(
    fc.property(fc.array(junk, { maxLength: 12 }), (parts) => {
      try {
        toldOf(Buffer.concat(parts), every(11, Buffer.concat(parts).length));
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
      }
    }),
    { numRuns: 2000 },
  );
});

test.run();
