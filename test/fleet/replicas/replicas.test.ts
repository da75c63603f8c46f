import { suite } from "uvu";
import * as assert from "uvu/assert";
import { replicaLimits } from "../../../src/fleet/replicas/limits.ts";
import { addressIn, addressOf, factsOf, listed, PlayedReplicas } from "../../support/replicas.ts";

const test = suite("fleet/replicas/replicas");

const three = listed(addressOf(1), addressOf(2), addressOf(3));

const named = { addresses: undefined, name: { hostname: "wk.svc", port: 7480 }, tls: undefined };

test("a process that is configured alone is the only replica, and asks none", async () => {
  const { replicas, asked, clock } = new PlayedReplicas();
  replicas.configure(undefined);
  clock.advance(60_000);
  assert.is(replicas.count, 1);
  assert.equal(
    replicas.rows.map(({ name, address, isSelf, state }) => ({ name, address, isSelf, state })),
    [{ name: "wk-1", address: "", isSelf: true, state: "live" }],
  );
  assert.equal(asked, []);
});

test("each address is asked at once and then every 5 s; the process recognises itself by its id", async () => {
  const played = new PlayedReplicas(1, 2, 3);
  played.replicas.configure(three);
  await played.settle();
  assert.equal(played.asked, [addressOf(1), addressOf(2), addressOf(3)]);
  assert.equal(played.states, ["wk-1 live", "wk-2 live", "wk-3 live"]);
  assert.equal(
    played.replicas.rows.map(({ address, isSelf }) => [address, isSelf]),
    [
      [addressOf(1), true],
      [addressOf(2), false],
      [addressOf(3), false],
    ],
  );
  assert.is(played.replicas.count, 3);
  await played.pass(4);
  assert.is(played.asked.length, 3);
  await played.pass(1);
  assert.is(played.asked.length, 6);
  played.replicas.stop();
  await played.pass(20);
  assert.is(played.asked.length, 6);
});

test("without an answer for 15 s a replica is silent, and the journal says so once, and when it is back", async () => {
  const played = new PlayedReplicas(1, 2, 3);
  played.replicas.configure(three);
  await played.pass(10);
  played.answers.delete(addressOf(3));
  await played.pass(14);
  assert.equal(played.states, ["wk-1 live", "wk-2 live", "wk-3 live"]);
  await played.pass(1);
  assert.equal(played.states, ["wk-1 live", "wk-2 live", "wk-3 silent"]);
  assert.is(played.replicas.named("wk-3")?.lastError, "ECONNREFUSED");
  await played.pass(60);
  const lost = played.entries.filter(({ kind }) => kind === "replica.lost");
  assert.equal(lost, [
    {
      kind: "replica.lost",
      replica: "wk-3",
      address: addressOf(3),
      silentMs: 15_000,
      reason: "ECONNREFUSED",
    },
  ]);
  played.answers.set(addressOf(3), factsOf(3));
  await played.pass(5);
  assert.equal(
    played.entries.map((entry) => (entry.kind === "replica.joined" ? entry.replica : entry.kind)),
    ["wk-2", "wk-3", "replica.lost", "wk-3"],
  );
  assert.is(played.replicas.named("wk-3")?.since, played.clock.now());
});

test("the share of a silent replica goes to the others only after another 30 s", async () => {
  const played = new PlayedReplicas(1, 2, 3);
  played.replicas.configure(three);
  await played.pass(10);
  assert.is(played.replicas.count, 3);
  played.answers.delete(addressOf(3));
  await played.pass(44);
  assert.is(played.replicas.count, 3);
  await played.pass(5);
  assert.is(played.replicas.count, 2);
  played.answers.set(addressOf(3), factsOf(3));
  await played.pass(5);
  assert.is(played.replicas.count, 3, "a replica that is back counts with its first answer");
});

test("a replica that answers now and then does not change the count", async () => {
  const played = new PlayedReplicas(1, 2);
  played.replicas.configure(listed(addressOf(1), addressOf(2)));
  await played.settle();
  const before = played.counts.length;
  for (let round = 0; round < 10; round += 1) {
    played.answers.delete(addressOf(2));
    await played.pass(30);
    assert.is(played.replicas.named("wk-2")?.state, "silent");
    played.answers.set(addressOf(2), factsOf(2));
    await played.pass(10);
  }
  assert.is(played.counts.length, before);
  assert.is(played.replicas.count, 2);
});

