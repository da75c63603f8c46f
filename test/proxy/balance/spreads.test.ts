import { suite } from "uvu";
import * as assert from "uvu/assert";
import { balanceLimits } from "../../../src/proxy/balance/limits.ts";
import type { ClientLoad } from "../../../src/proxy/balance/plan-moves.ts";
import { mayBeSpread, Spreads } from "../../../src/proxy/balance/spreads.ts";
import type { Client } from "../../../src/proxy/context/client.ts";
import { clientOf } from "../../support/client.ts";

const test = suite("proxy/balance/spreads");

type Streams = { readonly client: Client; readonly streams: number };

const heavy = 4 * balanceLimits.spreadLoad;
const even = { a: 1, b: 1 };

class Scene {
  readonly spreads = new Spreads();
  readonly client: Client = clientOf({});
  #now = 0;

  constructor() {
    this.client.bind("a");
  }

  /**
   * Lets five seconds pass and plans. `own`: the load of the client's own requests. `reads`: the work of its divided
   * reads in streams. Returns the load of the divided reads.
   */
  plan(
    own: number,
    reads: number,
    shares: Readonly<Record<string, number>> = even,
    ready = 2,
  ): Record<string, number> {
    this.#now += balanceLimits.balanceMs;
    const bytes = (reads * balanceLimits.streamBytes * balanceLimits.balanceMs) / 1000;
    this.client.spread?.meter.add(bytes);
    const one: ClientLoad<Streams> = {
      client: { client: this.client, streams: 0 },
      backend: "a",
      load: own,
      isMovable: true,
    };
    const plan = this.spreads.plan({
      heavy: mayBeSpread(one) ? [one] : [],
      sums: new Map([["a", own]]),
      ready,
      shares: new Map(Object.entries(shares)),
      now: this.#now,
    });
    return Object.fromEntries(plan.map(({ backend, load }) => [backend, Math.round(load)]));
  }

  pass(ms: number, own: number, reads: number): void {
    for (let at = 0; at < ms; at += balanceLimits.balanceMs) this.plan(own, reads);
  }
}

test("the reads of a client with much load are divided; a small load is not", () => {
  const scene = new Scene();
  scene.plan(balanceLimits.spreadLoad - 1, 0);
  assert.is(scene.spreads.size, 0);
  scene.plan(heavy, 0);
  assert.is(scene.spreads.size, 1);
  scene.pass(300_000, 0, heavy);
  assert.equal(Object.values(scene.plan(0, heavy)), [heavy / 2, heavy / 2]);
});

test("with one ready backend, no spread begins, and reads that are divided gather", () => {
  const scene = new Scene();
  scene.plan(heavy, 0, { a: 1 }, 1);
  assert.is(scene.spreads.size, 0);
  scene.plan(heavy, 0);
  scene.plan(0, heavy, { a: 1 }, 1);
  assert.is(scene.client.spread?.isGathering, true);
});

test("while a backend may take no more load, the other ones get the reads, and the spread goes on", () => {
  const scene = new Scene();
  scene.plan(heavy, 0);
  scene.pass(60_000, 0, heavy);
  assert.equal(Object.keys(scene.plan(0, heavy, { b: 1 })), ["b"]);
  assert.is(scene.client.spread?.next(), "b");
  assert.equal(Object.keys(scene.plan(0, heavy, {})), ["b"]);
  assert.is(scene.client.spread?.isGathering, false);
});

test("a spread ends some time after the load; its work counts as the client's own, and no new one begins soon", () => {
  const scene = new Scene();
  scene.plan(heavy, 0);
  scene.pass(60_000, 0, heavy);
  scene.client.spread?.gather();
  assert.equal(Object.keys(scene.plan(0, heavy)), ["a"]);
  assert.is(scene.spreads.size, 1);
  scene.pass(balanceLimits.gatherMs, 0, heavy);
  assert.is(scene.spreads.size, 0);
  assert.is(scene.client.spread, undefined);
  const now = 1_000_000_000;
  assert.ok(scene.client.work.average(now, Number.MAX_SAFE_INTEGER) > 0);
  scene.pass(balanceLimits.restMs - 2 * balanceLimits.balanceMs, heavy, 0);
  assert.is(scene.spreads.size, 0);
  scene.pass(3 * balanceLimits.balanceMs, heavy, 0);
  assert.is(scene.spreads.size, 1);
});

test("a client that has disconnected is forgotten", () => {
  const scene = new Scene();
  scene.plan(heavy, 0);
  scene.client.disconnected();
  scene.plan(0, 0);
  assert.is(scene.spreads.size, 0);
});

test.run();
