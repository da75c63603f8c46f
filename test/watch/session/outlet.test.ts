import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import type { Side } from "../../../src/h2/core/side.ts";
import { Outlet } from "../../../src/watch/session/outlet.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("proxy/outlet");

/** A client's side, of which the test says what leaves. */
function played(): { outlet: Outlet; clock: ManualClock; side: { queuedBytes: number } } {
  const clock = manualClock();
  const side = { queuedBytes: 0 };
  const down: Side = {
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
  return { outlet: new Outlet(down, clock), clock, side };
}

test("what leaves is granted, but for what was granted before", () => {
  const { outlet } = played();
  assert.is(outlet.settle(10), 10);
  outlet.prepaid(15);
  assert.equal([outlet.settle(10), outlet.settle(10), outlet.settle(10)], [0, 5, 10]);
});

test("what still waits when another leg takes over grants that one nothing", () => {
  const { outlet, side } = played();
  outlet.send(Buffer.alloc(100), 0, 100);
  outlet.change();
  side.queuedBytes = 0;
  assert.equal([outlet.settle(100), outlet.settle(7)], [0, 7]);
});

test("what waits without a break for a second is a slow client's; a burst is not", () => {
  const { outlet, clock, side } = played();
  outlet.send(Buffer.alloc(100), 0, 100);
  clock.advance(limits.slowWatchMs - 1);
  assert.not(outlet.isBlocked);
  clock.advance(1);
  assert.ok(outlet.isBlocked);
  side.queuedBytes = 40;
  outlet.settle(60);
  assert.ok(outlet.isBlocked, "some of it went, and some has waited all the time");
  side.queuedBytes = 0;
  outlet.settle(40);
  assert.not(outlet.isBlocked);
  outlet.send(Buffer.alloc(1), 0, 1);
  clock.advance(10);
  assert.not(outlet.isBlocked, "its time begins anew");
});

test.run();