test("addresses that have not answered yet count for 15 s, so that no process begins with the whole quota", async () => {
  const played = new PlayedReplicas();
  played.replicas.configure(three);
  assert.is(played.replicas.count, 3);
  await played.pass(14);
  assert.is(played.replicas.count, 3);
  assert.equal(played.states, [`wk-1 live`, ...[1, 2, 3].map((number) => `${addressOf(number)} unknown`)]);
  await played.pass(6);
  assert.is(played.replicas.count, 1);
  assert.is(played.replicas.named(addressOf(2))?.state, "silent");
});

test("two addresses of one replica are one, and a new process at an address takes the place of the old one", async () => {
  const played = new PlayedReplicas(1, 2);
  played.answers.set("[fd00::2]:7480", factsOf(2));
  played.replicas.configure(listed(addressOf(1), addressOf(2), "[fd00::2]:7480"));
  await played.settle();
  assert.equal(played.states, ["wk-1 live", "wk-2 live"]);
  assert.is(played.replicas.count, 2);
  played.answers.delete(addressOf(2));
  await played.pass(60);
  assert.equal(
    played.replicas.rows.map(({ address, state }) => [address, state]),
    [
      [addressOf(1), "live"],
      ["[fd00::2]:7480", "live"],
    ],
  );
  played.answers.set("[fd00::2]:7480", factsOf(4));
  await played.pass(5);
  assert.is(played.replicas.named("wk-4")?.since, played.clock.now());
});

test("a replica at two addresses joins once, and is lost only when neither answers", async () => {
  const played = new PlayedReplicas(1, 2);
  const other = "[fd00::2]:7480";
  played.answers.set(other, factsOf(2));
  played.replicas.configure(listed(addressOf(1), addressOf(2), other));
  const kinds = (): string[] => played.entries.map(({ kind }) => kind);
  await played.pass(5);
  played.answers.delete(addressOf(2));
  await played.pass(60);
  assert.equal(kinds(), ["replica.joined"]);
  played.answers.delete(other);
  await played.pass(60);
  assert.equal(kinds(), ["replica.joined", "replica.lost"]);
  played.answers.set(addressOf(2), factsOf(2));
  played.answers.set(other, factsOf(2));
  await played.pass(5);
  assert.equal(kinds(), ["replica.joined", "replica.lost", "replica.joined"]);
});

test("addresses of a name in a family at which no replica answers are no replicas", async () => {
  const played = new PlayedReplicas(1, 2);
  played.replicas.configure(named);
  const found = ["10.0.0.1:7480", "10.0.0.2:7480", "10.0.0.3:7480", "[fd00::1]:7480", "[fd00::2]:7480"];
  played.resolved[0]?.found(found.map(addressIn));
  await played.pass(5);
  assert.equal(played.states, ["wk-1 live", `${addressOf(3)} unknown`, "wk-2 live"]);
  assert.is(played.replicas.count, 3);
  await played.pass(60);
  assert.equal(played.states, ["wk-1 live", `${addressOf(3)} silent`, "wk-2 live"]);
  played.answers.set("[fd00::1]:7480", factsOf(1));
  await played.pass(5);
  assert.is(played.replicas.named("[fd00::2]:7480")?.state, "silent");
});

test("addresses of two processes that answer in turn do not fill the journal", async () => {
  const played = new PlayedReplicas(1);
  played.replicas.configure(listed(addressOf(1), addressOf(9)));
  for (let round = 0; round < 10; round += 1) {
    played.answers.set(addressOf(9), factsOf(2 + (round % 2)));
    await played.pass(5);
  }
  assert.is(played.entries.length, 1);
});

test("at most 64 replicas share limits", async () => {
  const played = new PlayedReplicas();
  const many = Array.from({ length: 70 }, (_, at) => `10.1.0.${at + 1}:7480`);
  for (const [at, text] of many.entries()) played.answers.set(text, factsOf(100 + at));
  played.replicas.configure(listed(...many));
  await played.settle();
  assert.is(played.replicas.count, replicaLimits.replicas);
});

