import { Duplex } from "node:stream";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { JsonRecord } from "../../../src/base/json.ts";
import { Channel } from "../../../src/fleet/workers/channel.ts";
import { workerLimits } from "../../../src/fleet/workers/limits.ts";
import { isToParent } from "../../../src/fleet/workers/messages.ts";

const test = suite("fleet/workers/channel");

type End = { readonly channel: Channel; readonly got: JsonRecord[]; readonly breaches: string[] };

/** Returns one end of a channel. The test writes to its stream. */
function played(stream: Duplex, isKnown: (message: JsonRecord) => boolean = () => true): End {
  const got: JsonRecord[] = [];
  const breaches: string[] = [];
  const channel = new Channel(stream, {
    received(message) {
      if (isKnown(message)) got.push(message);
      return isKnown(message);
    },
    closed: (breach) => breaches.push(breach),
  });
  return { channel, got, breaches };
}

function streamOf(): Duplex {
  return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
}

test("a message arrives whole, wherever its bytes are split", () => {
  const messages = [{ kind: "ready" }, { kind: "failed", message: "zwölf\nLinien" }];
  const bytes = Buffer.from(messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
  for (let at = 0; at <= bytes.length; at += 1) {
    const source = streamOf();
    const { got, breaches } = played(source);
    source.emit("data", bytes.subarray(0, at));
    source.emit("data", bytes.subarray(at));
    assert.equal(got, messages);
    assert.equal(breaches, []);
  }
});

test("what is no message ends the channel once, and later bytes are not read", () => {
  for (const line of ["garbage", "[]", "null", '{"kind":7}', "", "\u0000"]) {
    const source = streamOf();
    const { got, breaches } = played(source, isToParent);
    source.emit("data", Buffer.from(`${line}\n{"kind":"ready"}\n`));
    source.emit("data", Buffer.from('{"kind":"ready"}\n'));
    assert.equal(got, [], line);
    assert.equal(breaches, ["it sent an unknown message"], line);
    assert.ok(source.destroyed);
  }
});

test("a message without an end is not kept beyond the limit", () => {
  const source = streamOf();
  const { breaches } = played(source);
  const piece = Buffer.alloc(1024 * 1024, "x");
  for (let sent = 0; sent < workerLimits.messageBytes; sent += piece.length) source.emit("data", piece);
  assert.equal(breaches, []);
  source.emit("data", Buffer.from("x"));
  assert.equal(breaches, ["its message is too long"]);
});

test("a process that does not read is given up at the limit", () => {
  const source = new Duplex({ read() {}, write() {} });
  const { channel, breaches } = played(source);
  const text = "x".repeat(4 * 1024 * 1024);
  for (let sent = 0; sent < workerLimits.unreadBytes / text.length; sent += 1) channel.send({ text });
  assert.equal(breaches, ["it does not read its messages"]);
  channel.send({ text });
  assert.is(breaches.length, 1);
});

test("a message that cannot be processed ends the channel, and not the process", () => {
  const source = streamOf();
  const breaches: string[] = [];
  const channel = new Channel(source, {
    received() {
      throw new TypeError("undefined is not a function");
    },
    closed: (breach) => breaches.push(breach),
  });
  source.emit("data", Buffer.from('{"kind":"ledger"}\n'));
  assert.equal(breaches, ["its message was no use: undefined is not a function"]);
  channel.close();
});

test("the end of the stream is reported once, the own close never", () => {
  const source = streamOf();
  const { breaches } = played(source);
  source.emit("end");
  source.emit("close");
  assert.equal(breaches, [""]);
  const other = streamOf();
  const own = played(other);
  own.channel.close();
  other.emit("close");
  assert.equal(own.breaches, []);
});

test.run();
