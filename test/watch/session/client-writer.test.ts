import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { StreamWriter } from "../../../src/h2/core/stream-writer.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { ClientWriter } from "../../../src/watch/session/client-writer.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("client-writer");

/** A writer whose client takes bytes only when the test reduces `side.queuedBytes`. */
function played(): { writer: ClientWriter; clock: ManualClock; side: { queuedBytes: number } } {
  const clock = manualClock();
  const side = { queuedBytes: 0 };
  const down: StreamWriter = {
    sendHeaders() {},
    sendData(_bytes, start, end) {
      side.queuedBytes += end - start;
    },
    reset() {},
    grant() {},
    get queuedBytes() {
      return side.queuedBytes;
    },
  };
  return { writer: new ClientWriter(down, clock), clock, side };
}

test("what leaves is granted, but for what was granted before", () => {
  const { writer } = played();
  assert.is(writer.creditFor(10), 10);
  writer.prepaid(15);
  assert.equal([writer.creditFor(10), writer.creditFor(10), writer.creditFor(10)], [0, 5, 10]);
});

test("what still waits when another stream takes over grants that one nothing", () => {
  const { writer, side } = played();
  writer.send(Buffer.alloc(100), 0, 100);
  writer.change();
  side.queuedBytes = 0;
  assert.equal([writer.creditFor(100), writer.creditFor(7)], [0, 7]);
});

test("what waits without a break for a second is a slow client's; a burst is not", () => {
  const { writer, clock, side } = played();
  writer.send(Buffer.alloc(100), 0, 100);
  clock.advance(watchLimits.slowWatchMs - 1);
  assert.not(writer.isBlocked);
  clock.advance(1);
  assert.ok(writer.isBlocked);
  side.queuedBytes = 40;
  writer.creditFor(60);
  assert.ok(writer.isBlocked, "some of it went, and some has waited all the time");
  side.queuedBytes = 0;
  writer.creditFor(40);
  assert.not(writer.isBlocked);
  writer.send(Buffer.alloc(1), 0, 1);
  clock.advance(10);
  assert.not(writer.isBlocked, "its time begins anew");
});

test.run();
