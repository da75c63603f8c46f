import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { ResumeRetry } from "../../../src/watch/session/resume-retry.ts";
import type { UpstreamMerge } from "../../../src/watch/session/upstream-merge.ts";
import { WatchEnd } from "../../../src/watch/session/watch-end.ts";
import type { WatchHost } from "../../../src/watch/session/watch-host.ts";
import { manualClock } from "../../support/clock.ts";
import { exactProgress } from "../../support/progress.ts";

const test = suite("proxy/watch-end");

/** A watch that was asked for just now, and what is heard of its end. */
function played() {
  const clock = manualClock();
  const heard: string[] = [];
  const progress = exactProgress();
  const host = { endsHere: (isWhole: boolean) => heard.push(`ends ${isWhole}`) } as unknown as WatchHost;
  const merge = {
    first: undefined,
    get times() {
      return { liveMs: clock.now(), ageMs: clock.now(), leftMs: undefined };
    },
    dropOther: () => heard.push("alone"),
    release: (refusal: Buffer) => heard.push(refusal.toString()),
  } as unknown as UpstreamMerge;
  const retry = new ResumeRetry(clock, clock);
  const ending = new WatchEnd({ host, progress, merge, retry });
  return { clock, heard, retry, ending };
}

test("an end comes when the watch is 1.1 s old, and once, for the reason that came first", () => {
  const { clock, heard, ending, retry } = played();
  clock.advance(100);
  ending.early(() => heard.push("drained"));
  ending.early(() => heard.push("stale"));
  assert.ok(retry.isClosed);
  assert.equal(heard, ["alone"]);
  clock.advance(limits.shortWatchMs - 101);
  assert.equal(heard, ["alone"]);
  clock.advance(1);
  assert.equal(heard, ["alone", "drained", "ends false"]);
});

test("so does its server's own", () => {
  const { clock, heard, ending } = played();
  ending.due();
  clock.advance(limits.shortWatchMs);
  assert.equal(heard, ["alone", "ends true"]);
});

test("an older one ends at once", () => {
  const { clock, heard, ending } = played();
  clock.advance(limits.shortWatchMs);
  ending.due();
  assert.equal(heard, ["alone", "ends true"]);
});

test("a backend's refusal of the client's own request is its answer, and no end of ours", () => {
  const { heard, ending, retry } = played();
  retry.expired("a", Buffer.from("ERROR 410"));
  ending.early(() => heard.push("expired"));
  assert.equal(heard, ["alone", "ERROR 410", "ends true"]);
});

test.run();
