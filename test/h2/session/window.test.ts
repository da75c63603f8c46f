import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { largestWindow, ReceiveWindow, widened } from "../../../src/h2/session/window.ts";

const test = suite("h2/session/window");

test("a window widens to 2^31 - 1 and no further, at the cost of its scope (A20)", () => {
  assert.is(widened(0, largestWindow, "stream"), largestWindow);
  for (const scope of ["stream", "session"] as const) {
    assert.throws(
      () => widened(1, largestWindow, scope),
      (error: unknown) =>
        error instanceof ProtocolError &&
        error.code === errorCode.FLOW_CONTROL_ERROR &&
        error.scope === scope,
    );
  }
});

test("a window below zero is lifted by updates", () => {
  assert.is(widened(-49_151, 49_152, "stream"), 1);
});

test("the last byte fits, one more does not", () => {
  const window = new ReceiveWindow(100);
  assert.ok(window.use(100));
  assert.not(window.use(1));
});

test("grants are saved up to a quarter", () => {
  const window = new ReceiveWindow(100);
  window.use(60);
  assert.equal([window.grant(10), window.grant(14), window.grant(1), window.grant(24)], [0, 0, 25, 0]);
  assert.is(window.held, 11);
});

test("growing announces the difference and what was saved", () => {
  const window = new ReceiveWindow(100);
  window.use(50);
  window.grant(10);
  assert.is(window.grow(300), 210);
  assert.is(window.size, 300);
  assert.is(window.held, 40);
});

test("over any run, what the peer may send and what is held never pass the size, and nothing is lost", () => {
  const step = fc.record({ use: fc.nat(200), grant: fc.nat(200), growth: fc.constantFrom(0, 0, 0, 0, 50) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const window = new ReceiveWindow(1000);
      /** The window as the peer knows it, and the received bytes that were not granted back yet. */
      let peer = 1000;
      let held = 0;
      for (const { use, grant, growth } of steps) {
        const sent = Math.min(use, peer);
        assert.ok(window.use(sent));
        peer -= sent;
        held += sent;
        const granted = Math.min(grant, held);
        peer += window.grant(granted);
        held -= granted;
        if (growth > 0) peer += window.grow(window.size + growth);
        assert.is(window.held, held);
        assert.ok(peer + held <= window.size && peer + held > window.size * 0.75 - 1, `${peer} + ${held}`);
      }
    }),
  );
});

test.run();
