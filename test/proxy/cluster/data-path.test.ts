import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { linesOf, ok } from "../../support/watch-path.ts";

const test = suite("proxy/cluster/data-path");

test("backends are dialled when they come, and let go when they leave", () => {
  const path = new PlayedPath(["a"]);
  assert.is(path.backends.views[0]?.state, "ready");
  path.reconcile([]);
  path.settle();
  assert.equal(path.backends.views, []);
  assert.ok(path.backend("a").sessions.every(({ session }) => session.isOver));
});

test("a thousand clients leave nothing behind", () => {
  const path = new PlayedPath(["a", "b"]);
  for (let index = 0; index < 1000; index += 1) {
    const client = path.client();
    client.ask("GET", "/api", [bearer("t")]);
    path.settle();
    client.cable.cut("gone");
  }
  path.settle();
  assert.is(path.exchanges.size, 0);
  // The budget permits 33 resets a second on each upstream connection. Streams beyond it are reset as the budget
  // refills.
  path.clock.advance(60_000);
  assert.is(path.pools.loadOf("a") + path.pools.loadOf("b"), 0);
});

test("when too much waits, the exchange that holds the most ends, and the others go on (A19)", () => {
  const path = new PlayedPath(["a"], { bufferBytes: 200_000 });
  const [greedy, modest] = [path.client(), path.client()].map((client, index) => {
    const ear = client.ask("GET", `/log/${index}`, [bearer("t")]);
    path.settle();
    ear.isReading = false;
    return ear;
  });
  const [forGreedy, forModest] = path.backend("a").asked;
  for (const asked of [forGreedy, forModest]) asked?.side?.sendHeaders([new Field(":status", "200")], false);
  forModest?.say(Buffer.alloc(300_000));
  path.settle();
  for (let sent = 0; sent < 60; sent += 1) {
    forGreedy?.say(Buffer.alloc(16_000));
    path.settle();
  }
  assert.ok(path.buffered.bytes <= 200_000, String(path.buffered.bytes));
  assert.is(greedy?.resetCode, errorCode.INTERNAL_ERROR);
  assert.is(modest?.resetCode, undefined);
  assert.ok(path.entries.some((entry) => entry.kind === "request.failed" && entry.code === "overload"));
});

test("so does a slow reader's watch with all that waits for it: a client that holds little is not cut in its place", () => {
  const path = new PlayedPath(["a"], { bufferBytes: 200_000 });
  const [slow, modest] = ["/api/v1/pods?watch=true&resourceVersion=7", "/log"].map((target) => {
    const ear = path.client().ask("GET", target, [bearer("t")]);
    path.settle();
    ear.isReading = false;
    path.backend("a").last.side?.sendHeaders(ok, false);
    return ear;
  });
  const [forSlow, forModest] = path.backend("a").asked;
  forModest?.say(Buffer.alloc(300_000));
  path.settle();
  for (let version = 8; version < 508; version += 1) {
    forSlow?.say(linesOf(`+${version}${"x".repeat(1000)}`));
    path.settle();
  }
  assert.ok(path.buffered.bytes <= 200_000, String(path.buffered.bytes));
  assert.is(slow?.resetCode, errorCode.INTERNAL_ERROR);
  assert.is(modest?.resetCode, undefined);
});

test("an answer that is over and unread goes before a live one that holds less", () => {
  const path = new PlayedPath(["a"], { bufferBytes: 400_000 });
  const ask = (target: string) => {
    const ear = path.client().ask("GET", target, [bearer("t")]);
    ear.isReading = false;
    path.settle();
    return ear;
  };
  const unread = ["/one", "/two"].map((target) => {
    const ear = ask(target);
    path.backend("a").last.answer(200, "x".repeat(440_000));
    path.settle();
    return ear;
  });
  assert.is(path.exchanges.size, 0);
  const honest = ask("/log");
  path.backend("a").last.side?.sendHeaders([new Field(":status", "200")], false);
  path.backend("a").last.say(Buffer.alloc(320_000));
  path.settle();
  assert.ok(path.buffered.bytes <= 400_000, String(path.buffered.bytes));
  assert.is(honest.resetCode, undefined);
  assert.is(unread.filter(({ resetCode }) => resetCode === errorCode.INTERNAL_ERROR).length, 1);
});

test("everything that waited is counted off again", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client().ask("POST", "/x", [bearer("t")], false);
  ear.say("early body");
  path.settle();
  ear.isReading = false;
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  last.say(Buffer.alloc(1_000_000));
  path.settle();
  assert.ok(path.buffered.bytes > 0);
  ear.stream.reset(8);
  path.settle();
  assert.is(path.buffered.bytes, 0);
});

test.run();
