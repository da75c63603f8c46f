import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { Outflow, type WaitingStream } from "../../../src/h2/session/outflow.ts";
import { defaultWindow } from "../../../src/h2/session/window.ts";

const test = suite("h2/session/outflow");

/** A stream with this many bytes. In each turn it sends ten of them, or as many as there is room for. */
function waiting(outflow: Outflow, name: string, turns: string[], octets: number): WaitingStream {
  let left = octets;
  const stream = {
    pump(): boolean {
      const count = Math.min(left, 10, outflow.room);
      if (count === 0) return false;
      left -= count;
      outflow.spend(count);
      turns.push(name);
      if (left === 0) outflow.wait(stream, false);
      return left > 0;
    },
  };
  outflow.wait(stream, true);
  return stream;
}

test("those that wait have their turns in order, a quantum each, until nothing is left", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  const turns: string[] = [];
  for (const name of ["a", "b", "c"]) waiting(outflow, name, turns, name === "b" ? 10 : 30);
  outflow.pump();
  assert.equal(turns.join(""), "abcacac");
});

test("a window that opens for one quantum at a time opens for each in turn", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  outflow.spend(defaultWindow);
  outflow.flushed(true);
  const turns: string[] = [];
  for (const name of ["a", "b", "c"]) waiting(outflow, name, turns, 1000);
  for (let update = 0; update < 6; update++) outflow.widen(10);
  assert.equal(turns.join(""), "abcabc");
});

test("a stream whose own window is shut keeps no other stream waiting", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  const turns: string[] = [];
  outflow.wait({ pump: () => false }, true);
  waiting(outflow, "a", turns, 20);
  outflow.pump();
  assert.equal(turns, ["a", "a"]);
});

test("congested, nothing goes until it is drained", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  const turns: string[] = [];
  waiting(outflow, "a", turns, 10);
  outflow.flushed(false);
  outflow.widen(100);
  assert.equal([outflow.room, turns], [0, []]);
  outflow.drained();
  assert.equal(turns, ["a"]);
});

test("a turn writes the backlog's bound and then waits for the socket", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  outflow.widen(10_000_000);
  outflow.spend(limits.socketBacklogBytes);
  assert.is(outflow.room, 0);
  outflow.flushed(true);
  assert.is(outflow.room, defaultWindow + 10_000_000 - limits.socketBacklogBytes);
});

test("a stream that throws in its turn does not stop later rounds", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  let isBroken = true;
  const broken: WaitingStream = {
    pump() {
      if (isBroken) throw new Error("broken");
      return false;
    },
  };
  const turns: string[] = [];
  outflow.wait(broken, true);
  waiting(outflow, "a", turns, 10);
  assert.throws(() => outflow.pump(), "broken");
  isBroken = false;
  outflow.pump();
  assert.equal(turns, ["a"]);
});

test("a stream that asks for a round within its own turn gets none", () => {
  const outflow = new Outflow(new Buffered(Number.POSITIVE_INFINITY));
  let depth = 0;
  let deepest = 0;
  outflow.wait(
    {
      pump() {
        depth += 1;
        deepest = Math.max(deepest, depth);
        outflow.pump();
        depth -= 1;
        return false;
      },
    },
    true,
  );
  outflow.pump();
  assert.is(deepest, 1);
});

test.run();
