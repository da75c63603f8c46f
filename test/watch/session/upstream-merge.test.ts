import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { ownOrigin } from "../../../src/kube/api-origin.ts";
import { classify } from "../../../src/kube/request-info.ts";
import { Attempt } from "../../../src/proxy/upstream/attempt.ts";
import { poolKey } from "../../../src/proxy/upstream/pool-key.ts";
import { decodersOf } from "../../../src/watch/codec/framing.ts";
import { AnomalyLog } from "../../../src/watch/session/anomaly-log.ts";
import { ClientWriter } from "../../../src/watch/session/client-writer.ts";
import { Reading } from "../../../src/watch/session/session-progress.ts";
import { UpstreamMerge } from "../../../src/watch/session/upstream-merge.ts";
import { watchContextOf } from "../../../src/watch/session/watch-context.ts";
import type { WatchState } from "../../../src/watch/session/watch-state.ts";
import { WatchStream } from "../../../src/watch/session/watch-stream.ts";
import { attemptOwner, orderOf } from "../../support/attempt-owner.ts";
import { manualClock } from "../../support/clock.ts";
import { exactProgress } from "../../support/progress.ts";
import { linesOf } from "../../support/watch-path.ts";

const test = suite("upstream-merge");

type Played = {
  session: { state: WatchState };
  merge: UpstreamMerge;
  writer: ClientWriter;
  body: () => string;
  sideOf(from: string, isOurs: boolean): WatchStream;
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
  const writer = new ClientWriter(down, clock);
  const progress = exactProgress();
  const target = "/api/v1/pods?watch=true&resourceVersion=7";
  const asked = watchContextOf(target, classify("GET", target), { origin: ownOrigin });
  const anomalies = new AnomalyLog(clock, new Journal(clock));
  const session = {
    state: "streaming" as WatchState,
    progress,
    writer,
    retry: undefined,
    asked,
    clientRequest: orderOf(),
    migrations: { clock, anomalies, pace: { asked() {}, settled() {} } },
    dropSecond() {},
  };
  const merge = new UpstreamMerge(session);
  const owner = attemptOwner({ poolKey: () => poolKey("proven", "long") });
  const sideOf = (from: string, isOurs: boolean): WatchStream => {
    const stream = new WatchStream(new Attempt("a", owner), merge, new Buffered(1e9));
    stream.open(new Reading(from, isOurs, "a"));
    return stream;
  };
  return { session, merge, writer, body: () => chunks.join(""), sideOf };
}

function say(stream: WatchStream, words: string): string {
  const bytes = Buffer.from(linesOf(words));
  return stream.pass(bytes, 0, bytes.length);
}

test("two upstream streams are merged into one, and each byte is granted once", () => {
  const { session, merge, writer, body, sideOf } = played();
  const first = sideOf("7", false);
  merge.begin(first);
  first.accept(decodersOf("application/json", "", false), 0);
  say(first, "+8a");
  assert.is(writer.creditFor(linesOf("+8a").length), linesOf("+8a").length, "of one stream, when they leave");
  const hedge = sideOf("8", true);
  merge.add(hedge, false);
  session.state = "hedged";
  assert.not(merge.isMerged, "not answered yet");
  hedge.accept(decodersOf("application/json", "", false), 0);
  assert.ok(merge.isMerged);
  say(hedge, "~9a");
  say(first, "~9a ~10a");
  assert.is(body(), linesOf("+8a ~9a ~10a"));
  assert.is(writer.creditFor(linesOf("~9a ~10a").length), 0, "of two, when they came");
});

test("a stream is found by what was asked, until it is closed", () => {
  const { merge, sideOf } = played();
  const [first, other] = [sideOf("7", false), sideOf("7", true)];
  merge.begin(first);
  merge.add(other, false);
  assert.is(merge.of(first.attempt), first);
  assert.is(merge.of(other.attempt), other);
  merge.promote();
  assert.equal([merge.of(first.attempt), merge.first, merge.other], [undefined, other, undefined]);
  merge.dropFirst();
  assert.is(merge.of(other.attempt), undefined);
});

test("only the first stream's unreadable bytes are forwarded to its client", () => {
  const { merge, body, sideOf } = played();
  const [first, other] = [sideOf("7", false), sideOf("7", true)];
  for (const stream of [first, other]) stream.accept(decodersOf("application/json", "", false), 0);
  merge.begin(first);
  merge.add(other, false);
  assert.is(other.pass(Buffer.from("<"), 0, 1), "opaque");
  assert.is(body(), "");
  assert.is(first.pass(Buffer.from("<"), 0, 1), "opaque");
  assert.is(body(), "<");
});

test.run();
