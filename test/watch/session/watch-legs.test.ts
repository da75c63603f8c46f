import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { ownOrigin } from "../../../src/kube/api-origin.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { Leg } from "../../../src/proxy/upstream/leg.ts";
import { poolKey } from "../../../src/proxy/upstream/pool-key.ts";
import { JsonEvents } from "../../../src/watch/codec/json-events.ts";
import { Complaints } from "../../../src/watch/session/complaints.ts";
import { Outlet } from "../../../src/watch/session/outlet.ts";
import { Pursuit } from "../../../src/watch/session/pursuit.ts";
import { Reading } from "../../../src/watch/session/reading.ts";
import { WatchLeg } from "../../../src/watch/session/watch-leg.ts";
import { WatchLegs } from "../../../src/watch/session/watch-legs.ts";
import { watchOrderOf } from "../../../src/watch/session/watch-order.ts";
import { manualClock } from "../../support/clock.ts";
import { legOwner, orderOf } from "../../support/leg-owner.ts";
import { exactProgress } from "../../support/progress.ts";
import { linesOf } from "../../support/watch-path.ts";

const test = suite("proxy/watch-legs");

type Played = {
  legs: WatchLegs;
  outlet: Outlet;
  body: () => string;
  sideOf(from: string, isOurs: boolean): WatchLeg;
};

function played(): Played {
  const clock = manualClock();
  const chunks: string[] = [];
  const down = {
    sendHeaders() {},
    sendData: (bytes: Buffer, start: number, end: number) =>
      void chunks.push(bytes.toString("latin1", start, end)),
    reset() {},
    grant() {},
    queuedBytes: 0,
  };
  const outlet = new Outlet(down, clock);
  const progress = exactProgress();
  const target = "/api/v1/pods?watch=true&resourceVersion=7";
  const asked = watchOrderOf(target, classify("GET", target), 0, { origin: ownOrigin });
  const complaints = new Complaints(clock, new Journal(clock));
  const legs = new WatchLegs({
    clock,
    progress,
    outlet,
    pursuit: new Pursuit(clock, clock),
    asked,
    complaints,
    order: orderOf(),
  });
  const owner = legOwner({ poolKey: () => poolKey("proven", "long") });
  const sideOf = (from: string, isOurs: boolean): WatchLeg => {
    const side = new WatchLeg(new Leg("a", owner), legs, new Buffered(1e9));
    side.open(new Reading(from, isOurs));
    return side;
  };
  return { legs, outlet, body: () => chunks.join(""), sideOf };
}

function say(legs: WatchLegs, side: WatchLeg, words: string): string {
  const bytes = Buffer.from(linesOf(words));
  return legs.read(side, bytes, 0, bytes.length);
}

test("two legs are one stream, and each octet is granted once", () => {
  const { legs, outlet, body, sideOf } = played();
  legs.first = sideOf("7", false);
  legs.first.accept(new JsonEvents(false), 0);
  say(legs, legs.first, "+8a");
  assert.is(outlet.settle(linesOf("+8a").length), linesOf("+8a").length, "of one leg, when they leave");
  const shadow = sideOf("8", true);
  legs.other = shadow;
  assert.not(legs.isMerged, "not answered yet");
  shadow.accept(new JsonEvents(false), 0);
  assert.ok(legs.isMerged);
  say(legs, shadow, "~9a");
  say(legs, legs.first, "~9a ~10a");
  assert.is(body(), linesOf("+8a ~9a ~10a"));
  assert.is(outlet.settle(linesOf("~9a ~10a").length), 0, "of two, when they came");
});

test("a leg is found by what was asked, until it is let go", () => {
  const { legs, sideOf } = played();
  const [first, other] = [sideOf("7", false), sideOf("7", true)];
  legs.first = first;
  legs.other = other;
  assert.is(legs.of(first.leg), first);
  assert.is(legs.of(other.leg), other);
  legs.promote();
  assert.equal([legs.of(first.leg), legs.first, legs.other], [undefined, other, undefined]);
  legs.dropFirst();
  assert.is(legs.of(other.leg), undefined);
});

test("only the first leg's unreadable bytes are its client's", () => {
  const { legs, body, sideOf } = played();
  const [first, other] = [sideOf("7", false), sideOf("7", true)];
  for (const side of [first, other]) side.accept(new JsonEvents(false), 0);
  legs.first = first;
  legs.other = other;
  assert.is(legs.read(other, Buffer.from("<"), 0, 1), "opaque");
  assert.is(body(), "");
  assert.is(legs.read(first, Buffer.from("<"), 0, 1), "opaque");
  assert.is(body(), "<");
});

test.run();
