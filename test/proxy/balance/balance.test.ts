import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Balance, type BalanceParts } from "../../../src/proxy/balance/balance.ts";
import { countedClock } from "../../support/clock.ts";
import { bearer, type PlayedClient, PlayedPath } from "../../support/path.ts";
import { linesOf, ok } from "../../support/watch-path.ts";

const test = suite("proxy/balance/balance");

type Ear = ReturnType<PlayedClient["ask"]>;

/** Clients with three watches each, all on "a": "b" came back afterwards. */
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
  /** Time passes, and "b" takes what it is asked: it is as far as "a", which a bookmark shows. */
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
  pass(limits.slowStartMs - 1000);
  assert.is(onB(), 0);
  pass(20_000);
  const early = onB();
  assert.ok(early >= 1 && early <= 5, `${early} of 20 after about 20 s`);
  pass(60_000);
  assert.ok(onB() >= 8 && onB() <= 10, `${onB()} of 20 in the end`);
  // Each moved client is there with all that it has.
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

test("who has an exec or a log open stays where it is", () => {
  const { path, clients, pass, onB } = crowd(4);
  for (const client of clients)
    client.ask("GET", "/api/v1/namespaces/x/pods/y/log?follow=true", [bearer("t")]);
  path.settle();
  pass(limits.slowStartMs + 60_000);
  assert.is(onB(), 0);
});

test("a backend that goes again on the way is not gone to", () => {
  const { path, clients, b, pass, onB } = crowd(20);
  pass(limits.slowStartMs + 5000);
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
    const client = { backend: "a", rebound: undefined };
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
    exchanges: { live },
    migrations: {
      leave: () => {
        sent += 1;
      },
    },
    shares: () => new Map(["a", "b"].map((name) => [name, 1])),
  } as unknown as BalanceParts;
  const balance = new Balance(parts);
  balance.start();
  clock.advance(limits.balanceMs);
  balance.stop();
  assert.ok(Math.max(...perTurn.values()) <= limits.sliceEntries, String(Math.max(...perTurn.values())));
  assert.is(sent, 50_000 * limits.rebalanceShare * (limits.balanceMs / 1000));
});

test.run();
