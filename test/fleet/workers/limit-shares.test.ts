import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type CountsByLimit, LimitShares } from "../../../src/fleet/workers/limit-shares.ts";

const test = suite("fleet/workers/limit-shares");
const key = "config ci";

function counted(passed: number, refused = 0, inFlight = 0): CountsByLimit {
  return { [key]: { passed, refused, inFlight } };
}

function sharesOf(shares: LimitShares, ...counts: readonly CountsByLimit[]): readonly number[] {
  const next = shares.next(new Map(counts.map((one, at) => [at + 1, one])), [key]);
  return Array.from(next.values(), (share) => Math.round((share[key] ?? Number.NaN) * 1000) / 1000);
}

test("without requests, and at first, a limit is divided evenly", () => {
  assert.equal(sharesOf(new LimitShares(), {}, {}, {}, {}), [0.25, 0.25, 0.25, 0.25]);
});

test("a worker gets its share by the demand of the last second, refused requests included", () => {
  const shares = new LimitShares();
  sharesOf(shares, counted(1000), counted(0));
  assert.equal(sharesOf(shares, counted(1000), counted(10, 90)), [0.05, 0.95]);
  assert.equal(sharesOf(shares, counted(1030), counted(20, 110)), [0.5, 0.5]);
  assert.equal(sharesOf(shares, counted(1030, 0, 3), counted(20, 110, 1)), [0.725, 0.275]);
});

test("the shares add up to the whole limit, whatever the workers count", () => {
  const shares = new LimitShares();
  for (let round = 1; round < 50; round += 1) {
    const all = [1, 2, 3].map((worker) =>
      counted((round * worker * 7919) % 101, (round * worker * 104_729) % 97),
    );
    const next = shares.next(new Map(all.map((one, at) => [at, one])), [key]);
    const sum = Array.from(next.values()).reduce((total, share) => total + (share[key] ?? 0), 0);
    assert.ok(Math.abs(sum - 1) < 1e-9, `${sum}`);
    assert.ok(Array.from(next.values()).every((share) => (share[key] ?? 0) >= 0.033));
  }
});

test("what a worker has counted stays when it ends, as long as the limit is in force", () => {
  const shares = new LimitShares();
  shares.ended(1, counted(5, 3, 2));
  assert.equal(shares.totalOf(key, [counted(1, 1, 1), {}]), { passed: 6, refused: 4, inFlight: 1 });
  shares.keepOnly(new Set([key]));
  assert.is(shares.totalOf(key, []).passed, 5);
  shares.keepOnly(new Set());
  assert.is(shares.totalOf(key, []).passed, 0);
});

test.run();
