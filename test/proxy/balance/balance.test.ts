import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sliceLimits } from "../../../src/base/slices.ts";
import { allowanceOf, Balance, type BalanceParts } from "../../../src/proxy/balance/balance.ts";
import { balanceLimits } from "../../../src/proxy/balance/limits.ts";
import { type ClientLoad, planMoves, Rests, sharesByZone } from "../../../src/proxy/balance/plan-moves.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { countedClock } from "../../support/clock.ts";
import { bearer, type PlayedClient, PlayedPath } from "../../support/path.ts";
import { linesOf, ok } from "../../support/watch-path.ts";

const test = suite("proxy/balance/balance");

type Ear = ReturnType<PlayedClient["ask"]>;

/** Opens three watches of each client, all on "a", because "b" is up only afterwards. */
function crowd(count: number) {
  const path = new PlayedPath(["a", "b"], { down: ["b"] });
  path.clock.advance(1000);
  const clients = Array.from({ length: count }, () => path.client());
  const ears: Ear[] = [];
  for (const [index, client] of clients.entries())
    for (const name of ["configmaps", "pods", "secrets"]) {
      const fields = [bearer(`${name}-${index}`)];
      ears.push(client.ask("GET", `/api/v1/${name}?watch=true&resourceVersion=7`, fields));
      path.clock.advance(20);
    }
  const [a, b] = [path.backend("a"), path.backend("b")];
  let served = 0;
  for (const asked of a.asked) {
    asked.side?.sendHeaders(ok, false);
    asked.say(linesOf("+8a"));
  }
  b.isDown = false;
  /**
   * Advances time. Meanwhile "b" answers each watch that it is asked for with a bookmark, which shows that its cache is
   * as current as that of "a".
   */
  const pass = (ms: number): void => {
    for (let at = 0; at < ms; at += 50) {
      path.clock.advance(50);
      for (; served < b.asked.length; served += 1) {
        b.asked[served]?.side?.sendHeaders(ok, false);
        b.asked[served]?.say(linesOf("=9"));
      }
    }
  };
  const onB = (): number => clients.filter(({ downstream }) => downstream.client.backend === "b").length;
  return { path, clients, ears, a, b, pass, onB };
}

test("when a backend has come back and is warm, clients follow at 1 % a second, and feel nothing (F16)", () => {
  const { path, clients, ears, a, b, pass, onB } = crowd(20);
  assert.is(a.asked.length, 60);
  pass(upstreamLimits.slowStartMs - 1000);
  assert.is(onB(), 0);
  pass(20_000);
  const early = onB();
  assert.ok(early >= 1 && early <= 5, `${early} of 20 after about 20 s`);
  pass(60_000);
  assert.ok(onB() >= 8 && onB() <= 10, `${onB()} of 20 in the end`);
  // Each moved client has all of its three watches on "b".
  assert.is(b.asked.length, 3 * onB());
  assert.is(path.migrations.moves.get("rebalance"), 3 * onB());
  for (const ear of ears) {
    assert.ok([linesOf("+8a"), linesOf("+8a =9")].includes(ear.body), ear.body);
    assert.equal([ear.isEnded, ear.resetCode], [false, undefined]);
  }
  const moved = clients.find(({ downstream }) => downstream.client.backend === "b");
  assert.is(moved?.downstream.client.rebound, undefined);
  moved?.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  assert.is(b.last.request.path, "/api/v1/pods");
  const before = onB();
  pass(60_000);
  assert.is(onB(), before);
});

test("a client with an exec or a log open stays where it is", () => {
  const { path, clients, pass, onB } = crowd(4);
  for (const client of clients)
    client.ask("GET", "/api/v1/namespaces/x/pods/y/log?follow=true", [bearer("t")]);
  path.settle();
  pass(upstreamLimits.slowStartMs + 60_000);
  assert.is(onB(), 0);
});

test("a backend that goes again on the way is not gone to", () => {
  const { path, clients, b, pass, onB } = crowd(20);
  pass(upstreamLimits.slowStartMs + 5000);
  const before = onB();
  b.kill();
  path.clock.advance(60_000);
  assert.ok(before <= 2);
  assert.ok(clients.every(({ downstream: { client } }) => client.rebound === undefined));
});

test("50,000 watches of as many clients are looked through in slices, and 1 % of the clients a second are sent", () => {
  const clock = countedClock();
  const perTurn = new Map<number, number>();
  const live = Array.from({ length: 50_000 }, () => {
    const client = {
      backend: "a",
      rebound: undefined,
      work: { average: () => 0 },
      rebind(to: undefined) {
        this.rebound = to;
      },
    };
    return {
      context: { kind: "watch", client },
      isEnded: false,
      get watch() {
        perTurn.set(clock.turns, (perTurn.get(clock.turns) ?? 0) + 1);
        return { mayHedge: true, attempt: { backend: "a" }, client };
      },
    };
  });
  let sent = 0;
  const parts = {
    clock,
    exchanges: { live, takeBusy: () => new Set() },
    migrations: {
      leave: () => {
        sent += 1;
      },
    },
    shares: {
      of: () => new Map(["a", "b"].map((name) => [name, 1])),
      mayGet: () => true,
      isNear: () => true,
      measured: () => {},
    },
  } as unknown as BalanceParts;
  const balance = new Balance(parts);
  balance.start();
  clock.advance(balanceLimits.balanceMs);
  balance.stop();
  assert.ok(Math.max(...perTurn.values()) <= sliceLimits.sliceEntries, String(Math.max(...perTurn.values())));
  assert.is(sent, 50_000 * balanceLimits.rebalanceShare * (balanceLimits.balanceMs / 1000));
});

