import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { FrameReader } from "../../../src/h2/frame/reader.ts";
import { FrameWriter } from "../../../src/h2/frame/writer.ts";
import { HpackDecoder } from "../../../src/h2/hpack/hpack-decoder.ts";
import { HpackEncoder } from "../../../src/h2/hpack/hpack-encoder.ts";
import {
  data,
  type Frame,
  goAway,
  joined,
  padded,
  parse,
  ping,
  pong,
  preface,
  reset,
  settings,
  settingsAck,
  shown,
  windowUpdate,
  wire,
} from "../../support/h2-frames.ts";
import { fieldsOf } from "../../support/h2-session.ts";
import { SinkRecord } from "../../support/h2-sink.ts";

const test = suite("h2/frame/writer");

function makeWriter(): {
  readonly writer: FrameWriter;
  readonly written: () => string[];
  marks: number;
} {
  const decoder = new HpackDecoder();
  const rig = {
    marks: 0,
    writer: new FrameWriter({
      becameDirty() {
        rig.marks += 1;
      },
    }),
    written: (): string[] => {
      const { frames, rest } = parse(Buffer.concat(rig.writer.take()));
      assert.is(rest.length, 0);
      return joined(frames).map((frame) => shown(frame, decoder));
    },
  };
  return rig;
}

test("each frame is written as RFC 9113 has it", () => {
  const { writer, written } = makeWriter();
  writer.windowUpdate(0, 0x7fff_0000);
  writer.windowUpdate(7, 1);
  writer.reset(3, 8);
  writer.settingsAcknowledgement();
  writer.goAway(0x7fff_ffff, 11, "Too many frames: control");
  writer.headers(1, new HpackEncoder(), fieldsOf([[":status", "200"]]), true);
  writer.data(5, Buffer.from("-hello-"), 1, 6, true);
  assert.equal(written(), [
    shown(windowUpdate(0, 0x7fff_0000)),
    shown(windowUpdate(7, 1)),
    shown(reset(3, "CANCEL")),
    shown(settingsAck()),
    shown(goAway(0x7fff_ffff, "ENHANCE_YOUR_CALM")),
    "HEADERS 1 :status=200 END",
    shown(data(5, "hello", "end")),
  ]);
});

test("PING and its answer go before what the turn wrote earlier, the session's own SETTINGS before all", () => {
  const { writer, written } = makeWriter();
  writer.settings([[4, 100]]);
  writer.data(1, Buffer.from("x"), 0, 1, false);
  writer.ping(Buffer.from("0000000000000001", "hex"), 0, false);
  writer.ping(Buffer.from("ff0000000000000002", "hex"), 1, true);
  assert.equal(written(), [
    shown(settings({ INITIAL_WINDOW_SIZE: 100 })),
    shown(ping(1)),
    shown(pong(2)),
    shown(data(1, "x")),
  ]);
});

test("the acknowledgement of SETTINGS stays behind what was written under the old ones (§6.5.3)", () => {
  const { writer, written } = makeWriter();
  writer.data(1, Buffer.from("x"), 0, 1, false);
  writer.settingsAcknowledgement();
  assert.equal(written(), [shown(data(1, "x")), "SETTINGS ack"]);
});

test("a client's preface comes first", () => {
  const { writer } = makeWriter();
  writer.preface();
  writer.settings([]);
  assert.is(Buffer.concat(writer.take()).toString("latin1", 0, preface.length), preface);
});

test("it becomes dirty once a turn, and writes nothing twice", () => {
  const rig = makeWriter();
  rig.writer.reset(1, 0);
  rig.writer.reset(3, 0);
  rig.writer.ping(Buffer.alloc(8), 0, false);
  assert.is(rig.marks, 1);
  assert.is(rig.written().length, 3);
  assert.equal(rig.written(), []);
  rig.writer.reset(5, 0);
  assert.is(rig.marks, 2);
});

