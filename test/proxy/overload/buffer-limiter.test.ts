import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { BufferLimiter } from "../../../src/proxy/overload/buffer-limiter.ts";
import type { Exchange } from "../../../src/proxy/request/exchange.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/overload/buffer-limiter");

/**
 * Returns requests that hold these numbers of buffered bytes, largest first. A request that is cut holds none
 * afterwards.
 */
function held(
  relief: BufferLimiter,
  ...sizes: readonly number[]
): { readonly holders: Exchange[]; readonly cut: number[] } {
  const path = new PlayedPath(["a"]);
  const cut: number[] = [];
  const client = path.client();
  for (const _ of sizes) client.ask("GET", "/log", [bearer("t")]);
  path.settle();
  const holders = path.exchanges.live.map((exchange, at) => {
    let left = sizes[at] ?? 0;
    relief.buffered.add(left);
    return Object.defineProperties(exchange, {
      queuedBytes: { get: () => left },
      cut: {
        value: () => {
          if (left > 0) cut.push(left);
          relief.buffered.add(-left);
          left = 0;
        },
      },
    });
  });
  return { holders, cut };
}

test("of all clusters' exchanges the largest go first, and only as many as must", () => {
  const clock = new PlayedPath([]).clock;
  const relief = new BufferLimiter(clock, 1000);
  const [eu, us] = [held(relief, 400, 50), held(relief, 300, 200)];
  const entries: Entry[] = [];
  const journal = new Journal(clock);
  journal.subscribe((entry) => entries.push(entry));
  relief.add({ exchanges: eu, journal: journal.of("eu") });
  const leave = relief.add({ exchanges: us, journal: journal.of("us") });
  relief.buffered.add(551);
  clock.turn();
  assert.equal([eu.cut, us.cut], [[400], [300]]);
  assert.equal(
    entries.map(({ cluster }) => cluster),
    ["eu", "us"],
  );
  leave();
  relief.buffered.add(500);
  clock.turn();
  assert.equal([eu.cut, us.cut], [[400, 50], [300]], "one that has left is not asked");
});

test("long heads wait like bytes for as long as their requests live: the longest goes, usual ones are not looked at (A26)", () => {
  const path = new PlayedPath(["a"], { bufferBytes: 100_000 });
  const client = path.client();
  const long = (bytes: number): Field => new Field("x-long", "x".repeat(bytes));
  const asked = [30_000, 60_000, 100, 20_000].map((bytes) => client.ask("GET", "/hang", [long(bytes)]));
  path.settle();
  assert.equal(
    asked.map(({ resetCode }) => resetCode),
    [undefined, errorCode.REFUSED_STREAM, undefined, undefined],
  );
  assert.is(path.exchanges.size, 3);
  for (const { stream } of asked) if (!stream.isClosed) stream.reset(errorCode.CANCEL);
  path.settle();
  assert.is(path.buffered.bytes, 0);
});

test("of a thousand long heads in one loop turn only those up to the bound are taken, the rest is answered 429 (A26)", () => {
  const path = new PlayedPath(["a"], { bufferBytes: 100_000 });
  const client = path.client();
  let mostBytes = 0;
  path.buffered.onOver = () => {
    mostBytes = Math.max(mostBytes, path.buffered.bytes);
  };
  const asked = Array.from({ length: 20 }, () =>
    client.ask("GET", "/hang", [new Field("x-long", "x".repeat(30_000))]),
  );
  path.settle();
  assert.ok(mostBytes < 200_000, `${mostBytes} bytes waited`);
  assert.is(asked.filter(({ status }) => status === "429").length, 16);
  assert.is(path.exchanges.size, 4);
});

test.run();
