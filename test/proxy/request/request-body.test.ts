import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { takenBlocks } from "../../../src/h2/core/slabs.ts";
import type { StreamWriter } from "../../../src/h2/core/stream-writer.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { RequestBody } from "../../../src/proxy/request/request-body.ts";

const test = suite("proxy/request/request-body");

function recorder(): { side: StreamWriter; said: string[] } {
  const said: string[] = [];
  const side: StreamWriter = {
    sendHeaders: (fields, end) => said.push(`${fields[0]?.name} ${end}`),
    sendData: (bytes, start, end, isLast) => said.push(`${bytes.toString("latin1", start, end)} ${isLast}`),
    reset() {},
    grant() {},
    queuedBytes: 0,
  };
  return { side, said };
}

const add = (body: RequestBody, text: string): void => body.keep(Buffer.from(text), 0, text.length);

test("what came before there was an upstream connection goes up in order, with its end or its trailers", () => {
  const body = new RequestBody(new Buffered(1e9));
  add(body, "one ");
  add(body, "two");
  const first = recorder();
  body.sendTo(first.side);
  body.end();
  const second = recorder();
  body.sendTo(second.side);
  body.end([new Field("x-sum", "7")]);
  const third = recorder();
  body.sendTo(third.side);
  assert.equal(
    [first.said, second.said, third.said],
    [["one two false"], ["one two true"], ["one two false", "x-sum true"]],
  );
});

test("an empty body that is over is sent as its end, one that is not as nothing", () => {
  const body = new RequestBody(new Buffered(1e9));
  const { side, said } = recorder();
  body.sendTo(side);
  body.end();
  body.sendTo(side);
  assert.equal(said, [" true"]);
});

test("a short body is kept after it went, a long one is not, and what is kept is accounted for", () => {
  const buffered = new Buffered(1e9);
  const body = new RequestBody(buffered);
  const chunk = Buffer.alloc(requestLimits.repeatableBodyBytes);
  body.keepForAgain(chunk, 0, chunk.length);
  assert.equal([body.isRepeatable, buffered.bytes], [true, chunk.length]);
  body.keepForAgain(chunk, 0, 1);
  assert.equal([body.isRepeatable, body.length, buffered.bytes], [false, 0, 0]);
  body.keepForAgain(chunk, 0, 1);
  assert.is(body.length, 0);
});

test("a long body that waited for an upstream connection is sent whole, and not kept after that", () => {
  const before = takenBlocks();
  const body = new RequestBody(new Buffered(1e9));
  const text = "0123456789abc".repeat(requestLimits.repeatableBodyBytes / 8);
  add(body, text);
  const { side, said } = recorder();
  body.sendTo(side);
  assert.is(said.map((one) => one.replace(" false", "")).join(""), text);
  assert.equal([body.isRepeatable, takenBlocks()], [false, before]);
});

test("a chunk that makes the body too long is not copied", () => {
  const before = takenBlocks();
  const body = new RequestBody(new Buffered(1e9));
  const chunk = Buffer.alloc(requestLimits.repeatableBodyBytes);
  body.keepForAgain(chunk, 0, chunk.length);
  assert.is(takenBlocks(), before + 4);
  body.keepForAgain(chunk, 0, chunk.length);
  assert.equal([body.length, body.isRepeatable, takenBlocks()], [0, false, before]);
});

test("if the exchange ends while its body is sent, neither the rest nor the trailers follow", () => {
  const body = new RequestBody(new Buffered(1e9));
  body.keep(Buffer.alloc(40_000), 0, 40_000);
  body.end([new Field("x-sum", "7")]);
  let sent = 0;
  const sendData = (): void => {
    sent += 1;
    body.forget();
  };
  body.sendTo({ ...recorder().side, sendData, sendHeaders: () => assert.unreachable() });
  assert.is(sent, 1);
});

test.run();
