import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Messages } from "../../../src/proxy/h1/messages.ts";
import { everyCut } from "../../support/watch-bytes.ts";

const test = suite("proxy/h1/messages");

const opcode = { more: 0, text: 1, binary: 2, close: 8, ping: 9 } as const;

function frame(first: number, payload: number, mask?: Buffer): Buffer {
  const long = payload > 0xffff ? 127 : payload > 125 ? 126 : payload;
  const length = Buffer.alloc(long === 127 ? 8 : long === 126 ? 2 : 0);
  for (let at = length.length - 1, left = payload; at >= 0; at--, left = Math.floor(left / 256))
    length[at] = left % 256;
  const head = Buffer.from([first, long + (mask === undefined ? 0 : 128)]);
  // Fills the payload with bytes each of which could be the first byte of a final frame.
  return Buffer.concat([head, length, mask ?? Buffer.alloc(0), Buffer.alloc(payload, 0x81)]);
}

const final = (kind: number): number => 0x80 + kind;

function counted(chunks: readonly Buffer[]): number {
  const messages = new Messages();
  for (const chunk of chunks) {
    const bytes = Buffer.concat([Buffer.from([0x81, 0]), chunk, Buffer.from([0x81, 0])]);
    messages.feed(bytes, 2, 2 + chunk.length);
  }
  return messages.count;
}

test("a message is counted when its last byte has come, wherever the bytes are cut", () => {
  const stream = Buffer.concat([
    frame(final(opcode.text), 0),
    frame(final(opcode.text), 125),
    frame(final(opcode.binary), 126),
    frame(final(opcode.binary), 300, Buffer.from([1, 2, 3, 4])),
  ]);
  for (const chunks of everyCut(stream)) assert.is(counted(chunks), 4);
  assert.is(counted([stream.subarray(0, -1)]), 3);
  assert.is(counted([frame(final(opcode.text), 70_000)]), 1);
});

test("a message in pieces is one, and control frames between them are none", () => {
  const stream = Buffer.concat([
    frame(opcode.text, 10),
    frame(final(opcode.ping), 4),
    frame(opcode.more, 10),
    frame(final(opcode.more), 10),
    frame(final(opcode.close), 2),
  ]);
  for (const chunks of everyCut(stream)) assert.is(counted(chunks), 1);
});

test.run();