test("replicas with one host name are called by their addresses, and no name can be another's address", async () => {
  const played = new PlayedReplicas(1);
  played.answers.set(addressOf(2), factsOf(2, { name: "wk-1" }));
  played.answers.set(addressOf(3), factsOf(3, { name: "" }));
  played.replicas.configure(three);
  await played.settle();
  assert.equal(
    played.states,
    [1, 2, 3].map((number) => `${addressOf(number)} live`),
  );
  assert.is(played.replicas.named("wk-1"), undefined);
  assert.is(played.replicas.named(addressOf(2))?.facts?.id, factsOf(2).id);
  assert.is(played.replicas.named(""), undefined);
});

test("a name that no longer has an address: the replica is not asked, not called lost, and keeps its share for 15 s", async () => {
  const played = new PlayedReplicas(1, 2, 3);
  played.replicas.configure(named);
  const found = (...numbers: readonly number[]): void =>
    played.resolved[0]?.found(numbers.map((number) => addressIn(addressOf(number))));
  assert.is(played.replicas.count, 1);
  found(1, 2, 3);
  await played.settle();
  assert.is(played.replicas.count, 3);
  found(1, 2);
  await played.settle();
  const before = played.asked.length;
  await played.pass(14);
  assert.not.ok(played.asked.slice(before).includes(addressOf(3)));
  assert.is(played.replicas.count, 3);
  await played.pass(5);
  assert.is(played.replicas.count, 2);
  assert.equal(played.states, ["wk-1 live", "wk-2 live"]);
  assert.not.ok(played.entries.some(({ kind }) => kind === "replica.lost"));
});

test("a reload takes effect at once: addresses, a name in their place, and none", async () => {
  const played = new PlayedReplicas(1, 2, 3);
  played.replicas.configure(three);
  await played.settle();
  played.replicas.configure(listed(addressOf(1), addressOf(3)));
  assert.equal(played.states, ["wk-1 live", "wk-3 live"]);
  assert.is(played.replicas.count, 2);
  played.replicas.configure({ addresses: undefined, name: { hostname: "wk.svc", port: 1 }, tls: undefined });
  assert.equal(played.states, ["wk-1 live", "wk-3 live"], "until the name is resolved");
  assert.is(played.replicas.count, 2);
  await played.pass(20);
  assert.equal(played.states, ["wk-1 live"]);
  assert.is(played.replicas.count, 1);
  assert.is(played.resolved.length, 1);
  played.replicas.configure(undefined);
  assert.is(played.stopped, 1);
  const before = played.asked.length;
  await played.pass(20);
  assert.is(played.asked.length, before);
  assert.is(played.replicas.count, 1);
});

test("after a pause of this process, replicas are asked before any of them is called lost", async () => {
  const played = new PlayedReplicas(1, 2, 3);
  played.replicas.configure(three);
  await played.settle();
  const before = played.counts.length;
  played.clock.stall(120_000);
  await played.pass(1);
  assert.equal(played.states, ["wk-1 live", "wk-2 live", "wk-3 live"]);
  assert.not.ok(played.entries.some(({ kind }) => kind === "replica.lost"));
  assert.is(played.counts.length, before);
});

test("a fault in a request ends neither the round nor the rounds after it", async () => {
  const played = new PlayedReplicas(1, 2);
  played.throws = true;
  played.replicas.configure(listed(addressOf(1), addressOf(2)));
  await played.settle();
  assert.is(played.replicas.named(addressOf(2))?.lastError, "a fault");
  played.throws = false;
  await played.pass(5);
  assert.equal(played.states, ["wk-1 live", "wk-2 live"]);
});

test("at most 64 addresses are asked, 32 at a time, and removed ones do not pile up", async () => {
  const played = new PlayedReplicas();
  played.replicas.configure(named);
  const of = (block: number): string[] =>
    Array.from({ length: 70 }, (_, at) => `10.1.${block}.${at + 1}:7480`);
  played.resolved[0]?.found(of(0).map(addressIn));
  await played.settle();
  assert.is(played.mostOpen, replicaLimits.askedAtOnce);
  assert.is(played.asked.length, replicaLimits.replicas);
  for (const [at, text] of of(0).entries()) played.answers.set(text, factsOf(100 + at));
  await played.pass(5);
  for (let block = 1; block < 6; block += 1) {
    for (const [at, text] of of(block).entries()) played.answers.set(text, factsOf(block * 100 + at));
    played.resolved[0]?.found(of(block).map(addressIn));
    await played.pass(5);
  }
  assert.ok(played.replicas.rows.length <= 1 + 2 * replicaLimits.replicas, `${played.replicas.rows.length}`);
});

test.run();