/** Returns clients of a backend, one for each load. */
function on(backend: string, ...loads: number[]): ClientLoad<string>[] {
  return loads.map((load, index) => ({ client: `${backend}${index}`, backend, load, isMovable: true }));
}

const even = new Map([
  ["a", 1],
  ["b", 1],
]);

const shown = (
  loads: readonly ClientLoad<string>[],
  shares: ReadonlyMap<string, number>,
  most: number,
): string[] => planMoves(loads, shares, most).map(({ client, from, to }) => `${client} ${from}>${to}`);

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

test("a client that cannot be moved unseen stays, and so does one that is larger than the gap", () => {
  const bound = on("a", 10, 10).map((one) => ({ ...one, isMovable: false }));
  assert.equal(shown(bound, even, 9), []);
  assert.equal(shown(on("a", 100), even, 9), []);
  assert.equal(shown([...on("a", 100, 1), ...on("b", 40)], even, 9), ["a1 a>b"]);
});

test("clients on a backend that takes no new clients are not evened out", () => {
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
    const clients = names.flatMap((name) =>
      on(name, ...Array.from({ length: random(12) }, () => random(30))),
    );
    const shares = new Map(names.map((name) => [name, 1]));
    const moves = planMoves(clients, shares, 1 + random(5));
    const spread = (of: readonly ClientLoad<string>[]): number => {
      const loads = names.map((name) =>
        of.filter((one) => one.backend === name).reduce((sum, one) => sum + one.load, 0),
      );
      return Math.max(...loads) - Math.min(...loads);
    };
    const moved = new Map(moves.map(({ client, to }) => [client, to]));
    assert.is(moved.size, moves.length);
    const after = clients.map((one) => ({ ...one, backend: moved.get(one.client) ?? one.backend }));
    assert.ok(spread(after) <= spread(clients), `round ${round}`);
  }
});

test("1 % of the clients a second", () => {
  assert.is(allowanceOf(5000, 1000), 50);
  assert.is(allowanceOf(10, 1000), 0.1);
});

test("clients stay in the own zone while its backends have little load; otherwise the others get their part", () => {
  const shares = new Map(["a", "b", "c"].map((name) => [name, 1]));
  const shareOf = (load: number): number[] =>
    [...sharesByZone([{ backend: "a", load }], shares, (name) => name !== "c").values()].map(Math.round);
  const { spillFloor } = upstreamLimits;
  assert.equal(shareOf(2 * spillFloor), [spillFloor, spillFloor, 0]);
  // For a load of 700, the backend in the other zone gets 100, because 2 × (spillRatio × 100 + spillFloor) + 100 = 700.
  assert.equal(shareOf(700), [300, 300, 100]);
  assert.is(
    sharesByZone([], shares, () => true),
    shares,
  );
  assert.is(
    sharesByZone([], shares, () => false),
    shares,
  );
});

test("a client that was moved rests, longer each time, and as before after an hour", () => {
  const [rests, client] = [new Rests(), {}];
  const { restMs, restMostMs } = balanceLimits;
  assert.is(rests.isResting(client, 0), false);
  rests.moved(client, 0);
  assert.equal([rests.isResting(client, restMs - 1), rests.isResting(client, restMs)], [true, false]);
  rests.moved(client, restMs);
  assert.equal([rests.isResting(client, 3 * restMs - 1), rests.isResting(client, 3 * restMs)], [true, false]);
  const later = 3 * restMs + restMostMs;
  rests.moved(client, later);
  assert.is(rests.isResting(client, later + restMs), false);
  for (let moves = 0; moves < 20; moves += 1) rests.moved(client, later);
  assert.is(rests.isResting(client, later + restMostMs), false);
});

test("a backend that comes or goes ends all rests", () => {
  const [rests, client] = [new Rests(), {}];
  rests.among(["a", "b"]);
  rests.moved(client, 0);
  rests.among(["b", "a"]);
  assert.ok(rests.isResting(client, 1));
  rests.among(["a"]);
  assert.not(rests.isResting(client, 1));
});

test("if one client is the whole load of a backend, the other backends even out among themselves", () => {
  const client = (name: string, backend: string, load: number) => ({
    client: name,
    backend,
    load,
    isMovable: true,
  });
  const small = Array.from({ length: 10 }, (_, at) => client(`small-${at}`, "b", 1));
  const shares = new Map(["a", "b", "c"].map((name) => [name, 1]));
  const moves = planMoves([client("large", "a", 60), ...small], shares, 100);
  assert.is(moves.length, 5);
  assert.ok(moves.every(({ from, to }) => from === "b" && to === "c"));
});

test.run();