test("a header block beyond one frame is continued, its end on the first frame and END_HEADERS on the last", () => {
  const fields = fieldsOf([
    [":status", "200"],
    ...Array.from({ length: 40 }, (_, at) => [`x-${at}`, "v".repeat(1500)] as const),
  ]);
  const { writer } = makeWriter();
  writer.headers(1, new HpackEncoder(), fields, true);
  const { frames } = parse(Buffer.concat(writer.take()));
  assert.equal(
    frames.map(({ type, flags }) => [type, flags]),
    [
      [1, 1],
      [9, 0],
      [9, 0],
      [9, 4],
    ],
  );
  const [whole] = joined(frames);
  assert.ok(whole !== undefined);
  const decoded = new HpackDecoder().decode(whole.payload, 0, whole.payload.length);
  assert.equal(
    decoded.map(({ name, value }) => [name, value]),
    fields.map(({ name, value }) => [name, value]),
  );
});

test("blocks of every size around one and two frames come out whole", () => {
  for (let size = 16_300; size < 16_400; size++) {
    for (const more of [0, 16_384]) {
      const { writer, written } = makeWriter();
      const value = "v".repeat(size + more);
      writer.headers(1, new HpackEncoder(), fieldsOf([["x", value]]), false);
      writer.reset(1, 0);
      assert.equal(written(), [`HEADERS 1 x=${value}`, "RST_STREAM 1 NO_ERROR"]);
    }
  }
});

test("more small frames than a pooled buffer holds come out in order", () => {
  const { writer, written } = makeWriter();
  const body = Buffer.alloc(1000, "x");
  for (let at = 0; at < 200; at++) writer.data(2 * at + 1, body, 0, at, false);
  assert.equal(
    written(),
    Array.from({ length: 200 }, (_, at) => shown(data(2 * at + 1, body.subarray(0, at)))),
  );
});

test("DATA is copied: its chunk may be used again at once", () => {
  const { writer, written } = makeWriter();
  const chunk = wire(data(1, Buffer.alloc(3000, "a")), data(3, Buffer.alloc(14_000, "b")));
  writer.data(11, chunk, 9, 3009, false);
  writer.data(13, chunk, 3018, 17_018, true);
  chunk.fill(0);
  assert.equal(written(), [
    shown(data(11, Buffer.alloc(3000, "a"))),
    shown(data(13, Buffer.alloc(14_000, "b"), "end")),
  ]);
});

test("the buffers of a write are lent and not reused before it has completed; afterwards they are", () => {
  const [one, other] = [makeWriter().writer, makeWriter().writer];
  const lent = (writer: FrameWriter, octet: string): Buffer[] => {
    for (let count = 0; count < 5; count += 1) writer.data(1, Buffer.alloc(16_384, octet), 0, 16_384, false);
    return writer.take().filter(({ length }) => length > 16_384);
  };
  const [kept] = lent(one, "a");
  const release = one.release();
  assert.ok(kept !== undefined && release !== undefined);
  assert.is(one.release(), undefined, "once");
  const before = Buffer.from(kept);
  for (let round = 0; round < 50; round += 1) {
    for (const writer of [one, other])
      assert.not(lent(writer, "b").some(({ buffer }) => buffer === kept.buffer));
  }
  assert.equal(kept, before);
  release();
  assert.ok(lent(other, "c").some(({ buffer }) => buffer === kept.buffer));
});

/** A DATA frame. `small`: a small frame follows it. */
const sent = fc.record({
  id: fc.integer({ min: 1, max: 5 }),
  size: fc.oneof(fc.nat(60), fc.integer({ min: 1990, max: 2100 }), fc.integer({ min: 2000, max: 16_384 })),
  pad: fc.option(fc.nat(255), { nil: undefined, freq: 4 }),
  end: fc.boolean(),
  small: fc.boolean(),
});

