import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allowanceOf, planMoves, type Sitter } from "../../../src/proxy/balance/rebalance.ts";

const test = suite("proxy/balance/rebalance");

/** Clients of a backend, by what each has open. */
function on(backend: string, ...loads: number[]): Sitter<string>[] {
  return loads.map((load, index) => ({ client: `${backend}${index}`, backend, load, isMovable: true }));
}

const even = new Map([
  ["a", 1],
  ["b", 1],
]);

const shown = (
  sitters: readonly Sitter<string>[],
  shares: ReadonlyMap<string, number>,
  most: number,
): string[] => planMoves(sitters, shares, most).map(({ client, from, to }) => `${client} ${from}>${to}`);

test("the fullest gives to the emptiest, in as few moves as it takes", () => {
  assert.equal(shown(on("a", 10, 20, 30, 40), even, 9), ["a3 a>b", "a0 a>b"]);
  const three = new Map([...even, ["c", 1] as const]);
  const ten = Array.from({ length: 9 }, () => 10);
  assert.is(shown(on("a", ...ten), three, 99).length, 6);
});

test("no more than it may, and nothing when the load is even enough", () => {
  const many = Array.from({ length: 100 }, () => 1);
  assert.is(shown(on("a", ...many), even, 3).length, 3);
  assert.is(shown(on("a", ...many), even, 0).length, 0);
  assert.equal(shown([...on("a", 52), ...on("b", 48)], even, 9), []);
  assert.equal(shown([], even, 9), []);
  assert.equal(shown(on("a", 5), new Map(), 9), []);
});

test("a backend that is still coming back is filled to its part only", () => {
  const shares = new Map([
    ["a", 1],
    ["b", 0.25],
  ]);
  const many = Array.from({ length: 100 }, () => 1);
  const moves = shown(on("a", ...many), shares, 99);
  assert.ok(moves.length >= 14 && moves.length <= 20, `${moves.length} moves`);
});

test("who cannot be moved unseen stays, and so does one that is larger than the gap", () => {
  const bound = on("a", 10, 10).map((sitter) => ({ ...sitter, isMovable: false }));
  assert.equal(shown(bound, even, 9), []);
  assert.equal(shown(on("a", 100), even, 9), []);
  assert.equal(shown([...on("a", 100, 1), ...on("b", 40)], even, 9), ["a1 a>b"]);
});

test("clients on a backend that takes nobody are no business of this", () => {
  assert.equal(shown([...on("dead", 100), ...on("a", 10), ...on("b", 10)], even, 9), []);
});

test("no plan leaves the load less even than it was, and none moves a client twice", () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (seed >> 8) % below;
  };
  for (let round = 0; round < 300; round += 1) {
    const names = ["a", "b", "c"].slice(0, 1 + random(3));
    const sitters = names.flatMap((name) =>
      on(name, ...Array.from({ length: random(12) }, () => random(30))),
    );
    const shares = new Map(names.map((name) => [name, 1]));
    const moves = planMoves(sitters, shares, 1 + random(5));
    const spread = (of: readonly Sitter<string>[]): number => {
      const loads = names.map((name) =>
        of.filter((one) => one.backend === name).reduce((sum, one) => sum + one.load, 0),
      );
      return Math.max(...loads) - Math.min(...loads);
    };
    const moved = new Map(moves.map(({ client, to }) => [client, to]));
    assert.is(moved.size, moves.length);
    const after = sitters.map((one) => ({ ...one, backend: moved.get(one.client) ?? one.backend }));
    assert.ok(spread(after) <= spread(sitters), `round ${round}`);
  }
});

test("1 % of the clients a second", () => {
  assert.is(allowanceOf(5000, 1000), 50);
  assert.is(allowanceOf(10, 1000), 0.1);
});

test.run();
