import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { Attempt } from "../../../src/upstream/pool/attempt.ts";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";
import { decodersOf } from "../../../src/watch/codec/framing.ts";
import type { Fate } from "../../../src/watch/session/session-progress.ts";
import { type Passed, WatchStream } from "../../../src/watch/session/watch-stream.ts";
import { attemptOwner } from "../../support/attempt-owner.ts";
import { lineOf, linesOf } from "../../support/watch-path.ts";

const test = suite("watch-stream");

type Played = { side: WatchStream; sent: string[]; say(text: string): Passed };

/** A stream whose events get these fates by their version. `sent` records what is forwarded. */
function played(fates: Readonly<Record<string, Fate>> = {}, mayGoOn = true): Played {
  const sent: string[] = [];
  const owner = attemptOwner({ poolKey: () => poolKey("proven", "long") });
  const taker = {
    take: ({ version }: { version: string }): Fate => fates[version] ?? "forward",
    mayGoOn: () => mayGoOn,
    forward(bytes: Buffer, start: number, end: number) {
      sent.push(bytes.toString("latin1", start, end));
    },
    release: (held: Buffer) => void sent.push(held.toString("latin1")),
  };
  const side = new WatchStream(new Attempt("a", owner), taker, new Buffered(1e9));
  side.accept(decodersOf("application/json", "", false), 0);
  const say = (text: string): Passed => side.pass(Buffer.from(text), 0, text.length);
  return { side, sent, say };
}

test("what came together and goes on is sent together, as it lies", () => {
  const { say, sent } = played();
  const text = linesOf("+1a +2b +3c");
  assert.is(say(text), "all");
  assert.equal(sent, [text]);
});

test("dropping an event drops no byte of another event, at whatever byte the chunks are split (row 8, 9)", () => {
  const words = ["+1a", "=2", "+3c", "=4", "=5", "+6d"];
  const text = words.map(lineOf).join("");
  for (let cut = 0; cut <= text.length; cut += 1) {
    const { say, sent, side } = played({ "2": "drop", "4": "drop", "5": "drop" });
    say(text.slice(0, cut));
    say(text.slice(cut));
    assert.is(sent.join(""), linesOf("+1a +3c +6d"), `cut at ${cut}`);
    assert.is(side.heldBytes, 0);
  }
});

test("streams share decoders between events, and no byte of one stream changes how another is read", () => {
  // Lines that are opaque, or end where the decoder has read a key or a value of the metadata.
  const odd = ['{"a}', '{"metadata"}', '{"metadata":1}', '{"metadata":{"resourceVersion":1}}', "{}"];
  const text = linesOf("+1a =2 +3c");
  for (const object of odd)
    for (let cut = 0; cut <= text.length; cut += 1) {
      const [one, two, three] = [played(), played({ "2": "drop" }), played()];
      three.say(`{"type":"ADDED","object":${object}\n`);
      for (const { say } of [one, two]) say(text.slice(0, cut));
      three.say(`{"type":"ADDED","object":${object}\n`);
      for (const { say } of [two, one]) say(text.slice(cut));
      assert.is(one.sent.join(""), text, `cut at ${cut} after ${object}`);
      assert.is(two.sent.join(""), linesOf("+1a +3c"), `cut at ${cut} after ${object}`);
    }
});

test("behind an event that is refused nothing is read", () => {
  for (const fate of ["refused", "broken"] as const) {
    const { say, sent } = played({ "2": fate });
    assert.is(say(linesOf("+1a ~2b ~3c")), fate);
    assert.is(sent.join(""), lineOf("+1a"));
  }
});

test("bytes that are no events go on as they come, if they are the client's, and then all of them do", () => {
  const { say, sent } = played();
  assert.is(say(`${lineOf("+1a")}<html`), "opaque");
  assert.is(say(">"), "all");
  assert.is(sent.join(""), `${lineOf("+1a")}<html>`);
  const other = played({}, false);
  assert.is(other.say("<html"), "opaque");
  assert.equal(other.sent, []);
});

test("half an event is held, counted, and forgotten with its stream", () => {
  const { say, side, sent } = played();
  say(lineOf("+1a").slice(0, 12));
  assert.equal([side.heldBytes, sent], [12, []]);
  side.cancel();
  assert.is(side.heldBytes, 0);
});

test("before its answer is taken nothing of it goes on", () => {
  const sent: string[] = [];
  const owner = attemptOwner({ poolKey: () => poolKey("proven", "long") });
  const taker = {
    take: (): Fate => "forward",
    mayGoOn: () => true,
    forward: () => void sent.push("x"),
    release() {},
  };
  const side = new WatchStream(new Attempt("a", owner), taker, new Buffered(1e9));
  assert.is(side.pass(Buffer.from("x"), 0, 1), "all");
  assert.equal([sent, side.isAccepted], [[], false]);
});

test.run();