test("DATA of one stream is one frame as long as nothing else is written, it fits, and the stream goes on", () => {
  const writer = new FrameWriter({ becameDirty() {} });
  const text = Buffer.from("abcdefghij");
  const half = Buffer.alloc(10_000, "x");
  writer.data(1, text, 0, 1, false);
  writer.data(1, text, 1, 3, false);
  writer.windowUpdate(1, 5);
  writer.data(1, text, 3, 4, false);
  writer.data(3, text, 4, 5, false);
  writer.data(1, text, 5, 6, false);
  writer.data(1, text, 6, 7, true);
  writer.data(5, half, 0, 10_000, false);
  writer.data(5, half, 0, 10_000, false);
  writer.data(5, text, 0, 0, true);
  const { frames } = parse(Buffer.concat(writer.take()));
  assert.equal(
    frames.map(({ type, id, flags, payload }) => [
      type,
      id,
      flags,
      payload.length > 9 ? payload.length : payload.toString("latin1"),
    ]),
    [
      [0, 1, 0, "abc"],
      [8, 1, 0, "\u0000\u0000\u0000\u0005"],
      [0, 1, 0, "d"],
      [0, 3, 0, "e"],
      [0, 1, 1, "fg"],
      [0, 5, 0, 10_000],
      [0, 5, 1, 10_000],
    ],
  );
  // DATA after `take` begins a new frame.
  writer.data(7, text, 0, 1, false);
  writer.take();
  writer.data(7, text, 1, 2, false);
  assert.is(parse(Buffer.concat(writer.take())).frames.length, 1);
});

test("random DATA forwarded from a reader through two writers arrives byte for byte", () => {
  fc.assert(
    fc.property(
      fc.array(sent, { minLength: 1, maxLength: 12, size: "max" }),
      fc.array(fc.integer({ min: 1, max: 9000 }), { maxLength: 12 }),
      (plan, sizes) => {
        let octet = 0;
        const frames: Frame[] = plan.map(({ id, size, pad, end }) => {
          const body = Buffer.from(Array.from({ length: size }, () => (octet += 7) % 256));
          const frame = data(id, body, end ? "end" : undefined);
          return pad === undefined || size + pad + 1 > 16_384 ? frame : padded(frame, pad);
        });
        const writers = [
          new FrameWriter({ becameDirty() {} }),
          new FrameWriter({ becameDirty() {} }),
        ] as const;
        const smalls = new Set(plan.filter(({ small }) => small).map(({ id }) => id));
        const sink = new SinkRecord();
        const asked = new SinkRecord();
        sink.data = (...piece) => {
          const [id] = piece;
          asked.data(...piece);
          const writer = writers[id % 2 === 0 ? 0 : 1];
          writer.data(...piece);
          if (smalls.has(id)) writer.windowUpdate(id, 1);
        };
        sink.padding = () => {};
        const reader = new FrameReader(sink, sink, false);
        const bytes = wire(...frames);
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % Math.max(1, sizes.length)] ?? bytes.length;
          const chunk = Buffer.from(bytes.subarray(at, at + size));
          reader.receive(chunk);
          chunk.fill(0);
          at += size;
        }
        const arrived = new SinkRecord();
        for (const writer of writers) {
          const told = new SinkRecord();
          told.windowUpdate = () => {};
          new FrameReader(told, told, false).receive(Buffer.concat(writer.take()));
          arrived.lines.push(...told.told);
        }
        assert.equal(bodies(arrived.lines), bodies(asked.told));
      },
    ),
    { numRuns: 400 },
  );
});

/** Returns the bytes of each stream, and whether the stream has ended. */
function bodies(lines: readonly string[]): string[] {
  const streams = new Map<string, string>();
  for (const line of lines) {
    const [, id = "", body = "", end = ""] = line.split(" ");
    streams.set(id, `${streams.get(id) ?? ""}${Buffer.from(body, "base64").toString("hex")}${end}`);
  }
  return [...streams].map(([id, body]) => `${id} ${body}`).toSorted();
}

test("the reset that stops an upload is written one flush after the answer", () => {
  const rig = makeWriter();
  rig.writer.data(1, Buffer.from("no"), 0, 2, true);
  rig.writer.stopUpload(1);
  assert.equal(rig.written(), ['DATA 1 "no" END']);
  assert.is(rig.marks, 2);
  assert.equal(rig.written(), ["RST_STREAM 1 NO_ERROR"]);
  assert.is(rig.marks, 2);
});

test.run();
