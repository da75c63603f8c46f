import { suite } from "uvu";
import * as assert from "uvu/assert";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { type FloodKind, Floods } from "../../../src/h2/session/floods.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("h2/session/floods");

const bursts: Record<FloodKind, number> = {
  control: h2Limits.controlBurst,
  priority: h2Limits.priorityBurst,
  update: h2Limits.updateBurst,
  empty: h2Limits.emptyDataBurst,
  connection: h2Limits.connectionFramesBurst,
  unknown: h2Limits.unknownBurst,
  reset: h2Limits.resetBurst,
};

for (const [kind, burst] of Object.entries(bursts) as [FloodKind, number][]) {
  test(`${kind}: the burst passes, one more ends the session calmly, and the message names the kind`, () => {
    const floods = new Floods(manualClock());
    floods.charge(kind, burst);
    assert.throws(
      () => floods.charge(kind),
      (error: unknown) =>
        error instanceof ProtocolError &&
        error.code === errorCode.ENHANCE_YOUR_CALM &&
        error.scope === "session" &&
        error.message.includes(kind),
    );
  });
}

const paid = ["control", "priority", "update", "empty", "unknown"] as const;

for (const kind of paid) {
  test(`${kind}: four with each request that is answered, for ever (D16)`, () => {
    const floods = new Floods(manualClock());
    for (let request = 0; request < 100_000; request++) {
      for (let frame = 0; frame < 4; frame++) floods.charge(kind, kind === "unknown" ? 128 : 1);
      floods.answered();
    }
  });

  test(`${kind}: a hundred requests that are answered at once pay for what follows them, a thousand for no more`, () => {
    const floods = new Floods(manualClock());
    for (let request = 0; request < 1000; request++) floods.answered();
    floods.charge(kind, bursts[kind]);
    const each = kind === "unknown" ? h2Limits.unknownFrameBytes : 1;
    for (let frame = 0; frame < h2Limits.earnedFrames; frame++) floods.charge(kind, each);
    assert.throws(() => floods.charge(kind, each), /Too many/);
  });
}

test("no answer pays for a reset before the next one (A1)", () => {
  const floods = new Floods(manualClock());
  for (let request = 0; request < 1000; request++) floods.answered();
  floods.charge("reset", bursts.reset);
  assert.throws(() => floods.charge("reset"), /reset/);
});

test("one kind's excess is not charged to another", () => {
  const floods = new Floods(manualClock());
  floods.charge("control", bursts.control);
  floods.charge("reset", bursts.reset);
});

test("a client that reads a 4 MiB list 4 KiB at a time may say so each time, twice (A15's honest twin)", () => {
  const floods = new Floods(manualClock());
  for (let frame = 0; frame < 256; frame++) floods.earnUpdates();
  for (let update = 0; update < 2048; update++) floods.charge("update");
});

test("a million DATA frames do not buy a flood of updates for later (A4)", () => {
  const floods = new Floods(manualClock());
  for (let frame = 0; frame < 1_000_000; frame++) floods.earnUpdates();
  assert.throws(() => {
    for (let update = 0; update < 50_000; update++) floods.charge("update");
  });
});

test.run();
